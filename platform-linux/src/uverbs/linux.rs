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
        // all calls are checked by the kernel. It is not negative.
        unsafe { BorrowedFd::borrow_raw(fd.get()) }
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
        Fd::new(file.into_raw_fd()).ok_or(Errno::BADF)
    }

    fn close(&self, fd: Fd) {
        // SAFETY: only the owner of a descriptor closes it, once.
        unsafe { rustix::io::close(fd.get()) }
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::sync::Arc;

    use rustix::event::{EventfdFlags, eventfd};

    use super::super::file::{CommandFile, EventFile};
    use super::super::mapping::Pages;
    use super::*;
    use crate::error::Error;
    use crate::objects::Context;
    use crate::uverbs::Uhw;

    fn kernel() -> Arc<dyn Kernel> {
        Arc::new(Linux)
    }

    #[test]
    fn a_device_file_that_is_not_there_is_named() {
        let path = Path::new("/dev/infiniband/uverbs4095");
        let error = CommandFile::open(kernel(), path, Some(6)).expect_err("not there");
        assert!(matches!(&error, Error::Open { errno: Errno::NOENT, .. }), "{error}");
        assert!(error.to_string().starts_with("/dev/infiniband/uverbs4095: "), "{error}");
    }

    #[test]
    fn a_file_that_is_no_rdma_device_takes_no_calls() {
        let file = CommandFile::open(kernel(), Path::new("/dev/null"), Some(6)).expect("opens");
        assert!(!file.has_invoke_write());
        let number = file.fd().get();
        assert!(fs::exists(format!("/proc/self/fd/{number}")).expect("proc"));
        drop(file);
        let error = Context::open_path(kernel(), Path::new("/dev/null"), None, Uhw::none());
        let error = error.expect_err("no device");
        assert!(error.is_absent() && error.to_string().starts_with("device: GET_CONTEXT"), "{error}");
    }

    #[test]
    fn pages_are_there_until_dropped_and_no_child_has_them() {
        let pages = Pages::new(&kernel(), 1).expect("memory");
        assert!(pages.write(7, b"ring"));
        let mut copy = [0; 4];
        assert!(pages.read(7, &mut copy));
        assert_eq!((&copy, pages.len()), (b"ring", rustix::param::page_size()));
        let flags = |start: u64| {
            let maps = fs::read_to_string("/proc/self/smaps").expect("proc");
            let within = |line: &str| {
                let range = line.split(' ').next()?.split_once('-')?;
                let [from, to] = [range.0, range.1].map(|n| u64::from_str_radix(n, 16).ok());
                Some((from?..to?).contains(&start))
            };
            let mut lines = maps.lines().skip_while(|l| within(l) != Some(true));
            lines.find(|l| l.starts_with("VmFlags:")).map(str::to_owned)
        };
        let flags = flags(pages.address()).expect("mapped");
        assert!(flags.split(' ').any(|f| f == "dc"), "{flags}");
    }

    #[test]
    fn events_are_read_when_they_come_and_the_file_is_closed() {
        let source = eventfd(0, EventfdFlags::CLOEXEC).expect("an event file");
        let copy = rustix::io::fcntl_dupfd_cloexec(&source, 0).expect("a descriptor");
        let number = copy.as_raw_fd();
        let fd = Fd::new(copy.into_raw_fd()).expect("a descriptor");
        let events = EventFile::new(kernel(), fd, "test").expect("an event file");
        let soon = Some(Duration::from_millis(1));
        assert_eq!(events.read::<u64>("test", soon).expect("no event"), None);
        rustix::io::write(&source, &5u64.to_ne_bytes()).expect("room");
        assert_eq!(events.read::<u64>("test", None).expect("an event"), Some(5));
        assert_eq!(events.read::<u64>("test", Some(Duration::ZERO)).expect("no event"), None);
        drop(events);
        let target = |n: i32| fs::read_link(format!("/proc/self/fd/{n}")).ok();
        // Another test may have got the number since, but not for an event file.
        assert!(target(number).is_none_or(|t| !t.to_string_lossy().contains("eventfd")));
    }

    #[test]
    fn a_mapping_that_the_kernel_refuses_names_what_it_was_for() {
        let file = CommandFile::open(kernel(), Path::new("/dev/null"), Some(6)).expect("opens");
        let error = file.map(0, 4096, Protection::Write, "doorbell page").expect_err("no such memory");
        assert!(error.to_string().starts_with("doorbell page: mmap failed"), "{error}");
    }
}
