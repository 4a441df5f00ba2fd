//! Ring memory of our side.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use directverbs::queue::RingMemory;

/// Zeroed pages. Whoever makes queues over them drops the queues first.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    layout: Layout,
}

impl Pages {
    /// So many bytes, at a page boundary.
    pub fn new(bytes: u32) -> Self {
        let layout = Layout::from_size_align(bytes.max(1) as usize, 4096).expect("a page and a small size");
        // SAFETY: the size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        Self { base, layout }
    }

    /// The pages as ring memory of a queue that is dropped before they are.
    pub fn ring(&self) -> RingMemory<'static> {
        // SAFETY: valid until the pages are dropped, which is after the queue. `read` and `write` are raw accesses, as a
        // device makes them.
        unsafe { RingMemory::from_raw(self.base, self.layout.size()) }
    }

    /// What they hold.
    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= self.layout.size());
        let mut bytes = vec![0; len];
        // SAFETY: within the allocation.
        unsafe { self.base.add(offset).copy_to_nonoverlapping(NonNull::from(&mut bytes[..]).cast(), len) };
        bytes
    }

    /// Stores bytes.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.layout.size());
        // SAFETY: within the allocation.
        unsafe { self.base.add(offset).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
