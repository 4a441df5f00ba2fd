//! What follows the header of a WQE: SGEs, or inline data.

use super::send::{SqRun, USUAL_WORDS};
use super::wqe::{HEADER_SLOTS, SLOT_BYTES, SqFlags, inline_slots};
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

    /// Place of the WQE.
    type Place<'s>;

    /// Bytes of the message, and slots that the WQE uses, header included; `None` if it was not granted.
    fn measure(self, limits: &PayloadLimits) -> Option<(u32, u32)>;

    /// Takes `slots` for the WQE.
    fn take<'s>(self, run: &'s mut SqRun<'_, '_>, slots: u8) -> Option<Self::Place<'s>>;

    /// Place of the header.
    fn header<'s>(place: &'s mut Self::Place<'_>) -> Option<Slot<'s, HEADER_WORDS>>;

    /// Writes what follows the header; `None` if it does not fit the place.
    fn put(self, place: Self::Place<'_>) -> Option<()>;
}

/// Words of a header.
pub(super) const HEADER_WORDS: usize = (HEADER_SLOTS * SLOT_BYTES) as usize / 8;

/// One SGE. A queue has a straight-line path only if one was granted.
#[derive(Clone, Copy)]
pub(super) struct OneSge<'a>(pub &'a Sge);

impl Payload for OneSge<'_> {
    type Place<'s> = Slot<'s, USUAL_WORDS>;

    #[inline(always)]
    fn measure(self, _: &PayloadLimits) -> Option<(u32, u32)> {
        Some((self.0.length, HEADER_SLOTS + 1))
    }

    #[inline(always)]
    fn take<'s>(self, run: &'s mut SqRun<'_, '_>, _: u8) -> Option<Self::Place<'s>> {
        run.take_usual()
    }

    #[inline(always)]
    fn header<'s>(place: &'s mut Self::Place<'_>) -> Option<Slot<'s, HEADER_WORDS>> {
        Some(place.first())
    }

    #[inline(always)]
    fn put(self, mut place: Self::Place<'_>) -> Option<()> {
        let [addr, key_and_length] = sge_words(self.0);
        place.store::<HEADER_WORDS>(addr);
        place.store::<{ HEADER_WORDS + 1 }>(key_and_length);
        Some(())
    }
}

impl Payload for &[Sge] {
    type Place<'s> = Span<'s>;

    #[inline(always)]
    fn measure(self, limits: &PayloadLimits) -> Option<(u32, u32)> {
        if self.len() > limits.sges as usize {
            return None;
        }
        let length = self.iter().try_fold(0, |sum: u32, sge| sum.checked_add(sge.length))?;
        Some((length, HEADER_SLOTS + self.len() as u32))
    }

    #[inline(always)]
    fn take<'s>(self, run: &'s mut SqRun<'_, '_>, slots: u8) -> Option<Span<'s>> {
        run.take(slots)
    }

    #[inline(always)]
    fn header<'s>(place: &'s mut Span<'_>) -> Option<Slot<'s, HEADER_WORDS>> {
        place.words(0)
    }

    #[inline(always)]
    fn put(self, mut place: Span<'_>) -> Option<()> {
        for (slot, sge) in (HEADER_SLOTS..).zip(self) {
            let mut words = place.words::<2>(slot)?;
            let [addr, key_and_length] = sge_words(sge);
            words.store::<0>(addr);
            words.store::<1>(key_and_length);
        }
        Some(())
    }
}

impl Payload for &[&[u8]] {
    const FLAGS: SqFlags = SqFlags::new().with_inline_data(true);

    type Place<'s> = Span<'s>;

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
    fn take<'s>(self, run: &'s mut SqRun<'_, '_>, slots: u8) -> Option<Span<'s>> {
        run.take(slots)
    }

    #[inline(always)]
    fn header<'s>(place: &'s mut Span<'_>) -> Option<Slot<'s, HEADER_WORDS>> {
        place.words(0)
    }

    #[inline(always)]
    fn put(self, mut place: Span<'_>) -> Option<()> {
        let mut at = HEADER_WORDS * 8;
        for piece in self {
            place.store_bytes(at, piece)?;
            at += piece.len();
        }
        Some(())
    }
}

/// An SGE as two words: what [`SqSge`] has.
#[inline(always)]
pub(super) const fn sge_words(sge: &Sge) -> [u64; 2] {
    [sge.addr, (sge.length as u64) << 32 | sge.lkey.get() as u64]
}
