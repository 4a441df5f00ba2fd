//! Queues that are posted to and polled, with the memory under them.

use directverbs::bnxt_re::attached::{AttachedCq, AttachedQp, AttachedSrq, Page};
use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::bnxt_re::plan::CqPlan;
use directverbs::queue::Borrowed;
use directverbs::verbs::{
    self, BatchError, CqFault, CqId, Endpoints, Pollable, QpCapabilities, QpId, QpState, QpType, RecvRequest,
    SendRequest, SrqId, Unwrapped, WorkCompletion, Wrapper,
};

use super::page::QueuePage;
use super::push::Pushed;
use crate::dma::Owned;
use crate::host::Host;
use crate::lease::Lease;
use crate::ledger::{Kind, Object};

/// The queues of the core, with bookkeeping in memory of the host.
pub(super) type InnerCq<'n, H> = AttachedCq<'n, Borrowed<'n>, QueuePage<<H as Host>::Bar>>;
pub(super) type InnerQp<'n, H> = AttachedQp<'n, Borrowed<'n>, QueuePage<<H as Host>::Bar>>;
pub(super) type InnerSrq<'n, H> = AttachedSrq<'n, Borrowed<'n>, QueuePage<<H as Host>::Bar>>;

/// A completion queue. Destroy it with its device; dropped before, it abandons its ring.
#[derive(Debug)]
pub struct CompletionQueue<'n, H: Host> {
    pub(super) queue: Owned<InnerCq<'n, H>, H::Dma, 1>,
    pub(super) plan: CqPlan,
    pub(super) handle: u64,
    pub(super) lease: Lease<'n>,
}

/// A queue pair. Destroy it with its device; dropped before, it abandons its rings.
#[derive(Debug)]
pub struct QueuePair<'n, H: Host> {
    pub(super) queue: Owned<InnerQp<'n, H>, H::Dma, 1>,
    pub(super) push: Option<Pushed<H>>,
    pub(super) lease: Lease<'n>,
}

/// A shared receive queue. Destroy it with its device; dropped before, it abandons its ring.
#[derive(Debug)]
pub struct SharedReceiveQueue<'n, H: Host> {
    pub(super) queue: Owned<InnerSrq<'n, H>, H::Dma, 1>,
    pub(super) handle: u64,
    pub(super) lease: Lease<'n>,
}

impl<'n, H: Host> CompletionQueue<'n, H> {
    pub(super) fn object(&self) -> Object {
        (Kind::CompletionQueue, self.queue.cq.id().get())
    }

    /// What [`super::Event::Completion`] names it by.
    pub const fn handle(&self) -> u64 {
        self.handle
    }

    /// Takes the toggle of an event: the queue can be armed again.
    pub fn acknowledge(&mut self, toggle: Toggle) {
        self.queue.page.set_toggle(toggle);
        self.queue.cq.enable(toggle, &self.queue.page);
    }
}

impl<'n, H: Host> SharedReceiveQueue<'n, H> {
    pub(super) fn object(&self) -> Object {
        (Kind::SharedReceiveQueue, self.queue.srq.id().get())
    }

    /// What [`super::Event::Limit`] names it by.
    pub const fn handle(&self) -> u64 {
        self.handle
    }

    /// Takes the toggle of an event: the limit can be armed again.
    pub fn acknowledge(&mut self, toggle: Toggle) {
        self.queue.page.set_toggle(toggle);
        self.queue.srq.enable(&self.queue.page, self.queue.page.toggle());
    }
}

impl<H: Host> QueuePair<'_, H> {
    pub(super) fn object(&self) -> Object {
        (Kind::QueuePair, self.queue.qp.id().get())
    }

    /// Completion queues of its send and its receive queue.
    pub fn cqs(&self) -> [CqId; 2] {
        [self.queue.qp.send_cq(), self.queue.qp.recv_cq()]
    }

    /// Whether short inline requests are pushed to the device with their doorbell.
    pub const fn pushes(&self) -> bool {
        self.push.is_some()
    }
}

impl<'n, H: Host> Wrapper<InnerQp<'n, H>> for QueuePair<'n, H> {
    #[inline]
    fn queue(&mut self) -> Option<&mut InnerQp<'n, H>> {
        Some(&mut self.queue)
    }
}

impl<'n, H: Host> Wrapper<InnerSrq<'n, H>> for SharedReceiveQueue<'n, H> {
    #[inline]
    fn queue(&mut self) -> Option<&mut InnerSrq<'n, H>> {
        Some(&mut self.queue)
    }
}

impl<'n, H: Host> Pollable for QueuePair<'n, H> {
    #[inline]
    fn key(&self) -> u32 {
        self.queue.key()
    }

    #[inline]
    fn flush_seq(&self) -> u32 {
        self.queue.flush_seq()
    }
}

impl<'n, H: Host> verbs::QueuePair for QueuePair<'n, H> {
    type CompletionQueue = CompletionQueue<'n, H>;

    fn id(&self) -> QpId {
        verbs::QueuePair::id(&*self.queue)
    }

    fn qp_type(&self) -> QpType {
        verbs::QueuePair::qp_type(&*self.queue)
    }

    fn state(&self) -> QpState {
        verbs::QueuePair::state(&*self.queue)
    }

    fn capabilities(&self) -> QpCapabilities {
        verbs::QueuePair::capabilities(&*self.queue)
    }

    #[inline]
    fn post_send(
        &mut self,
        cq: &mut CompletionQueue<'n, H>,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        match &self.push {
            Some(push) => (push.post)(&mut self.queue, &mut cq.queue, requests, &push.buffer),
            None => verbs::QueuePair::post_send(&mut *self.queue, &mut cq.queue, requests),
        }
    }

    #[inline]
    fn post_recv(
        &mut self,
        cq: &mut CompletionQueue<'n, H>,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        verbs::QueuePair::post_recv(&mut *self.queue, &mut cq.queue, requests)
    }
}

impl<'n, H: Host> verbs::CompletionQueue for CompletionQueue<'n, H> {
    type QueuePair = QueuePair<'n, H>;
    type SharedReceiveQueue = SharedReceiveQueue<'n, H>;

    fn id(&self) -> CqId {
        self.queue.cq.id()
    }

    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<QueuePair<'n, H>, SharedReceiveQueue<'n, H>>,
    {
        let mut endpoints = Unwrapped::<E, QueuePair<'n, H>, SharedReceiveQueue<'n, H>>::new(endpoints);
        verbs::CompletionQueue::poll(&mut *self.queue, &mut endpoints, out)
    }

    fn arm(&mut self, solicited_only: bool) {
        verbs::CompletionQueue::arm(&mut *self.queue, solicited_only);
    }
}

impl<'n, H: Host> verbs::SharedReceiveQueue for SharedReceiveQueue<'n, H> {
    fn id(&self) -> SrqId {
        self.queue.srq.id()
    }

    fn post_recv(&mut self, requests: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        verbs::SharedReceiveQueue::post_recv(&mut *self.queue, requests)
    }

    fn arm_limit(&mut self, limit: u32) {
        verbs::SharedReceiveQueue::arm_limit(&mut *self.queue, limit);
    }
}
