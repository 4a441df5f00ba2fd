//! Pages of the device and of its driver: memory that a process maps by a cookie.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;

use directverbs_softnic::fabric::NicHandle;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::Errno;
use crate::chip::Chip;
use crate::trap::{self, Sink};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// What a store into a page is.
#[derive(Clone, Debug)]
pub enum Stores {
    /// Nothing: plain memory.
    Plain,
    /// A doorbell, on this page of the NIC.
    Doorbell(NicHandle<Chip>, u32),
    /// A store into the NIC's memory, from this offset on.
    Device(NicHandle<Chip>, u64),
}

impl Sink for Stores {
    fn store(&self, offset: usize, bytes: &[u8]) {
        match self {
            Self::Plain => {}
            Self::Device(nic, base) => nic.lock().device_store(base + offset as u64, bytes),
            Self::Doorbell(nic, page) => {
                // Registers have 8 bytes; other stores reach none.
                if let (0, Ok(value)) = (offset % 8, bytes.try_into()) {
                    nic.lock().doorbell(*page, offset / 8, u64::from_le_bytes(value));
                }
            }
        }
    }
}

/// How a page may be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// As the process likes.
    Any,
    /// Not for writing: the kernel's own.
    ReadOnly,
}

/// A page, or for controller memory a queue: a file in memory, which is mapped here and by the process.
#[derive(Debug)]
pub struct Region {
    file: OwnedFd,
    here: NonNull<u8>,
    len: usize,
    rights: Rights,
    stores: Stores,
}

// SAFETY: the memory is owned and mapped for as long as the region is.
unsafe impl Send for Region {}
// SAFETY: as above; its bytes are only copied to, and the process and the NIC expect that at any time.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory of at least `len` bytes.
    ///
    /// # Errors
    /// There is no more memory, or no more descriptors.
    pub fn new(len: usize, rights: Rights, stores: Stores) -> Result<Self, Errno> {
        let len = len.max(1).next_multiple_of(PAGE);
        let file = memfd_create("uverbs-page", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, len as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let here = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, &file, 0) }?;
        let here = NonNull::new(here.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { file, here, len, rights, stores })
    }

    /// Maps it for the process, and returns where.
    ///
    /// # Errors
    /// EINVAL: the length is another than the page's. EFAULT: it may not be written.
    pub fn map(&self, len: usize, access: ProtFlags) -> Result<usize, Errno> {
        if len != self.len {
            return Err(Errno::INVAL);
        }
        if self.rights == Rights::ReadOnly && access.contains(ProtFlags::WRITE) {
            return Err(Errno::FAULT);
        }
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, &self.file, 0) }?;
        if !matches!(self.stores, Stores::Plain)
            && let Err(errno) = trap::deliver(at as usize, len, Arc::new(self.stores.clone()))
        {
            // SAFETY: nobody knows of the mapping.
            unsafe { munmap(at, len) }?;
            return Err(errno);
        }
        Ok(at as usize)
    }

    /// Changes bytes, as the kernel does.
    ///
    /// # Panics
    /// The region is shorter.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len, "within the page");
        // SAFETY: within the mapping, to which nobody holds references.
        unsafe { self.here.add(offset).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Where the kernel has it.
    pub fn here(&self) -> u64 {
        self.here.as_ptr() as u64
    }

    /// Another descriptor of it.
    ///
    /// # Errors
    /// There are no more.
    pub fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.file.try_clone()
    }

    /// Whether `other` is a descriptor of it.
    ///
    /// # Errors
    /// EBADF: it is none at all.
    pub fn is(&self, other: RawFd) -> Result<bool, Errno> {
        // SAFETY: the call only asks; a descriptor that is not open is an error.
        let (own, other) = (fstat(&self.file)?, fstat(unsafe { BorrowedFd::borrow_raw(other) })?);
        Ok((own.st_dev, own.st_ino) == (other.st_dev, other.st_ino))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: nobody else knows this mapping; what the process has mapped is its own.
        let unmapped = unsafe { munmap(self.here.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Takes a mapping of a region away; stores into it are seen no longer.
///
/// # Errors
/// As `munmap(2)`.
///
/// # Safety
/// Nobody uses these bytes any more.
pub unsafe fn unmap(at: usize, len: usize) -> Result<(), Errno> {
    trap::forget(at, len);
    // SAFETY: the caller's.
    unsafe { munmap(at as *mut _, len) }
}
