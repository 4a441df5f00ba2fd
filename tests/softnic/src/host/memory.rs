use core::ops::{Deref, DerefMut};

use directverbs::queue::RingMemory;
use directverbs::verbs::{LKey, MemoryRegion, RKey};

use crate::bus::HostBlock;
use crate::device::{Memory, RingConfig};

/// A queue and the ring memory under it.
#[derive(Debug)]
pub(super) struct Owned<Q> {
    // Fields are dropped in order: the queue before its memory.
    queue: Q,
    blocks: Vec<HostBlock>,
}

impl<Q> Owned<Q> {
    /// Builds a queue over `blocks`; `build` gets the ring memory of each, in order.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn build<const N: usize, E>(
        blocks: [HostBlock; N],
        build: impl FnOnce([RingMemory<'static>; N]) -> Result<Q, E>,
    ) -> Result<Self, E> {
        let rings = blocks.each_ref().map(ring_memory);
        Ok(Self { queue: build(rings)?, blocks: Vec::from(blocks) })
    }

    /// Gives the queue one more block. What it gives up stays allocated as long as the queue: the NIC may still write
    /// there.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn extend<E>(
        &mut self,
        block: HostBlock,
        take: impl FnOnce(&mut Q, RingMemory<'static>) -> Result<(), E>,
    ) -> Result<(), E> {
        let ring = ring_memory(&block);
        self.blocks.push(block);
        take(&mut self.queue, ring)
    }
}

/// The memory of a block that will be locked up with the queue that takes it.
fn ring_memory(block: &HostBlock) -> RingMemory<'static> {
    // SAFETY: the block is readable and writable and nobody but the queue and the NIC, whose accesses are raw copies,
    // touches it: it is locked up in the same value as the queue, never lent, and freed after it.
    unsafe { RingMemory::from_raw(block.base(), block.len()) }
}

impl<Q> Deref for Owned<Q> {
    type Target = Q;

    fn deref(&self) -> &Q {
        &self.queue
    }
}

impl<Q> DerefMut for Owned<Q> {
    fn deref_mut(&mut self) -> &mut Q {
        &mut self.queue
    }
}

/// A ring at the start of `block`, as the device is told of it.
pub(super) fn ring(block: &HostBlock, entries: u32, stride: u32) -> RingConfig {
    RingConfig { memory: Memory::Host(block.addr()), entries, stride }
}

/// Registered memory of the process.
#[derive(Debug)]
pub struct Region {
    pub(super) block: HostBlock,
    pub(super) len: usize,
    pub(super) key: u32,
}

impl Region {
    fn inside(&self, offset: usize, len: usize) -> bool {
        offset <= self.len && len <= self.len - offset
    }
}

impl MemoryRegion for Region {
    fn addr(&self) -> u64 {
        self.block.addr()
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
        self.inside(offset, bytes.len()) && self.block.write(offset, bytes)
    }

    fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        self.inside(offset, bytes.len()) && self.block.read(offset, bytes)
    }
}
