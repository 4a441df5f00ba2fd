//! Frames of a network interface, by a packet socket. Needs the right to open one (CAP_NET_RAW).
//!
//! Source: packet(7).

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::Line;

/// All protocols, in network byte order.
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A packet socket on an interface that takes frames to all addresses.
#[derive(Debug)]
pub struct Interface(OwnedFd);

impl Interface {
    /// Opens the interface of this name.
    ///
    /// # Errors
    /// There is none, or the right is missing.
    pub fn open(name: &str) -> io::Result<Self> {
        let name = CString::new(name).map_err(io::Error::other)?;
        // SAFETY: the name ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let index = i32::try_from(index).ok().filter(|index| *index > 0);
        let index = index.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: no memory is involved.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, ALL.into()) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened, and is nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all bytes zero is a valid value of this plain structure, and the next.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL;
        address.sll_ifindex = index;
        // SAFETY: the address is valid for its length.
        checked(unsafe { libc::bind(fd, (&raw const address).cast(), size_of_val(&address) as u32) })?;
        // SAFETY: as above.
        let mut member: libc::packet_mreq = unsafe { zeroed() };
        member.mr_ifindex = index;
        member.mr_type = libc::PACKET_MR_PROMISC as u16;
        // SAFETY: the option is valid for its length.
        checked(unsafe {
            libc::setsockopt(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const member).cast(),
                size_of_val(&member) as u32,
            )
        })?;
        Ok(Self(socket))
    }
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Line for Interface {
    fn send(&self, frame: &[u8]) {
        // SAFETY: the frame is valid for its length.
        unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
    }

    fn receive(&self, frame: &mut [u8]) -> io::Result<usize> {
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let mut from: libc::sockaddr_ll = unsafe { zeroed() };
        let mut len = size_of_val(&from) as u32;
        // SAFETY: the buffers are valid for their lengths.
        let received = unsafe {
            libc::recvfrom(
                self.0.as_raw_fd(),
                frame.as_mut_ptr().cast(),
                frame.len(),
                0,
                (&raw mut from).cast(),
                &raw mut len,
            )
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        // What this machine sends comes by too.
        Ok(if from.sll_pkttype == libc::PACKET_OUTGOING { 0 } else { received })
    }
}
