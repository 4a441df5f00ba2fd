//! The made-up kernel of `tests/uverbs` behind the seam: devices of both vendors whose queues software NICs execute.

use std::path::Path;
use std::ptr::NonNull;
use std::time::Duration;

use directverbs_fake_uverbs::Machine;
use rustix::io::Errno;
use rustix::mm::ProtFlags;

use super::abi::packet::VERBS_IOCTL;
use super::kernel::{Fd, Kernel, MapRequest, Protection};

/// A made-up machine in place of the kernel. Its sysfs is at [`Machine::sysfs`].
#[derive(Clone, Debug)]
pub struct Fake(pub Machine);

// SAFETY: mappings are real ones of the length asked for, which last until they are unmapped; the machine writes only to
// what packets and commands name as outputs, and its NICs only to memory that was pinned for them.
unsafe impl Kernel for Fake {
    fn open(&self, path: &Path) -> Result<Fd, Errno> {
        Fd::new(self.0.open(path)?).ok_or(Errno::BADF)
    }

    fn close(&self, fd: Fd) {
        self.0.close(fd.get());
    }

    unsafe fn ioctl(&self, fd: Fd, packet: &mut [u64]) -> Result<(), Errno> {
        let address = packet.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the caller vouches for the outputs in the packet, and the packet is writable.
        unsafe { self.0.ioctl(fd.get(), VERBS_IOCTL.into(), address) }
    }

    unsafe fn write(&self, fd: Fd, command: &[u8]) -> Result<usize, Errno> {
        // SAFETY: the caller vouches for the reply's address.
        unsafe { self.0.write(fd.get(), command) }
    }

    fn read(&self, fd: Fd, bytes: &mut [u8]) -> Result<usize, Errno> {
        self.0.read(fd.get(), bytes)
    }

    fn wait_readable(&self, fd: Fd, timeout: Option<Duration>) -> Result<bool, Errno> {
        self.0.wait_readable(fd.get(), timeout)
    }

    fn set_nonblocking(&self, fd: Fd, nonblocking: bool) -> Result<(), Errno> {
        self.0.set_nonblocking(fd.get(), nonblocking)
    }

    fn map(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno> {
        let access = match request.protection {
            Protection::Read => ProtFlags::READ,
            Protection::Write => ProtFlags::WRITE,
            Protection::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        let at = match request.file {
            Some(fd) => self.0.mmap(fd.get(), request.offset, request.length, access),
            None => self.0.mmap_anonymous(request.length, access),
        }?;
        NonNull::new(std::ptr::with_exposed_provenance_mut(at)).ok_or(Errno::NOMEM)
    }

    unsafe fn unmap(&self, address: NonNull<u8>, length: usize) -> Result<(), Errno> {
        // SAFETY: the caller vouches that nobody uses it.
        unsafe { self.0.munmap(address.as_ptr().addr(), length) }
    }

    fn process(&self) -> u32 {
        rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
    }

    fn idle(&self) -> bool {
        self.0.step()
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }

    fn memlock_limit(&self) -> Option<u64> {
        self.0.memlock_limit()
    }
}
