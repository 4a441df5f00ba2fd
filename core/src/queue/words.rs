use super::{RingMemory, Slot};
use crate::verbs::MemoryError;

/// A table of 64-bit words that the device reads, at indices that wrap.
#[derive(Debug)]
pub struct WordTable<'m> {
    memory: RingMemory<'m>,
    /// Words, less one.
    mask: u32,
}

impl<'m> WordTable<'m> {
    /// A table of `words`, a power of two.
    ///
    /// # Errors
    /// Memory that is too short or not aligned, or another number of words.
    pub fn new(memory: RingMemory<'m>, words: u32) -> Result<Self, MemoryError> {
        if !words.is_power_of_two() {
            return Err(MemoryError::Mismatch(text!("a table's length is a power of two")));
        }
        memory.check(text!("table"), (words as usize).saturating_mul(8), 8)?;
        Ok(Self { memory, mask: words - 1 })
    }

    /// The index that `index` wraps to.
    #[inline(always)]
    pub const fn wrap(&self, index: u32) -> u32 {
        index & self.mask
    }

    /// Stores a word; its least significant byte comes first in memory.
    #[inline(always)]
    pub fn store(&mut self, index: u32, word: u64) {
        let at = self.wrap(index) as usize;
        // SAFETY: `new` has checked that the aligned memory holds `mask + 1` words. The slot borrows it.
        let mut slot = unsafe { Slot::<1>::new(self.memory.base().cast().add(at)) };
        slot.store::<0>(word);
    }

    /// The memory, for entries of another size.
    #[inline(always)]
    pub const fn memory(&self) -> &RingMemory<'m> {
        &self.memory
    }

    /// The memory, for entries of another size.
    #[inline(always)]
    pub const fn memory_mut(&mut self) -> &mut RingMemory<'m> {
        &mut self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(8))]
    struct Words([u8; 64]);

    #[test]
    fn an_index_wraps_into_the_table() {
        let mut words = Words([0; 64]);
        let mut table = WordTable::new(RingMemory::new(&mut words.0), 4).unwrap();
        table.store(u32::MAX, 5);
        assert_eq!(table.memory().load(24), Some([5u64.to_le(), 0]));
        assert!(WordTable::new(RingMemory::new(&mut words.0), 16).is_err());
        assert!(WordTable::new(RingMemory::new(&mut words.0), 3).is_err());
    }
}
