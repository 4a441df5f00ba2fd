//! `socket`, `sendmsg` and `recvmsg`: RDMA netlink is answered here, so that libibverbs sees the made-up devices and
//! none of the machine's.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::files::outcome;
use crate::hooks::first_met;
use crate::netlink::{self, Netlink};
use crate::raw::syscall;

/// Descriptors from here on are never ours.
const DESCRIPTORS: usize = 4096;

/// Whether a descriptor is an RDMA netlink socket: asked on every call, so without a lock.
static SOCKETS: [AtomicBool; DESCRIPTORS] = [const { AtomicBool::new(false) }; DESCRIPTORS];

static NETLINKS: Mutex<Vec<(c_int, Arc<Netlink>)>> = Mutex::new(Vec::new());

fn slot(fd: c_int) -> Option<&'static AtomicBool> {
    SOCKETS.get(usize::try_from(fd).ok()?)
}

fn find(fd: c_int) -> Option<Arc<Netlink>> {
    slot(fd).filter(|slot| slot.load(Ordering::Acquire))?;
    let netlinks = NETLINKS.lock().unwrap_or_else(PoisonError::into_inner);
    netlinks.iter().find(|(of, _)| *of == fd).map(|(_, netlink)| netlink.clone())
}

/// The descriptor is closed.
pub(crate) fn forget(fd: c_int) {
    if slot(fd).is_some_and(|slot| slot.swap(false, Ordering::AcqRel)) {
        NETLINKS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _)| *of != fd);
    }
}

/// `socket(2)`. An RDMA netlink socket becomes one for user-space messages: it can be bound and asked for its name
/// like the real one, without the kernel's RDMA being there.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let rdma = domain == libc::AF_NETLINK && protocol == netlink::NETLINK_RDMA;
    let hooks = if rdma { first_met() } else { None };
    let protocol = if hooks.is_some() { libc::NETLINK_USERSOCK } else { protocol };
    let arguments = [domain as usize, kind as usize, protocol as usize, 0, 0, 0];
    // SAFETY: the caller's.
    let fd = unsafe { syscall(libc::SYS_socket, arguments) as c_int };
    if let (Some(hooks), Some(slot)) = (hooks, slot(fd)) {
        let netlink = Arc::new(Netlink::new(hooks.devices()));
        NETLINKS.lock().unwrap_or_else(PoisonError::into_inner).push((fd, netlink));
        slot.store(true, Ordering::Release);
    }
    fd
}

/// `sendmsg(2)`; on an RDMA netlink socket, a question to be answered.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize {
    if let Some(netlink) = find(fd) {
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
    if let Some(netlink) = find(fd) {
        // SAFETY: the caller gives a message to fill.
        return outcome(unsafe { netlink.receive(&mut *message, flags) });
    }
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_recvmsg, [fd as usize, message as usize, flags as usize, 0, 0, 0]) }
}
