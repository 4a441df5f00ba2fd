//! `socket`, `sendmsg` and `recvmsg`: RDMA netlink is answered here, so that libibverbs sees the made-up devices and
//! none of the machine's.

use std::ffi::c_int;

use super::files::outcome;
use super::raw::syscall;
use crate::uverbs::{netlink, registry};

/// `socket(2)`. An RDMA netlink socket becomes one for user-space messages: it can be bound and asked for its name
/// like the real one, without the kernel's RDMA being there.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let rdma = domain == libc::AF_NETLINK && protocol == netlink::NETLINK_RDMA;
    let protocol = if rdma { libc::NETLINK_USERSOCK } else { protocol };
    let arguments = [domain as usize, kind as usize, protocol as usize, 0, 0, 0];
    // SAFETY: the caller's.
    let fd = unsafe { syscall(libc::SYS_socket, arguments) as c_int };
    if rdma {
        registry::add_netlink(fd);
    }
    fd
}

/// `sendmsg(2)`; on an RDMA netlink socket, a question to be answered.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize {
    if let Some(netlink) = registry::netlink(fd) {
        // SAFETY: the caller gives a message.
        return outcome(unsafe { netlink.send(&*message) });
    }
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_sendmsg, [fd as usize, message as usize, flags as usize, 0, 0, 0]) }
}

/// `recvmsg(2)`; on an RDMA netlink socket, the next answer.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    if let Some(netlink) = registry::netlink(fd) {
        // SAFETY: the caller gives a message to fill.
        return outcome(unsafe { netlink.receive(&mut *message, flags) });
    }
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_recvmsg, [fd as usize, message as usize, flags as usize, 0, 0, 0]) }
}
