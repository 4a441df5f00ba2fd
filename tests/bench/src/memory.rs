//! Memory that stands in for what a platform maps: pages, and a doorbell page of plain memory.

use std::ptr::{self, NonNull};

use directverbs::queue::{Doorbell, RingMemory};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

const PAGE: usize = 4096;

/// Zeroed whole pages, mapped past the C library, that are never given back.
pub fn pages(bytes: usize) -> NonNull<u8> {
    let len = bytes.max(1).next_multiple_of(PAGE);
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses a place where nothing is.
    let base = unsafe { mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE) };
    NonNull::new(base.expect("memory for a ring").cast()).expect("a mapping is not at zero")
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
