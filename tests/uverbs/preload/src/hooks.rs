//! What stands behind the interposed functions.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_int};
use std::sync::OnceLock;

use crate::environment;

/// An errno.
pub type Errno = c_int;

/// A device, as RDMA netlink tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the RDMA device.
    pub name: String,
    /// Name of its character device.
    pub uverbs: String,
    /// `enum rdma_driver_id`.
    pub driver_id: u32,
    /// Node GUID, as it is in memory.
    pub guid: [u8; 8],
}

/// What stands behind the interposed functions. `None` says that a call is none of theirs and goes on to the kernel.
///
/// The functions are called by everything in the process, the standard library included: an implementation must answer
/// for a descriptor that is not its own without taking a lock.
pub trait Hooks: Sync {
    /// Devices that discovery finds.
    fn devices(&self) -> Vec<Listed>;

    /// Opens a file.
    fn open(&self, path: &CStr) -> Option<Result<c_int, Errno>>;

    /// The file that is looked at in place of `path`.
    fn stat_instead(&self, path: &CStr) -> Option<CString>;

    /// The descriptor is about to be closed; `true` says that it was closed here.
    fn close(&self, fd: c_int) -> bool;

    /// Writes to a file.
    ///
    /// # Safety
    /// Addresses in the bytes are those of a command.
    unsafe fn write(&self, fd: c_int, bytes: &[u8]) -> Option<Result<(), Errno>>;

    /// Whether reads of a file come here.
    fn reads(&self, _fd: c_int) -> bool {
        false
    }

    /// Reads from a file of which [`Hooks::reads`] says so.
    fn read(&self, _fd: c_int, _bytes: &mut [u8]) -> Result<usize, Errno> {
        Err(libc::EBADF)
    }

    /// Carries out a request.
    ///
    /// # Safety
    /// `argument` is what the request takes.
    unsafe fn ioctl(&self, fd: c_int, request: u64, argument: *mut u8) -> Option<Result<(), Errno>>;

    /// Maps a file.
    fn mmap(&self, fd: c_int, len: usize, prot: c_int, offset: u64) -> Option<Result<usize, Errno>>;

    /// Memory is about to be unmapped; `true` says that it was unmapped here.
    ///
    /// # Safety
    /// As `munmap(2)`.
    unsafe fn munmap(&self, at: usize, len: usize) -> bool;
}

static HOOKS: OnceLock<&'static dyn Hooks> = OnceLock::new();

thread_local! {
    /// This thread is making the hooks, and uses the functions for that itself.
    static MAKING: Cell<bool> = const { Cell::new(false) };
}

/// Says what stands behind the functions, once and for all.
///
/// # Errors
/// The hooks, if there are others already.
pub fn install(hooks: &'static dyn Hooks) -> Result<(), &'static dyn Hooks> {
    HOOKS.set(hooks)
}

/// What stands behind the functions, if anything does yet.
pub fn hooks() -> Option<&'static dyn Hooks> {
    HOOKS.get().copied()
}

/// The same, where a process first meets a device: what the environment asks for is made now.
pub fn first_met() -> Option<&'static dyn Hooks> {
    if let Some(hooks) = hooks() {
        return Some(hooks);
    }
    if MAKING.replace(true) {
        return None;
    }
    let made = environment::hooks();
    MAKING.set(false);
    made.map(|made| *HOOKS.get_or_init(|| made))
}
