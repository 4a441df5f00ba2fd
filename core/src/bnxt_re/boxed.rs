//! Queues with their bookkeeping in boxes of the planned size.

use alloc::vec;

use super::plan::{QpPlan, SrqPlan};
use super::qp::{QueuePair, QueuePairInit};
use super::send::{SendInit, SendRecord};
use super::srq::{SharedReceiveQueue, SrqRecord};
use crate::queue::{Boxed, RingMemory};
use crate::verbs::{MemoryError, SrqId};

impl<'m> QueuePair<'m, Boxed> {
    /// A queue pair of `plan` over its two rings; the second is not used without a receive queue.
    ///
    /// # Errors
    /// Those of [`QueuePair::new`] and of its queues, or a receive queue without a ring.
    pub fn boxed(
        plan: &QpPlan,
        send: &SendInit,
        init: &QueuePairInit,
        sq: RingMemory<'m>,
        rq: Option<RingMemory<'m>>,
    ) -> Result<Self, MemoryError> {
        let sends = vec![SendRecord::default(); plan.send.shadow()].into_boxed_slice();
        let receives = plan.recv.as_ref().map(|recv| vec![0; recv.shadow()].into_boxed_slice());
        Self::assemble(plan, send, init, (sq, sends), rq.zip(receives))
    }
}

impl<'m> SharedReceiveQueue<'m, Boxed> {
    /// A shared receive queue of `plan` in `memory`.
    ///
    /// # Errors
    /// Those of [`SharedReceiveQueue::new`].
    pub fn boxed(memory: RingMemory<'m>, plan: &SrqPlan, id: SrqId) -> Result<Self, MemoryError> {
        Self::new(memory, vec![SrqRecord::default(); plan.shadow()].into_boxed_slice(), plan, id)
    }
}
