//! What send and receive queues have in common: a ring of WQEs, and the payload of a WQE.

use super::cmb::{Cmb, CmbGrant, Publish};
use super::doorbell::{QueueDoorbell, RingIdx};
use super::plan::WorkQueuePlan;
use super::wqe::{self, PAYLOAD_OFFSET, SpecFormat, WQE_MIN, WqeFlags};
use crate::queue::{DeviceMemory, Doorbell, EntryRing, RecordRing, RingMemory, Slot, Store};
use crate::verbs::{MemoryError, PostError, Sge, WcOpcode};

/// Longest message: 2 GiB.
pub const MAX_MESSAGE: u64 = MAX_LENGTH as u64;

/// Longest message, as an SGE has it.
pub(super) const MAX_LENGTH: u32 = 1 << 31;

/// Words of the shortest WQE.
pub(super) const WORDS: usize = WQE_MIN / 8;

/// Memory of a send or receive queue, as its plan sizes it.
#[derive(Debug)]
pub struct QueueMemory<'m, R, M> {
    /// The ring in host memory, page-aligned; also for a queue in controller memory.
    pub ring: RingMemory<'m>,
    /// Records of bookkeeping.
    pub records: R,
    /// The ring in controller memory, if it was granted.
    pub cmb: Option<Cmb<M>>,
}

/// Two big-endian 32-bit words that follow each other, as one little-endian 64-bit word.
#[inline(always)]
pub(super) const fn be_pair(first: u32, second: u32) -> u64 {
    ((first as u64) << 32 | second as u64).swap_bytes()
}

/// First half of the second word of a WQE: all of [`wqe::BaseHeader`] but the index and the key, as a little-endian word.
#[inline(always)]
pub(super) const fn head(op: u8, num_sge_key: u8, flags: WqeFlags) -> u32 {
    let [high, low] = flags.into_bits().to_be_bytes();
    u32::from_le_bytes([op, num_sge_key, high, low])
}

/// The second word of a WQE: [`head`], and the immediate data or key.
#[inline(always)]
pub(super) const fn header(head: u32, imm_data_key: u32) -> u64 {
    head as u64 | (imm_data_key.swap_bytes() as u64) << 32
}

/// The payload of a WQE, checked; what lies beyond the first 64 bytes of the WQE is in the ring already.
pub(super) struct Payload {
    /// Words 4 to 7 of the WQE; `None` if they are in the ring already.
    pub words: Option<[u64; 4]>,
    /// Number of SGEs.
    pub sges: u8,
    /// Form of the list of their lengths.
    pub spec: SpecFormat,
    /// Bytes of the message.
    pub length: u32,
    /// Bytes of the WQE that may be other than zero, at least 64.
    pub extent: u32,
}

impl Payload {
    pub const EMPTY: Self =
        Self { words: Some([0; 4]), sges: 0, spec: SpecFormat::None, length: 0, extent: WQE_MIN as u32 };
}

/// The extent of a WQE as a record has it: none if only its first 64 bytes may be other than zero.
#[inline(always)]
pub(super) const fn long(extent: u32) -> u32 {
    if extent > WQE_MIN as u32 { extent } else { 0 }
}

/// Whether a queue flushes its requests instead of waiting for them to complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flush {
    /// It does not.
    #[default]
    No,
    /// The device has told that it does. What has completed is reported first.
    Told,
    /// It does.
    Yes,
}

/// A ring of WQEs that the host produces. Positions count on without wrapping; a WQE is at its position modulo the depth.
#[derive(Debug)]
pub(super) struct WorkRing<'m, T: Copy + 'static, S: Store, M> {
    pub wqes: RecordRing<'m, T, S, WORDS>,
    pub doorbell: QueueDoorbell,
    /// The ring in controller memory. It stands alone so that there is no code for it where there can be none.
    controller: Option<M>,
    grant: CmbGrant,
    /// Words 7 are express doorbells: WQEs are 64 bytes long and have them.
    pub express_word: bool,
    /// Its requests may be of the plainest form.
    plain: bool,
    /// The queue pair's state allows posting.
    open: bool,
    /// Position up to which requests of the plainest form are posted without further question: the queue takes them, there
    /// is room, and the lap does not end. [`WorkRing::look_ahead`] sets it, and whatever makes it untrue sets it to `prod`.
    stop: u32,
    pub spec: u32,
    pub max_sge: u32,
    pub max_inline: u32,
    pub prod: u32,
    pub cons: u32,
    flush: Flush,
    /// Counts the reasons to flush.
    pub flush_seq: u32,
}

