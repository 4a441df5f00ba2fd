use directverbs::ionic::cq;
use directverbs::ionic::qp::{self, NoSharedReceiveQueue};
use directverbs::queue::Boxed;
use directverbs::verbs::{
    self, BatchError, CqFault, CqId, Endpoints, Pollable, QpCapabilities, QpId, QpState, QpType, RecvRequest,
    SendRequest, Unwrapped, WorkCompletion, Wrapper,
};

use super::Place;
use super::window::{Port, Window};
use crate::host::memory::Owned;

/// The driver's queue pair.
type Inner = qp::QueuePair<'static, Boxed, Window>;

/// A queue pair with its memory and doorbells.
#[derive(Debug)]
pub struct QueuePair {
    pub(super) queue: Owned<Inner>,
    pub(super) port: Port,
    pub(super) places: [Place; 2],
}

impl QueuePair {
    /// The driver's queue pair, to look at in tests.
    pub fn driver(&self) -> &Inner {
        &self.queue
    }
}

impl Pollable for QueuePair {
    fn key(&self) -> u32 {
        self.queue.key()
    }

    fn flush_seq(&self) -> u32 {
        self.queue.flush_seq()
    }
}

impl verbs::QueuePair for QueuePair {
    type CompletionQueue = CompletionQueue;

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

    fn post_send(
        &mut self,
        cq: &mut CompletionQueue,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        self.queue.post_send(&mut cq.queue, requests, &self.port)
    }

    fn post_recv(
        &mut self,
        cq: &mut CompletionQueue,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        self.queue.post_recv(&mut cq.queue, requests, &self.port)
    }
}

/// A completion queue with its memory and doorbells.
#[derive(Debug)]
pub struct CompletionQueue {
    pub(super) queue: Owned<cq::CompletionQueue<'static>>,
    pub(super) port: Port,
}

impl CompletionQueue {
    /// The driver's completion queue, to look at in tests.
    pub fn driver(&self) -> &cq::CompletionQueue<'static> {
        &self.queue
    }
}

impl Wrapper<Inner> for QueuePair {
    fn queue(&mut self) -> Option<&mut Inner> {
        Some(&mut self.queue)
    }
}

impl verbs::CompletionQueue for CompletionQueue {
    type QueuePair = QueuePair;
    type SharedReceiveQueue = NoSharedReceiveQueue;

    fn id(&self) -> CqId {
        self.queue.id()
    }

    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<QueuePair, NoSharedReceiveQueue>,
    {
        let mut endpoints = Unwrapped::<_, QueuePair, NoSharedReceiveQueue>::new(endpoints);
        self.queue.poll(&mut endpoints, &self.port, out)
    }

    fn arm(&mut self, solicited_only: bool) {
        self.queue.arm(solicited_only);
    }
}
