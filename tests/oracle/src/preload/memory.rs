//! `mmap` and `munmap`.

use std::ffi::{c_int, c_void};

use super::files::outcome;
use super::raw;
use crate::uverbs::{registry, trap};

/// `mmap(2)`; on a device of ours, one of its pages.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    if flags & libc::MAP_ANONYMOUS == 0
        && let Some(device) = registry::device(fd)
    {
        return outcome(device.mmap(len, prot, offset as u64)) as *mut c_void;
    }
    // SAFETY: the caller's.
    unsafe { raw::mmap(addr, len, prot, flags, fd, offset) }
}

/// `mmap(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { mmap(addr, len, prot, flags, fd, offset) }
}

/// `munmap(2)`; stores into the memory are watched no longer.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(addr: *mut c_void, len: usize) -> c_int {
    trap::forget(addr as usize, len);
    // SAFETY: the caller's.
    unsafe { raw::munmap(addr, len) }
}
