//! What the function is, can do, and is configured to. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{HwrmDone, request, response};

/// Bits of [`FuncQcapsOutput::flags`].
pub mod caps {
    /// RoCE v1.
    pub const ROCE_V1: u32 = 0x8;
    /// RoCE v2.
    pub const ROCE_V2: u32 = 0x10;
    /// Push pages are write-combining.
    pub const WCB_PUSH_MODE: u32 = 0x10_0000;
}

/// Bits of [`FuncQcapsOutput::flags_ext`].
pub mod caps_ext {
    /// Backing store, version 2.
    pub const BS_V2_SUPPORTED: u32 = 0x0400_0000;
    /// There is no version 1.
    pub const BS_V2_REQUIRED: u32 = 0x0800_0000;
    /// Doorbells can be paced.
    pub const DBR_PACING: u32 = 0x2000_0000;
}

/// Bits of [`FuncQcapsOutput::flags_ext2`].
pub mod caps_ext2 {
    /// Doorbells can be paced, by the fill of their FIFO.
    pub const DBR_PACING_EXT: u32 = 0x8;
    /// The same, version 0.
    pub const DBR_PACING_V0: u32 = 0x100;
}

request! {
    /// Resets the function: it gives up every object and all memory of the host.
    pub struct FuncResetInput: "hwrm_func_reset_input", 24, FUNC_RESET => HwrmDone {
        /// Which of the fields below count, a bit each.
        enables: le::U32 = 16,
        /// VF to reset, if `enables` says so.
        vf_id: le::U16 = 20,
        /// 0 all of the function, 1 itself, 2 its children, 3 a VF.
        func_reset_level: u8 = 22,
        /// Zero.
        unused_0: u8 = 23,
    }
}
request! {
    /// Asks what the function can do.
    pub struct FuncQcapsInput: "hwrm_func_qcaps_input", 24, FUNC_QCAPS => FuncQcapsOutput {
        /// Function; 0xffff is the one that asks.
        fid: le::U16 = 16,
        /// Zero.
        unused_0: [u8; 6] = 18,
    }
}
response! {
    /// What the function can do.
    pub struct FuncQcapsOutput: "hwrm_func_qcaps_output", 144 {
        /// Function; 0xffff is the one that asks.
        fid: le::U16 = 8,
        /// Port.
        port_id: le::U16 = 10,
        /// Capabilities, see [`caps`].
        flags: le::U32 = 12,
        /// Ethernet address of the function.
        mac_address: [u8; 6] = 16,
        /// Most RSS and class contexts.
        max_rsscos_ctx: le::U16 = 22,
        /// Most completion rings.
        max_cmpl_rings: le::U16 = 24,
        /// Most transmit rings.
        max_tx_rings: le::U16 = 26,
        /// Most receive rings.
        max_rx_rings: le::U16 = 28,
        /// Most Ethernet contexts.
        max_l2_ctxs: le::U16 = 30,
        /// Most vnics.
        max_vnics: le::U16 = 32,
        /// First VF id.
        first_vf_id: le::U16 = 34,
        /// Most VFs.
        max_vfs: le::U16 = 36,
        /// Most statistics contexts.
        max_stat_ctx: le::U16 = 38,
        /// Most encap records.
        max_encap_records: le::U32 = 40,
        /// Most decap records.
        max_decap_records: le::U32 = 44,
        /// Most transmit em flows.
        max_tx_em_flows: le::U32 = 48,
        /// Most transmit wm flows.
        max_tx_wm_flows: le::U32 = 52,
        /// Most receive em flows.
        max_rx_em_flows: le::U32 = 56,
        /// Most receive wm flows.
        max_rx_wm_flows: le::U32 = 60,
        /// Most multicast filters.
        max_mcast_filters: le::U32 = 64,
        /// Most flow id.
        max_flow_id: le::U32 = 68,
        /// Most hardware ring groups.
        max_hw_ring_grps: le::U32 = 72,
        /// Most sp transmit rings.
        max_sp_tx_rings: le::U16 = 76,
        /// Most MSI-X vectors VFs.
        max_msix_vfs: le::U16 = 78,
        /// More capabilities, see [`caps_ext`].
        flags_ext: le::U32 = 80,
        /// Most schqs.
        max_schqs: u8 = 84,
        /// Mid-path channels.
        mpc_chnls_cap: u8 = 85,
        /// Most key contexts reserved.
        max_key_ctxs_alloc: le::U16 = 86,
        /// Still more capabilities, see [`caps_ext2`].
        flags_ext2: le::U32 = 88,
        /// Tunnels that are off.
        tunnel_disable_flag: le::U16 = 92,
        /// Ids that can be partitioned.
        xid_partition_cap: le::U16 = 94,
        /// Serial number.
        device_serial_number: [u8; 8] = 96,
        /// Contexts per partition.
        ctxs_per_partition: le::U16 = 104,
        /// Most tso segs.
        max_tso_segs: le::U16 = 106,
        /// RoCE VF max address handles.
        roce_vf_max_av: le::U32 = 108,
        /// RoCE VF max completion queues.
        roce_vf_max_cq: le::U32 = 112,
        /// RoCE VF max memory regions and windows.
        roce_vf_max_mrw: le::U32 = 116,
        /// RoCE VF max queue pairs.
        roce_vf_max_qp: le::U32 = 120,
        /// RoCE VF max shared receive queues.
        roce_vf_max_srq: le::U32 = 124,
        /// RoCE VF max GIDs.
        roce_vf_max_gid: le::U32 = 128,
        /// Still more capabilities, see [`caps_ext2`].
        flags_ext3: le::U32 = 132,
        /// Most RoCE VFs.
        max_roce_vfs: le::U16 = 136,
        /// Most crypto receive flow filters.
        max_crypto_rx_flow_filters: le::U16 = 138,
        /// Zero.
        unused_3: [u8; 3] = 140,
        /// 1 when the response is complete; written last.
        valid: u8 = 143,
    }
}
request! {
    /// Asks how the function is configured.
    pub struct FuncQcfgInput: "hwrm_func_qcfg_input", 24, FUNC_QCFG => FuncQcfgOutput {
        /// Function; 0xffff is the one that asks.
        fid: le::U16 = 16,
        /// Zero.
        unused_0: [u8; 6] = 18,
    }
}
response! {
    /// How the function is configured.
    pub struct FuncQcfgOutput: "hwrm_func_qcfg_output", 176 {
        /// Function; 0xffff is the one that asks.
        fid: le::U16 = 8,
        /// Port.
        port_id: le::U16 = 10,
        /// VLAN.
        vlan: le::U16 = 12,
        /// Flags.
        flags: le::U16 = 14,
        /// Ethernet address of the function.
        mac_address: [u8; 6] = 16,
        /// Pci id.
        pci_id: le::U16 = 22,
        /// Reserved RSS and class contexts.
        alloc_rsscos_ctx: le::U16 = 24,
        /// Reserved completion rings.
        alloc_cmpl_rings: le::U16 = 26,
        /// Reserved transmit rings.
        alloc_tx_rings: le::U16 = 28,
        /// Reserved receive rings.
        alloc_rx_rings: le::U16 = 30,
        /// Reserved Ethernet contexts.
        alloc_l2_ctx: le::U16 = 32,
        /// Reserved vnics.
        alloc_vnics: le::U16 = 34,
        /// Administrative MTU; 0 if there is none.
        admin_mtu: le::U16 = 36,
        /// Largest frame that is received.
        mru: le::U16 = 38,
        /// Statistics context.
        stat_ctx_id: le::U16 = 40,
        /// 0: the port has one function.
        port_partition_type: u8 = 42,
        /// Functions of the port.
        port_pf_cnt: u8 = 43,
        /// Default VNIC.
        dflt_vnic_id: le::U16 = 44,
        /// Most MTU configured.
        max_mtu_configured: le::U16 = 46,
        /// Least bandwidth.
        min_bw: le::U32 = 48,
        /// Most bandwidth.
        max_bw: le::U32 = 52,
        /// 0 no edge bridge, 1 VEB, 2 VEPA.
        evb_mode: u8 = 56,
        /// Cache line size in bits 0 and 1, link administration in bits 2 and 3.
        options: u8 = 57,
        /// Reserved VFs.
        alloc_vfs: le::U16 = 58,
        /// Reserved multicast filters.
        alloc_mcast_filters: le::U32 = 60,
        /// Reserved hardware ring groups.
        alloc_hw_ring_grps: le::U32 = 64,
        /// Reserved sp transmit rings.
        alloc_sp_tx_rings: le::U16 = 68,
        /// Reserved statistics contexts contexts.
        alloc_stat_ctx: le::U16 = 70,
        /// Reserved MSI-X vectors.
        alloc_msix: le::U16 = 72,
        /// Registered VFs.
        registered_vfs: le::U16 = 74,
        /// Kilobytes of the Ethernet part of the doorbell BAR, behind which user pages begin.
        l2_doorbell_bar_size_kb: le::U16 = 76,
        /// Active endpoints.
        active_endpoints: u8 = 78,
        /// 1.
        always_1: u8 = 79,
        /// Address to poll during a reset.
        reset_addr_poll: le::U32 = 80,
        /// Kilobytes in front of the privileged doorbell page of P7.
        legacy_l2_db_size_kb: le::U16 = 84,
        /// Source interface, and bit 15 if it is valid.
        svif_info: le::U16 = 86,
        /// Mid-path channels in use.
        mpc_chnls: u8 = 88,
        /// Doorbell pages have 4096 bytes times two to this power.
        db_page_size: u8 = 89,
        /// VNIC of RoCE, if the flags say so.
        roce_vnic_id: le::U16 = 90,
        /// Least bandwidth of the partition.
        partition_min_bw: le::U32 = 92,
        /// Most bandwidth of the partition.
        partition_max_bw: le::U32 = 96,
        /// Host MTU.
        host_mtu: le::U16 = 100,
        /// More flags.
        flags2: le::U16 = 102,
        /// Stag VLAN id.
        stag_vid: le::U16 = 104,
        /// Port kdnet mode.
        port_kdnet_mode: u8 = 106,
        /// Kdnet PCIe function.
        kdnet_pcie_function: u8 = 107,
        /// Port kdnet fid.
        port_kdnet_fid: le::U16 = 108,
        /// Zero.
        unused_5: u8 = 110,
        /// RoCE bidi opt mode.
        roce_bidi_opt_mode: u8 = 111,
        /// Number of ktls transmit key contexts.
        num_ktls_tx_key_ctxs: le::U32 = 112,
        /// Number of ktls receive key contexts.
        num_ktls_rx_key_ctxs: le::U32 = 116,
        /// Link aggregation id.
        lag_id: u8 = 120,
        /// Parif.
        parif: u8 = 121,
        /// Firmware link aggregation id.
        fw_lag_id: u8 = 122,
        /// Zero.
        unused_6: u8 = 123,
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
        /// Mirror VNICs id.
        mirror_vnic_id: le::U16 = 158,
        /// Most link width.
        max_link_width: u8 = 160,
        /// Most link speed.
        max_link_speed: u8 = 161,
        /// Negotiated link width.
        negotiated_link_width: u8 = 162,
        /// Negotiated link speed.
        negotiated_link_speed: u8 = 163,
        /// Zero.
        unused_7: [u8; 2] = 164,
        /// PCIe compliance.
        pcie_compliance: u8 = 166,
        /// Zero.
        unused_8: u8 = 167,
        /// Ethernet doorbell multi page size kb.
        l2_db_multi_page_size_kb: le::U16 = 168,
        /// Zero.
        unused_9: [u8; 5] = 170,
        /// 1 when the response is complete; written last.
        valid: u8 = 175,
    }
}
