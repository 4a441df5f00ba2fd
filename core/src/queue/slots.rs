use core::marker::PhantomData;
use core::ptr::NonNull;

use super::{RingMemory, Slot};
use crate::verbs::MemoryError;

/// Bytes of a slot.
const SLOT_BYTES: usize = 16;
/// Where a doorbell has the parity of the wraps, beside an index.
pub const EPOCH: u32 = 1 << 24;

/// The producer's side of a ring of 16-byte slots, in which entries of several slots follow each other. Most have the
/// same length, and begin with `WORDS` 64-bit words.
///
/// Entries are written in a [`Run`], and booked when it is committed.
#[derive(Debug)]
pub struct SlotRing<'m, const WORDS: usize> {
    memory: RingMemory<'m>,
    /// Length of most entries, at least `WORDS` words.
    usual: Offset,
    slots: u32,
    /// Slots that may be in use at once, less than all.
    usable: u32,
    /// Where the next entry begins.
    at: Offset,
    /// An entry whose end lies before this byte offset is free and inside: at most the bytes of the ring.
    stop: usize,
    /// Slots that are free.
    free: u32,
    /// Parity of the wraps of `tail`: [`EPOCH`] or zero.
    epoch: u32,
}

impl<'m, const WORDS: usize> SlotRing<'m, WORDS> {
    /// A ring of `slots`, of which `reserve` and one more stay free. Most entries take `usual` of them.
    ///
    /// # Errors
    /// Memory that is too short or not aligned, or usual entries shorter than `WORDS` words.
    pub fn new(memory: RingMemory<'m>, slots: u32, reserve: u32, usual: u8) -> Result<Self, MemoryError> {
        memory.check(text!("ring of slots"), (slots as usize).saturating_mul(SLOT_BYTES), SLOT_BYTES)?;
        let usual = Offset::of(usual.into());
        if usual.0 < WORDS * 8 {
            return Err(MemoryError::too_short(text!("entry of slots"), usual.0, WORDS * 8));
        }
        let usable = slots.saturating_sub(reserve).saturating_sub(1);
        Ok(Self { memory, usual, slots, usable, at: Offset(0), stop: 0, free: usable, epoch: 0 })
    }

    /// Makes the ring what it was when it was created.
    pub fn reset(&mut self) {
        (self.at, self.stop, self.free, self.epoch) = (Offset(0), 0, self.usable, 0);
    }

    /// Takes over saved indices; `false`, and nothing was changed, if the ring cannot be in that state.
    pub fn restore(&mut self, tail: u32, head: u32, epoch: bool) -> bool {
        let used = if tail < self.slots && head < self.slots { self.distance(head, tail) } else { u32::MAX };
        match self.usable.checked_sub(used) {
            Some(free) => {
                let epoch = if epoch { EPOCH } else { 0 };
                (self.at, self.stop, self.free, self.epoch) = (Offset::of(tail), 0, free, epoch);
            }
            None => return false,
        }
        true
    }

    /// Slots of the ring.
    #[inline(always)]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Slot of the next entry.
    #[inline(always)]
    pub const fn tail(&self) -> u32 {
        self.at.slot()
    }

    /// Slot of the oldest entry that was not released.
    pub const fn head(&self) -> u32 {
        self.distance(self.usable.saturating_sub(self.free), self.tail())
    }

    /// Parity of the wraps of the tail: [`EPOCH`] or zero.
    #[inline(always)]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Memory of the slots.
    pub const fn memory(&self) -> &RingMemory<'m> {
        &self.memory
    }

    /// Frees the `slots` of the oldest entry.
    #[inline(always)]
    pub fn release(&mut self, slots: u32) {
        self.free = self.free.wrapping_add(slots);
    }

    /// Begins to write entries.
    #[inline(always)]
    pub fn run(&mut self) -> Run<'_, 'm, WORDS> {
        let at = self.at;
        Run { ring: self, at }
    }

    /// The slot `ahead` of `slot`.
    pub const fn slot(&self, slot: u32, ahead: u32) -> u32 {
        let slot = slot.wrapping_add(ahead);
        if slot < self.slots { slot } else { slot.wrapping_sub(self.slots) }
    }

    /// Slots from `from` on to `to`.
    const fn distance(&self, from: u32, to: u32) -> u32 {
        let slots = to.wrapping_sub(from);
        if to >= from { slots } else { slots.wrapping_add(self.slots) }
    }
}

