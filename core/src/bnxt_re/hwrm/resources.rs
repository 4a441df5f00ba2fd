//! Resources: what there is, and what this function reserves. Source: `hsi.h`.

use zerocopy::{big_endian as be, little_endian as le};

use super::message::{HwrmDone, request, response};

/// Bits of [`FuncCfgInput::enables`].
pub mod enables {
    /// `num_rsscos_ctxs`.
    pub const NUM_RSSCOS_CTXS: u32 = 0x4;
    /// `num_cmpl_rings`.
    pub const NUM_CMPL_RINGS: u32 = 0x8;
    /// `num_tx_rings`.
    pub const NUM_TX_RINGS: u32 = 0x10;
    /// `num_rx_rings`.
    pub const NUM_RX_RINGS: u32 = 0x20;
    /// `num_vnics`.
    pub const NUM_VNICS: u32 = 0x80;
    /// `num_stat_ctxs`.
    pub const NUM_STAT_CTXS: u32 = 0x100;
    /// `async_event_cr`.
    pub const ASYNC_EVENT_CR: u32 = 0x4000;
    /// `num_hw_ring_grps`.
    pub const NUM_HW_RING_GRPS: u32 = 0x8_0000;
    /// `num_msix`.
    pub const NUM_MSIX: u32 = 0x20_0000;
}

