use super::{Entry, RingMemory};
use crate::verbs::MemoryError;

/// The consumer's side of a ring of entries of `WORDS` 64-bit words, which the device marks with a phase: 1 in the first
/// lap, and the other one in each lap after.
#[derive(Debug)]
pub struct PhaseRing<'m, const WORDS: usize> {
    memory: RingMemory<'m>,
    entries: u32,
    /// Phase that the next entry has when it is new, 0 or 1.
    phase: u32,
    /// Byte offset of the next entry: less than `bytes`, and a multiple of an entry's.
    next: usize,
    /// Bytes of the entries.
    bytes: usize,
}

impl<'m, const WORDS: usize> PhaseRing<'m, WORDS> {
    /// Bytes of an entry.
    const ENTRY: usize = WORDS * 8;

    /// A ring of `entries` in `memory`, which is filled with zeros: whatever was there is no entry.
    ///
    /// # Errors
    /// Memory that is too short or not aligned, or no entries.
    pub fn new(memory: RingMemory<'m>, entries: u32) -> Result<Self, MemoryError> {
        let mut memory = memory;
        if entries == 0 {
            return Err(MemoryError::Mismatch(text!("a ring needs entries")));
        }
        let bytes = (entries as usize).saturating_mul(Self::ENTRY);
        memory.check(text!("ring of entries"), bytes, 8)?;
        memory.zero();
        Ok(Self { memory, entries, phase: 1, next: 0, bytes })
    }

    /// Entries of the ring.
    #[inline(always)]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Index of the next entry.
    #[inline(always)]
    pub const fn head(&self) -> u32 {
        (self.next / Self::ENTRY) as u32
    }

    /// Phase that the next entry has when it is new, 0 or 1.
    #[inline(always)]
    pub const fn phase(&self) -> u32 {
        self.phase
    }

    /// Takes over a saved position; `false`, and nothing was changed, if the ring has no such entry.
    pub fn restore(&mut self, head: u32, phase: bool) -> bool {
        let fits = head < self.entries;
        if fits {
            (self.next, self.phase) = (head as usize * Self::ENTRY, phase.into());
        }
        fits
    }

    /// The next entry.
    #[inline(always)]
    pub fn entry(&self) -> Entry<'_, WORDS> {
        // SAFETY: `next` is where an entry begins: `new`, `restore` and `advance` see to it. `new` has checked that the aligned
        // memory holds all. The entry borrows it.
        unsafe { Entry::new(self.memory.base().add(self.next).cast()) }
    }

    /// Goes on to the next entry; `true` if that begins a lap.
    #[inline(always)]
    pub fn advance(&mut self) -> bool {
        self.next += Self::ENTRY;
        if self.next < self.bytes {
            return false;
        }
        core::hint::cold_path();
        (self.next, self.phase) = (0, self.phase ^ 1);
        true
    }

    /// The memory.
    pub const fn memory(&self) -> &RingMemory<'m> {
        &self.memory
    }

    /// The memory.
    pub const fn memory_mut(&mut self) -> &mut RingMemory<'m> {
        &mut self.memory
    }

    /// The memory of a ring that is given up.
    pub fn into_memory(self) -> RingMemory<'m> {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(8))]
    struct Memory([u8; 64]);

    #[test]
    fn the_phase_flips_with_each_lap() {
        let mut memory = Memory([0xff; 64]);
        let mut ring = PhaseRing::<2>::new(RingMemory::new(&mut memory.0), 3).unwrap();
        assert_eq!(ring.entry().load(), [0; 2]);
        for _ in 0..2 {
            let laps = [ring.advance(), ring.advance(), ring.advance()];
            assert_eq!((laps, ring.head()), ([false, false, true], 0));
        }
        assert!(ring.phase() == 1 && !ring.restore(3, false) && ring.restore(2, false));
        ring.memory_mut().store(32, &[7u8; 16]);
        assert_eq!(ring.entry().load(), [0x0707_0707_0707_0707; 2]);
        assert!(ring.advance() && ring.phase() == 1);
    }

    #[test]
    fn memory_that_does_not_hold_the_entries_is_refused() {
        let mut memory = Memory([0; 64]);
        assert!(PhaseRing::<4>::new(RingMemory::new(&mut memory.0), 3).is_err());
        assert!(PhaseRing::<4>::new(RingMemory::new(&mut memory.0), 0).is_err());
        assert!(PhaseRing::<1>::new(RingMemory::new(&mut memory.0).split_at(4).1, 1).is_err());
    }
}
