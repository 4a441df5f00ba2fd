use super::{Entry, EntryRing};
use crate::verbs::MemoryError;

/// The consumer's side of a ring: an [`EntryRing`] whose entries are `WORDS` 64-bit words long, and are read in order.
#[derive(Debug)]
pub struct ReadRing<'m, const WORDS: usize> {
    ring: EntryRing<'m, WORDS>,
    /// Byte offset of the next entry: that of one of the ring's entries.
    at: u32,
    /// Bytes of the ring, less one.
    mask: u32,
}

impl<'m, const WORDS: usize> ReadRing<'m, WORDS> {
    const STRIDE: u32 = WORDS as u32 * 8;

    /// Reads `ring` from its first entry on.
    ///
    /// # Errors
    /// Entries of another length, or a ring of 4 GiB or more.
    pub const fn new(ring: EntryRing<'m, WORDS>) -> Result<Self, MemoryError> {
        if ring.stride() != Self::STRIDE as usize {
            return Err(MemoryError::Mismatch(text!("entries of another length")));
        }
        match ring.mask().checked_add(1) {
            Some(depth) => match depth.checked_mul(Self::STRIDE) {
                Some(bytes) => Ok(Self { ring, at: 0, mask: bytes.wrapping_sub(1) }),
                None => Err(MemoryError::Mismatch(text!("a ring of 4 GiB"))),
            },
            None => Err(MemoryError::Mismatch(text!("a ring of 4 GiB"))),
        }
    }

    /// The ring.
    #[inline(always)]
    pub const fn ring(&self) -> &EntryRing<'m, WORDS> {
        &self.ring
    }

    /// The ring, to be written to.
    pub const fn ring_mut(&mut self) -> &mut EntryRing<'m, WORDS> {
        &mut self.ring
    }

    /// Index of the next entry.
    #[inline(always)]
    pub const fn index(&self) -> u32 {
        self.at / Self::STRIDE
    }

    /// Goes to the entry at `position`, modulo the depth.
    pub const fn set_index(&mut self, position: u32) {
        self.at = self.ring.index(position).wrapping_mul(Self::STRIDE) & self.mask;
    }

    /// The next entry, to be looked at and then copied out.
    #[inline(always)]
    pub fn entry(&self) -> Entry<'_, WORDS> {
        // SAFETY: `at` is a multiple of the entries' length and less than the ring's, which the memory holds.
        unsafe { Entry::new(self.ring.memory().base().add(self.at as usize).cast()) }
    }

    /// Goes on to the next entry; `true` if it is the ring's first.
    #[inline(always)]
    pub const fn advance(&mut self) -> bool {
        self.at = self.at.wrapping_add(Self::STRIDE) & self.mask;
        self.at == 0
    }
}
