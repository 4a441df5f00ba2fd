//! Queues that are posted to and polled.

use std::sync::Arc;

use directverbs::ionic::cq;
use directverbs::ionic::qp::{self, NoSharedReceiveQueue};
use directverbs::queue::{Boxed, DeviceMemory};
use directverbs::verbs::{
    self, BatchError, CqFault, CqId, Endpoints, Pollable, QpCapabilities, QpId, QpState, QpType, RecvRequest,
    SendRequest, Unwrapped, WorkCompletion, Wrapper,
};

use crate::ionic::{self, Context};
use crate::uverbs::{Mapping, Owned};

/// A ring in controller memory.
#[derive(Debug)]
pub(crate) struct Window(pub(super) Arc<Mapping>);

impl DeviceMemory for Window {
    #[inline]
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        self.0.store_16(offset, block);
    }

    #[inline]
    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        self.0.store_64(offset, block);
    }
}

// The window is private to this crate, and with it this type: nobody outside can move a queue away from its memory.
pub(super) type InnerQp = qp::QueuePair<'static, Boxed, Window>;

/// A queue pair.
#[derive(Debug)]
pub struct QueuePair {
    // Dropped in this order: what the kernel's object still uses is held by that.
    pub(super) queue: Owned<InnerQp>,
    pub(super) control: ionic::QueuePair,
    pub(super) context: Context,
}

impl QueuePair {
    /// The kernel's side of it.
    pub fn control(&self) -> &ionic::QueuePair {
        &self.control
    }

    /// Rings that its send and receive requests complete to.
    pub fn cqs(&self) -> [CqId; 2] {
        [self.queue.send_cq(), self.queue.recv_cq()]
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
        cq: &mut CompletionQueue,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        self.queue.post_send(&mut cq.queue, requests, self.context.doorbell())
    }

    #[inline]
    fn post_recv(
        &mut self,
        cq: &mut CompletionQueue,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        self.queue.post_recv(&mut cq.queue, requests, self.context.doorbell())
    }
}

/// A completion queue, with a ring on each of its pipelines.
#[derive(Debug)]
pub struct CompletionQueue {
    // Dropped in this order: as in `QueuePair`.
    pub(super) queue: Owned<cq::CompletionQueue<'static>>,
    pub(super) control: ionic::CompletionQueue,
    pub(super) context: Context,
}

impl CompletionQueue {
    /// The kernel's side of it.
    pub fn control(&self) -> &ionic::CompletionQueue {
        &self.control
    }
}

impl verbs::CompletionQueue for CompletionQueue {
    type QueuePair = QueuePair;
    type SharedReceiveQueue = NoSharedReceiveQueue;

    fn id(&self) -> CqId {
        self.queue.id()
    }

    #[inline]
    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<QueuePair, NoSharedReceiveQueue>,
    {
        let mut endpoints = Unwrapped::<E, QueuePair, NoSharedReceiveQueue>::new(endpoints);
        self.queue.poll::<Boxed, Window, _, NoSharedReceiveQueue, _>(
            &mut endpoints,
            self.context.doorbell(),
            out,
        )
    }

    fn arm(&mut self, solicited_only: bool) {
        self.queue.arm(solicited_only);
    }
}
