//! GIDs. Source: `roce_hsi.h`.

use zerocopy::{big_endian as be, little_endian as le};

use super::message::{CreqSize, CreqXid, command, side_buffer};

/// Bit of [`CmdqAddGid::vlan`]: there is a VLAN.
pub const VLAN_EN: u16 = 0x8000;
/// Value of bits 12 to 14 of [`CmdqAddGid::vlan`]: protocol 0x8100.
pub const TPID_8100: u16 = 0x1000;
/// Bit of [`CmdqAddGid::stats_ctx`]: there is a statistics context.
pub const STATS_CTX_VALID: u16 = 0x8000;

command! {
    /// Adds a GID.
    pub struct CmdqAddGid: "cmdq_add_gid", 48, ADD_GID => CreqXid {
        /// GID, last byte first.
        gid: [be::U32; 4] = 16,
        /// Our Ethernet address.
        src_mac: [be::U16; 3] = 32,
        /// VLAN id in bits 0 to 11, protocol in 12 to 14, bit 15 if there is one.
        vlan: le::U16 = 38,
        /// Identification field of IPv4 packets.
        ipid: le::U16 = 40,
        /// Statistics context, and bit 15 if there is one.
        stats_ctx: le::U16 = 42,
        /// Zero.
        unused_0: le::U32 = 44,
    }
}
command! {
    /// Deletes a GID.
    pub struct CmdqDeleteGid: "cmdq_delete_gid", 24, DELETE_GID => CreqXid {
        /// Index in the device's table.
        gid_index: le::U16 = 16,
        /// Zero.
        unused_0: [u8; 6] = 18,
    }
}
command! {
    /// Replaces a GID.
    pub struct CmdqModifyGid: "cmdq_modify_gid", 48, MODIFY_GID => CreqXid {
        /// GID, last byte first.
        gid: [be::U32; 4] = 16,
        /// Our Ethernet address.
        src_mac: [be::U16; 3] = 32,
        /// VLAN id in bits 0 to 11, protocol in 12 to 14, bit 15 if there is one.
        vlan: le::U16 = 38,
        /// Identification field of IPv4 packets.
        ipid: le::U16 = 40,
        /// Index in the device's table.
        gid_index: le::U16 = 42,
        /// Statistics context, and bit 15 if there is one.
        stats_ctx: le::U16 = 44,
        /// Zero.
        unused_0: le::U16 = 46,
    }
}
command! {
    /// Asks for a GID.
    pub struct CmdqQueryGid: "cmdq_query_gid", 24, QUERY_GID => CreqSize {
        /// Index in the device's table.
        gid_index: le::U16 = 16,
        /// Zero.
        unused16: [u8; 6] = 18,
    }
}
side_buffer! {
    /// A GID.
    pub struct CreqQueryGidRespSb: "creq_query_gid_resp_sb", 40 {
        /// GID, last byte first.
        gid: [le::U32; 4] = 8,
        /// Our Ethernet address.
        src_mac: [le::U16; 3] = 24,
        /// VLAN.
        vlan: le::U16 = 30,
        /// Identification field of IPv4 packets.
        ipid: le::U16 = 32,
        /// Index in the device's table.
        gid_index: le::U16 = 34,
        /// Zero.
        unused_0: le::U32 = 36,
    }
}