/// Byte offset of an entry: a multiple of [`SLOT_BYTES`].
#[derive(Clone, Copy, Debug)]
struct Offset(usize);

impl Offset {
    #[inline(always)]
    const fn of(slot: u32) -> Self {
        Self(slot as usize * SLOT_BYTES)
    }

    #[inline(always)]
    const fn slot(self) -> u32 {
        // SAFETY: nothing but multiples of `SLOT_BYTES` is put in. The compiler can use it where the slot is shifted again.
        unsafe { core::hint::assert_unchecked(self.0.is_multiple_of(SLOT_BYTES)) };
        (self.0 / SLOT_BYTES) as u32
    }
}

/// Entries that are being written. Dropped without [`Run::commit`], it leaves no trace but the bytes of free slots.
///
/// Its own state is one word, which can stay in a register from one entry to the next.
#[derive(Debug)]
pub struct Run<'r, 'm, const WORDS: usize> {
    ring: &'r mut SlotRing<'m, WORDS>,
    /// Where the next entry begins.
    at: Offset,
}

impl<'m, const WORDS: usize> Run<'_, 'm, WORDS> {
    /// The same run for a function that is not inlined. This one goes on with [`Run::resume`].
    #[inline(always)]
    pub fn lend(&mut self) -> Run<'_, 'm, WORDS> {
        Run { ring: self.ring, at: self.at }
    }

    /// Goes on at `tail`, where a lent run was.
    #[inline(always)]
    pub fn resume(&mut self, tail: u32) {
        self.at = Offset::of(tail);
    }

    /// Slot of the next entry.
    #[inline(always)]
    pub const fn tail(&self) -> u32 {
        self.at.slot()
    }

    /// Parity of the wraps of the tail: [`EPOCH`] or zero.
    #[inline(always)]
    pub const fn epoch(&self) -> u32 {
        if self.at.0 < self.ring.at.0 { self.ring.epoch ^ EPOCH } else { self.ring.epoch }
    }

    /// Slots that are free.
    pub const fn free(&self) -> u32 {
        self.ring.free.saturating_sub(self.ring.distance(self.ring.tail(), self.tail()))
    }

    /// Takes `slots` for an entry. `None` if they are not free, or reach the ring's end: then [`Run::take_across`] takes
    /// them.
    #[inline(always)]
    pub fn take(&mut self, slots: u8) -> Option<Span<'_>> {
        let (Offset(start), Offset(bytes)) = (self.at, Offset::of(slots.into()));
        let end = start + bytes;
        if end >= self.ring.stop {
            self.look_ahead();
            if end >= self.ring.stop {
                return None;
            }
        }
        self.at = Offset(end);
        // SAFETY: as in `Room::take_usual`.
        let base = unsafe { self.ring.memory.base().add(start) };
        Some(Span { base, bytes, _memory: PhantomData })
    }

    /// Finds out how many slots are free up to the ring's end.
    #[cold]
    #[inline(never)]
    fn look_ahead(&mut self) {
        let stop = self.tail().saturating_add(self.free()).saturating_add(1).min(self.ring.slots);
        self.ring.stop = stop as usize * SLOT_BYTES;
    }

    /// Takes `slots` for an entry that may go on at the ring's start, to be written slot by slot; `None` if they are not
    /// free. The first is the [`Run::tail`] from before.
    pub fn take_across(&mut self, slots: u32) -> Option<()> {
        if slots > self.free() {
            return None;
        }
        let start = self.tail();
        self.resume(self.ring.slot(start, slots));
        if self.tail() < start {
            self.ring.stop = 0;
        }
        Some(())
    }

    /// The ring.
    pub const fn ring(&self) -> &SlotRing<'m, WORDS> {
        self.ring
    }

    /// Memory of the slots.
    pub fn memory(&mut self) -> &mut RingMemory<'m> {
        &mut self.ring.memory
    }

    /// Books the entries: the ring goes on behind them. Returns [`SlotRing::epoch`].
    #[inline(always)]
    pub fn commit(self) -> u32 {
        let Self { ring, at } = self;
        let mut taken = at.slot().wrapping_sub(ring.at.slot());
        if at.0 < ring.at.0 {
            core::hint::cold_path();
            taken = taken.wrapping_add(ring.slots);
            ring.epoch ^= EPOCH;
        }
        ring.free = ring.free.wrapping_sub(taken);
        ring.at = at;
        ring.epoch
    }
}

