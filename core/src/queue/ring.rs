use core::marker::PhantomData;
use core::ptr::NonNull;

use volatile::VolatilePtr;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::verbs::{MemoryError, Text};

/// Ring memory that the processor and a device share.
///
/// The device reads and writes it at any time, so no reference to its contents is ever made: everything is copied in
/// or out. All accesses are bounds-checked; an access outside does nothing and says so.
#[derive(Debug)]
pub struct RingMemory<'m> {
    base: NonNull<u8>,
    len: usize,
    /// The length if the first byte is 8-aligned, otherwise 0: one compare tells whether an aligned access fits.
    aligned_len: usize,
    _memory: PhantomData<&'m mut [u8]>,
}

// SAFETY: a `RingMemory` is the only handle of this process to its bytes, like the `&mut [u8]` it stands for.
unsafe impl Send for RingMemory<'_> {}

impl<'m> RingMemory<'m> {
    /// Ring memory in a slice: for tests, and for devices that are told the address of static memory.
    pub fn new(memory: &'m mut [u8]) -> Self {
        let len = memory.len();
        Self::of(NonNull::from(memory).cast(), len)
    }

    fn of(base: NonNull<u8>, len: usize) -> Self {
        let aligned_len = if base.cast::<u64>().is_aligned() { len } else { 0 };
        Self { base, len, aligned_len, _memory: PhantomData }
    }

    /// Ring memory at `base`.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `len` bytes during `'m`, and during `'m` nobody in this process
    /// reads or writes there except through this value (and the device, or its model, by raw accesses).
    pub unsafe fn from_raw(base: NonNull<u8>, len: usize) -> Self {
        Self::of(base, len)
    }