impl<'m, T: Copy + Default + 'static, S: Store, M: DeviceMemory> WorkRing<'m, T, S, M> {
    /// Checks the memory; nothing is written. Requests of the plainest form are allowed if `connected`.
    pub fn new(
        [what, what_records]: [&'static str; 2],
        plan: &WorkQueuePlan,
        connected: bool,
        doorbell: QueueDoorbell,
        memory: QueueMemory<'m, S::Slice<T>, M>,
    ) -> Result<Self, MemoryError> {
        let QueueMemory { ring, records, cmb } = memory;
        let wqes = EntryRing::new(what, ring, plan.ring.depth_log2, plan.ring.stride_log2)?;
        let wqes = RecordRing::new(wqes, what_records, records)?;
        let grant = cmb.as_ref().map_or(CmbGrant::Host, Cmb::grant);
        let express = grant.express();
        if express && !plan.cmb.express {
            return Err(MemoryError::Mismatch("express doorbells that the plan has no room for"));
        }
        let express_word = express && plan.ring.stride() == WQE_MIN as u32;
        Ok(Self {
            wqes,
            doorbell,
            controller: cmb.map(|cmb| cmb.memory),
            grant,
            express_word,
            plain: connected && !express_word,
            open: true,
            stop: 0,
            spec: plan.spec.into(),
            max_sge: plan.max_sge(express),
            max_inline: plan.max_inline(express),
            prod: 0,
            cons: 0,
            flush: Flush::No,
            flush_seq: 0,
        })
    }

    /// What was granted to it.
    pub const fn grant(&self) -> CmbGrant {
        self.grant
    }

    /// Makes it as if new. The reasons to flush go on counting.
    pub fn clear(&mut self) {
        self.wqes.bytes().zero();
        self.wqes.records_mut().fill(T::default());
        if self.grant().express() {
            for position in 0..=self.wqes.mask() {
                let word = self.express(position);
                let end = self.wqes.offset(position) + self.wqes.stride();
                self.wqes.bytes().store_release(end.wrapping_sub(wqe::EXPRESS_BYTES), word.to_le());
            }
        }
        (self.prod, self.cons) = (0, 0);
        self.set_flush(Flush::No);
    }

    /// Sets where it is, from indices.
    pub fn set_indices(&mut self, prod: u16, cons: u16) {
        let used = u32::from(prod.wrapping_sub(cons)) & self.wqes.mask();
        self.cons = cons.into();
        self.go_to(self.cons + used);
    }
}

impl<T: Copy + 'static, S: Store, M> WorkRing<'_, T, S, M> {
    /// Tells the device of the last `count` WQEs before the producer.
    #[inline(always)]
    pub fn publish<D: Doorbell>(&self, count: u32, doorbell: &D)
    where
        M: DeviceMemory,
    {
        let (start, end) = (self.prod.wrapping_sub(count), self.prod);
        let publish = Publish { ring: &self.wqes, doorbell: self.doorbell };
        match &self.controller {
            None => publish.host(end, doorbell),
            Some(memory) => publish.controller(memory, self.grant, start, end, doorbell),
        }
    }

    /// Whether requests are flushed.
    #[inline(always)]
    pub const fn flush(&self) -> Flush {
        self.flush
    }

    pub fn set_flush(&mut self, flush: Flush) {
        self.flush = flush;
        self.stop = self.prod;
    }

    /// The queue pair's state allows posting, or does not.
    pub fn set_open(&mut self, open: bool) {
        self.open = open;
        self.stop = self.prod;
    }

