use core::marker::PhantomData;
use core::ops::DerefMut;

use directverbs::verbs::Endpoints;

/// A queue of the core inside what the platform gives out for it.
pub(super) trait Wrapper {
    /// The core's queue.
    type Queue;

    /// The queue.
    fn queue(&mut self) -> &mut Self::Queue;
}

/// The caller's endpoints as the core's poller needs them: without what the platform wraps around its queues.
pub(super) struct Unwrapped<'e, E, Q, S> {
    endpoints: &'e mut E,
    wrappers: PhantomData<(Q, S)>,
}

impl<'e, E, Q, S> Unwrapped<'e, E, Q, S> {
    /// Looks through the wrappers of `endpoints`.
    pub fn new(endpoints: &'e mut E) -> Self {
        Self { endpoints, wrappers: PhantomData }
    }
}

impl<E, Q, S, CoreQ, CoreS> Endpoints<CoreQ, CoreS> for Unwrapped<'_, E, Q, S>
where
    E: Endpoints<Q, S>,
    Q: Wrapper<Queue: DerefMut<Target = CoreQ>>,
    S: Wrapper<Queue: DerefMut<Target = CoreS>>,
{
    fn with_qp<R>(&mut self, key: u32, f: impl FnOnce(&mut CoreQ) -> R) -> Option<R> {
        self.endpoints.with_qp(key, |qp| f(qp.queue()))
    }

    fn with_srq<R>(&mut self, id: directverbs::verbs::SrqId, f: impl FnOnce(&mut CoreS) -> R) -> Option<R> {
        self.endpoints.with_srq(id, |srq| f(srq.queue()))
    }

    fn each_qp(&mut self, mut f: impl FnMut(&mut CoreQ) -> bool) {
        self.endpoints.each_qp(|qp| f(qp.queue()));
    }

    fn flush_seq(&self) -> u32 {
        self.endpoints.flush_seq()
    }
}
