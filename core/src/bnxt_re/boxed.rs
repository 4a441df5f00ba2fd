//! Queues with their bookkeeping in boxes of the planned size.

use alloc::vec;

use super::plan::{QpPlan, SrqPlan};
use super::qp::{QueuePair, QueuePairInit};
use super::recv::RecvQueue;
use super::send::{SendInit, SendQueue, SendRecord};
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
        let sends = vec![SendRecord::default(); records(plan.send.records)].into_boxed_slice();
        let send = SendQueue::new(sq, sends, send)?;
        let recv = match &plan.recv {
            None => None,
            Some(recv) => {
                let rq = rq.ok_or(MemoryError::Mismatch("a receive queue needs a ring"))?;
                let receives = vec![0; records(recv.wqes)].into_boxed_slice();
                Some(RecvQueue::new(rq, receives, recv, init.id)?)
            }
        };
        Self::new(init, send, recv)
    }
}

impl<'m> SharedReceiveQueue<'m, Boxed> {
    /// A shared receive queue of `plan` in `memory`.
    ///
    /// # Errors
    /// Those of [`SharedReceiveQueue::new`].
    pub fn boxed(memory: RingMemory<'m>, plan: &SrqPlan, id: SrqId) -> Result<Self, MemoryError> {
        Self::new(memory, vec![SrqRecord::default(); records(plan.entries)].into_boxed_slice(), plan, id)
    }
}

/// Records of bookkeeping come in powers of two.
const fn records(needed: u32) -> usize {
    needed.next_power_of_two() as usize
}
