use core::ptr::NonNull;
use std::sync::Arc;

use directverbs::queue::RingMemory;
use directverbs_softnic::bus::{HostBlock, HostMemory, PAGE};

const GUARD: [u8; PAGE] = [0xa5; PAGE];

/// Ring memory between two pages that nobody may write to. It must outlive the queue it is lent to.
#[derive(Debug)]
pub(super) struct Guarded {
    block: HostBlock,
    len: usize,
}

impl Guarded {
    /// At least `len` bytes, page-aligned.
    pub fn new(memory: &Arc<HostMemory>, len: usize) -> Self {
        let len = len.next_multiple_of(PAGE);
        let block = memory.alloc(len + 2 * PAGE);
        let guarded = Self { block, len };
        assert!(guarded.block.write(0, &GUARD) && guarded.block.write(PAGE + len, &GUARD));
        guarded
    }

    /// The ring, for one queue.
    ///
    /// # Safety
    /// The queue is dropped before `self`, and no other one gets the same memory.
    pub unsafe fn ring(&self) -> RingMemory<'static> {
        // SAFETY: the block is longer than a page.
        let base: NonNull<u8> = unsafe { self.block.base().add(PAGE) };
        // SAFETY: the block has `len` bytes there, and is accessed by raw copies only, besides the queue.
        unsafe { RingMemory::from_raw(base, self.len) }
    }

    /// Bus address of the ring.
    pub fn addr(&self) -> u64 {
        self.block.addr() + PAGE as u64
    }

    /// What the other side does: writes `bytes` at `offset` of the ring.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        if offset <= self.len && bytes.len() <= self.len - offset {
            assert!(self.block.write(PAGE + offset, bytes), "inside");
        }
    }

    /// The byte at `offset` of the ring; 0 if it is outside.
    pub fn read(&self, offset: usize) -> u8 {
        let mut byte = [0];
        let inside = offset < self.len && self.block.read(PAGE + offset, &mut byte);
        if inside { byte[0] } else { 0 }
    }

    /// Checks that nothing was written around the ring.
    pub fn check(&self) {
        let mut page = [0; PAGE];
        for offset in [0, PAGE + self.len] {
            assert!(self.block.read(offset, &mut page), "inside");
            assert!(page == GUARD, "the queue has written outside its ring");
        }
    }
}
