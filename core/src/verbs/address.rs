//! Addresses on the wire.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A RoCEv2 GID: an IPv6 address, or an IPv4 one mapped into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The GID of an IPv4 address: `::ffff:a.b.c.d`.
    pub const fn v4(ip: Ipv4Addr) -> Self {
        Self(ip.to_ipv6_mapped().octets())
    }

    /// The GID of an IPv6 address.
    pub const fn v6(ip: Ipv6Addr) -> Self {
        Self(ip.octets())
    }

    /// The link-local GID that follows from an Ethernet address (EUI-64: `fe80::`).
    pub const fn link_local(mac: Mac) -> Self {
        let [a, b, c, d, e, f] = mac.0;
        Self([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    /// The IPv4 address, if the GID holds one.
    pub const fn as_v4(self) -> Option<Ipv4Addr> {
        self.as_v6().to_ipv4_mapped()
    }

    /// The IPv6 address.
    pub const fn as_v6(self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.0)
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_v6().fmt(f)
    }
}

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Path MTU: the payload bytes of one packet. The discriminants are the InfiniBand codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes.
    B256 = 1,
    /// 512 bytes.
    B512 = 2,
    /// 1024 bytes.
    #[default]
    B1024 = 3,
    /// 2048 bytes.
    B2048 = 4,
    /// 4096 bytes.
    B4096 = 5,
}

impl Mtu {
    /// All, smallest first.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// Payload bytes of one packet.
    pub const fn bytes(self) -> u32 {
        1 << self.log2()
    }

    /// Base-two logarithm of [`Mtu::bytes`].
    pub const fn log2(self) -> u32 {
        self as u32 + 7
    }

    /// Packets that a message of `length` bytes takes: at least one, also when it is empty.
    pub const fn packets(self, length: u32) -> u32 {
        let whole = length >> self.log2();
        let rest = (length & (self.bytes() - 1) != 0 || length == 0) as u32;
        whole + rest
    }
}

/// Where a packet goes and how: the address handle of a datagram, or the path of a connected queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressVector {
    /// GID of the destination.
    pub dgid: Gid,
    /// Ethernet address of the next hop.
    pub dmac: Mac,
    /// Index of our GID in the device's table.
    pub sgid_index: u8,
    /// IPv6 flow label, 20 bits; the UDP source port is made from it.
    pub flow_label: u32,
    /// IPv6 traffic class, or IPv4 type of service.
    pub traffic_class: u8,
    /// Hops until a router drops the packet; more than 1, or routed RoCEv2 breaks.
    pub hop_limit: u8,
    /// VLAN id and priority (802.1Q TCI).
    pub vlan: Option<u16>,
}

impl AddressVector {
    /// A path to `dgid` behind `dmac` with our first GID and the hop limit 64.
    pub const fn new(dgid: Gid, dmac: Mac) -> Self {
        Self { dgid, dmac, sgid_index: 0, flow_label: 0, traffic_class: 0, hop_limit: 64, vlan: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_link_local_gid_is_that_of_the_address() {
        let gid = Gid::link_local(Mac([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]));
        assert_eq!(gid.to_string(), "fe80::11:22ff:fe33:4455");
    }

    #[test]
    fn a_message_takes_one_packet_for_each_started_mtu() {
        let cases = [(0, 1), (1, 1), (1024, 1), (1025, 2), (4096, 4), (u32::MAX, 1 << 22)];
        for (length, packets) in cases {
            assert_eq!(Mtu::B1024.packets(length), packets, "{length}");
        }
        assert_eq!(Mtu::ALL.map(Mtu::bytes), [256, 512, 1024, 2048, 4096]);
    }

    #[test]
    fn an_ipv4_gid_is_mapped() {
        let gid = Gid::v4(Ipv4Addr::new(10, 0, 0, 7));
        assert_eq!(gid.as_v4(), Some(Ipv4Addr::new(10, 0, 0, 7)));
        assert_eq!(gid.to_string(), "::ffff:10.0.0.7");
        assert_eq!(Gid::v6(Ipv6Addr::LOCALHOST).as_v4(), None);
    }
}
