//! The seam: every system call of this crate goes through [`Kernel`].

use std::path::Path;
use std::ptr::NonNull;
use std::time::Duration;

use rustix::io::Errno;

/// A file descriptor of a [`Kernel`], never negative. It does not own the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(i32);

impl Fd {
    /// None for a negative number, which is no descriptor.
    pub const fn new(number: i32) -> Option<Self> {
        if number >= 0 { Some(Self(number)) } else { None }
    }

    /// The number, for epoll and others.
    pub const fn get(self) -> i32 {
        self.0
    }
}

/// What a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Loads: clock, toggle and pacing pages.
    Read,
    /// Stores: doorbells.
    Write,
    /// Both.
    ReadWrite,
}

/// What is to be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRequest {
    /// The file, or none for fresh zeroed memory.
    pub file: Option<Fd>,
    /// Offset, a cookie that the kernel has given.
    pub offset: u64,
    /// Bytes, whole pages.
    pub length: usize,
    /// Access.
    pub protection: Protection,
}

/// What this crate asks of the kernel. [`super::Linux`] asks the real one; tests put a device of their own behind it.
///
/// # Safety
/// An implementation maps memory of the length asked for that stays valid until it is unmapped, and touches no memory but
/// what the methods below allow.
pub unsafe trait Kernel: Send + Sync {
    /// Opens a file for reading and writing; it is closed when the process executes another program.
    fn open(&self, path: &Path) -> Result<Fd, Errno>;

    /// Closes a file.
    fn close(&self, fd: Fd);

    /// Carries out `RDMA_VERBS_IOCTL` with `packet`: [`super::abi::packet::Header`] and attributes.
    ///
    /// # Safety
    /// Every address in the packet is that of memory of the length beside it, readable if the attribute is an input and
    /// writable, with no reference to it, if it is an output.
    unsafe fn ioctl(&self, fd: Fd, packet: &mut [u64]) -> Result<(), Errno>;

    /// Writes a command: [`super::abi::packet::CommandHeader`] and what belongs to it.
    ///
    /// # Safety
    /// The address of the reply in the command is that of writable memory, with no reference to it, of the length that the
    /// header says.
    unsafe fn write(&self, fd: Fd, command: &[u8]) -> Result<usize, Errno>;

    /// Reads a record of a file of events.
    fn read(&self, fd: Fd, bytes: &mut [u8]) -> Result<usize, Errno>;

    /// Waits until a file can be read, at most for `timeout`; `false` if the time is over. A signal ends the wait with
    /// [`Errno::INTR`].
    fn wait_readable(&self, fd: Fd, timeout: Option<Duration>) -> Result<bool, Errno>;

    /// Makes reading a file wait, or not.
    fn set_nonblocking(&self, fd: Fd, nonblocking: bool) -> Result<(), Errno>;

    /// Maps pages; a child after fork does not have them.
    fn map(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno>;

    /// Unmaps them.
    ///
    /// # Safety
    /// `address` and `length` are those of a mapping of [`Kernel::map`], and nobody uses it any more.
    unsafe fn unmap(&self, address: NonNull<u8>, length: usize) -> Result<(), Errno>;

    /// Number of this process.
    fn process(&self) -> u32;

    /// Gives others time while a program has nothing to do: lets their threads run, or moves a device that is made up.
    /// `false` says that nothing will ever come without new work, which is never true of a real device.
    fn idle(&self) -> bool {
        std::thread::yield_now();
        true
    }

    /// Bytes of a page.
    fn page_size(&self) -> usize;

    /// Bytes that this process may pin; none if there is no limit.
    fn memlock_limit(&self) -> Option<u64>;
}
