//! The real kernel.

use std::ffi::c_void;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};

use super::abi::packet::VERBS_IOCTL;
use super::kernel::{Fd, Kernel, MapRequest, Protection};

/// The kernel that this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

impl Linux {
    fn borrow(fd: Fd) -> BorrowedFd<'static> {
        // SAFETY: an Fd comes from `open` or from the kernel's answer and is closed only by the object that owns it. A
        // stale one would make the call fail or reach another file of this process, which is no matter of memory safety:
        // all calls are checked by the kernel.
        unsafe { BorrowedFd::borrow_raw(fd.0) }
    }
}

/// `RDMA_VERBS_IOCTL` with a packet of any length.
struct VerbsIoctl<'p>(&'p mut [u64]);

// SAFETY: the opcode says that the operand is read and written, and the packet is both.
unsafe impl Ioctl for VerbsIoctl<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        VERBS_IOCTL as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> Result<(), Errno> {
        Ok(())
    }
}

// SAFETY: the kernel does what each method says, and no more.
unsafe impl Kernel for Linux {
    fn open(&self, path: &Path) -> Result<Fd, Errno> {
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Fd(file.into_raw_fd()))
    }

    fn close(&self, fd: Fd) {
        // SAFETY: only the owner of a descriptor closes it, once.
        unsafe { rustix::io::close(fd.0) }
    }

    unsafe fn ioctl(&self, fd: Fd, packet: &mut [u64]) -> Result<(), Errno> {
        // SAFETY: the caller vouches for the addresses in the packet, and the opcode is that of the packet's protocol.
        unsafe { rustix::ioctl::ioctl(Self::borrow(fd), VerbsIoctl(packet)) }
    }

    unsafe fn write(&self, fd: Fd, command: &[u8]) -> Result<usize, Errno> {
        rustix::io::write(Self::borrow(fd), command)
    }

    fn read(&self, fd: Fd, bytes: &mut [u8]) -> Result<usize, Errno> {
        rustix::io::read(Self::borrow(fd), bytes)
    }

    fn wait_readable(&self, fd: Fd, timeout: Option<Duration>) -> Result<bool, Errno> {
        let file = Self::borrow(fd);
        // A time that does not fit is as good as none.
        let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
        let mut files = [PollFd::new(&file, PollFlags::IN)];
        Ok(poll(&mut files, timeout.as_ref())? != 0)
    }

    fn set_nonblocking(&self, fd: Fd, nonblocking: bool) -> Result<(), Errno> {
        let file = Self::borrow(fd);
        let mut flags = rustix::fs::fcntl_getfl(file)?;
        flags.set(OFlags::NONBLOCK, nonblocking);
        rustix::fs::fcntl_setfl(file, flags)
    }

    fn map(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno> {
        let protection = match request.protection {
            Protection::Read => ProtFlags::READ,
            Protection::Write => ProtFlags::WRITE,
            Protection::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        let address = match request.file {
            // SAFETY: without an address of its own, a mapping replaces no memory that is in use.
            Some(fd) => unsafe {
                let file = Self::borrow(fd);
                mmap(ptr::null_mut(), request.length, protection, MapFlags::SHARED, file, request.offset)
            },
            // SAFETY: as above.
            None => unsafe { mmap_anonymous(ptr::null_mut(), request.length, protection, MapFlags::PRIVATE) },
        }?;
        let mapped = NonNull::new(address.cast()).ok_or(Errno::NOMEM)?;
        if request.file.is_none() {
            // The device writes to the parent's pages: a child that shares them copy-on-write would pull them away from
            // under it. The kernel itself marks what it maps of a device.
            // SAFETY: the range was just mapped, and the advice changes only what a child sees.
            let advised = unsafe { madvise(address, request.length, Advice::LinuxDontFork) };
            if let Err(error) = advised {
                // SAFETY: nobody knows of the mapping yet.
                let _ = unsafe { self.unmap(mapped, request.length) };
                return Err(error);
            }
        }
        Ok(mapped)
    }

    unsafe fn unmap(&self, address: NonNull<u8>, length: usize) -> Result<(), Errno> {
        // SAFETY: the caller vouches that it is a mapping and that nobody uses it.
        unsafe { munmap(address.as_ptr().cast(), length) }
    }

    fn process(&self) -> u32 {
        rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }

    fn memlock_limit(&self) -> Option<u64> {
        getrlimit(Resource::Memlock).current
    }
}
