//! Queues together with their doorbell page: the form that the traits of [`crate::verbs`] are implemented for. A
//! platform gives the page; everything else is the same everywhere.

use core::marker::PhantomData;

use super::cq::CompletionQueue;
use super::doorbell::Toggle;
use super::push::{PushBuffer, is_pushed};
use super::qp::{AsQueuePair, AsSharedReceiveQueue, QueuePair};
use super::srq::SharedReceiveQueue;
use crate::queue::{DeviceMemory, Doorbell, Store};
use crate::verbs::{
    self, BatchError, CqFault, CqId, Endpoints, Pollable, PostError, QpCapabilities, QpId, QpState, QpType,
    RecvRequest, SendRequest, SrqId, WorkCompletion,
};

/// The doorbell page of a queue, and its toggle page if it has one.
pub trait Page: Doorbell {
    /// What the queue's toggle page holds now: a volatile load. A device without toggle pages keeps zero.
    fn toggle(&self) -> Toggle {
        Toggle::ZERO
    }
}

impl<D: Page + ?Sized> Page for &D {
    fn toggle(&self) -> Toggle {
        (**self).toggle()
    }
}

/// A queue pair with its doorbell page.
#[derive(Debug)]
pub struct AttachedQp<'m, S: Store, D> {
    /// The queue pair.
    pub qp: QueuePair<'m, S>,
    /// Its page.
    pub page: D,
}

/// A completion queue with its doorbell page.
#[derive(Debug)]
pub struct AttachedCq<'m, S: Store, D> {
    /// The completion queue.
    pub cq: CompletionQueue<'m>,
    /// Its page.
    pub page: D,
    store: PhantomData<fn() -> S>,
}

impl<'m, S: Store, D> AttachedCq<'m, S, D> {
    /// Puts the two together.
    pub const fn new(cq: CompletionQueue<'m>, page: D) -> Self {
        Self { cq, page, store: PhantomData }
    }
}

/// A shared receive queue with its doorbell page.
#[derive(Debug)]
pub struct AttachedSrq<'m, S: Store, D> {
    /// The queue.
    pub srq: SharedReceiveQueue<'m, S>,
    /// Its page.
    pub page: D,
}

impl<S: Store, D> Pollable for AttachedQp<'_, S, D> {
    #[inline(always)]
    fn key(&self) -> u32 {
        self.qp.key()
    }

    #[inline(always)]
    fn flush_seq(&self) -> u32 {
        self.qp.flush_seq()
    }
}

impl<'m, S: Store, D> AsQueuePair<'m> for AttachedQp<'m, S, D> {
    type Store = S;
    #[inline(always)]
    fn as_queue_pair(&mut self) -> &mut QueuePair<'m, S> {
        &mut self.qp
    }
}

impl<'m, S: Store, D> AsSharedReceiveQueue<'m> for AttachedSrq<'m, S, D> {
    type Store = S;
    #[inline(always)]
    fn as_srq(&mut self) -> &mut SharedReceiveQueue<'m, S> {
        &mut self.srq
    }
}

fn right_cq(attached: CqId, given: CqId) -> Result<(), BatchError> {
    if attached == given {
        return Ok(());
    }
    Err(BatchError { index: 0, error: PostError::WrongCq { given, attached } })
}

impl<'m, S: Store, D: Page> AttachedQp<'m, S, D> {
    /// Posts one request by push; `cq` is the send completion queue.
    ///
    /// # Errors
    /// As for a post, or a WQE that is too long for the buffer.
    pub fn push<M: DeviceMemory>(
        &mut self,
        cq: &AttachedCq<'m, S, D>,
        request: &SendRequest<'_>,
        buffer: &PushBuffer<M>,
    ) -> Result<(), BatchError> {
        right_cq(self.qp.send_cq(), cq.cq.id())?;
        self.qp.push(request, buffer, &self.page).map_err(|error| BatchError { index: 0, error })
    }

    /// Posts like [`verbs::QueuePair::post_send`], but by push if it is a single request [that is pushed](is_pushed).
    ///
    /// # Errors
    /// As for a post.
    #[inline]
    pub fn post_send_by<M: DeviceMemory>(
        &mut self,
        cq: &mut AttachedCq<'m, S, D>,
        requests: &[SendRequest<'_>],
        buffer: &PushBuffer<M>,
    ) -> Result<(), BatchError> {
        match requests {
            [request] if is_pushed(request) => self.push(cq, request, buffer),
            _ => verbs::QueuePair::post_send(self, cq, requests),
        }
    }
}

impl<'m, S: Store, D: Page> verbs::QueuePair for AttachedQp<'m, S, D> {
    type CompletionQueue = AttachedCq<'m, S, D>;

    fn id(&self) -> QpId {
        self.qp.id()
    }

    fn qp_type(&self) -> QpType {
        self.qp.qp_type()
    }

    fn state(&self) -> QpState {
        self.qp.state()
    }

    fn capabilities(&self) -> QpCapabilities {
        self.qp.capabilities()
    }

    #[inline]
    fn post_send(
        &mut self,
        cq: &mut Self::CompletionQueue,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        right_cq(self.qp.send_cq(), cq.cq.id())?;
        self.qp.post_send(&self.page, requests)
    }

    #[inline]
    fn post_recv(
        &mut self,
        cq: &mut Self::CompletionQueue,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        right_cq(self.qp.recv_cq(), cq.cq.id())?;
        self.qp.post_recv(&self.page, requests)
    }
}

impl<'m, S: Store, D: Page> verbs::CompletionQueue for AttachedCq<'m, S, D> {
    type QueuePair = AttachedQp<'m, S, D>;
    type SharedReceiveQueue = AttachedSrq<'m, S, D>;

    fn id(&self) -> CqId {
        self.cq.id()
    }

    #[inline]
    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<Self::QueuePair, Self::SharedReceiveQueue>,
    {
        self.cq.poll(endpoints, &self.page, out)
    }

    fn arm(&mut self, solicited_only: bool) {
        self.cq.arm(solicited_only, self.page.toggle(), &self.page);
    }
}

impl<S: Store, D: Page> verbs::SharedReceiveQueue for AttachedSrq<'_, S, D> {
    fn id(&self) -> SrqId {
        self.srq.id()
    }

    fn post_recv(&mut self, requests: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        let mut batch = self.srq.batch();
        for (index, request) in requests.iter().enumerate() {
            batch.post(request).map_err(|error| BatchError { index, error })?;
        }
        batch.commit(&self.page);
        Ok(())
    }

    fn arm_limit(&mut self, limit: u32) {
        self.srq.arm_limit(limit, self.page.toggle(), &self.page);
    }
}
