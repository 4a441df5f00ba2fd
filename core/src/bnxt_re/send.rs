//! The send queue: its indices, and what the driver remembers of outstanding requests. Posting is in [`super::batch`].

use super::batch::SendBatch;
use super::caps::UD_REFRESH;
use super::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use super::flags::FlagWords;
use super::payload::PayloadLimits;
use super::plan::SendPlan;
use super::psn::Retransmit;
use super::request::Kind;
use super::wqe::{HEADER_SLOTS, SLOT_BYTES, STATIC_SLOTS, SqFlags, WqeMode, WqeType};
use crate::queue::{RingMemory, Run, Shadow, SlotRing, Store, WordTable};
use crate::verbs::{MemoryError, Mtu, Psn, QpId, QpType, WcOpcode, WcStatus, WorkCompletion};

/// What the driver remembers of a send request: one for each WQE index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct SendRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Bytes of the message.
    pub length: u32,
    /// First word of the WQE's header: type, flags and slots in use; in the byte that the device reserves, slots that the
    /// WQE takes.
    pub word: u32,
}

impl SendRecord {
    /// A record of a WQE whose header begins with `word` and which takes `slots`.
    #[inline(always)]
    pub(super) const fn new(wr_id: u64, length: u32, word: u32, slots: u8) -> Self {
        Self { wr_id, length, word: word.wrapping_add((slots as u32) << 24) }
    }

    /// Slots that the WQE takes.
    #[inline(always)]
    pub const fn slots(&self) -> u32 {
        self.word >> 24
    }

    /// A completion was asked for.
    #[inline(always)]
    pub const fn signaled(&self) -> bool {
        self.word & SqFlags::new().with_signal_comp(true).in_first_word() != 0
    }

    /// The completion of success.
    #[inline(always)]
    pub(super) fn success(&self, qp: QpId) -> WorkCompletion {
        let (opcode, reported) = OPERATIONS[(self.word & 0xf) as usize];
        WorkCompletion {
            wr_id: self.wr_id,
            byte_len: self.length & reported,
            qp,
            opcode,
            ..WorkCompletion::default()
        }
    }
}

/// What completes, and which bits of the length a completion reports: all of what came in, none of what went out. By WQE
/// type.
const OPERATIONS: [(WcOpcode, u32); 16] = {
    let mut table = [(WcOpcode::Send, 0); 16];
    let mut wqe_type = 0;
    while wqe_type < table.len() {
        if let Some(opcode) = WqeType(wqe_type as u8).completes_as() {
            let comes_in = matches!(opcode, WcOpcode::RdmaRead | WcOpcode::CompSwap | WcOpcode::FetchAdd);
            table[wqe_type] = (opcode, if comes_in { u32::MAX } else { 0 });
        }
        wqe_type += 1;
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

/// Indices that move with a post, beside those of the slots. A batch works on a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Index of the next WQE.
    pub start: u32,
    /// Number of the next message; it wraps with the MSN table.
    pub msn: u32,
    /// PSN of the next packet.
    pub psn: Psn,
}

/// Queues whose requests have a straight-line path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Connection in variable mode with the MSN table.
    VariableMsn,
    /// Connection in static mode with extended PSN entries.
    StaticPsn,
    /// All others.
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

/// Words of a header and one SGE, which is what most WQEs have.
pub(super) const USUAL_WORDS: usize = (HEADER_SLOTS as usize + 1) * SLOT_BYTES as usize / 8;

/// A run of the send queue's slots.
pub(super) type SqRun<'r, 'm> = Run<'r, 'm, USUAL_WORDS>;

/// The send queue of a queue pair.
#[derive(Debug)]
pub struct SendQueue<'m, S: Store> {
    pub(super) ring: SlotRing<'m, USUAL_WORDS>,
    pub(super) cursor: Cursor,
    pub(super) book: Book<'m, S>,
}

/// All of a send queue but its slots and its cursor, so that a batch can hold each.
#[derive(Debug)]
pub(super) struct Book<'m, S: Store> {
    pub table: WordTable<'m>,
    pub shadow: Shadow<SendRecord, S>,
    oldest: u32,
    failed: bool,
    pub mtu_log2: u32,
    /// Path MTU, less one.
    pub mtu_mask: u32,
    pub records: u32,
    base: DbWord,
    qp: QpId,
    pub limits: PayloadLimits,
    pub shape: Shape,
    /// `shape` while the queue pair accepts requests that it will carry out, otherwise [`Shape::General`].
    pub path: Shape,
    pub variable: bool,
    pub retransmit: Retransmit,
    /// Flags of a WQE by those of its request.
    pub flags: FlagWords,
    pub kind: Kind,
    /// Datagrams posted since the last transition to RTS, see [`SendQueue::wants_refresh`].
    pub posts: u32,
}

