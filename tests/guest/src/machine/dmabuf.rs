//! dma-bufs of ordinary memory, by the kernel's udmabuf.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};
use zerocopy::{Immutable, IntoBytes};

/// `struct udmabuf_create`.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
struct Create {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

/// `UDMABUF_CREATE`: its result is a descriptor.
struct CreateIoctl(Create);

// SAFETY: the opcode says that the operand is read, and the operand is what the opcode takes.
unsafe impl Ioctl for CreateIoctl {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        opcode::write::<Create>(b'u', 0x42)
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(result: IoctlOutput, _: *mut std::ffi::c_void) -> rustix::io::Result<OwnedFd> {
        // SAFETY: the kernel has just made this descriptor, and nobody else knows of it.
        Ok(unsafe { OwnedFd::from_raw_fd(result) })
    }
}

/// A file in memory of `size` bytes, which cannot shrink.
pub fn memory_file(size: u64) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("guest", flags).expect("a file in memory");
    ftruncate(&file, size).expect("memory");
    fcntl_add_seals(&file, SealFlags::SHRINK).expect("a seal");
    file
}

/// A dma-buf of `size` bytes, whole pages.
pub fn create(size: u64) -> OwnedFd {
    let memory = memory_file(size);
    let device = File::options().read(true).write(true).open("/dev/udmabuf").expect("udmabuf");
    let create = Create { memfd: memory.as_raw_fd().cast_unsigned(), flags: 1, offset: 0, size };
    // SAFETY: the kernel reads the operand and nothing else.
    unsafe { rustix::ioctl::ioctl(&device, CreateIoctl(create)) }.expect("a dma-buf")
}
