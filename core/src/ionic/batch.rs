//! Posting: requests of any number under one doorbell, all or none.

use super::cq::CqRing;
use crate::queue::Doorbell;
use crate::verbs::{BatchError, CqId, PostError};

/// A queue that requests are posted to. All that is posted goes through it, one by one: a batch is the same as its requests
/// one after the other, but for the doorbell.
pub trait WorkQueue {
    /// A request.
    type Request<'r>;

    /// Completion queue ring that requests complete to.
    fn cq(&self) -> CqId;

    /// Position of the next request.
    fn position(&self) -> u32;

    /// Writes the WQE of a request of the plainest form. `false`, and nothing was done, if it is something else, or wrong, or
    /// if more is to be looked at first.
    fn put_plain(&mut self, request: &Self::Request<'_>) -> bool;

    /// Writes the WQE of a request of any form.
    ///
    /// # Errors
    /// Why it cannot be posted; nothing was written.
    fn put(&mut self, request: &Self::Request<'_>) -> Result<(), PostError>;

    /// Takes back the last WQE before the device was told of it.
    fn take_back(&mut self);

    /// Tells the device of the last `count` WQEs.
    fn publish<D: Doorbell>(&self, count: u32, doorbell: &D);

    /// The doorbell that tells the device of all WQEs.
    fn doorbell(&self) -> u64;
}

fn check_cq<Q: WorkQueue>(queue: &Q, cq: &CqRing<'_>) -> Result<(), PostError> {
    if cq.id() == queue.cq() {
        return Ok(());
    }
    Err(PostError::WrongCq { given: cq.id(), attached: queue.cq() })
}

/// Posts one request, if it is of the plainest form and nothing else is to be done. `false`, and nothing was done, if not.
#[inline(always)]
pub(super) fn post_plain<Q: WorkQueue, D: Doorbell>(
    queue: &mut Q,
    cq: &mut CqRing<'_>,
    request: &Q::Request<'_>,
    doorbell: &D,
) -> bool {
    if cq.id() != queue.cq() || !cq.has_credit() || !queue.put_plain(request) {
        return false;
    }
    cq.spend_one();
    queue.publish(1, doorbell);
    true
}

/// Posts all of `requests` under one doorbell, or none.
///
/// # Errors
/// Another completion queue ring than the queue's, or the first request that cannot be posted.
#[inline(always)]
pub(super) fn post<Q: WorkQueue, D: Doorbell>(
    queue: &mut Q,
    cq: &mut CqRing<'_>,
    requests: &[Q::Request<'_>],
    doorbell: &D,
) -> Result<(), BatchError> {
    check_cq(queue, cq).map_err(|error| BatchError { index: 0, error })?;
    let start = queue.position();
    let mut rest = requests;
    // A loop of its own keeps what it needs in registers.
    while let [request, behind @ ..] = rest
        && queue.put_plain(request)
    {
        rest = behind;
    }
    for request in rest {
        if let Err(error) = queue.put(request) {
            let index = queue.position().wrapping_sub(start) as usize;
            take_back(queue, start);
            return Err(BatchError { index, error });
        }
    }
    if !requests.is_empty() {
        tell(queue, requests.len() as u32, cq, doorbell);
    }
    Ok(())
}

/// Tells the device of the last `count` requests: first the completion queue's doorbell if its credit is spent, then the
/// queue's.
#[inline(always)]
fn tell<Q: WorkQueue, D: Doorbell>(queue: &Q, count: u32, cq: &mut CqRing<'_>, doorbell: &D) {
    cq.spend(count, doorbell);
    queue.publish(count, doorbell);
}

/// Takes back the requests from `start` on.
#[cold]
fn take_back<Q: WorkQueue>(queue: &mut Q, start: u32) {
    while queue.position() != start {
        queue.take_back();
    }
}

/// Requests that are posted under one doorbell. Dropping it instead of [`Batch::commit`] undoes them.
#[derive(Debug)]
#[must_use = "a batch that is dropped undoes its posts"]
pub struct Batch<'q, 'c, Q: WorkQueue> {
    queue: &'q mut Q,
    cq: &'q mut CqRing<'c>,
    /// Position of its first request.
    start: u32,
}

impl<'q, 'c, Q: WorkQueue> Batch<'q, 'c, Q> {
    /// An empty batch.
    ///
    /// # Errors
    /// Another completion queue ring than the queue's.
    #[inline(always)]
    pub(super) fn new(queue: &'q mut Q, cq: &'q mut CqRing<'c>) -> Result<Self, PostError> {
        check_cq(queue, cq)?;
        Ok(Self { start: queue.position(), queue, cq })
    }

    /// Posts a request.
    ///
    /// # Errors
    /// Why it cannot be posted; nothing was written, and the batch may go on.
    #[inline(always)]
    pub fn post(&mut self, request: &Q::Request<'_>) -> Result<(), PostError> {
        if self.queue.put_plain(request) { Ok(()) } else { self.post_other(request) }
    }

    #[inline(never)]
    fn post_other(&mut self, request: &Q::Request<'_>) -> Result<(), PostError> {
        self.queue.put(request)
    }

    /// Requests in the batch.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.queue.position().wrapping_sub(self.start)
    }

    /// The doorbell that [`Batch::commit`] stores.
    pub fn doorbell(&self) -> u64 {
        self.queue.doorbell()
    }

    /// Tells the device: first the completion queue's doorbell if its credit is spent, then the queue's.
    #[inline(always)]
    pub fn commit<D: Doorbell>(self, doorbell: &D) {
        let mut this = core::mem::ManuallyDrop::new(self);
        let this = &mut *this;
        let count = this.len();
        if count != 0 {
            tell(this.queue, count, this.cq, doorbell);
        }
    }
}

impl<Q: WorkQueue> Drop for Batch<'_, '_, Q> {
    #[inline]
    fn drop(&mut self) {
        take_back(self.queue, self.start);
    }
}
