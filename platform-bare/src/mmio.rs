//! Mapped registers, accessed by volatile loads and stores.

use core::ptr::NonNull;

use crate::registers::Registers;

/// An integer that one access carries.
pub trait Word: Copy {
    /// The value in little-endian byte order, and back.
    fn little(self) -> Self;
}

macro_rules! words {
    ($($t:ty),*) => { $(impl Word for $t { #[inline(always)] fn little(self) -> Self { self.to_le() } })* };
}
words!(u8, u16, u32, u64);

/// A mapping that stays for ever: registers of a device, or configuration space. Copies are the same mapping.
#[derive(Clone, Copy, Debug)]
pub struct Mmio {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: registers have no owner thread; accesses are single volatile loads and stores.
unsafe impl Send for Mmio {}
// SAFETY: as above.
unsafe impl Sync for Mmio {}

impl Mmio {
    /// `len` bytes of registers at `base`.
    ///
    /// # Safety
    /// `base` is a multiple of 8, and stays mapped to registers for `len` bytes as long as a copy of the value is used. Loads
    /// and stores there have no effect on memory that Rust knows of, but for DMA that drivers account for.
    pub const unsafe fn new(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len }
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The part of `len` bytes from `offset`, a multiple of 8, or `None` if it is not inside.
    pub const fn part(&self, offset: usize, len: usize) -> Option<Self> {
        if offset > self.len || len > self.len - offset || !offset.is_multiple_of(8) {
            return None;
        }
        // SAFETY: in bounds as just checked.
        Some(Self { base: unsafe { self.base.add(offset) }, len })
    }

    #[inline(always)]
    fn at<T>(&self, offset: usize) -> Option<*mut T> {
        let size = size_of::<T>();
        let inside = offset < self.len && size <= self.len - offset && offset.is_multiple_of(size);
        // SAFETY: in bounds as just checked.
        inside.then(|| unsafe { self.base.as_ptr().add(offset).cast::<T>() })
    }

    /// One load; `None` outside, or if `offset` is not aligned.
    #[inline(always)]
    pub fn load<T: Word>(&self, offset: usize) -> Option<T> {
        // SAFETY: in bounds and aligned as `at` has checked (the base is a multiple of 8), and mapped by `new`'s contract.
        self.at::<T>(offset).map(|at| unsafe { at.read_volatile() }.little())
    }

    /// One store; none outside, or if `offset` is not aligned.
    #[inline(always)]
    pub fn store<T: Word>(&self, offset: usize, value: T) {
        if let Some(at) = self.at::<T>(offset) {
            // SAFETY: as in `load`.
            unsafe { at.write_volatile(value.little()) };
        }
    }
}

impl Registers for Mmio {
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn read32(&self, offset: usize) -> u32 {
        self.load(offset).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn write32(&self, offset: usize, value: u32) {
        self.store(offset, value);
    }

    #[inline(always)]
    fn read64(&self, offset: usize) -> u64 {
        self.load(offset).unwrap_or(u64::MAX)
    }

    #[inline(always)]
    fn write64(&self, offset: usize, value: u64) {
        self.store(offset, value);
    }
}
