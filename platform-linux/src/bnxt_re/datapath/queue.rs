//! Queues that are posted to and polled.

use directverbs::bnxt_re::attached::{AttachedCq, AttachedQp, AttachedSrq};
use directverbs::queue::Boxed;
use directverbs::verbs::{
    self, BatchError, CqFault, CqId, Endpoints, Pollable, QpCapabilities, QpId, QpState, QpType, RecvRequest,
    SendRequest, SrqId, Unwrapped, WorkCompletion, Wrapper,
};

use super::page::QueuePage;
use crate::bnxt_re::{self, ClaimedBuffer};
use crate::uverbs::Owned;

// The page is private to this crate, and with it these types: nobody outside can move a queue away from its memory.
type InnerQp = AttachedQp<'static, Boxed, QueuePage>;
type InnerCq = AttachedCq<'static, Boxed, QueuePage>;
type InnerSrq = AttachedSrq<'static, Boxed, QueuePage>;

/// A queue pair.
#[derive(Debug)]
pub struct QueuePair {
    // Dropped in this order: what the kernel's object still uses is held by that.
    pub(super) queue: Owned<InnerQp>,
    pub(super) push: Option<ClaimedBuffer>,
    pub(super) control: bnxt_re::QueuePair,
}

impl QueuePair {
    /// The kernel's side of it.
    pub fn control(&self) -> &bnxt_re::QueuePair {
        &self.control
    }

    /// Where its send and receive requests complete.
    pub fn cqs(&self) -> [CqId; 2] {
        [self.queue.qp.send_cq(), self.queue.qp.recv_cq()]
    }

    /// Whether short inline requests are pushed to the device with their doorbell.
    pub fn pushes(&self) -> bool {
        self.push.is_some()
    }
}

impl Pollable for QueuePair {
    #[inline]
    fn key(&self) -> u32 {
        self.queue.key()
    }

    #[inline]
    fn flush_seq(&self) -> u32 {
        self.queue.flush_seq()
    }
}

impl Wrapper<InnerQp> for QueuePair {
    #[inline]
    fn queue(&mut self) -> Option<&mut InnerQp> {
        Some(&mut self.queue)
    }
}

impl verbs::QueuePair for QueuePair {
    type CompletionQueue = CompletionQueue;

    fn id(&self) -> QpId {
        self.queue.qp.id()
    }

    fn qp_type(&self) -> QpType {
        self.queue.qp.qp_type()
    }

    fn state(&self) -> QpState {
        self.queue.qp.state()
    }

    fn capabilities(&self) -> QpCapabilities {
        self.queue.qp.capabilities()
    }

    #[inline]
    fn post_send(
        &mut self,
        cq: &mut CompletionQueue,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        match &self.push {
            Some(push) => self.queue.post_send_by(&mut cq.queue, requests, push.buffer()),
            None => self.queue.post_send(&mut cq.queue, requests),
        }
    }

    #[inline]
    fn post_recv(
        &mut self,
        cq: &mut CompletionQueue,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        self.queue.post_recv(&mut cq.queue, requests)
    }
}

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue {
    // Dropped in this order: as in `QueuePair`.
    pub(super) queue: Owned<InnerCq>,
    pub(super) control: bnxt_re::CompletionQueue,
}

impl CompletionQueue {
    /// The kernel's side of it.
    pub fn control(&self) -> &bnxt_re::CompletionQueue {
        &self.control
    }

    /// Entries of the ring that it works on.
    pub fn entries(&self) -> u32 {
        self.queue.cq.entries()
    }
}

impl verbs::CompletionQueue for CompletionQueue {
    type QueuePair = QueuePair;
    type SharedReceiveQueue = SharedReceiveQueue;

    fn id(&self) -> CqId {
        self.queue.cq.id()
    }

    #[inline]
    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<QueuePair, SharedReceiveQueue>,
    {
        let mut endpoints = Unwrapped::<E, QueuePair, SharedReceiveQueue>::new(endpoints);
        verbs::CompletionQueue::poll(&mut *self.queue, &mut endpoints, out)
    }

    fn arm(&mut self, solicited_only: bool) {
        self.queue.arm(solicited_only);
    }
}

/// A shared receive queue.
#[derive(Debug)]
pub struct SharedReceiveQueue {
    // Dropped in this order: as in `QueuePair`.
    pub(super) queue: Owned<InnerSrq>,
    pub(super) control: bnxt_re::SharedReceiveQueue,
}

impl SharedReceiveQueue {
    /// The kernel's side of it.
    pub fn control(&self) -> &bnxt_re::SharedReceiveQueue {
        &self.control
    }
}

impl Wrapper<InnerSrq> for SharedReceiveQueue {
    #[inline]
    fn queue(&mut self) -> Option<&mut InnerSrq> {
        Some(&mut self.queue)
    }
}

impl verbs::SharedReceiveQueue for SharedReceiveQueue {
    fn id(&self) -> SrqId {
        self.queue.srq.id()
    }

    #[inline]
    fn post_recv(&mut self, requests: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        self.queue.post_recv(requests)
    }

    fn arm_limit(&mut self, limit: u32) {
        self.queue.arm_limit(limit);
    }
}