impl<S: Store> Book<'_, S> {
    /// What the device counts in: where WQE `start` begins, slot `tail`, or the WQE's index.
    #[inline(always)]
    pub fn index(&self, start: u32, tail: u32) -> u32 {
        if self.variable { tail } else { start }
    }

    /// The doorbell at `index`, see [`Book::index`].
    #[inline(always)]
    pub fn doorbell(&self, index: u32, epoch: u32) -> DbWord {
        self.base.or(u64::from(epoch) | u64::from(index))
    }
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
        memory.check(text!("send queue"), plan.bytes as usize, 4096)?;
        let given = records.len();
        let needed = plan.records as usize;
        let too_short = MemoryError::too_short(text!("send records"), given, needed.next_power_of_two());
        let shadow = Shadow::new(records, needed).ok_or(too_short)?;
        let xid = Xid::qp(init.qp)?;
        let (slots, table) = memory.split_at(plan.table_offset as usize);
        let book = Book {
            table: WordTable::new(table, plan.msn_modulus.max(1))?,
            shadow,
            oldest: 0,
            failed: false,
            mtu_log2: Mtu::default().log2(),
            mtu_mask: Mtu::default().bytes() - 1,
            records: plan.records,
            qp: init.qp,
            base: DbWord::ring(DbType::SQ, xid, DbIndex::ZERO, Epoch(false), Toggle::ZERO),
            limits: PayloadLimits { sges: plan.max_sge, inline: plan.max_inline },
            variable: plan.mode == WqeMode::Variable,
            retransmit: plan.retransmit,
            flags: FlagWords::new(init.signal_all),
            shape: Shape::of(init),
            path: Shape::General,
            kind: Kind { qp_type: init.qp_type, atomics: init.atomics },
            posts: 0,
        };
        let usual = match plan.mode {
            WqeMode::Static => STATIC_SLOTS,
            WqeMode::Variable => HEADER_SLOTS + 1,
        };
        let ring = SlotRing::new(slots, plan.slots, plan.reserve, usual as u8)?;
        Ok(Self { ring, cursor: Cursor::default(), book })
    }

    /// Makes the queue what it was when it was created.
    pub fn reset(&mut self) {
        self.ring.reset();
        self.cursor = Cursor::default();
        let book = &mut self.book;
        book.oldest = 0;
        book.failed = false;
        book.posts = 0;
    }

    /// Whether the device wants the queue pair to be modified from RTS to RTS: a datagram queue pair of a chip before
    /// P5, after [`UD_REFRESH`] posts.
    pub fn wants_refresh(&self) -> bool {
        let book = &self.book;
        book.kind.qp_type == QpType::Ud && book.retransmit == Retransmit::Psn && book.posts >= UD_REFRESH
    }

    /// The queue pair was modified to RTS.
    pub(super) fn refreshed(&mut self) {
        self.book.posts = 0;
    }

    /// Whether the queue pair is in a state in which requests are accepted, and carried out.
    pub(super) fn open(&mut self, open: bool) {
        self.book.path = if open { self.book.shape } else { Shape::General };
    }

    /// Sets the PSN of the next packet of a connection; datagrams have none in the queue.
    pub fn set_psn(&mut self, psn: Psn) {
        if self.book.kind.qp_type == QpType::Rc {
            self.cursor.psn = psn;
        }
    }

    /// Sets the path MTU, which the number of packets of a message follows from.
    pub fn set_mtu(&mut self, mtu: Mtu) {
        self.book.mtu_log2 = mtu.log2();
        self.book.mtu_mask = mtu.bytes() - 1;
    }

    /// Whether nothing is outstanding.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.book.oldest == self.cursor.start
    }

    /// Requests outstanding.
    pub fn outstanding(&self) -> u32 {
        distance(self.book.oldest, self.cursor.start, self.book.records)
    }

    /// Begins a batch: requests that are posted under one doorbell, or not at all.
    #[inline(always)]
    pub fn batch(&mut self) -> SendBatch<'_, 'm, S> {
        SendBatch {
            run: self.ring.run(),
            cursor: self.cursor,
            committed: &mut self.cursor,
            book: &mut self.book,
        }
    }

    /// The doorbell for the requests committed so far.
    pub fn doorbell(&self) -> DbWord {
        let index = self.book.index(self.cursor.start, self.ring.tail());
        self.book.doorbell(index, self.ring.epoch())
    }

    /// The records, to save them.
    pub fn records(&self) -> &[SendRecord] {
        self.book.shadow.records()
    }

    /// The records, to restore them.
    pub fn records_mut(&mut self) -> &mut [SendRecord] {
        self.book.shadow.records_mut()
    }

    /// The state, to save it.
    pub fn state(&self) -> SendState {
        let Cursor { start, msn, psn } = self.cursor;
        SendState {
            tail: self.ring.tail(),
            head: self.ring.head(),
            next: start,
            oldest: self.book.oldest,
            msn: self.book.table.wrap(msn),
            psn: psn.get(),
            epoch: self.ring.epoch() != 0,
            failed: self.book.failed,
            mtu_log2: self.book.mtu_log2,
        }
    }

    /// Restores a saved state; the records are restored separately.
    ///
    /// # Errors
    /// A state that this queue cannot be in. Nothing was changed.
    pub fn restore(&mut self, state: &SendState) -> Result<(), MemoryError> {
        let book = &mut self.book;
        let fits = state.next < book.records
            && state.oldest < book.records
            && state.msn == book.table.wrap(state.msn)
            && (state.tail == state.head) == (state.next == state.oldest);
        let mtu = Mtu::ALL.into_iter().find(|m| m.log2() == state.mtu_log2);
        let (Some(psn), Some(mtu), true) = (Psn::new(state.psn), mtu, fits) else {
            return Err(MemoryError::Mismatch(text!("saved state does not fit this send queue")));
        };
        if !self.ring.restore(state.tail, state.head, state.epoch) {
            return Err(MemoryError::Mismatch(text!("saved state does not fit this send queue")));
        }
        self.cursor = Cursor { start: state.next, msn: state.msn, psn };
        book.oldest = state.oldest;
        book.failed = state.failed;
        self.set_mtu(mtu);
        Ok(())
    }

    /// Memory of the slots, for those who look at it.
    pub fn memory(&self) -> &RingMemory<'m> {
        self.ring.memory()
    }

    /// Whether ring or retransmit table share bytes with `other`.
    pub fn overlaps(&self, other: &RingMemory<'_>) -> bool {
        self.ring.memory().overlaps(other) || self.book.table.memory().overlaps(other)
    }

    /// Slot of the next WQE.
    pub(super) fn tail(&self) -> u32 {
        self.ring.tail()
    }

    /// The slot `ahead` of `tail`, for a push copy.
    pub(super) fn load_slot(&self, tail: u32, ahead: u32) -> Option<[u8; 16]> {
        self.ring.memory().load(self.ring.slot(tail, ahead) as usize * SLOT_BYTES as usize)
    }

    /// Frees the oldest outstanding request.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        let slots = self.book.shadow.get(self.book.oldest as usize).slots();
        self.ring.release(slots);
        self.book.oldest = next(self.book.oldest, self.book.records);
    }

    /// Frees the oldest request, if a success CQE with consumer index `index` completes just that, and it asked for a
    /// completion; `None`, and nothing was done, otherwise.
    #[inline(always)]
    pub(super) fn complete_one(&mut self, index: u16) -> Option<SendRecord> {
        let (oldest, empty) = (self.book.oldest, self.is_empty());
        let record = self.book.shadow.get(oldest as usize);
        let behind = oldest.wrapping_add(1);
        // The last index of the ring is left to the general path.
        if behind != u32::from(index) || behind >= self.book.records || empty || !record.signaled() {
            return None;
        }
        self.ring.release(record.slots());
        self.book.oldest = behind;
        Some(*record)
    }

    /// Requests that a success CQE with consumer index `index` completes: at least one, or none if the index names
    /// nothing outstanding.
    #[inline(always)]
    pub(super) fn completed_by(&self, index: u16) -> Option<u32> {
        let (index, records) = (u32::from(index), self.book.records);
        let index = if index < records { index } else { index.checked_rem(records)? };
        let count = distance(self.book.oldest, index, records);
        (count != 0 && count <= self.outstanding()).then_some(count)
    }

    /// Position among the outstanding requests, from 0, of the one that an error CQE names.
    #[cold]
    pub(super) fn failed_by(&self, index: u16) -> Option<u32> {
        if !self.book.variable {
            return self.completed_by(index).map(|count| count - 1);
        }
        let (mut at, mut slot) = (self.book.oldest, self.ring.head());
        for position in 0..self.outstanding() {
            if slot == u32::from(index) {
                return Some(position);
            }
            slot = self.ring.slot(slot, self.book.shadow.get(at as usize).slots());
            at = next(at, self.book.records);
        }
        None
    }

    /// Fills `wc` from the oldest outstanding request; `false` if it gives no completion: it succeeded and asked for
    /// none, or there is no request.
    #[inline(always)]
    pub(super) fn write_oldest(&self, status: WcStatus, vendor_err: u32, wc: &mut WorkCompletion) -> bool {
        let record = self.book.shadow.get(self.book.oldest as usize);
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
        self.book.failed
    }

    pub(super) fn fail(&mut self) {
        self.book.failed = true;
    }

    /// Number of the queue pair.
    #[inline(always)]
    pub(super) fn qp(&self) -> QpId {
        self.book.qp
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