    /// Moves the producer.
    pub fn go_to(&mut self, position: u32) {
        self.prod = position;
        self.stop = position;
    }

    /// Requests from the consumer up to `position`.
    #[inline(always)]
    pub const fn used(&self, position: u32) -> u32 {
        position.wrapping_sub(self.cons)
    }

    /// Whether the next request may be of the plainest form. If not, [`WorkRing::look_ahead`] may find that it may.
    #[inline(always)]
    pub const fn is_plain(&self) -> bool {
        self.prod != self.stop
    }

    /// Finds out how many of the plainest requests may follow, up to the end of the lap.
    #[cold]
    #[inline(never)]
    pub fn look_ahead(&mut self) {
        let takes = self.plain && self.open && self.flush != Flush::Yes;
        let free = if takes { self.wqes.mask().saturating_sub(self.used(self.prod)) } else { 0 };
        let lap = self.wqes.mask().wrapping_sub(self.wqes.index(self.prod)).wrapping_add(1);
        self.stop = self.prod.wrapping_add(free.min(lap));
    }

    /// Goes on behind a request of any form.
    #[inline(always)]
    pub const fn go_on(&mut self) {
        let stopped = !self.is_plain();
        self.prod = self.prod.wrapping_add(1);
        if stopped {
            self.stop = self.prod;
        }
    }

    /// Whether a request of any form may go to `position`; one that is flushed at once is a reason to look for flushes.
    pub fn room(&mut self, position: u32) -> Result<(), PostError> {
        if self.used(position) >= self.wqes.mask() {
            return Err(PostError::QueueFull { needed: 1, free: 0 });
        }
        if self.flush == Flush::Yes {
            self.flush_seq = self.flush_seq.wrapping_add(1);
        }
        Ok(())
    }

    /// The doorbell that tells the producer.
    #[inline(always)]
    pub fn index_doorbell(&self) -> u64 {
        self.doorbell.index(RingIdx(self.wqes.index(self.prod) as u16))
    }

    fn express(&self, position: u32) -> u64 {
        self.doorbell.express(RingIdx(self.wqes.index(position) as u16), self.wqes.mask() as u16)
    }

    /// Words 4 to 7 as they are stored: with the express doorbell in place, if the WQE at `position` has it there.
    #[inline(always)]
    pub fn with_express(&self, position: u32, words: [u64; 4]) -> [u64; 4] {
        let [a, b, c, d] = words;
        [a, b, c, if self.express_word { self.express(position) } else { d }]
    }

    /// Zeroes what an earlier WQE of `before` bytes has left behind the `extent` bytes of the one at `position`.
    #[inline(always)]
    pub fn zero_tail(&mut self, position: u32, extent: u32, before: u32) {
        if before > extent {
            self.zero_range(position, extent, before);
        }
    }

    #[cold]
    #[inline(never)]
    fn zero_range(&mut self, position: u32, extent: u32, before: u32) {
        let offset = self.wqes.offset(position).wrapping_add(extent as usize);
        self.wqes.bytes().store_zeros(offset, before.saturating_sub(extent) as usize);
    }

    /// Checks SGEs and makes the payload of the WQE at `position` from them.
    #[inline(always)]
    pub fn sges(&mut self, position: u32, sges: &[Sge]) -> Result<Payload, PostError> {
        match sges {
            [] => Ok(Payload { words: Some(self.with_express(position, [0; 4])), ..Payload::EMPTY }),
            [one] if one.length <= MAX_LENGTH => {
                let [a, b] = sge_words(one);
                let words = Some(self.with_express(position, [a, b, 0, 0]));
                Ok(Payload { words, sges: 1, length: one.length, ..Payload::EMPTY })
            }
            list => self.sge_list(position, list),
        }
    }

