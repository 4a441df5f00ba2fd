use directverbs::verbs::{
    self, BatchError, CqFault, CqId, Endpoints, Pollable, QpCapabilities, QpId, QpState, QpType, RecvRequest,
    SendRequest, SrqId, Unwrapped, WorkCompletion, Wrapper,
};

use super::memory::Owned;

/// A queue of the driver with the memory under it. It is used through the traits of [`directverbs::verbs`].
#[derive(Debug)]
pub struct Queue<Q>(pub(super) Owned<Q>);

impl<Q> Queue<Q> {
    /// The driver's queue, to look at in tests.
    pub fn driver(&self) -> &Q {
        &self.0
    }
}

impl<Q> Wrapper<Q> for Queue<Q> {
    fn queue(&mut self) -> Option<&mut Q> {
        Some(&mut self.0)
    }
}

impl<Q: Pollable> Pollable for Queue<Q> {
    fn key(&self) -> u32 {
        self.0.key()
    }

    fn flush_seq(&self) -> u32 {
        self.0.flush_seq()
    }
}

impl<Q: verbs::QueuePair> verbs::QueuePair for Queue<Q> {
    type CompletionQueue = Queue<Q::CompletionQueue>;

    fn id(&self) -> QpId {
        self.0.id()
    }

    fn qp_type(&self) -> QpType {
        self.0.qp_type()
    }

    fn state(&self) -> QpState {
        self.0.state()
    }

    fn capabilities(&self) -> QpCapabilities {
        self.0.capabilities()
    }

    fn post_send(
        &mut self,
        cq: &mut Self::CompletionQueue,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        self.0.post_send(&mut cq.0, requests)
    }

    fn post_recv(
        &mut self,
        cq: &mut Self::CompletionQueue,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        self.0.post_recv(&mut cq.0, requests)
    }
}

impl<C: verbs::CompletionQueue> verbs::CompletionQueue for Queue<C> {
    type QueuePair = Queue<C::QueuePair>;
    type SharedReceiveQueue = Queue<C::SharedReceiveQueue>;

    fn id(&self) -> CqId {
        self.0.id()
    }

    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<Self::QueuePair, Self::SharedReceiveQueue>,
    {
        let mut endpoints = Unwrapped::<E, Self::QueuePair, Self::SharedReceiveQueue>::new(endpoints);
        self.0.poll(&mut endpoints, out)
    }

    fn arm(&mut self, solicited_only: bool) {
        self.0.arm(solicited_only);
    }
}

impl<S: verbs::SharedReceiveQueue> verbs::SharedReceiveQueue for Queue<S> {
    fn id(&self) -> SrqId {
        self.0.id()
    }

    fn post_recv(&mut self, requests: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        self.0.post_recv(requests)
    }

    fn arm_limit(&mut self, limit: u32) {
        self.0.arm_limit(limit);
    }
}
