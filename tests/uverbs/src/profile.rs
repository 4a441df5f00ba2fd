//! What a made-up device is: its NIC, and the kernel whose driver it has.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use directverbs::verbs::{Gid, Mac, Mtu};
use directverbs_softnic::open::{NicKind, UnknownName, WqeMode};

/// A kernel release, oldest first. What it has is in the tables of [`crate::schema`] and in the drivers' replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// Linux 6.12. It has no ionic driver.
    V6_12,
    /// Linux 7.2.
    V7_2,
    /// Linux 7.3.
    #[default]
    V7_3,
}

impl Release {
    /// All, oldest first.
    pub const ALL: [Self; 3] = [Self::V6_12, Self::V7_2, Self::V7_3];

    /// Number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V6_12 => "6.12",
            Self::V7_2 => "7.2",
            Self::V7_3 => "7.3",
        }
    }

    /// Whether it has a driver for this NIC.
    pub const fn drives(self, nic: NicKind) -> bool {
        matches!((self, Family::of(nic)), (Self::V7_2 | Self::V7_3, _) | (_, Family::BnxtRe))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Release {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|release| release.name() == name).ok_or_else(|| UnknownName {
            what: "kernel",
            name: name.into(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// Vendor's family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Broadcom.
    BnxtRe,
    /// AMD Pensando.
    Ionic,
}

impl Family {
    /// Family of a NIC.
    pub const fn of(nic: NicKind) -> Self {
        match nic {
            NicKind::BnxtReP5 | NicKind::BnxtReP7 => Self::BnxtRe,
            NicKind::IonicV1 | NicKind::IonicV2 => Self::Ionic,
        }
    }

    /// `enum rdma_driver_id`.
    pub const fn driver_id(self) -> u32 {
        match self {
            Self::BnxtRe => 6,
            Self::Ionic => 21,
        }
    }

    /// Name of the PCI driver under the RDMA driver.
    pub const fn pci_driver(self) -> &'static str {
        match self {
            Self::BnxtRe => "bnxt_en",
            Self::Ionic => "ionic",
        }
    }
}

/// A made-up device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its NIC.
    pub nic: NicKind,
    /// Kernel that drives it.
    pub release: Release,
    /// Place on the wire, from 1: Ethernet address 02:00:0a:00:00:PLACE, IPv4 address 10.0.0.PLACE.
    pub place: u8,
    /// bnxt_re: what its firmware can do; a context is in variable mode if it asks for it, too.
    pub wqe_mode: WqeMode,
    /// bnxt_re: it has a push page.
    pub push: bool,
    /// bnxt_re: it has doorbell pacing.
    pub pacing: bool,
    /// ionic: bytes of memory in the NIC that queues can be placed in.
    pub device_memory: u32,
    /// Largest path MTU.
    pub mtu: Mtu,
    /// Completion vectors.
    pub vectors: u32,
    /// The NIC joins, reorders or delays completions where it may, as often as its family does.
    pub lively: bool,
}

impl Profile {
    /// A device of kind `nic` under `release` at `place` of the wire, with all that its generation has.
    pub const fn new(nic: NicKind, release: Release, place: u8) -> Self {
        let p7 = matches!(nic, NicKind::BnxtReP7);
        Self {
            nic,
            release,
            place,
            wqe_mode: if p7 { WqeMode::Variable } else { WqeMode::Static },
            push: p7,
            pacing: p7,
            device_memory: 1 << 20,
            mtu: Mtu::B4096,
            vectors: 4,
            lively: true,
        }
    }

    /// Vendor's family.
    pub const fn family(&self) -> Family {
        Family::of(self.nic)
    }

    /// Ethernet address.
    pub const fn mac(&self) -> Mac {
        Mac([2, 0, 10, 0, 0, self.place])
    }

    /// GID table: the link-local address, and the IPv4 address; all of RoCE version 2.
    pub const fn gids(&self) -> [Gid; 2] {
        let [a, b, c, d, e, f] = self.mac().0;
        let local = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f];
        [Gid(local), Gid::v4(Ipv4Addr::new(10, 0, 0, self.place))]
    }

    /// PCI vendor and device.
    pub const fn pci(&self) -> (u16, u16) {
        match self.nic {
            NicKind::BnxtReP5 => (0x14e4, 0x1750),
            NicKind::BnxtReP7 => (0x14e4, 0x1760),
            NicKind::IonicV1 | NicKind::IonicV2 => (0x1dd8, 0x1002),
        }
    }
}

/// The Ethernet address behind a GID, as the kernel's neighbour table would have it: link-local addresses carry theirs,
/// and the devices' IPv4 subnet is one wire.
pub fn resolve(gid: Gid) -> Option<Mac> {
    const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
    if let Some(ip) = gid.as_v4() {
        let [a, b, c, place] = ip.octets();
        return ([a, b, c] == [10, 0, 0]).then_some(Mac([2, 0, 10, 0, 0, place]));
    }
    let [a, b, c, 0xff, 0xfe, d, e, f] = *gid.0.last_chunk()? else { return None };
    let link_local = gid.0.starts_with(&LINK_LOCAL) && gid.as_v6() != Ipv6Addr::UNSPECIFIED;
    link_local.then_some(Mac([a ^ 2, b, c, d, e, f]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_each_of_its_gids() {
        for place in [1, 7, 255] {
            let profile = Profile::new(NicKind::BnxtReP7, Release::V7_3, place);
            for gid in profile.gids() {
                assert_eq!(resolve(gid), Some(profile.mac()), "{gid}");
            }
        }
        assert_eq!(resolve(Gid::v4(Ipv4Addr::new(10, 0, 1, 1))), None);
        assert_eq!(resolve(Gid::v6(Ipv6Addr::LOCALHOST)), None);
    }

    #[test]
    fn names_are_read_back() {
        for release in Release::ALL {
            assert_eq!(release.name().parse(), Ok(release));
        }
        assert!("5.4".parse::<Release>().is_err());
        assert!(!Release::V6_12.drives(NicKind::IonicV2) && Release::V6_12.drives(NicKind::BnxtReP5));
    }
}
