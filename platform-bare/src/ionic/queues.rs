//! Queues that are posted to and polled, with the memory under them.

use core::marker::PhantomData;

use directverbs::ionic::cmb::CmbGrant;
use directverbs::ionic::cq;
use directverbs::ionic::devcmd::CmbArea;
use directverbs::ionic::qp::{self, NoSharedReceiveQueue};
use directverbs::queue::Borrowed;
use directverbs::verbs::{
    self, AhId, BatchError, CqFault, CqId, Endpoints, Pollable, QpCapabilities, QpId, QpState, QpType,
    RecvRequest, SendRequest, Unwrapped, WorkCompletion, Wrapper,
};

use crate::dma::Owned;
use crate::host::Host;
use crate::lease::Lease;
use crate::registers::DoorbellPage;

/// The queue pair of the core, with bookkeeping in memory of the host.
pub(super) type InnerQp<'n, H> = qp::QueuePair<'n, Borrowed<'n>, DoorbellPage<<H as Host>::Bar>>;

/// Blocks of a queue pair: send and receive ring, and the records of both.
pub(super) const BLOCKS: usize = 4;

/// A queue pair. Destroy it with its device; dropped before, it abandons its rings.
#[derive(Debug)]
pub struct QueuePair<'n, H: Host> {
    pub(super) queue: Owned<InnerQp<'n, H>, H::Dma, BLOCKS>,
    pub(super) doorbell: DoorbellPage<H::Bar>,
    pub(super) ah: AhId,
    /// Where in controller memory its queues are.
    pub(super) places: [Option<CmbArea>; 2],
    pub(super) lease: Lease<'n>,
    pub(super) host: PhantomData<&'n H>,
}

impl<H: Host> QueuePair<'_, H> {
    /// Where its send queue and its receive queue are.
    pub fn placement(&self) -> (CmbGrant, CmbGrant) {
        self.queue.placement()
    }

    /// The pipeline that it is on.
    pub fn pipeline(&self) -> u8 {
        self.queue.udma()
    }

    /// Completion queues of its send and its receive queue.
    pub fn cqs(&self) -> [CqId; 2] {
        [self.queue.send_cq(), self.queue.recv_cq()]
    }
}

impl<H: Host> Pollable for QueuePair<'_, H> {
    #[inline]
    fn key(&self) -> u32 {
        self.queue.key()
    }

    #[inline]
    fn flush_seq(&self) -> u32 {
        self.queue.flush_seq()
    }
}

impl<'n, H: Host> Wrapper<InnerQp<'n, H>> for QueuePair<'n, H> {
    #[inline]
    fn queue(&mut self) -> Option<&mut InnerQp<'n, H>> {
        Some(&mut self.queue)
    }
}

impl<'n, H: Host> verbs::QueuePair for QueuePair<'n, H> {
    type CompletionQueue = CompletionQueue<'n, H>;

    fn id(&self) -> QpId {
        self.queue.id()
    }

    fn qp_type(&self) -> QpType {
        self.queue.qp_type()
    }

    fn state(&self) -> QpState {
        self.queue.state()
    }

    fn capabilities(&self) -> QpCapabilities {
        self.queue.capabilities()
    }

    #[inline]
    fn post_send(
        &mut self,
        cq: &mut CompletionQueue<'n, H>,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        self.queue.post_send(cq.queue.queue_mut(), requests, &self.doorbell)
    }

    #[inline]
    fn post_recv(
        &mut self,
        cq: &mut CompletionQueue<'n, H>,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        self.queue.post_recv(cq.queue.queue_mut(), requests, &self.doorbell)
    }
}

/// The queue of a completion queue: with a ring on one pipeline, or on each of two.
#[derive(Debug)]
pub(super) enum Rings<H: Host> {
    One(Owned<cq::CompletionQueue<'static>, H::Dma, 1>),
    Two(Owned<cq::CompletionQueue<'static>, H::Dma, 2>),
}

impl<H: Host> Rings<H> {
    #[inline]
    pub fn queue_mut(&mut self) -> &mut cq::CompletionQueue<'static> {
        match self {
            Self::One(queue) => queue,
            Self::Two(queue) => queue,
        }
    }

    pub fn queue(&self) -> &cq::CompletionQueue<'static> {
        match self {
            Self::One(queue) => queue,
            Self::Two(queue) => queue,
        }
    }

    pub fn release(self) {
        match self {
            Self::One(queue) => queue.release(),
            Self::Two(queue) => queue.release(),
        }
    }
}

/// A completion queue. Destroy it with its device; dropped before, it abandons its rings.
#[derive(Debug)]
pub struct CompletionQueue<'n, H: Host> {
    pub(super) queue: Rings<H>,
    pub(super) doorbell: DoorbellPage<H::Bar>,
    /// Number on each of its pipelines.
    pub(super) nth: u32,
    pub(super) lease: Lease<'n>,
    pub(super) host: PhantomData<&'n H>,
}

impl<'n, H: Host> verbs::CompletionQueue for CompletionQueue<'n, H> {
    type QueuePair = QueuePair<'n, H>;
    type SharedReceiveQueue = NoSharedReceiveQueue;

    fn id(&self) -> CqId {
        self.queue.queue().id()
    }

    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<QueuePair<'n, H>, NoSharedReceiveQueue>,
    {
        let mut endpoints = Unwrapped::<_, QueuePair<'n, H>, NoSharedReceiveQueue>::new(endpoints);
        self.queue.queue_mut().poll(&mut endpoints, &self.doorbell, out)
    }

    fn arm(&mut self, solicited_only: bool) {
        self.queue.queue_mut().arm(solicited_only);
    }
}
