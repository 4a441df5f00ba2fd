//! What send and receive queues have in common: a ring of WQEs, and the payload of a WQE.

use super::cmb::{Cmb, CmbGrant, Publish};
use super::doorbell::{QueueDoorbell, RingIdx};
use super::plan::WorkQueuePlan;
use super::wqe::{self, PAYLOAD_OFFSET, SpecFormat, WQE_MIN};
use crate::queue::{DeviceMemory, Doorbell, RingMemory, Slot};
use crate::verbs::{MemoryError, PostError, Sge, WcOpcode};

/// Longest message: 2 GiB.
pub const MAX_MESSAGE: u64 = 1 << 31;

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

/// The second word of a WQE: all of [`wqe::BaseHeader`] but the index.
#[inline(always)]
pub(super) const fn header(op: u8, num_sge_key: u8, flags: u16, imm_data_key: u32) -> u64 {
    be_pair((op as u32) << 24 | (num_sge_key as u32) << 16 | flags as u32, imm_data_key)
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

/// A ring of WQEs that the host produces.
#[derive(Debug)]
pub(super) struct WorkRing<'m, M> {
    pub memory: RingMemory<'m>,
    pub doorbell: QueueDoorbell,
    pub cmb: Option<Cmb<M>>,
    pub mask: u16,
    pub stride_log2: u8,
    /// Words 7 are express doorbells: WQEs are 64 bytes long and have them.
    pub express_word: bool,
    pub spec: u32,
    pub max_sge: u32,
    pub max_inline: u32,
    pub prod: u16,
    pub cons: u16,
    /// Requests are flushed instead of completed.
    pub flush: bool,
    /// Counts the reasons to flush.
    pub flush_seq: u32,
}

impl<'m, M: DeviceMemory> WorkRing<'m, M> {
    /// Checks the memory; nothing is written.
    pub fn new(
        what: &'static str,
        plan: &WorkQueuePlan,
        doorbell: QueueDoorbell,
        memory: RingMemory<'m>,
        cmb: Option<Cmb<M>>,
    ) -> Result<Self, MemoryError> {
        memory.check(what, plan.ring.bytes(), 4096)?;
        let express = cmb.as_ref().is_some_and(|cmb| cmb.express);
        if express && !plan.cmb.express {
            return Err(MemoryError::Mismatch("express doorbells that the plan has no room for"));
        }
        Ok(Self {
            memory,
            doorbell,
            cmb,
            mask: plan.ring.mask(),
            stride_log2: plan.ring.stride_log2,
            express_word: express && plan.ring.stride() == WQE_MIN as u32,
            spec: plan.spec.into(),
            max_sge: plan.max_sge(express),
            max_inline: plan.max_inline(express),
            prod: 0,
            cons: 0,
            flush: false,
            flush_seq: 0,
        })
    }

    /// What was granted to it.
    pub fn grant(&self) -> CmbGrant {
        match &self.cmb {
            None => CmbGrant::Host,
            Some(cmb) => CmbGrant::Cmb { express: cmb.express, mapping: cmb.mapping },
        }
    }

    /// Makes it as if new. The reasons to flush go on counting.
    pub fn clear(&mut self) {
        self.memory.zero();
        if self.grant().express() {
            for position in 0..=self.mask {
                let word = self.doorbell.express(RingIdx(position), self.mask);
                let end = self.offset(position.into()) + self.offset(1);
                self.memory.store_release(end.wrapping_sub(wqe::EXPRESS_BYTES), word.to_le());
            }
        }
        (self.prod, self.cons, self.flush) = (0, 0, false);
    }

    #[inline(always)]
    pub fn offset(&self, index: usize) -> usize {
        index << self.stride_log2
    }

    #[inline(always)]
    pub fn next(&self, index: u16) -> u16 {
        index.wrapping_add(1) & self.mask
    }

    /// Entries from the consumer up to `index`.
    #[inline(always)]
    pub fn used(&self, index: u16) -> u16 {
        index.wrapping_sub(self.cons) & self.mask
    }

