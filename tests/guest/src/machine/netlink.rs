//! Requests to the kernel by netlink, as data: header, fixed part, attributes.
//!
//! Source: `netlink(7)`, `rtnetlink(7)`, Linux `include/uapi/rdma/rdma_netlink.h`.

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use zerocopy::{Immutable, IntoBytes};

/// The kernel shall say whether it went well.
const REQUEST_ACK: u16 = 1 | 4;
/// Make what is not there, and fail if it is.
pub const CREATE: u16 = 0x200 | 0x400;
/// Kind of the message that says whether it went well.
const ERROR: u16 = 2;
/// Bytes of the header: length, kind, flags, sequence number, port.
const HEADER: usize = 16;

/// Attributes, one behind the other, each at a multiple of 4 bytes.
#[derive(Clone, Debug, Default)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// With one more.
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend((4 + value.len() as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// With a text, which ends with a zero.
    pub fn text(self, kind: u16, value: &str) -> Self {
        self.with(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// With attributes in an attribute, behind a fixed part.
    pub fn nested(self, kind: u16, fixed: &[u8], inner: &Self) -> Self {
        self.with(kind, &[fixed, &inner.0].concat())
    }
}

/// Sends one request and waits for the answer.
///
/// # Errors
/// What the kernel answers.
pub fn request<F: IntoBytes + Immutable>(
    protocol: Option<Protocol>,
    kind: u16,
    flags: u16,
    fixed: &F,
    attributes: &Attributes,
) -> Result<(), Errno> {
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    let body = [fixed.as_bytes(), &attributes.0].concat();
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST_ACK | flags).to_ne_bytes());
    message.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    message.extend(body);
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 4096];
    loop {
        let (count, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
        let answer = answer.get(..count).unwrap_or_default();
        let field =
            |at: usize| answer.get(at..at + 4).and_then(|b| Some(i32::from_ne_bytes(b.try_into().ok()?)));
        if answer.get(4..6) == Some(&ERROR.to_ne_bytes()) {
            return match field(HEADER) {
                Some(0) => Ok(()),
                Some(errno) => Err(Errno::from_raw_os_error(-errno)),
                None => Err(Errno::IO),
            };
        }
    }
}