request! {
    /// Asks how many resources there are.
    pub struct FuncResourceQcapsInput: "hwrm_func_resource_qcaps_input", 24, FUNC_RESOURCE_QCAPS => FuncResourceQcapsOutput {
        /// Function; 0xffff is the one that asks.
        fid: le::U16 = 16,
        /// Zero.
        unused_0: [u8; 6] = 18,
    }
}
response! {
    /// How many resources there are.
    pub struct FuncResourceQcapsOutput: "hwrm_func_resource_qcaps_output", 88 {
        /// Most VFs.
        max_vfs: le::U16 = 8,
        /// Most MSI-X vectors.
        max_msix: le::U16 = 10,
        /// How VFs get resources: 0 most, 1 least, 2 least and fixed.
        vf_reservation_strategy: le::U16 = 12,
        /// Fewest RSS and class contexts.
        min_rsscos_ctx: le::U16 = 14,
        /// Most RSS and class contexts.
        max_rsscos_ctx: le::U16 = 16,
        /// Fewest completion rings.
        min_cmpl_rings: le::U16 = 18,
        /// Most completion rings.
        max_cmpl_rings: le::U16 = 20,
        /// Fewest transmit rings.
        min_tx_rings: le::U16 = 22,
        /// Most transmit rings.
        max_tx_rings: le::U16 = 24,
        /// Fewest receive rings.
        min_rx_rings: le::U16 = 26,
        /// Most receive rings.
        max_rx_rings: le::U16 = 28,
        /// Fewest Ethernet contexts.
        min_l2_ctxs: le::U16 = 30,
        /// Most Ethernet contexts.
        max_l2_ctxs: le::U16 = 32,
        /// Fewest vnics.
        min_vnics: le::U16 = 34,
        /// Most vnics.
        max_vnics: le::U16 = 36,
        /// Fewest statistics contexts contexts.
        min_stat_ctx: le::U16 = 38,
        /// Most statistics contexts.
        max_stat_ctx: le::U16 = 40,
        /// Fewest hardware ring groups.
        min_hw_ring_grps: le::U16 = 42,
        /// Most hardware ring groups.
        max_hw_ring_grps: le::U16 = 44,
        /// Most transmit scheduler inputs.
        max_tx_scheduler_inputs: le::U16 = 46,
        /// Flags.
        flags: le::U16 = 48,
        /// Fewest MSI-X vectors.
        min_msix: le::U16 = 50,
        /// Fewest ktls transmit key contexts.
        min_ktls_tx_key_ctxs: le::U32 = 52,
        /// Most ktls transmit key contexts.
        max_ktls_tx_key_ctxs: le::U32 = 56,
        /// Fewest ktls receive key contexts.
        min_ktls_rx_key_ctxs: le::U32 = 60,
        /// Most ktls receive key contexts.
        max_ktls_rx_key_ctxs: le::U32 = 64,
        /// Fewest quic transmit key contexts.
        min_quic_tx_key_ctxs: le::U32 = 68,
        /// Most quic transmit key contexts.
        max_quic_tx_key_ctxs: le::U32 = 72,
        /// Fewest quic receive key contexts.
        min_quic_rx_key_ctxs: le::U32 = 76,
        /// Most quic receive key contexts.
        max_quic_rx_key_ctxs: le::U32 = 80,
        /// Zero.
        unused_0: [u8; 3] = 84,
        /// 1 when the response is complete; written last.
        valid: u8 = 87,
    }
}
request! {
    /// Configures the function; reserves resources.
    pub struct FuncCfgInput: "hwrm_func_cfg_input", 160, FUNC_CFG => HwrmDone {
        /// Function; 0xffff is the one that asks.
        fid: le::U16 = 16,
        /// Number of MSI-X vectors.
        num_msix: le::U16 = 18,
        /// What to switch or to test.
        flags: le::U32 = 20,
        /// Which of the fields below count, a bit each.
        enables: le::U32 = 24,
        /// Administrative MTU; 0 if there is none.
        admin_mtu: le::U16 = 28,
        /// Largest frame that is received.
        mru: le::U16 = 30,
        /// Number of RSS and class contexts.
        num_rsscos_ctxs: le::U16 = 32,
        /// Number of completion rings.
        num_cmpl_rings: le::U16 = 34,
        /// Number of transmit rings.
        num_tx_rings: le::U16 = 36,
        /// Number of receive rings.
        num_rx_rings: le::U16 = 38,
        /// Number of Ethernet contexts.
        num_l2_ctxs: le::U16 = 40,
        /// Number of vnics.
        num_vnics: le::U16 = 42,
        /// Number of statistics contexts contexts.
        num_stat_ctxs: le::U16 = 44,
        /// Number of hardware ring groups.
        num_hw_ring_grps: le::U16 = 46,
        /// Default Ethernet address.
        dflt_mac_addr: [u8; 6] = 48,
        /// Default VLAN.
        dflt_vlan: le::U16 = 54,
        /// Default IP address.
        dflt_ip_addr: [be::U32; 4] = 56,
        /// Least bandwidth.
        min_bw: le::U32 = 72,
        /// Most bandwidth.
        max_bw: le::U32 = 76,
        /// Completion ring that gets events.
        async_event_cr: le::U16 = 80,
        /// VLAN antispoof mode.
        vlan_antispoof_mode: u8 = 82,
        /// Allowed VLAN pris.
        allowed_vlan_pris: u8 = 83,
        /// 0 no edge bridge, 1 VEB, 2 VEPA.
        evb_mode: u8 = 84,
        /// Cache line size in bits 0 and 1, link administration in bits 2 and 3.
        options: u8 = 85,
        /// Number of multicast filters.
        num_mcast_filters: le::U16 = 86,
        /// Scheduler queue.
        schq_id: le::U16 = 88,
        /// Mid-path channels in use.
        mpc_chnls: le::U16 = 90,
        /// Least bandwidth of the partition.
        partition_min_bw: le::U32 = 92,
        /// Most bandwidth of the partition.
        partition_max_bw: le::U32 = 96,
        /// VLAN protocol id.
        tpid: be::U16 = 100,
        /// Host MTU.
        host_mtu: le::U16 = 102,
        /// More flags.
        flags2: le::U32 = 104,
        /// More of `enables`.
        enables2: le::U32 = 108,
        /// Port kdnet mode.
        port_kdnet_mode: u8 = 112,
        /// Doorbell pages have 4096 bytes times two to this power.
        db_page_size: u8 = 113,
        /// Physical slot number.
        physical_slot_number: le::U16 = 114,
        /// Number of ktls transmit key contexts.
        num_ktls_tx_key_ctxs: le::U32 = 116,
        /// Number of ktls receive key contexts.
        num_ktls_rx_key_ctxs: le::U32 = 120,
        /// Number of quic transmit key contexts.
        num_quic_tx_key_ctxs: le::U32 = 124,
        /// Number of quic receive key contexts.
        num_quic_rx_key_ctxs: le::U32 = 128,
        /// RoCE max address handles per VF.
        roce_max_av_per_vf: le::U32 = 132,
        /// RoCE max completion queues per VF.
        roce_max_cq_per_vf: le::U32 = 136,
        /// RoCE max memory regions and windows per VF.
        roce_max_mrw_per_vf: le::U32 = 140,
        /// RoCE max queue pairs per VF.
        roce_max_qp_per_vf: le::U32 = 144,
        /// RoCE max shared receive queues per VF.
        roce_max_srq_per_vf: le::U32 = 148,
        /// RoCE max GIDs per VF.
        roce_max_gid_per_vf: le::U32 = 152,
        /// Id partition configuration.
        xid_partition_cfg: le::U16 = 156,
        /// PCIe compliance.
        pcie_compliance: u8 = 158,
        /// Zero.
        unused_2: u8 = 159,
    }
}