/// Where entries of the usual length are taken from: a ring, which books each at once, or a run.
pub trait Room<const WORDS: usize> {
    /// Slot of the next entry.
    fn tail(&self) -> u32;

    /// Takes an entry of the usual length, which the caller knows to be `slots`, and gives its first words. `None`, and
    /// nothing was taken, if its slots are not known to be free, or reach the ring's end: then [`Run::take`] takes them, or
    /// [`Run::take_across`].
    fn take_usual(&mut self, slots: u8) -> Option<Slot<'_, WORDS>>;
}

impl<const WORDS: usize> Room<WORDS> for SlotRing<'_, WORDS> {
    #[inline(always)]
    fn tail(&self) -> u32 {
        self.tail()
    }

    #[inline(always)]
    fn take_usual(&mut self, slots: u8) -> Option<Slot<'_, WORDS>> {
        let (Offset(start), Offset(bytes)) = (self.at, Offset::of(slots.into()));
        let end = start + bytes;
        if end >= self.stop || bytes < WORDS * 8 {
            return None;
        }
        self.at = Offset(end);
        self.free = self.free.wrapping_sub(slots.into());
        // SAFETY: the entry ends before `stop`, which is at most the bytes of the ring: `look_ahead` sees to it, and nothing
        // else sets it but to zero. `SlotRing::new` has checked that the aligned memory holds them. The entry has so many
        // words, as just checked.
        Some(unsafe { Slot::new(self.memory.base().add(start).cast()) })
    }
}

impl<const WORDS: usize> Room<WORDS> for Run<'_, '_, WORDS> {
    #[inline(always)]
    fn tail(&self) -> u32 {
        self.tail()
    }

    /// The length is the ring's: a step that the compiler knew would lead it to keep each place of the entry in a register
    /// of its own.
    #[inline(always)]
    fn take_usual(&mut self, _: u8) -> Option<Slot<'_, WORDS>> {
        let Offset(start) = self.at;
        let end = start + self.ring.usual.0;
        if end >= self.ring.stop {
            return None;
        }
        self.at = Offset(end);
        // SAFETY: as above; `SlotRing::new` has checked that a usual entry has so many words.
        Some(unsafe { Slot::new(self.ring.memory.base().add(start).cast()) })
    }
}

/// The bytes of one entry.
#[derive(Debug)]
pub struct Span<'s> {
    base: NonNull<u8>,
    bytes: usize,
    _memory: PhantomData<&'s mut [u8]>,
}

