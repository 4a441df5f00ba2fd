//! The send queue: requests become WQEs, retransmit entries and one doorbell value.
//!
//! The ring bytes are those of the vendor's provider, including the bytes of a header that an operation does not use:
//! they keep what an earlier WQE left there. Two exceptions: fetch and add clears the compare field, and SEND_INV has
//! its own opcode, which the provider lacks.

use zerocopy::little_endian as le;

use super::caps::UD_REFRESH;
use super::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use super::inline;
use super::plan::SendPlan;
use super::psn::{Retransmit, SqMsnSearch, SqPsnSearch, SqPsnSearchExt};
use super::request::{Header, Kind, header};
use super::wqe::{HEADER_SLOTS, MAX_MESSAGE, SLOT_BYTES, STATIC_SLOTS, SqSge, WqeMode, inline_slots};
use crate::queue::{Doorbell, RingMemory, Shadow, Slot, Store};
use crate::verbs::{
    Data, MemoryError, Mtu, PostError, Psn, QpId, QpType, SendRequest, WcOpcode, WcStatus, WorkCompletion,
};

/// What the driver remembers of a send request: one for each WQE index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct SendRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Bytes of the message.
    pub length: u32,
    /// Doorbell index of the WQE: its slot in variable mode, its WQE index in static mode.
    pub start: u16,
    /// Slots that the WQE takes.
    pub slots: u8,
    /// Operation (bits 0 to 6) and whether a completion was asked for (bit 7).
    pub kind: u8,
}

const SIGNALED: u8 = 0x80;

impl SendRecord {
    /// Operation.
    pub(super) const fn opcode(&self) -> WcOpcode {
        match self.kind & !SIGNALED {
            1 => WcOpcode::RdmaWrite,
            2 => WcOpcode::RdmaRead,
            3 => WcOpcode::CompSwap,
            4 => WcOpcode::FetchAdd,
            5 => WcOpcode::BindMw,
            6 => WcOpcode::LocalInv,
            8 => WcOpcode::RegMr,
            _ => WcOpcode::Send,
        }
    }

    /// A completion was asked for.
    pub(super) const fn signaled(&self) -> bool {
        self.kind & SIGNALED != 0
    }
}

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

/// Indices that move with a post. A batch works on a copy, which is why dropping it undoes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cursor {
    tail: u32,
    start: u32,
    room: u32,
    msn: u32,
    psn: Psn,
    epoch: bool,
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
    memory: RingMemory<'m>,
    shadow: Shadow<SendRecord, S>,
    cursor: Cursor,
    oldest: u32,
    failed: bool,
    mtu_log2: u32,
    slots: u32,
    records: u32,
    base: DbWord,
    table_offset: u32,
    msn_mask: u32,
    reserve: u32,
    max_sge: u32,
    max_inline: u32,
    variable: bool,
    retransmit: Retransmit,
    signal_all: bool,
    kind: Kind,
    /// Posts since the last transition to RTS; counts only where [`SendQueue::wants_refresh`] needs it.
    posts: u32,
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
        let mut queue = Self {
            memory,
            shadow,
            cursor: Cursor::default(),
            oldest: 0,
            failed: false,
            mtu_log2: Mtu::default().log2(),
            slots: plan.slots,
            records: plan.records,
            base: DbWord::ring(DbType::SQ, xid, DbIndex::ZERO, Epoch(false), Toggle::ZERO),
            table_offset: plan.table_offset,
            msn_mask: plan.msn_modulus.wrapping_sub(1),
            reserve: plan.reserve,
            max_sge: plan.max_sge,
            max_inline: plan.max_inline,
            variable: plan.mode == WqeMode::Variable,
            retransmit: plan.retransmit,
            signal_all: init.signal_all,
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
        SendBatch { cursor: self.cursor, queue: self, posted: 0 }
    }

    /// The doorbell for the requests committed so far.
    #[inline]
    pub fn doorbell(&self) -> DbWord {
        self.doorbell_at(&self.cursor)
    }

    #[inline(always)]
    fn doorbell_at(&self, cursor: &Cursor) -> DbWord {
        self.base.at(if self.variable { cursor.tail } else { cursor.start }, cursor.epoch)
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
            epoch: c.epoch,
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
            && Mtu::ALL.iter().any(|m| m.log2() == state.mtu_log2)
            && (used == 0) == (state.next == state.oldest);
        let (Some(room), Some(psn), true) = (room.filter(|r| *r > 0), Psn::new(state.psn), fits) else {
            return Err(MemoryError::Mismatch("saved state does not fit this send queue"));
        };
        self.cursor =
            Cursor { tail: state.tail, start: state.next, room, msn: state.msn, psn, epoch: state.epoch };
        self.oldest = state.oldest;
        self.failed = state.failed;
        self.mtu_log2 = state.mtu_log2;
        Ok(())
    }

    /// Ring memory, for those who look at it.
    pub fn memory(&self) -> &RingMemory<'m> {
        &self.memory
    }

    /// Frees the oldest outstanding request.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        let slots = self.shadow.get(self.oldest as usize).slots;
        self.cursor.room = self.cursor.room.wrapping_add(slots.into());
        self.oldest = next(self.oldest, self.records);
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
            if self.shadow.get(at as usize).start == index {
                return Some(position);
            }
            at = next(at, self.records);
        }
        None
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
        QpId::truncated(self.base.xid().get())
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

