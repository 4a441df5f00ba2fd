//! `mmap` and `munmap`.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::files::outcome;
use super::raw;
use crate::hooks::hooks;

/// Bytes of anonymous mappings that were made through [`mmap`].
static ANONYMOUS: AtomicUsize = AtomicUsize::new(0);

/// Bytes of anonymous mappings that the providers have made so far: rings, and what they keep beside them. The C
/// library's own, for its heap, are not among them, and unmapping does not count back.
pub fn anonymous_bytes() -> usize {
    ANONYMOUS.load(Ordering::Relaxed)
}

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
        && let Some(mapped) = hooks().and_then(|hooks| hooks.mmap(fd, len, prot, offset as u64))
    {
        return outcome(mapped) as *mut c_void;
    }
    // SAFETY: the caller's.
    let mapped = unsafe { raw::mmap(addr, len, prot, flags, fd, offset) };
    if flags & libc::MAP_ANONYMOUS != 0 && mapped != libc::MAP_FAILED {
        ANONYMOUS.fetch_add(len, Ordering::Relaxed);
    }
    mapped
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
    // SAFETY: the caller's.
    if hooks().is_some_and(|hooks| unsafe { hooks.munmap(addr as usize, len) }) {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { raw::munmap(addr, len) }
}
