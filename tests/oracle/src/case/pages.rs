//! Memory that a queue of ours and its device share.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use directverbs::queue::RingMemory;

/// Whole pages. Whoever makes queues over them drops the queues first.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    layout: Layout,
}

impl Pages {
    /// `len` bytes, each of them `fill`, at a page boundary.
    pub fn new(len: usize, fill: u8) -> Self {
        let layout = Layout::from_size_align(len.max(1), 4096).expect("a page and a small size");
        // SAFETY: the size is not zero.
        let base = unsafe { alloc(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        // SAFETY: the allocation has so many bytes.
        unsafe { base.write_bytes(fill, layout.size()) };
        Self { base, layout }
    }

    /// The pages as the memory of a queue.
    ///
    /// # Safety
    /// The queue is dropped before the pages, and is the only one over them meanwhile.
    pub unsafe fn ring(&self) -> RingMemory<'static> {
        // SAFETY: valid until the pages are dropped. `read` and `write` are raw accesses, as a device makes them.
        unsafe { RingMemory::from_raw(self.base, self.layout.size()) }
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= self.layout.size());
        let mut bytes = vec![0; len];
        // SAFETY: within the allocation; a queue only stores while it is called.
        unsafe { self.base.add(offset).copy_to_nonoverlapping(NonNull::from(&mut bytes[..]).cast(), len) };
        bytes
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.layout.size());
        // SAFETY: as in `read`.
        unsafe { self.base.add(offset).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
