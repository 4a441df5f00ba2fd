//! Memory that is mapped as long as a value is there.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::mmio::Mmio;

/// A page of the smaller kind, in bytes.
pub const PAGE: usize = 4096;
/// A huge page, in bytes.
pub const HUGE_PAGE: usize = 2 << 20;

const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// A mapping.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: mapped memory has no owner thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; what is done there is the business of whoever gets the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` bytes of a file that is a device's registers, from `offset`.
    pub fn registers(fd: BorrowedFd<'_>, offset: u64, len: usize) -> Result<Self> {
        // SAFETY: a new mapping of no fixed address.
        let base = unsafe { mmap(core::ptr::null_mut(), len, ACCESS, MapFlags::SHARED, fd, offset) }?;
        Self::at(base, len)
    }

    /// New memory of the process.
    fn anonymous(len: usize, kind: MapFlags) -> Result<Self> {
        let flags = MapFlags::PRIVATE | kind;
        // SAFETY: as above.
        let base = unsafe { mmap_anonymous(core::ptr::null_mut(), len, ACCESS, flags) }?;
        Self::at(base, len)
    }

    fn at(base: *mut c_void, len: usize) -> Result<Self> {
        Ok(Self { base: NonNull::new(base.cast()).ok_or(Errno::NOMEM)?, len })
    }

    /// Its registers.
    pub const fn mmio(&self) -> Mmio {
        // SAFETY: a mapping begins at a page. Copies are handed out only for as long as it is there, see `MappedBar`.
        unsafe { Mmio::new(self.base, self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and whoever has the address keeps the value.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// Memory of the process for DMA, zeroed, aligned to huge pages. A child process does not get it: it would take pages from
/// under the device when either writes.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    start: usize,
    len: usize,
}

impl Arena {
    /// At least `bytes`, of huge pages if `huge`. Pages are there once they are mapped for a device, which holds them in place.
    pub fn new(bytes: usize, huge: bool) -> Result<Self> {
        let page = if huge { HUGE_PAGE } else { PAGE };
        let len = bytes.max(1).checked_next_multiple_of(page).ok_or(Errno::NOMEM)?;
        let mapping = if huge {
            Mapping::anonymous(len, MapFlags::HUGETLB | MapFlags::HUGE_2MB)?
        } else {
            Mapping::anonymous(len.checked_add(HUGE_PAGE - PAGE).ok_or(Errno::NOMEM)?, MapFlags::empty())?
        };
        let start = mapping.base.as_ptr().align_offset(HUGE_PAGE);
        let arena = Self { mapping, start, len };
        arena.advise(Advice::LinuxDontFork)?;
        if !huge {
            // The kernel may have huge pages all the same, which the IOMMU likes; it may also be built without.
            let _ = arena.advise(Advice::LinuxHugepage);
        }
        Ok(arena)
    }

    fn advise(&self, advice: Advice) -> Result<()> {
        // SAFETY: all of it is mapped.
        unsafe { madvise(self.base().as_ptr().cast(), self.len, advice) }
    }

    /// Its first byte.
    pub const fn base(&self) -> NonNull<u8> {
        // SAFETY: there are as many bytes before the start as an alignment can take.
        unsafe { self.mapping.base.add(self.start) }
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }
}
