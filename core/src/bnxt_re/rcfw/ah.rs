//! Address handles. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqXid, command};

command! {
    /// Creates an address handle.
    pub struct CmdqCreateAh: "cmdq_create_ah", 64, CREATE_AH => CreqXid {
        /// Handle.
        ah_handle: le::U64 = 16,
        /// GID of the destination, in the order of the wire.
        dgid: [le::U32; 4] = 24,
        /// Network: 0 RoCE v1, 2 RoCE v2 over IPv4, 3 over IPv6.
        r#type: u8 = 40,
        /// Hop limit.
        hop_limit: u8 = 41,
        /// Index of our GID.
        sgid_index: le::U16 = 42,
        /// Flow label in bits 0 to 19, VLAN id above.
        dest_vlan_id_flow_label: le::U32 = 44,
        /// Protection domain.
        pd_id: le::U32 = 48,
        /// Zero.
        unused_0: le::U32 = 52,
        /// Ethernet address of the next hop, in the order of the wire.
        dest_mac: [le::U16; 3] = 56,
        /// Traffic class.
        traffic_class: u8 = 62,
        /// Congestion control.
        enable_cc: u8 = 63,
    }
}
command! {
    /// Destroys an address handle.
    pub struct CmdqDestroyAh: "cmdq_destroy_ah", 24, DESTROY_AH => CreqXid {
        /// Address handle.
        ah_cid: le::U32 = 16,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
