//! What follows the header of a WQE: SGEs, or inline data.

use super::wqe::{HEADER_SLOTS, SLOT_BYTES, SqFlags, SqSge, inline_slots};
use crate::queue::{Slot, Span};
use crate::verbs::Sge;

/// Limits that were granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct PayloadLimits {
    /// SGEs of a request.
    pub sges: u32,
    /// Inline bytes of a request.
    pub inline: u32,
}

/// What a request carries or fills, in a WQE that does not reach the ring's end.
pub(super) trait Payload: Copy {
    /// Flags that the WQE has because of it.
    const FLAGS: SqFlags = SqFlags::new();

    /// Bytes of the message, and slots that the WQE uses, header included; `None` if it was not granted.
    fn measure(self, limits: &PayloadLimits) -> Option<(u32, u32)>;

    /// Writes what follows the header; `None` if it does not fit the WQE.
    fn put(self, wqe: &mut Span<'_>) -> Option<()>;
}

/// Words of a header.
pub(super) const HEADER_WORDS: usize = (HEADER_SLOTS * SLOT_BYTES) as usize / 8;

impl Payload for &[Sge] {
    #[inline(always)]
    fn measure(self, limits: &PayloadLimits) -> Option<(u32, u32)> {
        if self.len() > limits.sges as usize {
            return None;
        }
        let length = self.iter().try_fold(0, |sum: u32, sge| sum.checked_add(sge.length))?;
        Some((length, HEADER_SLOTS + self.len() as u32))
    }

    #[inline(always)]
    fn put(self, wqe: &mut Span<'_>) -> Option<()> {
        for (slot, sge) in (HEADER_SLOTS..).zip(self) {
            let mut words = wqe.words::<2>(slot)?;
            put_sge::<0, 2>(&mut words, sge);
        }
        Some(())
    }
}

impl Payload for &[&[u8]] {
    const FLAGS: SqFlags = SqFlags::new().with_inline_data(true);

    #[inline(always)]
    fn measure(self, limits: &PayloadLimits) -> Option<(u32, u32)> {
        let most = limits.inline as usize;
        let length = self
            .iter()
            .try_fold(0, |sum: usize, piece| sum.checked_add(piece.len()).filter(|sum| *sum <= most))?
            as u32;
        Some((length, inline_slots(length)))
    }

    #[inline(always)]
    fn put(self, wqe: &mut Span<'_>) -> Option<()> {
        let mut at = HEADER_WORDS * 8;
        for piece in self {
            wqe.store_bytes(at, piece)?;
            at += piece.len();
        }
        Some(())
    }
}

/// Writes an SGE to the words from `AT` on.
#[inline(always)]
pub(super) fn put_sge<const AT: usize, const WORDS: usize>(words: &mut Slot<'_, WORDS>, sge: &Sge) {
    if cfg!(target_endian = "little") {
        // It has the device's form already.
        words.copy::<AT, _>(sge);
    } else {
        words.copy::<AT, _>(&SqSge::new(sge));
    }
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Sge>() == size_of::<SqSge>());
    assert!(offset_of!(Sge, addr) == offset_of!(SqSge, va_or_pa));
    assert!(offset_of!(Sge, lkey) == offset_of!(SqSge, l_key));
    assert!(offset_of!(Sge, length) == offset_of!(SqSge, size));
};
