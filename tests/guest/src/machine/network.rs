//! Network interfaces: a pair joined by a virtual cable, addresses, and soft-RoCE over one end.

use std::fs;
use std::net::IpAddr;

use rustix::io::Errno;
use rustix::net::Protocol;
use rustix::net::netlink::RDMA;
use zerocopy::{Immutable, IntoBytes};

use super::netlink::{Attributes, CREATE, request};

/// The end of the cable that the RDMA device is over.
pub const NEAR: &str = "rdma0";
/// The other end.
pub const FAR: &str = "rdma1";
/// The RDMA device.
pub const DEVICE: &str = "rxe0";

/// `NETLINK_ROUTE` is number 0, which is none.
const ROUTE: Option<Protocol> = None;

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const NEW_NEIGHBOUR: u16 = 28;
/// `RDMA_NLDEV_CMD_NEWLINK` of the client `RDMA_NL_NLDEV`.
const NEW_RDMA_LINK: u16 = 5 << 10 | 3;

/// `IFF_UP`.
const UP: u32 = 1;
/// `IFA_F_NODAD`: an IPv6 address may be used at once.
const NO_DUPLICATE_CHECK: u8 = 2;
/// `NUD_PERMANENT`.
const PERMANENT: u16 = 0x80;

/// `struct ifinfomsg`.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
struct Link {
    family: u8,
    pad: u8,
    kind: u16,
    index: u32,
    flags: u32,
    change: u32,
}

/// `struct ifaddrmsg`.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
struct Address {
    family: u8,
    prefix: u8,
    flags: u8,
    scope: u8,
    index: u32,
}

/// `struct ndmsg`.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
struct Neighbour {
    family: u8,
    pad: [u8; 3],
    index: u32,
    state: u16,
    flags: u8,
    kind: u8,
}

/// Index of an interface.
pub fn index(name: &str) -> u32 {
    let path = format!("/sys/class/net/{name}/ifindex");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.trim().parse().unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Makes the pair.
pub fn add_pair() {
    let peer = Attributes::default().text(3, FAR);
    let data = Attributes::default().nested(1, Link::default().as_bytes(), &peer);
    let info = Attributes::default().text(1, "veth").nested(2, &[], &data);
    let attributes = Attributes::default().text(3, NEAR).nested(18, &[], &info);
    done("make the pair", request(ROUTE, NEW_LINK, CREATE, &Link::default(), &attributes));
}

/// Removes the pair, and with it the RDMA device.
pub fn remove_pair() {
    let link = Link { index: index(NEAR), ..Link::default() };
    done("remove the pair", request(ROUTE, DELETE_LINK, 0, &link, &Attributes::default()));
}

/// Sets an interface up or down.
pub fn set_up(name: &str, up: bool) {
    let link = Link { index: index(name), flags: u32::from(up), change: UP, ..Link::default() };
    done("set a link", request(ROUTE, NEW_LINK, 0, &link, &Attributes::default()));
}

/// Sets the MTU of both ends of the cable, in bytes.
pub fn set_mtu(mtu: u32) {
    for name in [FAR, NEAR] {
        let link = Link { index: index(name), ..Link::default() };
        let attributes = Attributes::default().with(4, &mtu.to_ne_bytes());
        done("set the MTU", request(ROUTE, NEW_LINK, 0, &link, &attributes));
    }
}

/// Gives an interface an address, or takes it away.
pub fn set_address(name: &str, address: IpAddr, prefix: u8, there: bool) {
    let (family, bytes) = bytes(address);
    let fixed = Address { family, prefix, flags: NO_DUPLICATE_CHECK, scope: 0, index: index(name) };
    let attributes = Attributes::default().with(2, &bytes).with(1, &bytes);
    let (kind, flags) = if there { (NEW_ADDRESS, CREATE) } else { (DELETE_ADDRESS, 0) };
    done("set an address", request(ROUTE, kind, flags, &fixed, &attributes));
}

/// Tells the kernel the Ethernet address behind an address, so that it need not ask for it.
pub fn add_neighbour(name: &str, address: IpAddr, mac: [u8; 6]) {
    let (family, bytes) = bytes(address);
    let fixed = Neighbour { family, index: index(name), state: PERMANENT, ..Neighbour::default() };
    let attributes = Attributes::default().with(1, &bytes).with(2, &mac);
    done("add a neighbour", request(ROUTE, NEW_NEIGHBOUR, CREATE, &fixed, &attributes));
}

/// Makes the RDMA device.
pub fn add_rdma() {
    let attributes = Attributes::default().text(2, DEVICE).text(65, "rxe").text(51, NEAR);
    done("make the RDMA device", request(Some(RDMA), NEW_RDMA_LINK, 0, &(), &attributes));
}

fn bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (2, v4.octets().to_vec()),
        IpAddr::V6(v6) => (10, v6.octets().to_vec()),
    }
}

fn done(what: &str, result: Result<(), Errno>) {
    result.unwrap_or_else(|errno| panic!("cannot {what}: {errno}"));
}
