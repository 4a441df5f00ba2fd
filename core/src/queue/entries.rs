use core::ptr::NonNull;

use super::{Entry, RingMemory, Slot, Store};
use crate::verbs::{MemoryError, Text};

/// A ring of 2^n entries of 2^s bytes, of which the first `WORDS` 64-bit words are reached without a check.
///
/// Positions count on and are masked, so that each is one of the ring's entries.
#[derive(Debug)]
pub struct EntryRing<'m, const WORDS: usize> {
    memory: RingMemory<'m>,
    /// Entries, less one.
    mask: u32,
    /// Bytes of an entry.
    stride: usize,
}

impl<'m, const WORDS: usize> EntryRing<'m, WORDS> {
    /// A ring in `memory`, which is called `what`.
    ///
    /// # Errors
    /// Memory that is too short or not page-aligned, or entries shorter than `WORDS` words.
    pub fn new(
        what: Text,
        memory: RingMemory<'m>,
        depth_log2: u8,
        stride_log2: u8,
    ) -> Result<Self, MemoryError> {
        const { assert!(WORDS > 0) };
        let (Some(depth), Some(stride)) =
            (1u32.checked_shl(depth_log2.into()), 1u32.checked_shl(stride_log2.into()))
        else {
            let value = depth_log2.max(stride_log2).into();
            return Err(MemoryError::OutOfRange { what, value, bits: u32::BITS.ilog2() });
        };
        if (stride as usize) < WORDS * 8 {
            return Err(MemoryError::too_short(what, stride as usize, WORDS * 8));
        }
        let stride = stride as usize;
        memory.check(what, (depth as usize).saturating_mul(stride), 4096)?;
        Ok(Self { memory, mask: depth - 1, stride })
    }

    /// Entries, less one.
    #[inline(always)]
    pub const fn mask(&self) -> u32 {
        self.mask
    }

    /// Bytes of an entry.
    #[inline(always)]
    pub const fn stride(&self) -> usize {
        self.stride
    }

    /// Index of the entry at `position`.
    #[inline(always)]
    pub const fn index(&self, position: u32) -> u32 {
        position & self.mask
    }

    /// Offset of the entry at `position`.
    #[inline(always)]
    pub const fn offset(&self, position: u32) -> usize {
        self.index(position) as usize * self.stride
    }

    #[inline(always)]
    fn at(&self, position: u32) -> NonNull<u64> {
        // SAFETY: `new` has checked that the memory holds `mask + 1` entries of `stride` bytes, so `offset` is inside.
        unsafe { self.memory.base().add(self.offset(position)) }.cast()
    }

    /// The entry at `position`, to be stored.
    #[inline(always)]
    pub fn slot(&mut self, position: u32) -> Slot<'_, WORDS> {
        // SAFETY: `new` has checked that an entry has `WORDS` words, and that the memory is aligned to more than 8 bytes;
        // the stride is a power of two that is not less than 8. The slot borrows the memory.
        unsafe { Slot::new(self.at(position)) }
    }

    /// The entry at `position`, to be looked at and then copied out.
    #[inline(always)]
    pub fn entry(&self, position: u32) -> Entry<'_, WORDS> {
        // SAFETY: as in `slot`.
        unsafe { Entry::new(self.at(position)) }
    }

    /// The memory, for what lies behind the first `WORDS` words of an entry.
    #[inline(always)]
    pub const fn memory(&self) -> &RingMemory<'m> {
        &self.memory
    }

    /// The memory, for what lies behind the first `WORDS` words of an entry. It is lent by value, so that nobody can put
    /// other memory in its place.
    #[inline(always)]
    pub fn bytes(&mut self) -> RingMemory<'_> {
        self.memory.reborrow()
    }
}

/// An [`EntryRing`] with a record for each entry: what the driver must remember of it, because ring memory is never
/// trusted.
pub struct RecordRing<'m, T: Copy + 'static, S: Store, const WORDS: usize> {
    entries: EntryRing<'m, WORDS>,
    records: S::Slice<T>,
}

