//! The send queue.

use core::mem::size_of;

use super::cmb::NoDeviceMemory;
use super::cq::CqRing;
use super::doorbell::QueueDoorbell;
use super::plan::WorkQueuePlan;
use super::request::{self, Body};
use super::work::{Flush, MAX_LENGTH, QueueMemory, WorkRing, be_pair, head, header, long, store_payload};
use super::wqe::{Opcodes, RdmaVersion, SqOp, WQE_MIN, WqeFlags};
use crate::queue::{DeviceMemory, Doorbell, Store};
use crate::verbs::{
    BatchError, CqId, Data, MemoryError, PostError, QpId, QpType, SendFlags, SendOp, SendRequest, WcOpcode,
};

bitflags::bitflags! {
    /// What the driver knows of a posted send request.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SqFlags: u8 {
        /// It completes by message, not by position.
        const REMOTE = 1;
        /// It has completed by position.
        const DONE = 1 << 1;
        /// It has failed.
        const FAILED = 1 << 2;
        /// Its success is reported.
        const SIGNALED = 1 << 3;
    }
}

/// What the driver remembers of a send request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SqRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Device clock when it completed.
    pub timestamp: u64,
    /// Bytes of the message, or the device's status code once it has failed.
    pub length: u32,
    /// Bytes of the WQE in this place that may be other than zero, if they are more than 64; else 0.
    pub extent: u32,
    /// Operation.
    pub opcode: WcOpcode,
    /// Flags.
    pub flags: SqFlags,
}

const _: () = assert!(size_of::<SqRecord>() == 32);

const SIGNALED: u32 = head(0, 0, WqeFlags::new().with_signaled(true));
const COLOR: u32 = head(0, 0, WqeFlags::new().with_color(true));
const INLINE: u32 = head(0, 0, WqeFlags::new().with_inline(true));

/// By the bits of [`SendFlags`] that a WQE has.
const FLAGS: [u32; 8] = {
    let mut table = [0; 8];
    let mut bits = 0;
    while bits < table.len() {
        let flags = SendFlags::from_bits_retain(bits as u8);
        let wqe = WqeFlags::new()
            .with_fence(flags.contains(SendFlags::FENCE))
            .with_signaled(flags.contains(SendFlags::SIGNALED))
            .with_solicited(flags.contains(SendFlags::SOLICITED));
        table[bits] = head(0, 0, wqe);
        bits += 1;
    }
    table
};

/// Flags of the record of a WQE whose first half of word 1 is `head`.
const fn record_flags(head: u32, remote: bool) -> SqFlags {
    let signaled = if head & SIGNALED != 0 { SqFlags::SIGNALED } else { SqFlags::empty() };
    if remote { signaled.union(SqFlags::REMOTE) } else { signaled }
}

#[inline(always)]
const fn flag_bits(flags: SendFlags) -> u32 {
    FLAGS[flags.bits() as usize & 7]
}

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

/// A WQE, but for its index.
struct Wqe {
    /// First half of word 1.
    head: u32,
    /// Second half of word 1.
    imm_data_key: u32,
    /// Words 2 and 3.
    words: [u64; 2],
    /// Words 4 to 7; `None` if they are in the ring already.
    payload: Option<[u64; 4]>,
    /// Bytes of the message.
    length: u32,
    /// Operation that completes.
    opcode: WcOpcode,
    /// Flags of its record.
    flags: SqFlags,
}

