//! System calls that pass our own functions by.

use std::ffi::{c_int, c_long, c_void};

/// A system call by number; sets errno as libc's wrappers do.
///
/// # Safety
/// As the system call.
pub(crate) unsafe fn syscall(number: c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's.
    unsafe { libc::syscall(number, a, b, c, d, e, f) as isize }
}

/// Closes a descriptor.
pub(crate) fn close(fd: c_int) -> c_int {
    // SAFETY: closing takes no memory of ours away.
    unsafe { syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) as c_int }
}

/// Maps memory.
///
/// # Safety
/// As `mmap(2)`; `MAP_FIXED` replaces what is there.
pub(crate) unsafe fn mmap(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let arguments = [addr as usize, len, prot as usize, flags as usize, fd as usize, offset as usize];
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_mmap, arguments) as *mut c_void }
}

/// Unmaps memory.
///
/// # Safety
/// Nobody uses the memory any more.
pub(crate) unsafe fn munmap(addr: *mut c_void, len: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_munmap, [addr as usize, len, 0, 0, 0, 0]) as c_int }
}
