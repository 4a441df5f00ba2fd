//! `open`, `close`, `stat`, `write` and `ioctl`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};

use super::raw::{self, syscall};
use crate::uverbs::{registry, sysfs};

/// Sets errno and gives -1, or gives the value.
pub(super) fn outcome(result: Result<usize, c_int>) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(errno) => {
            // SAFETY: errno is this thread's.
            unsafe { *libc::__errno_location() = errno };
            -1
        }
    }
}

unsafe fn open_at(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    if !path.is_null() {
        // SAFETY: a path is a string.
        let name = unsafe { CStr::from_ptr(path) };
        if let Some(opened) = registry::open(name).or_else(|| sysfs::open(name)) {
            return outcome(opened.map(|fd| fd as usize)) as c_int;
        }
    }
    // SAFETY: the caller's.
    unsafe {
        syscall(libc::SYS_openat, [dir as usize, path as usize, flags as usize, mode as usize, 0, 0]) as c_int
    }
}

/// `open(2)`. `mode` is garbage unless a file is created, and is then not looked at.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

/// `open(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

/// `openat(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe { open_at(dir, path, flags, mode) }
}

/// `openat(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe { open_at(dir, path, flags, mode) }
}

/// What programs compiled with `_FORTIFY_SOURCE` call for `open` without a mode.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { open_at(libc::AT_FDCWD, path, flags, 0) }
}

/// What programs compiled with `_FORTIFY_SOURCE` call for `open` without a mode.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { open_at(libc::AT_FDCWD, path, flags, 0) }
}

/// `close(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    registry::close(fd);
    raw::close(fd)
}

/// `stat(2)`; the made-up character devices are there.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(path: *const c_char, buffer: *mut libc::stat) -> c_int {
    let mut path = path;
    // SAFETY: a path is a string.
    if !path.is_null() && registry::is_device(unsafe { CStr::from_ptr(path) }) {
        path = registry::STAND_IN.as_ptr();
    }
    let at = [libc::AT_FDCWD as usize, path as usize, buffer as usize, 0, 0, 0];
    // SAFETY: the caller's. The kernel's structure is libc's on the 64-bit machines that this crate is for.
    unsafe { syscall(libc::SYS_newfstatat, at) as c_int }
}

/// `write(2)`; on a device of ours, a uverbs command.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, len: usize) -> isize {
    if let Some(device) = registry::device(fd) {
        // SAFETY: the caller gives `len` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), len) };
        // SAFETY: the command's pointers are the caller's.
        return outcome(unsafe { device.write(bytes) }.map(|()| len));
    }
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_write, [fd as usize, buffer as usize, len, 0, 0, 0]) }
}

/// `ioctl(2)`; on a device of ours, a uverbs method.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if let Some(device) = registry::device(fd) {
        // SAFETY: the method's pointers are the caller's.
        return outcome(unsafe { device.ioctl(request, argument.cast()) }.map(|()| 0)) as c_int;
    }
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_ioctl, [fd as usize, request as usize, argument as usize, 0, 0, 0]) as c_int }
}