/// The send queue of a queue pair.
#[derive(Debug)]
pub struct SendQueue<'m, S: Store, M = NoDeviceMemory> {
    pub(super) ring: WorkRing<'m, SqRecord, S, M>,
    opcodes: Opcodes,
    version: RdmaVersion,
    qp_type: QpType,
    signal_all: bool,
    pub(super) cq: CqId,
    pub(super) qp: QpId,
    /// Flags of every WQE: that a completion is reported if it is for all, and the color of the laps whose positions have
    /// the bit above the index clear. The other laps have the other color.
    always: u32,
    /// First half of word 1 of a WQE, and operation and flags of its record, if it is an RDMA WRITE of one SGE: by the
    /// request's lowest two flags. It is right for the lap that [`WorkRing::look_ahead`] has looked at.
    write: [(u32, WcOpcode, SqFlags); 4],
    /// Requests so far that take no message number: the next message's number is the producer less this.
    unnumbered: u32,
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
                ["send ring", "send records"],
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
            ("prod", u32::from(state.prod), mask),
            ("cons", state.cons.into(), mask),
            ("msn_prod", state.msn_prod, MSN_MASK),
            ("msn_cons", state.msn_cons, MSN_MASK),
            ("messages outstanding", outstanding, mask),
        ];
        for (what, value, max) in numbers {
            if value > max {
                let bits = u32::BITS - max.leading_zeros();
                return Err(MemoryError::OutOfRange { what, value: value.into(), bits });
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
                return Err(MemoryError::Mismatch("more messages outstanding than requests"));
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

    /// Sets the color of the WQE at the producer.
    fn set_color(&mut self, color: bool) {
        self.always = head(0, 0, WqeFlags::new().with_signaled(self.signal_all));
        if color != (self.always_at(self.ring.prod) & COLOR != 0) {
            self.always ^= COLOR;
        }
        self.ring.go_to(self.ring.prod);
    }

    /// Flags of the WQE at `position`, whatever the request.
    #[inline(always)]
    fn always_at(&self, position: u32) -> u32 {
        let odd = position & self.ring.wqes.mask().wrapping_add(1) != 0;
        if odd { self.always ^ COLOR } else { self.always }
    }

    /// See [`WorkRing::look_ahead`].
    #[cold]
    #[inline(never)]
    fn look_ahead(&mut self) {
        self.ring.look_ahead();
        if self.ring.is_plain() {
            let write = head(self.opcodes[SqOp::Write as usize], 1, WqeFlags::new());
            let [a, b, c, d, ..] = FLAGS;
            let write = write | self.always_at(self.ring.prod);
            self.write = [a, b, c, d].map(|flags| {
                let head = flags | write;
                (head, WcOpcode::RdmaWrite, record_flags(head, true))
            });
        }
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
            color: self.always_at(self.ring.prod) & COLOR != 0,
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
        self.check_cq(cq)?;
        Ok(SendBatch { start: self.ring.prod, queue: self, cq })
    }

    #[inline(always)]
    fn check_cq(&self, cq: &CqRing<'_>) -> Result<(), PostError> {
        if cq.id() == self.cq {
            return Ok(());
        }
        Err(PostError::WrongCq { given: cq.id(), attached: self.cq })
    }

    /// Posts the one request if it is of the plainest form and nothing else is to be done. `false`, and nothing was done, if
    /// not.
    #[inline(always)]
    pub(super) fn post_write<D: Doorbell>(
        &mut self,
        cq: &mut CqRing<'_>,
        request: &SendRequest<'_>,
        doorbell: &D,
    ) -> bool {
        if cq.id() != self.cq || !cq.has_credit() || !self.put_write(request) {
            return false;
        }
        cq.spend_one();
        self.ring.publish(1, doorbell);
        true
    }

    /// Posts all of `requests` under one doorbell, or none. `cq` is the ring that [`SendConfig::cq`] names.
    ///
    /// # Errors
    /// Another ring, or the first request that cannot be posted.
    #[inline(never)]
    pub fn post<D: Doorbell>(
        &mut self,
        cq: &mut CqRing<'_>,
        requests: &[SendRequest<'_>],
        doorbell: &D,
    ) -> Result<(), BatchError> {
        self.check_cq(cq).map_err(|error| BatchError { index: 0, error })?;
        if requests.is_empty() {
            return Ok(());
        }
        let start = self.ring.prod;
        for request in requests {
            if let Err(error) = self.put(request) {
                let index = self.ring.prod.wrapping_sub(start) as usize;
                self.take_back(start);
                return Err(BatchError { index, error });
            }
        }
        self.tell(requests.len() as u32, cq, doorbell);
        Ok(())
    }

    /// Writes the WQE of a request.
    #[inline(always)]
    fn put(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        if self.put_write(request) { Ok(()) } else { self.put_any(request) }
    }

    /// Writes the WQE of what most requests are: RDMA WRITE of one SGE. `false`, and nothing was done, if it is something
    /// else, or wrong.
    #[inline(always)]
    fn put_write(&mut self, request: &SendRequest<'_>) -> bool {
        let position = self.ring.prod;
        let (SendOp::Write(to), Data::Sges([sge])) = (&request.op, &request.data) else { return false };
        let refused = request.flags.intersects(request::WRITE_REFUSES);
        if refused || sge.length >= MAX_LENGTH || !self.ring.is_plain() {
            return false;
        }
        let index = self.ring.wqes.index(position);
        let (head, opcode, flags) = self.write[usize::from(request.flags.bits() & 3)];
        let record = self.ring.wqes.record_mut(position);
        if record.extent != 0 {
            return false;
        }
        (record.wr_id, record.length) = (request.wr_id, sge.length);
        (record.opcode, record.flags) = (opcode, flags);
        let (length, mut slot) = (sge.length.swap_bytes(), self.ring.wqes.slot(position));
        slot.store::<0>(index.into());
        slot.store::<2>(to.addr.swap_bytes());
        slot.store_low::<3>(to.rkey.get().swap_bytes());
        slot.store_high::<3>(length);
        slot.store::<4>(sge.addr.swap_bytes());
        slot.store_low::<5>(length);
        slot.store_high::<5>(sge.lkey.get().swap_bytes());
        slot.store::<6>(0);
        slot.store::<7>(0);
        slot.store_release::<1>(header(head, 0));
        self.ring.prod = position.wrapping_add(1);
        true
    }

    /// Writes the WQE of a request of any form, or says why it cannot be posted.
    #[inline(never)]
    fn put_any(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        if !self.ring.is_plain() {
            self.look_ahead();
        }
        let position = self.ring.prod;
        self.ring.room(position)?;
        let (qp_type, wc) = (self.qp_type, request::wc_opcode(&request.op));
        if request::is_datagram(&request.op) != (qp_type == QpType::Ud) {
            return Err(PostError::NotSupported { op: wc, qp_type });
        }
        let parts = request::parts(&request.op);
        if request.flags.intersects(parts.refused) {
            return Err(PostError::FlagNotAllowed(wc));
        }
        let mut extent = WQE_MIN as u32;
        let mut wqe = Wqe {
            head: flag_bits(request.flags) | self.always_at(position),
            imm_data_key: parts.imm_data_key,
            words: [0; 2],
            payload: None,
            length: 0,
            opcode: wc,
            flags: SqFlags::empty(),
        };
        let remote = !parts.op.is_local() && qp_type == QpType::Rc;
        wqe.flags = record_flags(wqe.head, remote);
        let opcode = self.opcodes[parts.op as usize];
        match parts.body {
            Body::Data { address, key, inline } => {
                let payload = match request.data {
                    Data::Sges(sges) => self.ring.sges(position, sges)?,
                    Data::Inline(_) if !inline => return Err(PostError::InlineNotAllowed(wc)),
                    Data::Inline(pieces) => {
                        wqe.head |= INLINE;
                        self.ring.inline(position, pieces)?
                    }
                };
                wqe.head |= head(opcode, payload.sges, WqeFlags::new().with_format(payload.spec));
                wqe.words = [address, be_pair(key, payload.length)];
                (wqe.payload, wqe.length, extent) = (payload.words, payload.length, payload.extent);
            }
            Body::Special => {
                let special = request::special(self.version, qp_type, request)?;
                let [_, _, b2, b3, payload @ ..] = special.words;
                if self.ring.express_word && special.words[7] != 0 {
                    // An atomic of version 1 ends where the doorbell is.
                    return Err(PostError::NotSupported { op: wc, qp_type });
                }
                wqe.head |= head(opcode, special.num_sge_key, WqeFlags::new());
                (wqe.words, wqe.length) = ([b2, b3], special.length);
                wqe.payload = Some(self.ring.with_express(position, payload));
            }
        }
        self.store(request.wr_id, &wqe);
        self.unnumbered = self.unnumbered.wrapping_add((!remote).into());
        let left = core::mem::replace(&mut self.record_mut(position).extent, long(extent));
        self.ring.zero_tail(position, extent, left);
        Ok(())
    }

    /// Stores a WQE and its record, but for what lies behind 64 bytes, and goes on to the next.
    #[inline(always)]
    fn store(&mut self, wr_id: u64, wqe: &Wqe) {
        let prod = self.ring.prod;
        let index = self.ring.wqes.index(prod);
        let record = self.ring.wqes.record_mut(prod);
        record.wr_id = wr_id;
        record.length = wqe.length;
        (record.opcode, record.flags) = (wqe.opcode, wqe.flags);
        let mut slot = self.ring.wqes.slot(prod);
        slot.store::<0>(index.into());
        let [b2, b3] = wqe.words;
        slot.store::<2>(b2);
        slot.store::<3>(b3);
        if let Some(payload) = wqe.payload {
            store_payload(&mut slot, payload);
        }
        // The device may look ahead for WQEs of the right color: the color comes last.
        slot.store_release::<1>(header(wqe.head, wqe.imm_data_key));
        self.ring.go_on();
    }

    /// Tells the device of the last `count` requests: first the completion queue's doorbell if its credit is spent, then
    /// this queue's.
    #[inline(always)]
    fn tell<D: Doorbell>(&mut self, count: u32, cq: &mut CqRing<'_>, doorbell: &D) {
        cq.spend(count, doorbell);
        self.ring.publish(count, doorbell);
    }

    /// Takes back the WQEs from `start` on, and their color: the device may look ahead for it.
    #[cold]
    fn take_back(&mut self, start: u32) {
        while self.ring.prod != start {
            self.ring.go_to(self.ring.prod.wrapping_sub(1));
            let prod = self.ring.prod;
            let remote = self.record(prod).flags.contains(SqFlags::REMOTE);
            self.unnumbered = self.unnumbered.wrapping_sub((!remote).into());
            let other = !self.always_at(prod) & COLOR;
            self.ring.wqes.slot(prod).store_release::<1>(header(other, 0));
        }
    }
}

/// Requests that are posted under one doorbell. Dropping it instead of [`SendBatch::commit`] undoes them.
#[derive(Debug)]
#[must_use = "a batch that is dropped undoes its posts"]
pub struct SendBatch<'q, 'm, 'c, S: Store, M: DeviceMemory = NoDeviceMemory> {
    queue: &'q mut SendQueue<'m, S, M>,
    cq: &'q mut CqRing<'c>,
    /// Producer before the batch.
    start: u32,
}

impl<S: Store, M: DeviceMemory> SendBatch<'_, '_, '_, S, M> {
    /// Posts a request.
    ///
    /// # Errors
    /// Why it cannot be posted; nothing was written, and the batch may go on.
    #[inline(always)]
    pub fn post(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        self.queue.put(request)
    }

    /// Requests in the batch.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.queue.ring.prod.wrapping_sub(self.start)
    }

    /// The doorbell that [`SendBatch::commit`] stores.
    pub fn doorbell(&self) -> u64 {
        self.queue.doorbell()
    }

    /// Tells the device: first the completion queue's doorbell if its credit is spent, then this queue's.
    #[inline(always)]
    pub fn commit<D: Doorbell>(self, doorbell: &D) {
        let mut this = core::mem::ManuallyDrop::new(self);
        let this = &mut *this;
        let count = this.len();
        if count != 0 {
            this.queue.tell(count, this.cq, doorbell);
        }
    }
}

impl<S: Store, M: DeviceMemory> Drop for SendBatch<'_, '_, '_, S, M> {
    #[inline]
    fn drop(&mut self) {
        self.queue.take_back(self.start);
    }
}
