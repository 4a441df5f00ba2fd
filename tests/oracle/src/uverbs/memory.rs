//! The device's pages.

use std::ffi::c_int;
use std::ptr::NonNull;

use super::trap;
use super::{Errno, Traps};

/// A page, or for controller memory a queue, of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Page {
    /// Doorbell registers.
    Doorbell,
    /// bnxt_re: page shared with the kernel; the id of a new address handle is at 0x10.
    Shared,
    /// bnxt_re: write-combining page for pushed WQEs.
    Push,
    /// bnxt_re: parameters of doorbell pacing, written by the kernel.
    PacingParameters,
    /// bnxt_re: registers with the fill level of the doorbell FIFO.
    PacingRegisters,
    /// bnxt_re: toggle of the completion queue with this id.
    CqToggle(u32),
    /// bnxt_re: toggle of the shared receive queue with this id.
    SrqToggle(u32),
    /// ionic: clock, written by the kernel.
    Clock,
    /// ionic: send queue, in controller memory, of the queue pair with this id.
    SendCmb(u32),
    /// ionic: receive queue, in controller memory, of the queue pair with this id.
    RecvCmb(u32),
}

impl Page {
    const fn trapped(self, traps: Traps) -> bool {
        match self {
            Self::Doorbell => traps.doorbell,
            Self::Push => traps.push,
            Self::SendCmb(_) | Self::RecvCmb(_) => traps.cmb,
            _ => false,
        }
    }
}

/// A store into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Where.
    pub page: Page,
    /// Bytes from the page's beginning.
    pub offset: usize,
    /// Bytes stored at once: 1 to 64, a power of two.
    pub width: usize,
    bytes: [u8; trap::WIDEST],
}

impl Store {
    /// A store of up to 64 bytes, to compare with.
    pub fn new(page: Page, offset: usize, stored: &[u8]) -> Self {
        let mut bytes = [0; trap::WIDEST];
        bytes[..stored.len()].copy_from_slice(stored);
        Self { page, offset, width: stored.len(), bytes }
    }

    /// What was stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.width]
    }

    /// The value, little-endian, of a store of up to 8 bytes.
    pub fn value(&self) -> u64 {
        u64::from_le_bytes(self.bytes[..8].try_into().expect("eight bytes"))
    }
}

/// Memory of a page: a file in memory, which is mapped here, and by the provider as it likes.
#[derive(Debug)]
pub(super) struct Region {
    pub page: Page,
    /// Cookie that the provider gives to mmap.
    pub offset: u64,
    id: u32,
    fd: c_int,
    here: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is owned and mapped for as long as the region is.
unsafe impl Send for Region {}

impl Region {
    pub fn new(page: Page, offset: u64, len: usize) -> Result<Self, Errno> {
        let len = len.next_multiple_of(4096);
        let arguments = [c"uverbs-page".as_ptr() as usize, libc::MFD_CLOEXEC as usize, 0, 0, 0, 0];
        // SAFETY: the name is a string.
        let fd = unsafe { preload::syscall(libc::SYS_memfd_create, arguments) } as c_int;
        // SAFETY: no memory is touched.
        let grown = unsafe { preload::syscall(libc::SYS_ftruncate, [fd as usize, len, 0, 0, 0, 0]) };
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let here = unsafe { preload::mmap(std::ptr::null_mut(), len, prot, libc::MAP_SHARED, fd, 0) };
        match NonNull::new(here.cast::<u8>()) {
            Some(here) if grown == 0 && !std::ptr::eq(here.as_ptr().cast(), libc::MAP_FAILED) => {
                Ok(Self { page, offset, id: trap::new_area(), fd, here, len })
            }
            _ => {
                preload::close(fd);
                Err(libc::ENOMEM)
            }
        }
    }

    /// Maps it for the provider.
    pub fn map(&self, len: usize, prot: c_int, traps: Traps) -> Result<usize, Errno> {
        if len > self.len {
            return Err(libc::EINVAL);
        }
        let flags = libc::MAP_SHARED;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe { preload::mmap(std::ptr::null_mut(), len, prot, flags, self.fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(libc::ENOMEM);
        }
        if self.page.trapped(traps) {
            trap::watch(at as usize, len, self.id).map_err(|errno| errno.raw_os_error())?;
        }
        Ok(at as usize)
    }

    /// Says that a trapped store was into this region.
    pub fn owns(&self, area: u32) -> bool {
        self.id == area
    }

    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset + bytes.len() <= self.len, "{:?} ends at {:#x}", self.page, self.len);
        // SAFETY: within the mapping.
        unsafe { self.here.add(offset).as_ptr().copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
    }

    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len, "{:?} ends at {:#x}", self.page, self.len);
        // SAFETY: within the mapping.
        unsafe { self.here.add(offset).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub const fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: nobody else knows this mapping.
        unsafe { preload::munmap(self.here.as_ptr().cast(), self.len) };
        preload::close(self.fd);
    }
}