    /// The first 64 bytes of a WQE.
    #[inline(always)]
    pub fn slot(&mut self, index: u16) -> Option<Slot<'_, WORDS>> {
        let offset = self.offset(index.into());
        self.memory.slot(offset)
    }

    #[inline(always)]
    pub fn publish<D: Doorbell>(&self, start: u16, end: u16, doorbell: &D) {
        let publish = Publish {
            ring: &self.memory,
            doorbell: self.doorbell,
            mask: self.mask,
            stride_log2: self.stride_log2,
        };
        match &self.cmb {
            None => publish.host(end, doorbell),
            Some(cmb) => publish.cmb(cmb, start, end, doorbell),
        }
    }

    /// Words 4 to 7 with the express doorbell in place, if the WQE at `index` has it there.
    #[inline(always)]
    pub fn store_payload(slot: &mut Slot<'_, WORDS>, payload: &Payload, express: Option<u64>) {
        if let Some([a, b, c, d]) = payload.words {
            slot.store::<4>(a);
            slot.store::<5>(b);
            slot.store::<6>(c);
            slot.store::<7>(express.unwrap_or(d));
        }
    }

    /// The express doorbell in word 7 of the WQE at `index`.
    #[inline(always)]
    pub fn express_word(&self, index: u16) -> Option<u64> {
        self.express_word.then(|| self.doorbell.express(RingIdx(index), self.mask))
    }

    /// Zeroes what an earlier WQE of `before` bytes has left behind the `extent` bytes of the one at `index`.
    #[inline(always)]
    pub fn zero_tail(&mut self, index: u16, extent: u32, before: u32) {
        if before > extent {
            self.zero_range(index, extent, before);
        }
    }

    #[cold]
    #[inline(never)]
    fn zero_range(&mut self, index: u16, from: u32, to: u32) {
        let offset = self.offset(index.into()).wrapping_add(from as usize);
        self.memory.store_zeros(offset, to.wrapping_sub(from) as usize);
    }

    /// Checks SGEs and makes the payload of the WQE at `index` from them.
    #[inline(always)]
    pub fn sges(&mut self, index: u16, sges: &[Sge]) -> Result<Payload, PostError> {
        match sges {
            [one] if u64::from(one.length) <= MAX_MESSAGE => {
                let [a, b] = sge_words(one);
                Ok(Payload { words: Some([a, b, 0, 0]), sges: 1, length: one.length, ..Payload::EMPTY })
            }
            [] => Ok(Payload::EMPTY),
            list => self.sge_list(index, list),
        }
    }

    #[inline(never)]
    fn sge_list(&mut self, index: u16, sges: &[Sge]) -> Result<Payload, PostError> {
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
        let base = self.offset(index.into()).wrapping_add(spec.sge_offset());
        let mut offset = base;
        for (i, sge) in sges.iter().enumerate() {
            let pair = sge_words(sge);
            match (spec, i) {
                (SpecFormat::None, 0) => [words[0], words[1]] = pair,
                (SpecFormat::None, 1) => [words[2], words[3]] = pair,
                _ => {
                    self.memory.store(offset, &pair.map(u64::to_le));
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
            words: Some(words),
            sges: count as u8,
            spec,
            length: length as u32,
            extent: end.max(WQE_MIN as u32),
        })
    }

    /// Checks inline data and puts it into the WQE at `index`.
    #[inline(never)]
    pub fn inline(&mut self, index: u16, pieces: &[&[u8]]) -> Result<Payload, PostError> {
        let length = pieces.iter().fold(0u64, |sum, p| sum.saturating_add(p.len() as u64));
        if length > self.max_inline.into() {
            return Err(PostError::InlineTooLong { given: length, max: self.max_inline });
        }
        let express = self.express_word(index);
        if let Some(mut slot) = self.slot(index) {
            Self::store_payload(&mut slot, &Payload::EMPTY, express);
        }
        let mut offset = self.offset(index.into()).wrapping_add(PAYLOAD_OFFSET);
        for piece in pieces {
            self.memory.store_bytes(offset, piece);
            offset = offset.wrapping_add(piece.len());
        }
        let end = (PAYLOAD_OFFSET as u32).wrapping_add(length as u32);
        Ok(Payload { words: None, length: length as u32, extent: end.max(WQE_MIN as u32), ..Payload::EMPTY })
    }
}

#[inline(always)]
fn sge_words(sge: &Sge) -> [u64; 2] {
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
