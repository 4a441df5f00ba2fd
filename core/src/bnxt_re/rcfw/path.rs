//! Addresses as commands have them.

use zerocopy::{FromBytes, big_endian as be, little_endian as le};

use super::ah::CmdqCreateAh;
use super::gid::{CmdqAddGid, CmdqModifyGid, STATS_CTX_VALID, TPID_8100, VLAN_EN};
use super::transition::NO_VLAN;
use crate::verbs::{AddressVector, Gid, Mac, PdId};

/// Network that packets travel on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Network {
    /// RoCE v1: not routed.
    RoceV1 = 0,
    /// RoCE v2 over IPv4.
    V2Ipv4 = 2,
    /// RoCE v2 over IPv6.
    V2Ipv6 = 3,
}

impl Network {
    /// The network that leads to a GID.
    pub const fn of(gid: Gid) -> Self {
        match gid.as_v4() {
            Some(_) => Self::V2Ipv4,
            None => Self::V2Ipv6,
        }
    }
}

/// A GID of ours in the device's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceGid {
    /// Index that the device has given it.
    pub index: u16,
    /// Its VLAN tag.
    pub vlan: Option<u16>,
}

/// Splits bytes into words that keep their order in memory.
pub(super) fn words_of<const BYTES: usize, const SIZE: usize, const WORDS: usize>(
    bytes: &[u8; BYTES],
) -> [[u8; SIZE]; WORDS] {
    <[[u8; SIZE]; WORDS]>::read_from_prefix(bytes).map_or([[0; SIZE]; WORDS], |(words, _)| words)
}

/// What a GID's commands have in common.
struct Parts {
    gid: [be::U32; 4],
    src_mac: [be::U16; 3],
    vlan: le::U16,
    stats_ctx: le::U16,
}

impl Parts {
    /// The device takes a GID from its last byte, and an Ethernet address as three numbers from its first.
    fn new(gid: Gid, mac: Mac, vlan: Option<u16>, stat_ctx: Option<u16>) -> Self {
        let mut reversed = gid.0;
        reversed.reverse();
        Self {
            gid: words_of(&reversed).map(be::U32::from_bytes),
            src_mac: words_of(&mac.0).map(be::U16::from_bytes),
            vlan: le::U16::new(vlan.map_or(0, |tag| VLAN_EN | TPID_8100 | tag & 0xfff)),
            stats_ctx: le::U16::new(stat_ctx.map_or(0, |id| STATS_CTX_VALID | id)),
        }
    }
}

impl CmdqAddGid {
    /// Adds `gid`, at an Ethernet address of ours, with a VLAN and a statistics context.
    pub fn new(gid: Gid, mac: Mac, vlan: Option<u16>, stat_ctx: Option<u16>) -> Self {
        let Parts { gid, src_mac, vlan, stats_ctx } = Parts::new(gid, mac, vlan, stat_ctx);
        Self { gid, src_mac, vlan, stats_ctx, ..Self::ZERO }
    }
}

impl CmdqModifyGid {
    /// Replaces the GID at `index`.
    pub fn new(index: u16, gid: Gid, mac: Mac, vlan: Option<u16>, stat_ctx: Option<u16>) -> Self {
        let Parts { gid, src_mac, vlan, stats_ctx } = Parts::new(gid, mac, vlan, stat_ctx);
        Self { gid, src_mac, vlan, stats_ctx, gid_index: le::U16::new(index), ..Self::ZERO }
    }
}

impl CmdqCreateAh {
    /// An address handle for a path from the GID `source`.
    pub fn new(pd: PdId, path: &AddressVector, source: SourceGid) -> Self {
        let vlan = path.vlan.or(source.vlan).unwrap_or(NO_VLAN) & 0xfff;
        Self {
            dgid: words_of(&path.dgid.0).map(le::U32::from_bytes),
            r#type: Network::of(path.dgid) as u8,
            hop_limit: path.hop_limit,
            sgid_index: le::U16::new(source.index),
            dest_vlan_id_flow_label: le::U32::new(path.flow_label & 0xf_ffff | u32::from(vlan) << 20),
            pd_id: le::U32::new(pd.get()),
            dest_mac: words_of(&path.dmac.0).map(le::U16::from_bytes),
            traffic_class: path.traffic_class,
            ..Self::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    const GID: Gid = Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    const MAC: Mac = Mac([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]);

    #[test]
    fn a_gid_is_told_from_its_last_byte() {
        let add = CmdqAddGid::new(GID, MAC, Some(0x6005), Some(7));
        let golden = [8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0x80, 0xfe];
        assert_eq!(add.as_bytes()[16..32], golden);
        assert_eq!(add.as_bytes()[32..44], [0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 5, 0x90, 0, 0, 7, 0x80]);
        let modify = CmdqModifyGid::new(9, GID, MAC, None, None);
        assert_eq!(modify.as_bytes()[16..32], golden);
        assert_eq!(modify.as_bytes()[38..46], [0, 0, 0, 0, 9, 0, 0, 0]);
    }

    #[test]
    fn an_address_handle_is_in_the_order_of_the_wire() {
        let mut path = AddressVector::new(GID, MAC);
        (path.flow_label, path.traffic_class) = (0xabcde, 4);
        let ah = CmdqCreateAh::new(PdId::truncated(3), &path, SourceGid { index: 2, vlan: None });
        let bytes = ah.as_bytes();
        assert_eq!(bytes[24..40], GID.0);
        assert_eq!(bytes[40..52], [3, 64, 2, 0, 0xde, 0xbc, 0xfa, 0xff, 3, 0, 0, 0]);
        assert_eq!(bytes[56..64], [0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 4, 0]);
        let ah = CmdqCreateAh::new(PdId::truncated(3), &path, SourceGid { index: 2, vlan: Some(5) });
        assert_eq!(ah.dest_vlan_id_flow_label.get() >> 20, 5);
    }
}
