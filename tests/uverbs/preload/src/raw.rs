//! System calls that pass our own functions by.

use std::ffi::{CStr, c_int, c_long, c_void};

/// A system call by number; sets errno as libc's wrappers do.
///
/// # Safety
/// As the system call.
pub unsafe fn syscall(number: c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's.
    unsafe { libc::syscall(number, a, b, c, d, e, f) as isize }
}

/// Opens a file for reading.
///
/// # Errors
/// As `open(2)`.
pub fn open(path: &CStr) -> Result<c_int, c_int> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let at = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0];
    // SAFETY: the path is a string.
    let fd = unsafe { syscall(libc::SYS_openat, at) } as c_int;
    // SAFETY: errno is this thread's.
    if fd < 0 { Err(unsafe { *libc::__errno_location() }) } else { Ok(fd) }
}

/// Closes a descriptor.
pub fn close(fd: c_int) -> c_int {
    // SAFETY: closing takes no memory of ours away.
    unsafe { syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) as c_int }
}

/// Maps memory.
///
/// # Safety
/// As `mmap(2)`; `MAP_FIXED` replaces what is there.
pub unsafe fn mmap(
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
pub unsafe fn munmap(addr: *mut c_void, len: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_munmap, [addr as usize, len, 0, 0, 0, 0]) as c_int }
}