/// Requests that are posted under one doorbell. Dropped without [`SendBatch::commit`], it leaves no trace but the
/// bytes of free slots.
#[derive(Debug)]
#[must_use = "a batch that is not committed is undone"]
pub struct SendBatch<'b, 'm, S: Store> {
    queue: &'b mut SendQueue<'m, S>,
    cursor: Cursor,
    posted: u32,
}

/// What a request needs: found out before anything is written.
#[derive(Clone, Copy)]
struct Measure {
    length: u32,
    /// Slots of the WQE in use, header included.
    used: u32,
}

impl<'b, 'm, S: Store> SendBatch<'b, 'm, S> {
    /// Adds a request.
    ///
    /// # Errors
    /// Why it cannot be posted. Nothing was written, and the batch stays as it was.
    #[inline]
    pub fn post(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let measure = self.measure(request)?;
        let queue = &mut *self.queue;
        let header = header(request, &queue.kind, queue.signal_all, measure.length, measure.used)?;
        let slots = if queue.variable { measure.used } else { STATIC_SLOTS };
        if slots >= self.cursor.room {
            return Err(PostError::QueueFull { needed: slots, free: self.cursor.room.saturating_sub(1) });
        }

        let tail = self.cursor.tail;
        let contiguous = tail + HEADER_SLOTS < queue.slots;
        if let (Data::Sges([sge]), true) = (&request.data, contiguous)
            && let Some(mut wqe) = queue.memory.slot::<6>(tail as usize * SLOT_BYTES as usize)
        {
            put_header(&mut wqe, &header);
            wqe.store::<4>(sge.addr);
            wqe.store::<5>(u64::from(sge.length) << 32 | u64::from(sge.lkey.get()));
        } else {
            queue.put_any(tail, &header, &request.data);
        }
        self.advance(request.wr_id, &header, measure.length, slots);
        Ok(())
    }

    #[inline(always)]
    fn measure(&self, request: &SendRequest<'_>) -> Result<Measure, PostError> {
        match request.data {
            Data::Sges([sge]) if sge.length <= MAX_MESSAGE && self.queue.max_sge > 0 => {
                Ok(Measure { length: sge.length, used: HEADER_SLOTS + 1 })
            }
            _ => self.queue.measure_any(request),
        }
    }

    /// Books a WQE that was written: record, retransmit entry, indices.
    #[inline(always)]
    fn advance(&mut self, wr_id: u64, header: &Header, length: u32, slots: u32) {
        let queue = &mut *self.queue;
        let cursor = &mut self.cursor;
        let start = (if queue.variable { cursor.tail } else { cursor.start }) as u16;
        let signaled = (header.signaled as u8) << 7;
        *queue.shadow.get_mut(cursor.start as usize) =
            SendRecord { wr_id, length, start, slots: slots as u8, kind: header.opcode as u8 | signaled };

        let first = cursor.psn;
        let next_psn = if header.packets { first.add(packets(length, queue.mtu_log2)) } else { first };
        let table = queue.table_offset as usize;
        if queue.retransmit == Retransmit::Msn {
            if header.packets {
                let entry = SqMsnSearch::new(first, next_psn, start);
                queue.memory.store(table + cursor.msn as usize * 8, &entry);
                cursor.msn = (cursor.msn + 1) & queue.msn_mask;
            }
        } else {
            let index = if queue.variable { cursor.tail } else { cursor.start } as usize;
            if queue.retransmit == Retransmit::PsnExt {
                let entry = SqPsnSearchExt::new(header.psn_opcode, first, next_psn, start);
                queue.memory.store(table + index * 16, &entry);
            } else {
                let entry = SqPsnSearch::new(header.psn_opcode, first, next_psn);
                queue.memory.store(table + index * 8, &entry);
            }
        }
        cursor.psn = next_psn;
        cursor.start = next(cursor.start, queue.records);
        cursor.room -= slots;
        let tail = cursor.tail + slots;
        let wrapped = tail >= queue.slots;
        cursor.tail = if wrapped { tail - queue.slots } else { tail };
        cursor.epoch ^= wrapped;
        self.posted += 1;
    }

    /// Requests in the batch.
    pub fn len(&self) -> u32 {
        self.posted
    }

    /// The doorbell that [`SendBatch::commit`] will store.
    pub fn doorbell(&self) -> DbWord {
        self.queue.doorbell_at(&self.cursor)
    }

    /// Makes the requests visible to the device: the only place of barriers and doorbell. An empty batch rings nothing.
    #[inline]
    pub fn commit(self, doorbell: &impl Doorbell) {
        if self.posted == 0 {
            return;
        }
        let word = self.doorbell().to_u64();
        self.queue.cursor = self.cursor;
        self.queue.posts = self.queue.posts.saturating_add(self.posted);
        doorbell.wc_start();
        doorbell.store(0, word);
        doorbell.wc_flush();
    }

