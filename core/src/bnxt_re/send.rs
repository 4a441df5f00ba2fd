//! The send queue: its indices, and what the driver remembers of outstanding requests. Posting is in [`super::batch`].

use super::batch::SendBatch;
use super::caps::UD_REFRESH;
use super::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use super::plan::SendPlan;
use super::psn::Retransmit;
use super::request::Kind;
use super::wqe::WqeMode;
use crate::queue::{RingMemory, Shadow, Store};
use crate::verbs::{MemoryError, Mtu, Psn, QpId, QpType, WcOpcode, WcStatus, WorkCompletion};

/// What the driver remembers of a send request: one for each WQE index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct SendRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// From bit 0: bytes of the message (32 bits), doorbell index of the WQE (16), operation (7), whether a completion
    /// was asked for (1), and slots that the WQE takes (8). One word, so that it is one store.
    pub wqe: u64,
}

impl SendRecord {
    /// A record of a WQE that begins at doorbell index `start` and takes `slots`.
    #[inline(always)]
    pub(super) const fn new(
        wr_id: u64,
        length: u32,
        start: u32,
        slots: u32,
        opcode: WcOpcode,
        signaled: u32,
    ) -> Self {
        let high = (opcode as u32) << 16 | signaled << 23 | (slots & 0xff) << 24;
        Self { wr_id, wqe: (high as u64 | start as u64 & 0xffff) << 32 | length as u64 }
    }

    /// Bytes of the message.
    pub const fn length(&self) -> u32 {
        self.wqe as u32
    }

    /// Doorbell index of the WQE: its slot in variable mode, its WQE index in static mode.
    pub const fn start(&self) -> u16 {
        (self.wqe >> 32) as u16
    }

    /// Slots that the WQE takes.
    pub const fn slots(&self) -> u32 {
        (self.wqe >> 56) as u32
    }

    /// Operation.
    pub const fn opcode(&self) -> WcOpcode {
        self.operation().0
    }

    /// Operation, and which bits of the length a completion reports: all of what came in, none of what went out.
    #[inline(always)]
    const fn operation(&self) -> (WcOpcode, u32) {
        OPERATIONS[(self.wqe >> 48) as usize & 0xf]
    }

    /// The completion of success.
    #[inline(always)]
    fn success(&self, qp: QpId) -> WorkCompletion {
        let (opcode, reported) = self.operation();
        WorkCompletion {
            wr_id: self.wr_id,
            byte_len: self.length() & reported,
            qp,
            opcode,
            ..WorkCompletion::default()
        }
    }

    /// A completion was asked for.
    pub const fn signaled(&self) -> bool {
        self.wqe & 1 << 55 != 0
    }
}

/// By the code of the operation in a record.
const OPERATIONS: [(WcOpcode, u32); 16] = {
    let mut table = [(WcOpcode::Send, 0); 16];
    let all = [
        (WcOpcode::RdmaWrite, 0),
        (WcOpcode::RdmaRead, u32::MAX),
        (WcOpcode::CompSwap, u32::MAX),
        (WcOpcode::FetchAdd, u32::MAX),
        (WcOpcode::BindMw, 0),
        (WcOpcode::LocalInv, 0),
        (WcOpcode::RegMr, 0),
    ];
    let mut i = 0;
    while i < all.len() {
        table[all[i].0 as usize] = all[i];
        i += 1;
    }
    table
};

/// What a send queue is created from.
#[derive(Clone, Copy, Debug)]
pub struct SendInit {
    /// Sizes.
    pub plan: SendPlan,
    /// Number of the queue pair.
    pub qp: QpId,
    /// Kind of the queue pair.
    pub qp_type: QpType,
    /// Every request produces a completion.
    pub signal_all: bool,
    /// Atomics are there.
    pub atomics: bool,
}

/// Indices that move with a post. A batch keeps a copy, to go back to when it is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Slot of the next WQE.
    pub tail: u32,
    /// Index of the next WQE.
    pub start: u32,
    /// Slots free, reserved ones not counted.
    pub room: u32,
    /// Number of the next message, modulo the MSN table.
    pub msn: u32,
    /// PSN of the next packet.
    pub psn: Psn,
    /// Producer epoch, at its place in the doorbell.
    pub epoch: u32,
}