impl<T: Copy + 'static, S: Store, const WORDS: usize> core::fmt::Debug for RecordRing<'_, T, S, WORDS> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RecordRing").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl<'m, T: Copy + 'static, S: Store, const WORDS: usize> RecordRing<'m, T, S, WORDS> {
    /// A ring whose entries have `records`, which are called `what`.
    ///
    /// # Errors
    /// Fewer records than entries.
    pub fn new(entries: EntryRing<'m, WORDS>, what: Text, records: S::Slice<T>) -> Result<Self, MemoryError> {
        let (given, needed) = (records.len(), entries.mask as usize + 1);
        if given < needed {
            return Err(MemoryError::too_short(what, given, needed));
        }
        Ok(Self { entries, records })
    }

    /// Record of the entry at `position`.
    #[inline(always)]
    pub fn record(&self, position: u32) -> &T {
        let index = self.entries.index(position) as usize;
        // SAFETY: `new` has checked that there is a record for each index up to `mask`, which `index` does not exceed;
        // neither is changed afterwards, and `Store` promises that the slice stays the same.
        unsafe { self.records.get_unchecked(index) }
    }

    /// Record of the entry at `position`.
    #[inline(always)]
    pub fn record_mut(&mut self, position: u32) -> &mut T {
        let index = self.entries.index(position) as usize;
        // SAFETY: as in `record`.
        unsafe { self.records.get_unchecked_mut(index) }
    }

    /// The entry at `position`, to be stored.
    #[inline(always)]
    pub fn slot(&mut self, position: u32) -> Slot<'_, WORDS> {
        self.entries.slot(position)
    }

    /// The memory, see [`EntryRing::bytes`].
    #[inline(always)]
    pub fn bytes(&mut self) -> RingMemory<'_> {
        self.entries.bytes()
    }

    /// The records of all entries.
    pub fn records(&self) -> &[T] {
        self.records.get(..=self.entries.mask as usize).unwrap_or(&[])
    }

    /// The records of all entries.
    pub fn records_mut(&mut self) -> &mut [T] {
        self.records.get_mut(..=self.entries.mask as usize).unwrap_or(&mut [])
    }
}

impl<'m, T: Copy + 'static, S: Store, const WORDS: usize> core::ops::Deref for RecordRing<'m, T, S, WORDS> {
    type Target = EntryRing<'m, WORDS>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(4096))]
    struct Page([u8; 4096]);

    #[test]
    fn every_position_is_one_of_the_entries() {
        let mut page = Page([0; 4096]);
        let mut ring =
            EntryRing::<4>::new(text!("ring of entries"), RingMemory::new(&mut page.0), 6, 6).unwrap();
        for position in [0, 63, 64, u32::MAX] {
            ring.slot(position).store::<3>(position.into());
            assert_eq!(ring.entry(position & 63).load(), [0, 0, 0, position.into()]);
            assert_eq!(ring.offset(position), ring.index(position) as usize * 64);
        }
    }

    #[test]
    fn memory_that_does_not_hold_the_entries_is_refused() {
        let mut page = Page([0; 4096]);
        let mut ring = |from, depth, stride| {
            EntryRing::<4>::new(
                text!("ring of entries"),
                RingMemory::new(&mut page.0).split_at(from).1,
                depth,
                stride,
            )
            .err()
        };
        assert!(matches!(ring(0, 7, 6), Some(MemoryError::TooShort { given: 4096, needed: 8192, .. })));
        assert!(matches!(ring(0, 7, 4), Some(MemoryError::TooShort { given: 16, needed: 32, .. })));
        assert!(matches!(ring(8, 2, 5), Some(MemoryError::Misaligned { .. })));
        assert!(matches!(ring(0, 32, 5), Some(MemoryError::OutOfRange { .. })));
    }
}