impl Span<'_> {
    /// The `WORDS` 64-bit words from slot `first` on; `None` if the entry is shorter.
    #[inline(always)]
    pub fn words<const WORDS: usize>(&mut self, first: u32) -> Option<Slot<'_, WORDS>> {
        let at = first as usize * SLOT_BYTES;
        if at + WORDS * 8 > self.bytes {
            return None;
        }
        // SAFETY: in the entry as just checked, and aligned as its slots are. The words borrow the entry.
        Some(unsafe { Slot::new(self.base.add(at).cast()) })
    }

    /// Stores `bytes` at byte `offset` of the entry; `None` if they do not fit.
    #[inline(always)]
    pub fn store_bytes(&mut self, offset: usize, bytes: &[u8]) -> Option<()> {
        if offset.checked_add(bytes.len())? > self.bytes {
            return None;
        }
        // SAFETY: in the entry as just checked; `bytes` is a reference, so it cannot overlap memory that has none.
        unsafe {
            let at = self.base.add(offset);
            at.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Slots([u8; 160]);

    /// Ten slots, of which two stay free; most entries take three.
    fn ring(slots: &mut Slots) -> SlotRing<'_, 6> {
        SlotRing::new(RingMemory::new(&mut slots.0), 10, 1, 3).unwrap()
    }

    #[test]
    fn an_entry_that_reaches_the_end_is_taken_across() {
        let mut slots = Slots([0; 160]);
        let mut ring = ring(&mut slots);
        let mut run = ring.run();
        assert!(run.take_usual(3).is_none(), "nothing is known to be free yet");
        assert!(run.take(3).is_some() && run.take_usual(3).is_some());
        assert!(run.take_usual(3).is_none() && run.take(3).is_none() && run.take_across(3).is_none());
        assert_eq!((run.tail(), run.free()), (6, 2));
        assert_eq!(run.commit(), 0);
        ring.release(6);
        let mut run = ring.run();
        assert!(run.take(4).is_none() && run.take_across(4).is_some());
        assert!(run.take(5).is_none(), "what was free before the wrap is not any more");
        assert_eq!((run.tail(), run.free(), run.epoch()), (0, 4, EPOCH));
        assert!(run.take(3).is_some());
        assert_eq!(run.commit(), EPOCH);
        assert_eq!((ring.tail(), ring.head()), (3, 6));
    }

    #[test]
    fn a_run_that_is_dropped_takes_nothing() {
        let mut slots = Slots([0; 160]);
        let mut ring = ring(&mut slots);
        assert!(ring.restore(7, 6, true) && !ring.restore(5, 6, true) && !ring.restore(10, 9, true));
        let mut run = ring.run();
        assert!(run.take_across(3).is_some() && run.take(2).is_some() && run.take(3).is_none());
        assert_eq!((ring.tail(), ring.head(), ring.epoch()), (7, 6, EPOCH));
        let mut run = ring.run();
        assert!(run.take(2).is_some() && run.take(1).is_none() && run.take_across(5).is_some());
        assert_eq!((run.tail(), run.free(), run.epoch()), (4, 0, 0));
    }

    #[test]
    fn an_entry_that_a_ring_gives_is_booked_at_once() {
        let mut slots = Slots([0; 160]);
        let mut ring = ring(&mut slots);
        assert!(ring.take_usual(3).is_none(), "nothing is known to be free yet");
        let mut run = ring.run();
        assert!(run.take(3).is_some());
        run.commit();
        assert!(ring.take_usual(2).is_none(), "an entry of two slots has no six words");
        ring.take_usual(3).unwrap().copy::<5, _>(&7u64);
        assert_eq!(ring.memory().load(88), Some(7u64));
        assert!(ring.take_usual(3).is_none(), "two slots are left");
        assert_eq!((ring.tail(), ring.head(), ring.epoch()), (6, 0, 0));
    }

    #[test]
    fn words_and_bytes_stay_in_their_entry() {
        let mut slots = Slots([0; 160]);
        let mut ring = ring(&mut slots);
        let mut run = ring.run();
        let mut span = run.take(2).unwrap();
        span.words::<2>(1).unwrap().store::<1>(7);
        assert!(span.words::<2>(2).is_none() && span.words::<4>(1).is_none());
        assert!(span.store_bytes(29, &[1; 3]).is_some() && span.store_bytes(30, &[1; 3]).is_none());
        assert!(span.store_bytes(usize::MAX, &[1]).is_none());
        assert_eq!(ring.memory().load(24), Some([7u8, 0, 0, 0, 0, 1, 1, 1]));
        assert!(SlotRing::<6>::new(RingMemory::new(&mut slots.0), 11, 1, 3).is_err());
        assert!(SlotRing::<6>::new(RingMemory::new(&mut slots.0), 10, 1, 2).is_err());
    }
}
