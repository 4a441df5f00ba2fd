//! The send queue.

use super::batch::{self, Batch};
use super::cmb::NoDeviceMemory;
use super::cq::CqRing;
use super::doorbell::QueueDoorbell;
use super::opcode::{Opcodes, RdmaVersion};
use super::plan::WorkQueuePlan;
pub use super::record::{SqFlags, SqRecord};
use super::work::{Flush, QueueMemory, WorkRing};
use crate::queue::{DeviceMemory, Doorbell, Store};
use crate::verbs::{BatchError, CqId, MemoryError, PostError, QpId, QpType, SendRequest, WcOpcode};

/// State of a send queue as plain data; its records go with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqState {
    /// Producer.
    pub prod: u16,
    /// Consumer.
    pub cons: u16,
    /// Color of the next WQE.
    pub color: bool,
    /// Number of the next message, 24 bits.
    pub msn_prod: u32,
    /// Number of the first message not acknowledged, 24 bits.
    pub msn_cons: u32,
    /// Requests are flushed.
    pub flush: bool,
    /// The device has told that it flushes.
    pub flush_hint: bool,
}

/// Bits of a message number.
pub(super) const MSN_MASK: u32 = 0xff_ffff;

/// The send queue of a queue pair.
#[derive(Debug)]
pub struct SendQueue<'m, S: Store, M = NoDeviceMemory> {
    pub(super) ring: WorkRing<'m, SqRecord, S, M>,
    pub(super) opcodes: Opcodes,
    pub(super) version: RdmaVersion,
    pub(super) qp_type: QpType,
    pub(super) signal_all: bool,
    pub(super) cq: CqId,
    pub(super) qp: QpId,
    /// Flags of every WQE: that a completion is reported if it is for all, and the color of the laps whose positions have
    /// the bit above the index clear. The other laps have the other color.
    pub(super) always: u32,
    /// First half of word 1 of a WQE, and operation and flags of its record, if it is an RDMA WRITE of one SGE: by the
    /// request's lowest two flags. It is right for the lap that [`WorkRing::look_ahead`] has looked at.
    pub(super) write: [(u32, WcOpcode, SqFlags); 4],
    /// Requests so far that take no message number: the next message's number is the producer less this.
    pub(super) unnumbered: u32,
    /// Number of the first message not acknowledged. The lowest 24 bits count.
    pub(super) msn_cons: u32,
    /// Position up to which requests that complete by message have, unless `plain_cq` says that it is the consumer.
    acked: u32,
    /// Requests that have completed by position and are not reported.
    pub(super) done: u32,
    /// Number of the completion queue ring while the next message completes the oldest request and nothing else; or
    /// [`NO_CQ`] while requests have completed that are not reported, or are flushed.
    pub(super) plain_cq: u32,
}

/// More than any [`CqId`].
const NO_CQ: u32 = u32::MAX;

/// What a send queue is made for.
#[derive(Clone, Copy, Debug)]
pub struct SendConfig {
    /// Queue pair.
    pub qp: QpId,
    /// Its kind.
    pub qp_type: QpType,
    /// Interface version.
    pub version: RdmaVersion,
    /// Every request produces a completion.
    pub signal_all: bool,
    /// Its doorbells.
    pub doorbell: QueueDoorbell,
    /// Completion queue ring that requests complete to.
    pub cq: CqId,
}

impl<'m, S: Store, M: DeviceMemory> SendQueue<'m, S, M> {
    fn build(
        config: &SendConfig,
        plan: &WorkQueuePlan,
        memory: QueueMemory<'m, S::Slice<SqRecord>, M>,
    ) -> Result<Self, MemoryError> {
        Ok(Self {
            ring: WorkRing::new(
                [text!("send ring"), text!("send records")],
                plan,
                config.qp_type == QpType::Rc,
                config.doorbell,
                memory,
            )?,
            opcodes: *config.version.opcodes(),
            version: config.version,
            qp_type: config.qp_type,
            signal_all: config.signal_all,
            cq: config.cq,
            qp: config.qp,
            always: 0,
            write: [(0, WcOpcode::RdmaWrite, SqFlags::empty()); 4],
            unnumbered: 0,
            msn_cons: 0,
            acked: 0,
            done: 0,
            plain_cq: NO_CQ,
        })
    }

    /// An empty queue. The ring is zeroed.
    ///
    /// # Errors
    /// Memory that does not fit the plan.
    pub fn new(
        config: &SendConfig,
        plan: &WorkQueuePlan,
        memory: QueueMemory<'m, S::Slice<SqRecord>, M>,
    ) -> Result<Self, MemoryError> {
        let mut queue = Self::build(config, plan, memory)?;
        queue.clear();
        Ok(queue)
    }