/// The epoch's place in the doorbell.
pub(super) const EPOCH: u32 = 1 << 24;

/// Which of the straight-line paths posts a request with one SGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Connection in variable mode with the MSN table.
    VariableMsn,
    /// Connection in static mode with extended PSN entries.
    StaticPsn,
    /// The path for everything.
    General,
}

impl Shape {
    const fn of(init: &SendInit) -> Self {
        match (init.qp_type, init.plan.max_sge, init.plan.mode, init.plan.retransmit) {
            (QpType::Rc, 1.., WqeMode::Variable, Retransmit::Msn) => Self::VariableMsn,
            (QpType::Rc, 1.., WqeMode::Static, Retransmit::PsnExt) => Self::StaticPsn,
            _ => Self::General,
        }
    }
}

/// State of a send queue as plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendState {
    /// Slot of the next WQE.
    pub tail: u32,
    /// Slot of the oldest outstanding WQE.
    pub head: u32,
    /// Index of the next WQE.
    pub next: u32,
    /// Index of the oldest outstanding WQE.
    pub oldest: u32,
    /// Number of the next message, modulo the MSN table.
    pub msn: u32,
    /// PSN of the next packet.
    pub psn: u32,
    /// Producer epoch.
    pub epoch: bool,
    /// A request has failed.
    pub failed: bool,
    /// Path MTU, as its base-two logarithm.
    pub mtu_log2: u32,
}

/// The send queue of a queue pair.
#[derive(Debug)]
pub struct SendQueue<'m, S: Store> {
    pub(super) memory: RingMemory<'m>,
    pub(super) table: RingMemory<'m>,
    pub(super) shadow: Shadow<SendRecord, S>,
    pub(super) cursor: Cursor,
    oldest: u32,
    failed: bool,
    pub(super) mtu_log2: u32,
    /// Path MTU, less one.
    pub(super) mtu_mask: u32,
    pub(super) slots: u32,
    pub(super) records: u32,
    base: DbWord,
    qp: QpId,
    pub(super) msn_mask: u32,
    reserve: u32,
    pub(super) max_sge: u32,
    pub(super) max_inline: u32,
    pub(super) shape: Shape,
    pub(super) variable: bool,
    pub(super) retransmit: Retransmit,
    /// The signal flag of every request, if all are signaled.
    pub(super) signal_all: u32,
    pub(super) kind: Kind,
    /// Datagrams posted since the last transition to RTS, see [`SendQueue::wants_refresh`].
    pub(super) posts: u32,
}

impl<'m, S: Store> SendQueue<'m, S> {
    /// A fresh send queue in `memory`, with `records` for bookkeeping: at least [`SendPlan::records`] of them, a power
    /// of two.
    ///
    /// # Errors
    /// Memory or records that do not fit the plan, or an id wider than a doorbell.
    pub fn new(
        memory: RingMemory<'m>,
        records: S::Slice<SendRecord>,
        init: &SendInit,
    ) -> Result<Self, MemoryError> {
        let plan = &init.plan;
        memory.check("send queue", plan.bytes as usize, 4096)?;
        let given = records.len();
        let needed = plan.records as usize;
        let too_short = MemoryError::TooShort { what: "send records", given, needed };
        let shadow = Shadow::new(records, needed).ok_or(too_short)?;
        let xid = Xid::qp(init.qp)?;
        let (memory, table) = memory.split_at(plan.table_offset as usize);
        let mut queue = Self {
            memory,
            table,
            shadow,
            cursor: Cursor::default(),
            oldest: 0,
            failed: false,
            mtu_log2: Mtu::default().log2(),
            mtu_mask: Mtu::default().bytes() - 1,
            slots: plan.slots,
            records: plan.records,
            qp: init.qp,
            base: DbWord::ring(DbType::SQ, xid, DbIndex::ZERO, Epoch(false), Toggle::ZERO),
            msn_mask: plan.msn_modulus.wrapping_sub(1),
            reserve: plan.reserve,
            max_sge: plan.max_sge,
            max_inline: plan.max_inline,
            variable: plan.mode == WqeMode::Variable,
            retransmit: plan.retransmit,
            signal_all: init.signal_all.into(),
            shape: Shape::of(init),
            kind: Kind { qp_type: init.qp_type, atomics: init.atomics },
            posts: 0,
        };
        queue.reset();
        Ok(queue)
    }

