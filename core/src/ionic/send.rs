//! The send queue.

use core::mem::size_of;

use super::cmb::NoDeviceMemory;
use super::cq::CqRing;
use super::doorbell::{QueueDoorbell, RingIdx};
use super::plan::WorkQueuePlan;
use super::request;
use super::work::{Payload, QueueMemory, WORDS, WorkRing, header};
use super::wqe::{Opcodes, RdmaVersion, SqOp, WqeFlags};
use crate::queue::{DeviceMemory, Doorbell, Shadow, Store};
use crate::verbs::{
    CqId, Data, MemoryError, PostError, QpId, QpType, SendFlags, SendOp, SendRequest, WcOpcode, WcStatus,
};

bitflags::bitflags! {
    /// What the driver knows of a posted send request.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SqFlags: u8 {
        /// Its success is reported.
        const SIGNALED = 1;
        /// It completes by message, not by position.
        const REMOTE = 1 << 1;
        /// It has completed by position.
        const LOCAL_DONE = 1 << 2;
    }
}

/// What the driver remembers of a send request, and of the message with the same number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SqRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Device clock when it completed.
    pub timestamp: u64,
    /// Bytes of the message, or the device's status code once it has failed.
    pub length: u32,
    /// Bytes of the WQE in this place that may be other than zero.
    pub extent: u32,
    /// Its message number, modulo the depth.
    pub seq: u16,
    /// Index of the WQE of the message with this record's index as its number.
    pub msn_idx: u16,
    /// Operation.
    pub opcode: WcOpcode,
    /// Outcome.
    pub status: WcStatus,
    /// Flags.
    pub flags: SqFlags,
}

const _: () = assert!(size_of::<SqRecord>() == 32);

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
    pub(super) ring: WorkRing<'m, M>,
    pub(super) records: Shadow<SqRecord, S>,
    opcodes: &'static Opcodes,
    version: RdmaVersion,
    qp_type: QpType,
    signal_all: bool,
    pub(super) cq: CqId,
    pub(super) qp: QpId,
    color: bool,
    pub(super) msn_prod: u32,
    pub(super) msn_cons: u32,
    pub(super) flush_hint: bool,
}

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
        let given = memory.records.len();
        let needed = plan.records();
        let records = Shadow::new(memory.records, needed).ok_or(MemoryError::TooShort {
            what: "send records",
            given,
            needed,
        })?;
        Ok(Self {
            ring: WorkRing::new("send ring", plan, config.doorbell, memory.ring, memory.cmb)?,
            records,
            opcodes: config.version.opcodes(),
            version: config.version,
            qp_type: config.qp_type,
            signal_all: config.signal_all,
            cq: config.cq,
            qp: config.qp,
            color: true,
            msn_prod: 0,
            msn_cons: 0,
            flush_hint: false,
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
        let mask = queue.ring.mask;
        let outstanding = state.msn_prod.wrapping_sub(state.msn_cons) & MSN_MASK;
        // A queue that flushes does not look at message numbers any more.
        let outstanding = if state.flush { 0 } else { outstanding };
        let numbers = [
            ("prod", u32::from(state.prod), u32::from(mask)),
            ("cons", state.cons.into(), mask.into()),
            ("msn_prod", state.msn_prod, MSN_MASK),
            ("msn_cons", state.msn_cons, MSN_MASK),
            ("messages outstanding", outstanding, mask.into()),
        ];
        for (what, value, max) in numbers {
            if value > max {
                let bits = u32::BITS - max.leading_zeros();
                return Err(MemoryError::OutOfRange { what, value: value.into(), bits });
            }
        }
        (queue.ring.prod, queue.ring.cons, queue.ring.flush) = (state.prod, state.cons, state.flush);
        (queue.msn_prod, queue.msn_cons) = (state.msn_prod, state.msn_cons);
        (queue.color, queue.flush_hint) = (state.color, state.flush_hint);
        Ok(queue)
    }

    /// Makes it as if new.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.records.records_mut().fill(SqRecord::default());
        (self.color, self.msn_prod, self.msn_cons, self.flush_hint) = (true, 0, 0, false);
    }

    /// Its state as plain data.
    pub fn state(&self) -> SqState {
        SqState {
            prod: self.ring.prod,
            cons: self.ring.cons,
            color: self.color,
            msn_prod: self.msn_prod,
            msn_cons: self.msn_cons,
            flush: self.ring.flush,
            flush_hint: self.flush_hint,
        }
    }

    /// Its records, to save them.
    pub fn records(&self) -> &[SqRecord] {
        self.records.records()
    }

    /// Requests posted and not completed.
    pub fn outstanding(&self) -> u32 {
        self.ring.used(self.ring.prod).into()
    }

    /// The doorbell that tells the producer.
    pub fn doorbell(&self) -> u64 {
        self.ring.doorbell.index(RingIdx(self.ring.prod))
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
        if cq.id() != self.cq {
            return Err(PostError::WrongCq { given: cq.id(), attached: self.cq });
        }
        let (prod, color, msn_prod) = (self.ring.prod, self.color, self.msn_prod);
        Ok(SendBatch { queue: self, cq, prod, color, msn_prod })
    }
}

