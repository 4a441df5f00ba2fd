use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use directverbs::verbs::shown;
use spin::Mutex;

use super::extents::{Extents, State};
use crate::dma::{DmaError, DmaMemory};

/// Memory for DMA that the caller has given, handed out in blocks and taken back. At most `N` pieces, free ones between
/// blocks included; it needs no heap.
#[derive(Debug)]
pub struct Memory<const N: usize> {
    base: NonNull<u8>,
    /// The device's address of the first byte.
    device: u64,
    extents: Mutex<Extents<N>>,
}

// SAFETY: the memory is reached only through blocks, which do not overlap; what is handed out is under the lock.
unsafe impl<const N: usize> Send for Memory<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Memory<N> {}

impl<const N: usize> Memory<N> {
    /// `len` bytes from `base`, which devices see at `device` and the addresses after it.
    ///
    /// # Safety
    /// The memory is readable, writable, and coherent with DMA, and nobody else uses it as long as the value or a block of it
    /// is there, and as long as a device may know an abandoned block. `device` is its address on the bus.
    pub unsafe fn new(base: NonNull<u8>, len: usize, device: u64) -> Self {
        Self { base, device, extents: Mutex::new(Extents::new(len)) }
    }

    /// Bytes that are free, and the longest piece of them.
    pub fn free(&self) -> (usize, usize) {
        self.extents.lock().sum(|state| state == State::Free)
    }

    /// Bytes that drivers have given up and devices may still know.
    pub fn abandoned(&self) -> usize {
        self.extents.lock().sum(|state| matches!(state, State::Abandoned(_))).0
    }

    /// A block for the driver of the function `owner`.
    ///
    /// # Errors
    /// There is none, or too many pieces would be left.
    pub(crate) fn take(&self, bytes: usize, align: usize, owner: u16) -> Result<Block<'_, N>, DmaError> {
        if !align.is_power_of_two() {
            return Err(DmaError::Alignment(align));
        }
        // Both addresses have to be aligned, so they must not differ in the bits that matter.
        let base = self.base.as_ptr().addr();
        if (base as u64 ^ self.device) & (align as u64 - 1) != 0 {
            return Err(DmaError::Alignment(align));
        }
        let taken = self.extents.lock().take(bytes, align, base);
        let (start, len) = taken.ok_or(DmaError::Exhausted { bytes, align: shown(align as u64) })?;
        let mut block = Block { memory: self, start, len, owner };
        block.zero();
        Ok(block)
    }

    /// Frees what drivers of the function `owner` have given up.
    pub(crate) fn reclaim(&self, owner: u16) {
        self.extents.lock().reclaim(owner);
    }
}

/// A block of [`Memory`].
#[derive(Debug)]
pub struct Block<'m, const N: usize> {
    memory: &'m Memory<N>,
    start: usize,
    len: usize,
    owner: u16,
}

// SAFETY: the piece is this block's alone, in memory that stays valid and coherent by the contract of `Memory::new`.
unsafe impl<const N: usize> DmaMemory for Block<'_, N> {
    fn base(&self) -> NonNull<u8> {
        // SAFETY: the piece lies in the memory.
        unsafe { self.memory.base.add(self.start) }
    }

    fn device_address(&self) -> u64 {
        self.memory.device + self.start as u64
    }

    fn len(&self) -> usize {
        self.len
    }

    fn abandon(self) {
        let this = ManuallyDrop::new(self);
        this.memory.extents.lock().set(this.start, State::Abandoned(this.owner));
    }
}

impl<const N: usize> Drop for Block<'_, N> {
    fn drop(&mut self) {
        self.memory.extents.lock().set(self.start, State::Free);
    }
}