    /// Makes the queue what it was when it was created.
    pub fn reset(&mut self) {
        self.cursor = Cursor { room: self.slots.saturating_sub(self.reserve), ..Cursor::default() };
        self.oldest = 0;
        self.failed = false;
        self.posts = 0;
    }

    /// Whether the device wants the queue pair to be modified from RTS to RTS: a datagram queue pair of a chip before
    /// P5, after [`UD_REFRESH`] posts.
    pub fn wants_refresh(&self) -> bool {
        self.kind.qp_type == QpType::Ud && self.retransmit == Retransmit::Psn && self.posts >= UD_REFRESH
    }

    /// The queue pair was modified to RTS.
    pub(super) fn refreshed(&mut self) {
        self.posts = 0;
    }

    /// Sets the PSN of the next packet of a connection; datagrams have none in the queue.
    pub fn set_psn(&mut self, psn: Psn) {
        if self.kind.qp_type == QpType::Rc {
            self.cursor.psn = psn;
        }
    }

    /// Sets the path MTU, which the number of packets of a message follows from.
    pub fn set_mtu(&mut self, mtu: Mtu) {
        self.mtu_log2 = mtu.log2();
        self.mtu_mask = mtu.bytes() - 1;
    }

    /// Whether nothing is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.oldest == self.cursor.start
    }

    /// Requests outstanding.
    pub fn outstanding(&self) -> u32 {
        distance(self.oldest, self.cursor.start, self.records)
    }

    /// Begins a batch: requests that are posted under one doorbell, or not at all.
    #[inline(always)]
    pub fn batch(&mut self) -> SendBatch<'_, 'm, S> {
        SendBatch { before: self.cursor, queue: self }
    }

    /// The doorbell for the requests committed so far.
    #[inline(always)]
    pub fn doorbell(&self) -> DbWord {
        let c = &self.cursor;
        self.base.or(c.epoch | [c.start, c.tail][self.variable as usize])
    }

    /// The records, to save them.
    pub fn records(&self) -> &[SendRecord] {
        self.shadow.records()
    }

    /// The records, to restore them.
    pub fn records_mut(&mut self) -> &mut [SendRecord] {
        self.shadow.records_mut()
    }

    /// The state, to save it.
    pub fn state(&self) -> SendState {
        let c = &self.cursor;
        let used = self.slots.saturating_sub(self.reserve).saturating_sub(c.room);
        SendState {
            tail: c.tail,
            head: if c.tail >= used { c.tail - used } else { (c.tail + self.slots).saturating_sub(used) },
            next: c.start,
            oldest: self.oldest,
            msn: c.msn,
            psn: c.psn.get(),
            epoch: c.epoch != 0,
            failed: self.failed,
            mtu_log2: self.mtu_log2,
        }
    }

    /// Restores a saved state; the records are restored separately.
    ///
    /// # Errors
    /// A state that this queue cannot be in. Nothing was changed.
    pub fn restore(&mut self, state: &SendState) -> Result<(), MemoryError> {
        let used = distance(state.head, state.tail, self.slots);
        let room = self.slots.saturating_sub(self.reserve).checked_sub(used);
        let fits = state.tail < self.slots
            && state.head < self.slots
            && state.next < self.records
            && state.oldest < self.records
            && (state.msn == 0 || state.msn <= self.msn_mask)
            && (used == 0) == (state.next == state.oldest);
        let mtu = Mtu::ALL.into_iter().find(|m| m.log2() == state.mtu_log2);
        let (Some(room), Some(psn), Some(mtu), true) =
            (room.filter(|r| *r > 0), Psn::new(state.psn), mtu, fits)
        else {
            return Err(MemoryError::Mismatch("saved state does not fit this send queue"));
        };
        self.cursor = Cursor {
            tail: state.tail,
            start: state.next,
            room,
            msn: state.msn,
            psn,
            epoch: if state.epoch { EPOCH } else { 0 },
        };
        self.oldest = state.oldest;
        self.failed = state.failed;
        self.set_mtu(mtu);
        Ok(())
    }

    /// Memory of the slots, for those who look at it.
    pub fn memory(&self) -> &RingMemory<'m> {
        &self.memory
    }

    /// Whether ring or retransmit table share bytes with `other`.
    pub fn overlaps(&self, other: &RingMemory<'_>) -> bool {
        self.memory.overlaps(other) || self.table.overlaps(other)
    }

    /// Frees the oldest outstanding request.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        let slots = self.shadow.get(self.oldest as usize).slots();
        self.cursor.room = self.cursor.room.wrapping_add(slots);
        self.oldest = next(self.oldest, self.records);
    }

    /// Completes the oldest request, if a success CQE with consumer index `index` completes just that, and it asked for a
    /// completion; `false`, and nothing was done, otherwise.
    #[inline(always)]
    pub(super) fn complete_one(&mut self, index: u16, wc: &mut WorkCompletion) -> bool {
        let record = *self.shadow.get(self.oldest as usize);
        let behind = self.oldest.wrapping_add(1);
        // The last index of the ring is left to the general path.
        if behind >= self.records || behind != u32::from(index) || self.is_empty() || !record.signaled() {
            return false;
        }
        *wc = record.success(self.qp());
        self.cursor.room = self.cursor.room.wrapping_add(record.slots());
        self.oldest = behind;
        true
    }

    /// Requests that a success CQE with consumer index `index` completes: at least one, or none if the index names
    /// nothing outstanding.
    #[inline(always)]
    pub(super) fn completed_by(&self, index: u16) -> Option<u32> {
        let index = u32::from(index);
        let index = if index < self.records { index } else { index.checked_rem(self.records)? };
        let count = distance(self.oldest, index, self.records);
        (count != 0 && count <= self.outstanding()).then_some(count)
    }

    /// Position among the outstanding requests, from 0, of the one that an error CQE names.
    #[cold]
    pub(super) fn failed_by(&self, index: u16) -> Option<u32> {
        if !self.variable {
            return self.completed_by(index).map(|count| count - 1);
        }
        let mut at = self.oldest;
        for position in 0..self.outstanding() {
            if self.shadow.get(at as usize).start() == index {
                return Some(position);
            }
            at = next(at, self.records);
        }
        None
    }

    /// Fills `wc` from the oldest outstanding request; `false` if it gives no completion: it succeeded and asked for
    /// none, or there is no request.
    #[inline(always)]
    pub(super) fn write_oldest(&self, status: WcStatus, vendor_err: u32, wc: &mut WorkCompletion) -> bool {
        let record = self.shadow.get(self.oldest as usize);
        let success = status as u8 == WcStatus::Success as u8;
        if self.is_empty() || success && !record.signaled() {
            return false;
        }
        *wc = record.success(self.qp());
        if !success {
            wc.byte_len = 0;
            wc.status = status;
            wc.vendor_err = vendor_err;
        }
        true
    }

    /// Whether a request has failed: what is older than the next failure was flushed, not carried out.
    pub(super) fn failed(&self) -> bool {
        self.failed
    }

    pub(super) fn fail(&mut self) {
        self.failed = true;
    }

    /// Number of the queue pair.
    #[inline(always)]
    pub(super) fn qp(&self) -> QpId {
        self.qp
    }
}

/// Steps from `from` to `to` in a ring of `len`.
#[inline(always)]
pub(super) const fn distance(from: u32, to: u32, len: u32) -> u32 {
    let steps = to.wrapping_sub(from);
    if to >= from { steps } else { steps.wrapping_add(len) }
}

/// The index behind `index` in a ring of `len`.
#[inline(always)]
pub(super) const fn next(index: u32, len: u32) -> u32 {
    let index = index.wrapping_add(1);
    if index < len { index } else { 0 }
}