/// Requests that are posted under one doorbell. Dropping it instead of [`SendBatch::commit`] undoes them.
#[derive(Debug)]
#[must_use = "a batch that is dropped undoes its posts"]
pub struct SendBatch<'q, 'm, 'c, S: Store, M: DeviceMemory = NoDeviceMemory> {
    queue: &'q mut SendQueue<'m, S, M>,
    cq: &'q mut CqRing<'c>,
    prod: u16,
    color: bool,
    msn_prod: u32,
}

/// Operation, and the first 32 bytes of the WQE but the index.
struct Head {
    opcode: u8,
    wc: WcOpcode,
    imm_data_key: u32,
    /// Word 2.
    address: u64,
    /// First half of word 3.
    key: u32,
    /// Flags that the operation does not take.
    refused: SendFlags,
    inline: bool,
}

impl<S: Store, M: DeviceMemory> SendBatch<'_, '_, '_, S, M> {
    /// Posts a request.
    ///
    /// # Errors
    /// Why it cannot be posted; nothing was written, and the batch may go on.
    #[inline(always)]
    pub fn post(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let queue = &mut *self.queue;
        if queue.ring.used(self.prod) == queue.ring.mask {
            return Err(PostError::QueueFull { needed: 1, free: 0 });
        }
        let datagram = matches!(request.op, SendOp::SendTo(_) | SendOp::SendToImm(..));
        if datagram != (queue.qp_type == QpType::Ud) {
            return Err(not_supported(request.op, queue.qp_type));
        }
        let code = |op: SqOp| queue.opcodes[op as usize];
        let empty = SendFlags::empty();
        let (opcode, wc, imm_data_key, address, key, refused, inline) = match request.op {
            SendOp::Send => (code(SqOp::Send), WcOpcode::Send, 0, 0, 0, empty, true),
            SendOp::SendImm(imm) => (code(SqOp::SendImm), WcOpcode::Send, imm.get(), 0, 0, empty, true),
            SendOp::SendInv(key) => (code(SqOp::SendInv), WcOpcode::Send, key.get(), 0, 0, empty, true),
            SendOp::SendTo(to) => {
                (code(SqOp::Send), WcOpcode::Send, 0, request::to_word(&to), to.qkey.get(), empty, true)
            }
            SendOp::SendToImm(to, imm) => {
                let word = request::to_word(&to);
                (code(SqOp::SendImm), WcOpcode::Send, imm.get(), word, to.qkey.get(), empty, true)
            }
            SendOp::Write(to) => {
                let (word, key) = (to.addr.swap_bytes(), to.rkey.get());
                (code(SqOp::Write), WcOpcode::RdmaWrite, 0, word, key, SendFlags::SOLICITED, true)
            }
            SendOp::WriteImm(to, imm) => {
                let (word, key) = (to.addr.swap_bytes(), to.rkey.get());
                (code(SqOp::WriteImm), WcOpcode::RdmaWrite, imm.get(), word, key, empty, true)
            }
            SendOp::Read(from) => {
                let (word, key) = (from.addr.swap_bytes(), from.rkey.get());
                (code(SqOp::Read), WcOpcode::RdmaRead, 0, word, key, SendFlags::SOLICITED, false)
            }
            SendOp::CompareSwap { .. }
            | SendOp::FetchAdd { .. }
            | SendOp::LocalInv(_)
            | SendOp::BindMw(_)
            | SendOp::FastRegister(_) => return self.post_special(request),
        };
        let head = Head { opcode, wc, imm_data_key, address, key, refused, inline };
        if request.flags.intersects(head.refused.union(SendFlags::LOCAL_FENCE)) {
            return Err(PostError::FlagNotAllowed(head.wc));
        }
        let (payload, is_inline) = match request.data {
            Data::Sges(sges) => (queue.ring.sges(self.prod, sges)?, false),
            Data::Inline(_) if !head.inline => return Err(PostError::InlineNotAllowed(head.wc)),
            Data::Inline(pieces) => (queue.ring.inline(self.prod, pieces)?, true),
        };
        self.place(request, &head, &payload, is_inline);
        Ok(())
    }

    /// Stores a WQE that has a payload.
    #[inline(always)]
    fn place(&mut self, request: &SendRequest<'_>, head: &Head, payload: &Payload, inline: bool) {
        let (prod, remote) = (self.prod, self.queue.qp_type != QpType::Ud);
        let flags = self.flags(request.flags).with_inline(inline).with_format(payload.spec);
        let express = self.queue.ring.express_word(prod);
        let word_1 = header(head.opcode, payload.sges, flags.into_bits(), head.imm_data_key);
        if let Some(mut slot) = self.queue.ring.slot(prod) {
            slot.store::<0>(prod.into());
            slot.store::<2>(head.address);
            slot.store::<3>(super::work::be_pair(head.key, payload.length));
            WorkRing::<M>::store_payload(&mut slot, payload, express);
            // The device may look ahead for WQEs of the right color: the color comes last.
            slot.store_release::<1>(word_1);
        }
        self.remember(request, head.wc, payload.length, payload.extent, flags, remote);
    }

    /// Posts an operation whose WQE has a body of its own.
    #[inline(never)]
    fn post_special(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let queue = &mut *self.queue;
        if queue.qp_type == QpType::Ud {
            return Err(not_supported(request.op, queue.qp_type));
        }
        let special = request::special(queue.version, queue.qp_type, request)?;
        let express = queue.ring.express_word(self.prod);
        let [_, _, body @ .., last] = special.words;
        if express.is_some() && last != 0 {
            // An atomic of version 1 ends where the doorbell is.
            return Err(not_supported(request.op, queue.qp_type));
        }
        let flags = self.flags(request.flags);
        let word_1 = header(special.opcode, special.num_sge_key, flags.into_bits(), special.imm_data_key);
        if let Some(mut slot) = self.queue.ring.slot(self.prod) {
            let [b2, b3, b4, b5, b6] = body;
            slot.store::<0>(self.prod.into());
            slot.store::<2>(b2);
            slot.store::<3>(b3);
            slot.store::<4>(b4);
            slot.store::<5>(b5);
            slot.store::<6>(b6);
            slot.store::<7>(express.unwrap_or(last));
            slot.store_release::<1>(word_1);
        }
        let extent = (WORDS * 8) as u32;
        self.remember(request, special.wc, special.length, extent, flags, special.remote);
        Ok(())
    }

    /// The flags of a request as the WQE has them.
    #[inline(always)]
    fn flags(&self, flags: SendFlags) -> WqeFlags {
        WqeFlags::new()
            .with_color(self.color)
            .with_fence(flags.contains(SendFlags::FENCE))
            .with_solicited(flags.contains(SendFlags::SOLICITED))
            .with_signaled(self.queue.signal_all | flags.contains(SendFlags::SIGNALED))
    }

    /// Fills the record of the WQE just stored, and goes on to the next.
    #[inline(always)]
    fn remember(
        &mut self,
        request: &SendRequest<'_>,
        opcode: WcOpcode,
        length: u32,
        extent: u32,
        flags: WqeFlags,
        remote: bool,
    ) {
        let (queue, prod) = (&mut *self.queue, self.prod);
        let record = queue.records.get_mut(prod.into());
        let before = record.extent;
        record.wr_id = request.wr_id;
        record.length = length;
        record.extent = extent;
        record.seq = self.msn_prod as u16 & queue.ring.mask;
        record.opcode = opcode;
        record.status = WcStatus::Success;
        record.flags = if flags.signaled() { SqFlags::SIGNALED } else { SqFlags::empty() };
        if remote {
            record.flags |= SqFlags::REMOTE;
            let seq = record.seq;
            queue.records.get_mut(seq.into()).msn_idx = prod;
            self.msn_prod = self.msn_prod.wrapping_add(1) & MSN_MASK;
        }
        queue.ring.zero_tail(prod, extent, before);
        self.prod = queue.ring.next(prod);
        self.color ^= self.prod == 0;
    }

    /// Requests in the batch.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        let ring = &self.queue.ring;
        (self.prod.wrapping_sub(ring.prod) & ring.mask).into()
    }

    /// The doorbell that [`SendBatch::commit`] stores.
    pub fn doorbell(&self) -> u64 {
        self.queue.ring.doorbell.index(RingIdx(self.prod))
    }

    /// Tells the device: first the completion queue's doorbell if its credit is spent, then this queue's.
    #[inline(always)]
    pub fn commit<D: Doorbell>(self, doorbell: &D) {
        let mut this = core::mem::ManuallyDrop::new(self);
        let spent = this.len();
        if spent == 0 {
            return;
        }
        let (prod, color, msn_prod) = (this.prod, this.color, this.msn_prod);
        this.cq.spend(spent, doorbell);
        let queue = &mut *this.queue;
        let start = queue.ring.prod;
        (queue.ring.prod, queue.color, queue.msn_prod) = (prod, color, msn_prod);
        queue.ring.publish(start, prod, doorbell);
        if queue.ring.flush {
            queue.ring.flush_seq = queue.ring.flush_seq.wrapping_add(1);
        }
    }
}

impl<S: Store, M: DeviceMemory> Drop for SendBatch<'_, '_, '_, S, M> {
    /// Takes back the color of WQEs that were not committed: the device may look ahead for it.
    #[inline]
    fn drop(&mut self) {
        let ring = &mut self.queue.ring;
        let mut position = ring.prod;
        let mut color = self.queue.color;
        while position != self.prod {
            if let Some(mut slot) = ring.slot(position) {
                let flags = WqeFlags::new().with_color(!color);
                slot.store_release::<1>(header(0, 0, flags.into_bits(), 0));
            }
            position = ring.next(position);
            color ^= position == 0;
        }
    }
}

#[cold]
fn not_supported(op: SendOp, qp_type: QpType) -> PostError {
    PostError::NotSupported { op: request::wc_opcode(&op), qp_type }
}
