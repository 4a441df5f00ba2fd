//! The payload of a WQE: SGEs, with a list of their lengths if there are many, or inline data.

use super::work::{MAX_LENGTH, MAX_MESSAGE, WORDS, WorkRing, be_pair};
use super::wqe::{self, PAYLOAD_OFFSET, SpecFormat, WQE_MIN};
use crate::queue::{Slot, Store};
use crate::verbs::{Data, PostError, Sge, WcOpcode};

/// Bytes of a payload that ends with the shortest WQE.
pub(super) const SHORT_BYTES: usize = WQE_MIN - PAYLOAD_OFFSET;

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

impl<T: Copy + 'static, S: Store, M> WorkRing<'_, T, S, M> {
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
            return Err(PostError::OutOfRange {
                field: text!("SGE length"),
                value: long.length.into(),
                bits: 16,
            });
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
pub(super) const fn no_data(op: WcOpcode, data: &Data<'_>) -> Result<(), PostError> {
    match data {
        Data::Sges([]) => Ok(()),
        Data::Sges(list) => Err(PostError::TooManySges { given: list.len(), max: 0 }),
        Data::Inline(_) => Err(PostError::InlineNotAllowed(op)),
    }
}

/// Stores the payload of one SGE, or of two. The first comes with its length, which the caller has read already.
#[inline(always)]
pub(super) fn store_sges(slot: &mut Slot<'_, WORDS>, first: (&Sge, u32), second: Option<&Sge>) {
    let (first, length) = first;
    slot.store::<4>(first.addr.swap_bytes());
    slot.store_low::<5>(length.swap_bytes());
    slot.store_high::<5>(first.lkey.get().swap_bytes());
    let [a, b] = second.map_or([0; 2], sge_words);
    slot.store::<6>(a);
    slot.store::<7>(b);
}

/// The words of a payload of at most [`SHORT_BYTES`] of data; the rest is zero.
#[inline(always)]
pub(super) fn short_data(data: &[u8]) -> [u64; SHORT_BYTES / 8] {
    let (whole, rest) = data.as_chunks();
    let mut words = [0; SHORT_BYTES / 8];
    for (word, bytes) in words.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(*bytes);
    }
    if let Some(word) = words.get_mut(whole.len()) {
        *word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_data_of_any_length_is_followed_by_zeros() {
        let data: [u8; SHORT_BYTES] = core::array::from_fn(|i| i as u8 + 1);
        for length in 0..=data.len() {
            let mut wanted = [0; SHORT_BYTES];
            wanted[..length].copy_from_slice(&data[..length]);
            let bytes = short_data(&data[..length]).map(u64::to_le_bytes);
            assert_eq!(bytes.as_flattened(), wanted, "{length}");
        }
    }
}
