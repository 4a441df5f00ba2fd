//! Filters: which received Ethernet frames go to a VNIC. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{HwrmDone, request, response};

request! {
    /// Creates a filter.
    pub struct CfaL2FilterAllocInput: "hwrm_cfa_l2_filter_alloc_input", 96, CFA_L2_FILTER_ALLOC => CfaL2FilterAllocOutput {
        /// Flags.
        flags: le::U32 = 16,
        /// Which of the fields below count, a bit each.
        enables: le::U32 = 20,
        /// Ethernet address.
        l2_addr: [u8; 6] = 24,
        /// Number of vlans.
        num_vlans: u8 = 30,
        /// T num vlans.
        t_num_vlans: u8 = 31,
        /// Ethernet address mask.
        l2_addr_mask: [u8; 6] = 32,
        /// Ethernet ovlan.
        l2_ovlan: le::U16 = 38,
        /// Ethernet ovlan mask.
        l2_ovlan_mask: le::U16 = 40,
        /// Ethernet ivlan.
        l2_ivlan: le::U16 = 42,
        /// Ethernet ivlan mask.
        l2_ivlan_mask: le::U16 = 44,
        /// Zero.
        unused_1: [u8; 2] = 46,
        /// T Ethernet address.
        t_l2_addr: [u8; 6] = 48,
        /// Zero.
        unused_2: [u8; 2] = 54,
        /// T Ethernet address mask.
        t_l2_addr_mask: [u8; 6] = 56,
        /// T Ethernet ovlan.
        t_l2_ovlan: le::U16 = 62,
        /// T Ethernet ovlan mask.
        t_l2_ovlan_mask: le::U16 = 64,
        /// T Ethernet ivlan.
        t_l2_ivlan: le::U16 = 66,
        /// T Ethernet ivlan mask.
        t_l2_ivlan_mask: le::U16 = 68,
        /// Src type.
        src_type: u8 = 70,
        /// Zero.
        unused_3: u8 = 71,
        /// Src id.
        src_id: le::U32 = 72,
        /// Tunnel type.
        tunnel_type: u8 = 76,
        /// Zero.
        unused_4: u8 = 77,
        /// Dst id.
        dst_id: le::U16 = 78,
        /// Mirror VNICs id.
        mirror_vnic_id: le::U16 = 80,
        /// Pri hint.
        pri_hint: u8 = 82,
        /// Zero.
        unused_5: u8 = 83,
        /// Zero.
        unused_6: le::U32 = 84,
        /// Ethernet filter id hint.
        l2_filter_id_hint: le::U64 = 88,
    }
}
response! {
    /// The filter.
    pub struct CfaL2FilterAllocOutput: "hwrm_cfa_l2_filter_alloc_output", 24 {
        /// Filter.
        l2_filter_id: le::U64 = 8,
        /// Flow.
        flow_id: le::U32 = 16,
        /// Zero.
        unused_0: [u8; 3] = 20,
        /// 1 when the response is complete; written last.
        valid: u8 = 23,
    }
}
request! {
    /// Destroys a filter.
    pub struct CfaL2FilterFreeInput: "hwrm_cfa_l2_filter_free_input", 24, CFA_L2_FILTER_FREE => HwrmDone {
        /// Filter.
        l2_filter_id: le::U64 = 16,
    }
}
request! {
    /// Sets what a VNIC receives besides.
    pub struct CfaL2SetRxMaskInput: "hwrm_cfa_l2_set_rx_mask_input", 56, CFA_L2_SET_RX_MASK => HwrmDone {
        /// VNIC.
        vnic_id: le::U32 = 16,
        /// Mask.
        mask: le::U32 = 20,
        /// Mc tbl address.
        mc_tbl_addr: le::U64 = 24,
        /// Number of mc entries.
        num_mc_entries: le::U32 = 32,
        /// Zero.
        unused_0: [u8; 4] = 36,
        /// VLAN tag tbl address.
        vlan_tag_tbl_addr: le::U64 = 40,
        /// Number of VLAN tags.
        num_vlan_tags: le::U32 = 48,
        /// Zero.
        unused_1: [u8; 4] = 52,
    }
}
