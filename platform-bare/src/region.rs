//! Registered memory.

use core::mem::ManuallyDrop;

use directverbs::verbs::{LKey, MemoryRegion, RKey};

use crate::dma::DmaMemory;
use crate::lease::Lease;

/// Registered memory with its key. One that the device has forgotten is [released](Self::release); one that is dropped
/// before abandons its memory, because the device may still write there.
#[derive(Debug)]
pub struct Region<'n, D: DmaMemory> {
    block: ManuallyDrop<D>,
    len: usize,
    key: u32,
    lease: Lease<'n>,
}

impl<'n, D: DmaMemory> Region<'n, D> {
    /// The first `len` bytes of `block`, which the device that is leased knows by `key`.
    pub const fn new(block: D, len: usize, key: u32, lease: Lease<'n>) -> Self {
        Self { block: ManuallyDrop::new(block), len, key, lease }
    }

    /// Whose it is.
    pub const fn lease(&self) -> Lease<'n> {
        self.lease
    }

    /// Frees the memory: the device has forgotten it.
    pub fn release(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is not used again, as `this` is never dropped.
        unsafe { ManuallyDrop::drop(&mut this.block) };
    }

    const fn has(&self, offset: usize, len: usize) -> bool {
        offset <= self.len && len <= self.len - offset
    }
}

impl<D: DmaMemory> Drop for Region<'_, D> {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { ManuallyDrop::take(&mut self.block) }.abandon();
    }
}

impl<D: DmaMemory> MemoryRegion for Region<'_, D> {
    fn addr(&self) -> u64 {
        self.block.device_address()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn lkey(&self) -> LKey {
        LKey::truncated(self.key)
    }

    fn rkey(&self) -> RKey {
        RKey::truncated(self.key)
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        self.has(offset, bytes.len()) && self.block.write(offset, bytes)
    }

    fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        self.has(offset, bytes.len()) && self.block.read(offset, bytes)
    }
}
