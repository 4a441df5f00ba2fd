//! The real kernel with something altered: older than it is, or failing.

use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use directverbs_linux::uverbs::abi::methods::invoke_write;
use directverbs_linux::uverbs::{Fd, Kernel, Linux, MapRequest};
use rustix::io::Errno;

/// What is altered.
#[derive(Clone, Copy, Debug)]
enum Alteration {
    /// There is no method for commands.
    WithoutInvokeWrite,
    /// The call with this number, counted from 0, is not made but fails.
    Fails(u32, Errno),
}

/// The altered kernel.
#[derive(Debug)]
pub struct Altered {
    alteration: Alteration,
    calls: AtomicU32,
}

impl Altered {
    /// Like a kernel that takes commands only by `write`.
    pub fn without_invoke_write() -> Arc<Self> {
        Arc::new(Self { alteration: Alteration::WithoutInvokeWrite, calls: AtomicU32::new(0) })
    }

    /// One whose call with number `call`, from 0, fails with `errno`.
    pub fn failing(call: u32, errno: Errno) -> Arc<Self> {
        Arc::new(Self { alteration: Alteration::Fails(call, errno), calls: AtomicU32::new(0) })
    }

    /// Calls made and failed so far.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Counts a call, and fails if it is its turn.
    fn turn(&self) -> Result<(), Errno> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        match self.alteration {
            Alteration::Fails(call, errno) if call == number => Err(errno),
            _ => Ok(()),
        }
    }
}

// SAFETY: every call that is made is the real kernel's.
unsafe impl Kernel for Altered {
    fn open(&self, path: &Path) -> Result<Fd, Errno> {
        self.turn()?;
        Linux.open(path)
    }

    fn close(&self, fd: Fd) {
        Linux.close(fd);
    }

    unsafe fn ioctl(&self, fd: Fd, packet: &mut [u64]) -> Result<(), Errno> {
        self.turn()?;
        let (object, method) = (invoke_write::METHOD.object_id, invoke_write::METHOD.method_id);
        // Bytes 2 to 5 of the header: object and method.
        let called = (packet.first().copied().unwrap_or(0) >> 16) as u32;
        let commands = called == u32::from(method) << 16 | u32::from(object);
        if commands && matches!(self.alteration, Alteration::WithoutInvokeWrite) {
            return Err(Errno::PROTONOSUPPORT);
        }
        // SAFETY: the caller vouches for the packet.
        unsafe { Linux.ioctl(fd, packet) }
    }

    unsafe fn write(&self, fd: Fd, command: &[u8]) -> Result<usize, Errno> {
        self.turn()?;
        // SAFETY: the caller vouches for the command.
        unsafe { Linux.write(fd, command) }
    }

    fn read(&self, fd: Fd, bytes: &mut [u8]) -> Result<usize, Errno> {
        self.turn()?;
        Linux.read(fd, bytes)
    }

    fn wait_readable(&self, fd: Fd, timeout: Option<Duration>) -> Result<bool, Errno> {
        self.turn()?;
        Linux.wait_readable(fd, timeout)
    }

    fn set_nonblocking(&self, fd: Fd, nonblocking: bool) -> Result<(), Errno> {
        self.turn()?;
        Linux.set_nonblocking(fd, nonblocking)
    }

    fn map(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno> {
        self.turn()?;
        Linux.map(request)
    }

    unsafe fn unmap(&self, address: NonNull<u8>, length: usize) -> Result<(), Errno> {
        // SAFETY: the caller vouches for the mapping.
        unsafe { Linux.unmap(address, length) }
    }

    fn process(&self) -> u32 {
        Linux.process()
    }

    fn page_size(&self) -> usize {
        Linux.page_size()
    }

    fn memlock_limit(&self) -> Option<u64> {
        Linux.memlock_limit()
    }
}