    /// Takes the requests over without a doorbell, and gives its value to the caller: for queues whose doorbell
    /// several posters share (see [`crate::queue::Publisher`]), and for push.
    #[inline]
    pub fn finish(self) -> DbWord {
        self.queue.cursor = self.cursor;
        self.queue.posts = self.queue.posts.saturating_add(self.posted);
        self.queue.doorbell()
    }
}

/// Packets of a message of `length` bytes, at most 2 GiB.
#[inline(always)]
const fn packets(length: u32, mtu_log2: u32) -> u32 {
    let round = (1u32 << (mtu_log2 & 31)) - 1;
    let packets = length.wrapping_add(round) >> (mtu_log2 & 31);
    packets + (packets == 0) as u32
}

#[inline(always)]
fn low(word: le::U64) -> le::U32 {
    le::U32::new(word.get() as u32)
}

#[inline(always)]
fn put_header<const WORDS: usize>(slots: &mut Slot<'_, WORDS>, header: &Header) {
    let [first, lower, second, last] = header.words.map(le::U64::get);
    if header.written.key() {
        slots.store::<0>(first);
    } else {
        slots.store_low::<0>(first as u32);
    }
    slots.store::<1>(lower);
    if header.written.second() {
        slots.store::<2>(second);
        if header.written.last() {
            slots.store::<3>(last);
        } else if header.written.last_low() {
            slots.store_low::<3>(last as u32);
        }
    }
}

impl<S: Store> SendQueue<'_, S> {
    #[cold]
    fn measure_any(&self, request: &SendRequest<'_>) -> Result<Measure, PostError> {
        let given = request.length();
        let length = match u32::try_from(given) {
            Ok(length) if length <= MAX_MESSAGE => length,
            _ => return Err(PostError::MessageTooLong { given, max: MAX_MESSAGE.into() }),
        };
        let used = match request.data {
            Data::Sges(sges) => {
                if sges.len() > self.max_sge as usize {
                    return Err(PostError::TooManySges { given: sges.len(), max: self.max_sge });
                }
                HEADER_SLOTS + sges.len() as u32
            }
            Data::Inline(_) => {
                if length > self.max_inline {
                    return Err(PostError::InlineTooLong { given, max: self.max_inline });
                }
                inline_slots(length)
            }
        };
        Ok(Measure { length, used })
    }

    /// Byte offset of the slot `ahead` of `tail`.
    #[inline(always)]
    fn slot(&self, tail: u32, ahead: u32) -> usize {
        let slot = tail.wrapping_add(ahead);
        let slot = if slot >= self.slots { slot.wrapping_sub(self.slots) } else { slot };
        slot as usize * SLOT_BYTES as usize
    }

    /// Writes a WQE of any form, across the ring's end too.
    #[inline(never)]
    fn put_any(&mut self, tail: u32, header: &Header, data: &Data<'_>) {
        let (first, second) = (self.slot(tail, 0), self.slot(tail, 1));
        let w = header.words;
        if header.written.key() {
            self.memory.store(first, &w[0]);
        } else {
            self.memory.store(first, &low(w[0]));
        }
        self.memory.store(first + 8, &w[1]);
        if header.written.second() {
            self.memory.store(second, &w[2]);
            if header.written.last() {
                self.memory.store(second + 8, &w[3]);
            } else if header.written.last_low() {
                self.memory.store(second + 8, &low(w[3]));
            }
        }
        match data {
            Data::Sges(sges) => {
                let mut ahead = HEADER_SLOTS;
                for sge in *sges {
                    let at = self.slot(tail, ahead);
                    self.memory.store(at, &SqSge::new(sge));
                    ahead += 1;
                }
            }
            Data::Inline(pieces) => {
                let ring = self.slots as usize * SLOT_BYTES as usize;
                let at = self.slot(tail, HEADER_SLOTS);
                inline::copy(&mut self.memory, at, ring, pieces);
            }
        }
    }

    /// Slots that the WQE of `request` uses.
    pub(super) fn used_slots(&self, request: &SendRequest<'_>) -> Result<u32, PostError> {
        self.measure_any(request).map(|measure| measure.used)
    }

    /// The slot `ahead` of `tail`, for a push copy.
    pub(super) fn load_slot(&self, tail: u32, ahead: u32) -> Option<[u8; 16]> {
        self.memory.load(self.slot(tail, ahead))
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
        let opcode = record.opcode();
        let reads = matches!(opcode, WcOpcode::RdmaRead | WcOpcode::CompSwap | WcOpcode::FetchAdd);
        *wc = WorkCompletion {
            wr_id: record.wr_id,
            byte_len: if reads && success { record.length } else { 0 },
            vendor_err,
            qp: self.qp(),
            status,
            opcode,
            ..WorkCompletion::default()
        };
        true
    }
}