    /// The memory as `len` records of bookkeeping, each its default.
    ///
    /// # Errors
    /// It is too short or not aligned; `what` names it.
    ///
    /// # Safety
    /// No device knows the memory: during `'m` it is the processor's alone.
    pub unsafe fn into_records<T: Copy + Default>(
        self,
        what: Text,
        len: usize,
    ) -> Result<&'m mut [T], MemoryError> {
        self.check(what, len.saturating_mul(size_of::<T>()), align_of::<T>())?;
        let first = self.base.cast::<T>();
        for i in 0..len {
            // SAFETY: in bounds and aligned as just checked, and writable by `from_raw`'s contract.
            unsafe { first.add(i).write(T::default()) };
        }
        // SAFETY: all records have just been written; this was the only handle to the memory in this process, and by this
        // method's contract no device has another.
        Ok(unsafe { core::slice::from_raw_parts_mut(first.as_ptr(), len) })
    }

    /// The same memory, lent.
    #[inline(always)]
    pub(super) const fn reborrow(&mut self) -> RingMemory<'_> {
        RingMemory { base: self.base, len: self.len, aligned_len: self.aligned_len, _memory: PhantomData }
    }

    /// The first `at` bytes and the rest; all and nothing if there are not so many.
    #[must_use]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let first = if at < self.len { at } else { self.len };
        // SAFETY: `first` is at most the length.
        let rest = unsafe { self.base.add(first) };
        (Self::of(self.base, first), Self::of(rest, self.len - first))
    }

    /// Length in bytes.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The first byte.
    #[inline(always)]
    pub const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// Whether the two share bytes.
    pub fn overlaps(&self, other: &RingMemory<'_>) -> bool {
        let (a, b) = (self.address(), other.address());
        a < b + other.len && b < a + self.len
    }

    /// Checks length and alignment against what a plan asks for.
    ///
    /// # Errors
    /// What does not fit; `what` names the memory.
    pub fn check(&self, what: Text, needed: usize, align: usize) -> Result<(), MemoryError> {
        if self.len < needed {
            return Err(MemoryError::too_short(what, self.len, needed));
        }
        if !self.address().is_multiple_of(align) {
            return Err(MemoryError::misaligned(what, self.address() as u64, align as u64));
        }
        Ok(())
    }

    #[inline(always)]
    const fn inside(&self, offset: usize, len: usize) -> bool {
        match offset.checked_add(len) {
            Some(end) => end <= self.len,
            None => false,
        }
    }

    /// Stores `value` at `offset`; `false` if it does not fit.
    #[inline(always)]
    pub fn store<T: IntoBytes + Immutable + Copy>(&mut self, offset: usize, value: &T) -> bool {
        let fits = self.inside(offset, size_of::<T>());
        if fits {
            // SAFETY: `inside` has checked that all bytes lie in the memory, which `from_raw` promises to be writable;
            // no reference to it exists, so the store aliases nothing.
            unsafe { self.base.as_ptr().add(offset).cast::<T>().write_unaligned(*value) };
        }
        fits
    }

    /// Stores `bytes` at `offset`; `false` if they do not fit.
    #[inline(always)]
    pub fn store_bytes(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let fits = self.inside(offset, bytes.len());
        if fits {
            // SAFETY: as in `store`; `bytes` is a reference, so it cannot overlap memory that has none.
            unsafe {
                self.base.as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
        fits
    }

    /// Stores the 64-bit `value` at `offset`, which is a multiple of 8 in 8-aligned memory, in one piece; `false` if
    /// it does not fit. What was stored before, also by other methods, becomes visible first (release).
    #[inline(always)]
    pub fn store_release(&mut self, offset: usize, value: u64) -> bool {
        let at = self.address() + offset;
        let fits = self.inside(offset, 8) && at.is_multiple_of(8);
        if fits {
            // SAFETY: in bounds and aligned as just checked; the device is the only other party, and atomics are how
            // it may be met.
            let word =
                unsafe { core::sync::atomic::AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) };
            word.store(value, core::sync::atomic::Ordering::Release);
        }
        fits
    }

    /// Whether `words` 64-bit words at `offset` are inside and aligned.
    #[inline(always)]
    const fn aligned(&self, offset: usize, words: usize) -> bool {
        match offset.checked_add(words * 8) {
            Some(end) => end <= self.aligned_len && offset.is_multiple_of(8),
            None => false,
        }
    }

    /// The `WORDS` 64-bit words at `offset`, to be stored one by one; `None` if they do not fit or are not aligned.
    #[inline(always)]
    pub fn slot<const WORDS: usize>(&mut self, offset: usize) -> Option<Slot<'_, WORDS>> {
        if !self.aligned(offset, WORDS) {
            return None;
        }
        // SAFETY: in bounds and aligned as just checked; the slot borrows the memory.
        Some(unsafe { Slot::new(self.base.add(offset).cast()) })
    }

    /// Copies a value out of `offset`, or `None` if it does not fit. The device may be writing it: the bytes may be a
    /// mix of old and new.
    #[inline(always)]
    pub fn load<T: FromBytes + Copy>(&self, offset: usize) -> Option<T> {
        if !self.inside(offset, size_of::<T>()) {
            return None;
        }
        // SAFETY: in bounds as just checked; any bytes are a valid `T`; unaligned by contract of the read.
        Some(unsafe { self.base.as_ptr().add(offset).cast::<T>().read_unaligned() })
    }

    /// Loads the 32-bit word at `offset` in one piece that the compiler neither drops nor moves, or `None` if it does
    /// not fit or is not aligned. For valid bits and colors.
    #[inline(always)]
    pub fn load_valid(&self, offset: usize) -> Option<u32> {
        if !self.inside(offset, 4) || !(self.address() + offset).is_multiple_of(4) {
            return None;
        }
        // SAFETY: in bounds and aligned as just checked, and valid for reads by `from_raw`'s contract.
        let word =
            unsafe { VolatilePtr::new(NonNull::new_unchecked(self.base.as_ptr().add(offset).cast::<u32>())) };
        Some(word.read())
    }

    /// The entry of `WORDS` 64-bit words at `offset`, to be looked at and then copied out; `None` if it does not fit or
    /// is not aligned.
    #[inline(always)]
    pub fn entry<const WORDS: usize>(&self, offset: usize) -> Option<Entry<'_, WORDS>> {
        if !self.aligned(offset, WORDS) {
            return None;
        }
        // SAFETY: in bounds and aligned as just checked; the entry borrows the memory.
        Some(unsafe { Entry::new(self.base.add(offset).cast()) })
    }

    /// Stores `len` zero bytes at `offset`; `false` if they do not fit.
    #[inline]
    pub fn store_zeros(&mut self, offset: usize, len: usize) -> bool {
        let fits = self.inside(offset, len);
        if fits {
            // SAFETY: as in `store`.
            unsafe { self.base.as_ptr().add(offset).write_bytes(0, len) };
        }
        fits
    }

    /// Fills all with zero bytes.
    pub fn zero(&mut self) {
        // SAFETY: all `len` bytes are writable by `from_raw`'s contract.
        unsafe { self.base.as_ptr().write_bytes(0, self.len) };
    }
}

/// Some 64-bit words of ring memory, in bounds and aligned: one check for many stores.
#[derive(Debug)]
pub struct Slot<'s, const WORDS: usize> {
    base: NonNull<u64>,
    _memory: PhantomData<&'s mut [u8]>,
}