    /// A queue as [`SendQueue::state`] and [`SendQueue::records`] told; the ring holds what it held.
    ///
    /// # Errors
    /// Memory or a state that does not fit the plan.
    pub fn restore(
        config: &SendConfig,
        plan: &WorkQueuePlan,
        memory: QueueMemory<'m, S::Slice<SqRecord>, M>,
        state: &SqState,
    ) -> Result<Self, MemoryError> {
        let mut queue = Self::build(config, plan, memory)?;
        let mask = queue.ring.wqes.mask();
        let outstanding = state.msn_prod.wrapping_sub(state.msn_cons) & MSN_MASK;
        // A queue that flushes does not look at message numbers any more.
        let outstanding = if state.flush { 0 } else { outstanding };
        let numbers = [
            (text!("prod"), u32::from(state.prod), mask),
            (text!("cons"), state.cons.into(), mask),
            (text!("msn_prod"), state.msn_prod, MSN_MASK),
            (text!("msn_cons"), state.msn_cons, MSN_MASK),
            (text!("messages outstanding"), outstanding, mask),
        ];
        for (what, value, max) in numbers {
            if value > max {
                let bits = u32::BITS - max.leading_zeros();
                return Err(MemoryError::OutOfRange { what, value, bits });
            }
        }
        queue.ring.set_indices(state.prod, state.cons);
        queue.unnumbered = queue.ring.prod.wrapping_sub(state.msn_prod);
        queue.msn_cons = state.msn_cons;
        queue.set_color(state.color);
        queue.done = queue.count_done();
        queue.set_acked(queue.find_acked(outstanding)?);
        queue.set_flush(match (state.flush, state.flush_hint) {
            (true, _) => Flush::Yes,
            (false, true) => Flush::Told,
            (false, false) => Flush::No,
        });
        Ok(queue)
    }

    /// The position that the last `outstanding` messages follow.
    fn find_acked(&self, outstanding: u32) -> Result<u32, MemoryError> {
        let (mut position, mut left) = (self.ring.prod, outstanding);
        while left != 0 {
            if position == self.ring.cons {
                return Err(MemoryError::Mismatch(text!("more messages outstanding than requests")));
            }
            position = position.wrapping_sub(1);
            left -= u32::from(self.record(position).flags.contains(SqFlags::REMOTE));
        }
        Ok(position)
    }

    fn count_done(&self) -> u32 {
        let outstanding = 0..self.outstanding();
        let record = |ahead| self.record(self.ring.cons.wrapping_add(ahead));
        outstanding.filter(|&ahead| record(ahead).flags.contains(SqFlags::DONE)).count() as u32
    }

    pub(super) fn set_flush(&mut self, flush: Flush) {
        let acked = self.acked();
        self.ring.set_flush(flush);
        self.set_acked(acked);
    }

    /// Position up to which requests that complete by message have; not before the consumer.
    #[inline(always)]
    pub(super) const fn acked(&self) -> u32 {
        if self.plain_cq == NO_CQ { self.acked } else { self.ring.cons }
    }

    /// Sets [`SendQueue::acked`]. To be called when `done`, `flush` or the consumer has changed.
    #[inline(always)]
    pub(super) fn set_acked(&mut self, acked: u32) {
        let plain = self.done == 0 && acked == self.ring.cons && self.ring.flush() == Flush::No;
        self.plain_cq = if plain { self.cq.get() } else { NO_CQ };
        self.acked = acked;
    }

    /// Makes it as if new.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.set_color(true);
        (self.unnumbered, self.msn_cons, self.done) = (0, 0, 0);
        self.set_acked(0);
    }

    /// Its state as plain data.
    pub fn state(&self) -> SqState {
        SqState {
            prod: self.ring.wqes.index(self.ring.prod) as u16,
            cons: self.ring.wqes.index(self.ring.cons) as u16,
            color: self.color(),
            msn_prod: self.msn_prod() & MSN_MASK,
            msn_cons: self.msn_cons & MSN_MASK,
            flush: self.ring.flush() == Flush::Yes,
            flush_hint: self.ring.flush() == Flush::Told,
        }
    }

    /// Record of the request at `position`.
    #[inline(always)]
    pub(super) fn record(&self, position: u32) -> &SqRecord {
        self.ring.wqes.record(position)
    }

    /// Record of the request at `position`.
    #[inline(always)]
    pub(super) fn record_mut(&mut self, position: u32) -> &mut SqRecord {
        self.ring.wqes.record_mut(position)
    }

    /// Its records, to save them.
    pub fn records(&self) -> &[SqRecord] {
        self.ring.wqes.records()
    }

    /// Requests posted and not completed.
    pub fn outstanding(&self) -> u32 {
        self.ring.used(self.ring.prod)
    }

    /// The doorbell that tells the producer.
    pub fn doorbell(&self) -> u64 {
        self.ring.index_doorbell()
    }

    /// Number of the next message. The lowest 24 bits count.
    #[inline(always)]
    pub(super) const fn msn_prod(&self) -> u32 {
        self.ring.prod.wrapping_sub(self.unnumbered)
    }

    /// Begins a batch; `cq` is the ring that [`SendConfig::cq`] names.
    ///
    /// # Errors
    /// Another ring.
    #[inline(always)]
    pub fn batch<'q, 'c>(
        &'q mut self,
        cq: &'q mut CqRing<'c>,
    ) -> Result<SendBatch<'q, 'm, 'c, S, M>, PostError> {
        Batch::new(self, cq)
    }

    /// Posts all of `requests` under one doorbell, or none. `cq` is the ring that [`SendConfig::cq`] names.
    ///
    /// # Errors
    /// Another ring, or the first request that cannot be posted.
    #[inline(always)]
    pub fn post<D: Doorbell>(
        &mut self,
        cq: &mut CqRing<'_>,
        requests: &[SendRequest<'_>],
        doorbell: &D,
    ) -> Result<(), BatchError> {
        batch::post(self, cq, requests, doorbell)
    }
}

/// Send requests that are posted under one doorbell.
pub type SendBatch<'q, 'm, 'c, S, M = NoDeviceMemory> = Batch<'q, 'c, SendQueue<'m, S, M>>;
