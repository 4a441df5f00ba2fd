//! Queues that are posted to and polled, with the memory under them.

use directverbs::ionic::cq;
use directverbs::ionic::qp::{self, NoSharedReceiveQueue};
use directverbs::queue::Borrowed;
use directverbs::verbs::{
    self, AhId, BatchError, CqFault, CqId, Endpoints, Pollable, QpCapabilities, QpId, QpState, QpType,
    RecvRequest, SendRequest, Unwrapped, WorkCompletion, Wrapper,
};

use crate::dma::Owned;
use crate::host::Host;
use crate::registers::DoorbellPage;

/// The queue pair of the core, with bookkeeping in memory of the host.
pub(super) type InnerQp = qp::QueuePair<'static, Borrowed<'static>>;

/// Blocks of a queue pair: send and receive ring, and the records of both.
pub(super) const BLOCKS: usize = 4;

/// A queue pair. Destroy it with its device; dropped before, it abandons its rings.
#[derive(Debug)]
pub struct QueuePair<H: Host> {
    pub(super) queue: Owned<InnerQp, H::Dma, BLOCKS>,
    pub(super) doorbell: DoorbellPage<H::Bar>,
    /// Number on its pipeline.
    pub(super) nth: u32,
    pub(super) ah: AhId,
    /// Numbers of its completion queues.
    pub(super) cqs: [u32; 2],
}

impl<H: Host> Pollable for QueuePair<H> {
    #[inline]
    fn key(&self) -> u32 {
        self.queue.key()
    }

    #[inline]
    fn flush_seq(&self) -> u32 {
        self.queue.flush_seq()
    }
}

impl<H: Host> Wrapper<InnerQp> for QueuePair<H> {
    #[inline]
    fn queue(&mut self) -> Option<&mut InnerQp> {
        Some(&mut self.queue)
    }
}

impl<H: Host> verbs::QueuePair for QueuePair<H> {
    type CompletionQueue = CompletionQueue<H>;

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
        cq: &mut CompletionQueue<H>,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        self.queue.post_send(cq.queue.queue_mut(), requests, &self.doorbell)
    }

    #[inline]
    fn post_recv(
        &mut self,
        cq: &mut CompletionQueue<H>,
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
pub struct CompletionQueue<H: Host> {
    pub(super) queue: Rings<H>,
    pub(super) doorbell: DoorbellPage<H::Bar>,
    /// Number on each of its pipelines.
    pub(super) nth: u32,
}

impl<H: Host> verbs::CompletionQueue for CompletionQueue<H> {
    type QueuePair = QueuePair<H>;
    type SharedReceiveQueue = NoSharedReceiveQueue;

    fn id(&self) -> CqId {
        self.queue.queue().id()
    }

    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<QueuePair<H>, NoSharedReceiveQueue>,
    {
        let mut endpoints = Unwrapped::<_, QueuePair<H>, NoSharedReceiveQueue>::new(endpoints);
        self.queue.queue_mut().poll(&mut endpoints, &self.doorbell, out)
    }

    fn arm(&mut self, solicited_only: bool) {
        self.queue.queue_mut().arm(solicited_only);
    }
}