impl<const WORDS: usize> Slot<'_, WORDS> {
    /// The words at `base`.
    ///
    /// # Safety
    /// `base` is aligned, and `WORDS` words of memory that a [`RingMemory`] stands for and that `'s` borrows.
    #[inline(always)]
    pub(super) const unsafe fn new(base: NonNull<u64>) -> Self {
        Self { base, _memory: PhantomData }
    }

    /// The first of the words.
    #[inline(always)]
    pub const fn first<const FIRST: usize>(&mut self) -> Slot<'_, FIRST> {
        const { assert!(FIRST <= WORDS) };
        Slot { base: self.base, _memory: PhantomData }
    }

    /// Stores word `AT`; its least significant byte comes first in memory.
    #[inline(always)]
    pub fn store<const AT: usize>(&mut self, word: u64) {
        const { assert!(AT < WORDS) };
        // SAFETY: `new`'s caller has checked `WORDS` aligned words, and `AT` is one of them.
        unsafe { self.base.as_ptr().add(AT).write(word.to_le()) };
    }

    /// Copies `value` to the words from `AT` on, its bytes as they are in memory.
    #[inline(always)]
    pub fn copy<const AT: usize, T: IntoBytes + Immutable>(&mut self, value: &T) {
        const { assert!(AT * 8 + size_of::<T>() <= WORDS * 8) };
        // SAFETY: the bytes lie in the words, as just checked; `value` is a reference, so it cannot overlap memory that has
        // none.
        unsafe {
            let at = self.base.as_ptr().add(AT).cast::<u8>();
            at.copy_from_nonoverlapping(value.as_bytes().as_ptr(), size_of::<T>());
        }
    }

    /// Stores the low half of word `AT`; the high half keeps what was there.
    #[inline(always)]
    pub fn store_low<const AT: usize>(&mut self, word: u32) {
        const { assert!(AT < WORDS) };
        // SAFETY: as in `store`; the low half comes first in memory.
        unsafe { self.base.as_ptr().add(AT).cast::<u32>().write(word.to_le()) };
    }

    /// Stores the high half of word `AT`; the low half keeps what was there.
    #[inline(always)]
    pub fn store_high<const AT: usize>(&mut self, word: u32) {
        const { assert!(AT < WORDS) };
        // SAFETY: as in `store`; the high half comes second in memory.
        unsafe { self.base.as_ptr().add(AT).cast::<u32>().add(1).write(word.to_le()) };
    }

    /// Stores word `AT` in one piece, after everything stored before has become visible (release).
    #[inline(always)]
    pub fn store_release<const AT: usize>(&mut self, word: u64) {
        const { assert!(AT < WORDS) };
        // SAFETY: as in `store`; the device is the only other party, and atomics are how it may be met.
        let word_at = unsafe { core::sync::atomic::AtomicU64::from_ptr(self.base.as_ptr().add(AT)) };
        word_at.store(word.to_le(), core::sync::atomic::Ordering::Release);
    }
}

/// An entry that the device writes, in bounds and aligned.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'e, const WORDS: usize> {
    base: NonNull<u64>,
    _memory: PhantomData<&'e [u8]>,
}

impl<const WORDS: usize> Entry<'_, WORDS> {
    /// The words at `base`.
    ///
    /// # Safety
    /// `base` is aligned, and `WORDS` words of memory that a [`RingMemory`] stands for and that `'e` borrows.
    #[inline(always)]
    pub(super) const unsafe fn new(base: NonNull<u64>) -> Self {
        Self { base, _memory: PhantomData }
    }

    /// Loads the low half of word `AT` in one piece that the compiler neither drops nor moves: for valid bits.
    #[inline(always)]
    pub fn load_valid<const AT: usize>(&self) -> u32 {
        const { assert!(AT < WORDS) };
        // SAFETY: `new`'s caller has checked `WORDS` aligned words, and `AT` is one of them.
        let word = unsafe { VolatilePtr::new(self.base.add(AT).cast::<u32>()) };
        u32::from_le(word.read())
    }

    /// [`Entry::load_valid`] of the high half.
    #[inline(always)]
    pub fn load_valid_high<const AT: usize>(&self) -> u32 {
        const { assert!(AT < WORDS) };
        // SAFETY: as in `load_valid`; the high half comes second in memory.
        let word = unsafe { VolatilePtr::new(self.base.add(AT).cast::<u32>().add(1)) };
        u32::from_le(word.read())
    }

    /// Loads the low half of word `AT`. The device may be writing it, see [`Entry::load`].
    #[inline(always)]
    pub fn low<const AT: usize>(&self) -> u32 {
        const { assert!(AT < WORDS) };
        // SAFETY: as in `load_valid`.
        u32::from_le(unsafe { self.base.add(AT).cast::<u32>().read() })
    }

    /// [`Entry::low`] of the high half.
    #[inline(always)]
    pub fn high<const AT: usize>(&self) -> u32 {
        const { assert!(AT < WORDS) };
        // SAFETY: as in `load_valid_high`.
        u32::from_le(unsafe { self.base.add(AT).cast::<u32>().add(1).read() })
    }

    /// Copies the entry out. The device may be writing it: the words may be a mix of old and new.
    #[inline(always)]
    pub fn load(&self) -> [u64; WORDS] {
        // SAFETY: as in `load_valid`; any bytes are valid integers.
        unsafe { self.base.cast::<[u64; WORDS]>().read() }.map(u64::from_le)
    }
}