    #[inline(never)]
    fn sge_list(&mut self, position: u32, sges: &[Sge]) -> Result<Payload, PostError> {
        if sges.len() > self.max_sge as usize {
            return Err(PostError::TooManySges { given: sges.len(), max: self.max_sge });
        }
        let count = sges.len() as u32;
        let spec = SpecFormat::of(self.spec, count);
        let length: u64 = sges.iter().map(|s| u64::from(s.length)).sum();
        if length > MAX_MESSAGE {
            return Err(PostError::MessageTooLong { given: length, max: MAX_MESSAGE });
        }
        if spec == SpecFormat::Spec16
            && let Some(long) = sges.iter().find(|s| s.length > u16::MAX.into())
        {
            return Err(PostError::OutOfRange { field: "SGE length", value: long.length.into(), bits: 16 });
        }
        let mut words = [0u64; 4];
        let mut offset = self.wqes.offset(position).wrapping_add(spec.sge_offset());
        for (i, sge) in sges.iter().enumerate() {
            let pair = sge_words(sge);
            match (spec, i) {
                (SpecFormat::None, 0) => [words[0], words[1]] = pair,
                (SpecFormat::None, 1) => [words[2], words[3]] = pair,
                _ => {
                    self.wqes.bytes().store(offset, &pair.map(u64::to_le));
                }
            }
            let (slot, shift) = match spec {
                SpecFormat::None => (4, 0),
                SpecFormat::Spec32 => (i >> 1, if i & 1 == 0 { 32 } else { 0 }),
                SpecFormat::Spec16 => (i >> 2, 48 - 16 * (i & 3)),
            };
            if let Some(word) = words.get_mut(slot) {
                *word |= (u64::from(sge.length) << shift).swap_bytes();
            }
            offset = offset.wrapping_add(size_of::<wqe::Sge>());
        }
        let end = (spec.sge_offset() as u32).wrapping_add(count.wrapping_mul(size_of::<wqe::Sge>() as u32));
        Ok(Payload {
            words: Some(self.with_express(position, words)),
            sges: count as u8,
            spec,
            length: length as u32,
            extent: end.max(WQE_MIN as u32),
        })
    }

    /// Checks inline data and puts it into the WQE at `position`.
    #[inline(never)]
    pub fn inline(&mut self, position: u32, pieces: &[&[u8]]) -> Result<Payload, PostError> {
        let length = pieces.iter().fold(0u64, |sum, p| sum.saturating_add(p.len() as u64));
        if length > self.max_inline.into() {
            return Err(PostError::InlineTooLong { given: length, max: self.max_inline });
        }
        let words = self.with_express(position, [0; 4]);
        store_payload(&mut self.wqes.slot(position), words);
        let mut offset = self.wqes.offset(position).wrapping_add(PAYLOAD_OFFSET);
        for piece in pieces {
            self.wqes.bytes().store_bytes(offset, piece);
            offset = offset.wrapping_add(piece.len());
        }
        let end = (PAYLOAD_OFFSET as u32).wrapping_add(length as u32);
        Ok(Payload { words: None, length: length as u32, extent: end.max(WQE_MIN as u32), ..Payload::EMPTY })
    }
}

/// Stores words 4 to 7.
#[inline(always)]
pub(super) fn store_payload(slot: &mut Slot<'_, WORDS>, [a, b, c, d]: [u64; 4]) {
    slot.store::<4>(a);
    slot.store::<5>(b);
    slot.store::<6>(c);
    slot.store::<7>(d);
}

#[inline(always)]
pub(super) const fn sge_words(sge: &Sge) -> [u64; 2] {
    [sge.addr.swap_bytes(), be_pair(sge.length, sge.lkey.get())]
}

/// An operation that takes neither SGEs nor inline data.
pub(super) const fn no_data(op: WcOpcode, data: &crate::verbs::Data<'_>) -> Result<(), PostError> {
    match data {
        crate::verbs::Data::Sges([]) => Ok(()),
        crate::verbs::Data::Sges(list) => Err(PostError::TooManySges { given: list.len(), max: 0 }),
        crate::verbs::Data::Inline(_) => Err(PostError::InlineNotAllowed(op)),
    }
}
