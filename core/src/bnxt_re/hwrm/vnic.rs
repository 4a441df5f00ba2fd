//! VNICs: where received Ethernet frames go. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{HwrmDone, request, response};

request! {
    /// Creates a VNIC.
    pub struct VnicAllocInput: "hwrm_vnic_alloc_input", 24, VNIC_ALLOC => VnicAllocOutput {
        /// Flags.
        flags: le::U32 = 16,
        /// Virtio net fid.
        virtio_net_fid: le::U16 = 20,
        /// VNIC.
        vnic_id: le::U16 = 22,
    }
}
response! {
    /// The VNIC.
    pub struct VnicAllocOutput: "hwrm_vnic_alloc_output", 16 {
        /// VNIC.
        vnic_id: le::U32 = 8,
        /// Zero.
        unused_0: [u8; 3] = 12,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
request! {
    /// Destroys a VNIC.
    pub struct VnicFreeInput: "hwrm_vnic_free_input", 24, VNIC_FREE => HwrmDone {
        /// VNIC.
        vnic_id: le::U32 = 16,
        /// Zero.
        unused_0: [u8; 4] = 20,
    }
}
request! {
    /// Configures a VNIC.
    pub struct VnicCfgInput: "hwrm_vnic_cfg_input", 48, VNIC_CFG => HwrmDone {
        /// Flags.
        flags: le::U32 = 16,
        /// Which of the fields below count, a bit each.
        enables: le::U32 = 20,
        /// VNIC.
        vnic_id: le::U16 = 24,
        /// Dflt ring grp.
        dflt_ring_grp: le::U16 = 26,
        /// RSS rule.
        rss_rule: le::U16 = 28,
        /// Cos rule.
        cos_rule: le::U16 = 30,
        /// Lb rule.
        lb_rule: le::U16 = 32,
        /// Largest frame that is received.
        mru: le::U16 = 34,
        /// Default receive ring id.
        default_rx_ring_id: le::U16 = 36,
        /// Default completion ring id.
        default_cmpl_ring_id: le::U16 = 38,
        /// Queue of the port.
        queue_id: le::U16 = 40,
        /// Receive csum v2 mode.
        rx_csum_v2_mode: u8 = 42,
        /// Ethernet CQEs mode.
        l2_cqe_mode: u8 = 43,
        /// Queue pairs id.
        qp_id: le::U32 = 44,
    }
}
response! {
    /// What VNICs can do.
    pub struct VnicQcapsOutput: "hwrm_vnic_qcaps_output", 24 {
        /// Largest frame that is received.
        mru: le::U16 = 8,
        /// Zero.
        unused_0: [u8; 2] = 10,
        /// Flags.
        flags: le::U32 = 12,
        /// Most aggs supported.
        max_aggs_supported: le::U16 = 16,
        /// Zero.
        unused_1: [u8; 5] = 18,
        /// 1 when the response is complete; written last.
        valid: u8 = 23,
    }
}
response! {
    /// A context that spreads frames.
    pub struct VnicRssCosLbCtxAllocOutput: "hwrm_vnic_rss_cos_lb_ctx_alloc_output", 16 {
        /// RSS cos lb contexts id.
        rss_cos_lb_ctx_id: le::U16 = 8,
        /// Zero.
        unused_0: [u8; 5] = 10,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
