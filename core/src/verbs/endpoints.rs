use core::marker::PhantomData;

use super::SrqId;

/// A queue pair that a poller can find.
pub trait Pollable {
    /// What the device's CQEs name it by: the handle given at creation (bnxt_re) or its number (ionic).
    fn key(&self) -> u32;

    /// Counts the reasons to flush: it moves whenever the queue pair goes into error, or something is posted to it
    /// there. A completion queue that has seen the count move looks for requests to flush.
    fn flush_seq(&self) -> u32;
}

/// The queue pairs and shared receive queues that a completion queue serves: what a poller looks CQEs up in.
///
/// Lookups take closures, so that the queues may sit in a table, in a slice, or behind locks.
pub trait Endpoints<Q, S> {
    /// Runs `f` on the queue pair with `key`.
    fn with_qp<R>(&mut self, key: u32, f: impl FnOnce(&mut Q) -> R) -> Option<R>;

    /// The queue pair with `key`, if it is at hand: without a lock or a search. `None` says nothing, and is what there is to
    /// say for endpoints behind locks. The pollers' shortest path asks here: it does nothing to the queue pair that moves its
    /// [`Pollable::flush_seq`], and calls nothing, so that it has few registers to save.
    #[inline(always)]
    fn qp_at_hand(&mut self, key: u32) -> Option<&mut Q> {
        let _ = key;
        None
    }

    /// Runs `f` on the shared receive queue `id`.
    fn with_srq<R>(&mut self, id: SrqId, f: impl FnOnce(&mut S) -> R) -> Option<R>;

    /// Runs `f` on each queue pair until it returns `false`.
    fn each_qp(&mut self, f: impl FnMut(&mut Q) -> bool);

    /// Moves whenever [`Pollable::flush_seq`] of one of the queue pairs moves.
    fn flush_seq(&self) -> u32;
}

/// [`Endpoints`] over slices, searched from the front: for a handful of queues.
#[derive(Debug)]
pub struct Slices<'a, Q, S> {
    /// Queue pairs.
    pub qps: &'a mut [Q],
    /// Shared receive queues.
    pub srqs: &'a mut [S],
}

impl<Q: Pollable, S: super::SharedReceiveQueue> Endpoints<Q, S> for Slices<'_, Q, S> {
    fn with_qp<R>(&mut self, key: u32, f: impl FnOnce(&mut Q) -> R) -> Option<R> {
        self.qps.iter_mut().find(|q| q.key() == key).map(f)
    }

    #[inline(always)]
    fn qp_at_hand(&mut self, key: u32) -> Option<&mut Q> {
        self.qps.first_mut().filter(|q| q.key() == key)
    }

    fn with_srq<R>(&mut self, id: SrqId, f: impl FnOnce(&mut S) -> R) -> Option<R> {
        self.srqs.iter_mut().find(|s| s.id() == id).map(f)
    }

    fn each_qp(&mut self, mut f: impl FnMut(&mut Q) -> bool) {
        for qp in self.qps.iter_mut() {
            if !f(qp) {
                return;
            }
        }
    }

    fn flush_seq(&self) -> u32 {
        self.qps.iter().fold(0, |sum, qp| sum.wrapping_add(qp.flush_seq()))
    }
}

/// What a platform wraps around a queue `Q` of a family.
pub trait Wrapper<Q> {
    /// The queue; none if a queue of another family is inside.
    fn queue(&mut self) -> Option<&mut Q>;
}

/// The caller's endpoints as a family's poller needs them: without what the platform wraps around its queues.
#[derive(Debug)]
pub struct Unwrapped<'e, E, Q, S> {
    endpoints: &'e mut E,
    wrappers: PhantomData<fn() -> (Q, S)>,
}

impl<'e, E: Endpoints<Q, S>, Q, S> Unwrapped<'e, E, Q, S> {
    /// Looks through the wrappers of `endpoints`.
    #[inline(always)]
    pub fn new(endpoints: &'e mut E) -> Self {
        Self { endpoints, wrappers: PhantomData }
    }
}

impl<E, Q, S, InnerQ, InnerS> Endpoints<InnerQ, InnerS> for Unwrapped<'_, E, Q, S>
where
    E: Endpoints<Q, S>,
    Q: Wrapper<InnerQ>,
    S: Wrapper<InnerS>,
{
    #[inline(always)]
    fn with_qp<R>(&mut self, key: u32, f: impl FnOnce(&mut InnerQ) -> R) -> Option<R> {
        self.endpoints.with_qp(key, |qp| qp.queue().map(f)).flatten()
    }

    #[inline(always)]
    fn with_srq<R>(&mut self, id: SrqId, f: impl FnOnce(&mut InnerS) -> R) -> Option<R> {
        self.endpoints.with_srq(id, |srq| srq.queue().map(f)).flatten()
    }

    fn each_qp(&mut self, mut f: impl FnMut(&mut InnerQ) -> bool) {
        self.endpoints.each_qp(|qp| qp.queue().is_none_or(&mut f));
    }

    #[inline(always)]
    fn flush_seq(&self) -> u32 {
        self.endpoints.flush_seq()
    }
}
