//! Memory that stands in for what a platform maps: pages, and a doorbell page of plain memory.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;

use directverbs::queue::{Doorbell, RingMemory};

const PAGE: usize = 4096;

/// Zeroed whole pages that are never given back.
pub fn pages(bytes: usize) -> NonNull<u8> {
    let layout = Layout::from_size_align(bytes.max(1).next_multiple_of(PAGE), PAGE);
    let layout = layout.expect("a ring is smaller than the address space");
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

/// A ring for the library, and where it is, for who writes there in the device's place.
pub fn ring(bytes: usize) -> (RingMemory<'static>, NonNull<u8>) {
    let base = pages(bytes);
    // SAFETY: nobody else has these pages, and the device's stand-in uses raw accesses.
    (unsafe { RingMemory::from_raw(base, bytes) }, base)
}

/// A doorbell page of plain memory: a store reaches it as it would reach a mapped page.
#[derive(Clone, Copy, Debug)]
pub struct Page(NonNull<u64>);

impl Page {
    /// A page of zeros.
    pub fn new() -> Self {
        Self(pages(PAGE).cast())
    }
}

impl Doorbell for Page {
    #[inline(always)]
    fn store(&self, register: usize, value: u64) {
        // SAFETY: a page has 512 registers; the families use no register above 16.
        unsafe { self.0.add(register).write_volatile(value.to_le()) };
    }
}
