//! `open`, `close`, `stat`, `read`, `write` and `ioctl`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};

use super::raw::{self, syscall};
use crate::hooks::{first_met, hooks};
use crate::sockets;

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
        let ours =
            name.to_bytes().starts_with(b"/dev/infiniband") || name.to_bytes().starts_with(b"/sys/class");
        if let Some(opened) = ours.then(first_met).flatten().and_then(|hooks| hooks.open(name)) {
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
    sockets::forget(fd);
    if hooks().is_some_and(|hooks| hooks.close(fd)) { 0 } else { raw::close(fd) }
}

/// `stat(2)`; the made-up character devices are there.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(path: *const c_char, buffer: *mut libc::stat) -> c_int {
    // SAFETY: a path is a string.
    let name = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) });
    let instead = name.and_then(|name| hooks()?.stat_instead(name));
    let path = instead.as_ref().map_or(path, |instead| instead.as_ptr());
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
    if let Some(hooks) = hooks() {
        // No bytes are a command too, if a wrong one.
        let none = len == 0 || buffer.is_null();
        // SAFETY: the caller gives `len` bytes.
        let bytes = if none { &[] } else { unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), len) } };
        // SAFETY: the command's pointers are the caller's.
        if let Some(written) = unsafe { hooks.write(fd, bytes) } {
            return outcome(written.map(|()| len));
        }
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
    // SAFETY: the method's pointers are the caller's.
    if let Some(done) = hooks().and_then(|hooks| unsafe { hooks.ioctl(fd, request, argument.cast()) }) {
        return outcome(done.map(|()| 0)) as c_int;
    }
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_ioctl, [fd as usize, request as usize, argument as usize, 0, 0, 0]) as c_int }
}

/// `read(2)`; on a file of events of ours, the next event.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, len: usize) -> isize {
    let reads = hooks().filter(|hooks| len != 0 && !buffer.is_null() && hooks.reads(fd));
    if let Some(hooks) = reads {
        // SAFETY: the caller gives `len` bytes, and nobody else refers to them.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
        return outcome(hooks.read(fd, bytes));
    }
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_read, [fd as usize, buffer as usize, len, 0, 0, 0]) }
}
