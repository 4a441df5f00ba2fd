//! What bnxt_re's driver adds to the commands. Source: kernel `rdma/bnxt_re-abi.h`.

use super::structures;

/// Bits of [`UctxReq::comp_mask`].
pub mod uctx_request {
    /// Depths that are no powers of two are understood.
    pub const POW2_SUPPORT: u64 = 1;
    /// WQEs of variable size are understood.
    pub const VAR_WQE_SUPPORT: u64 = 2;
}

/// Bits of [`UctxResp::comp_mask`].
pub mod uctx_reply {
    /// The chip is told.
    pub const HAVE_CCTX: u64 = 1;
    /// The mode is told.
    pub const HAVE_MODE: u64 = 2;
    /// There is a push page.
    pub const WC_DPI_ENABLED: u64 = 4;
    /// There are pages of doorbell pacing.
    pub const DBR_PACING_ENABLED: u64 = 8;
    /// Depths need not be powers of two.
    pub const POW2_DISABLED: u64 = 0x10;
    /// The retransmit table is the MSN table.
    pub const MSN_TABLE_ENABLED: u64 = 0x40;
    /// Rate limits.
    pub const QP_RATE_LIMIT_ENABLED: u64 = 0x80;
    /// Toggle pages are found by handle.
    pub const TOGGLE_MEM_UOBJ_SUPPORT: u64 = 0x40_0000;
}

structures! {
    /// `bnxt_re_uctx_req`.
    UctxReq: 8 { comp_mask: u64, }
    /// `bnxt_re_db_region`.
    DbRegion: 16 { dpi: u32, reserved: u32, reserved2: u64, }
    /// `bnxt_re_packet_pacing_caps`.
    PacketPacingCaps: 16 {
        qp_rate_limit_min: u32, qp_rate_limit_max: u32, supported_qpts: u32, reserved: u32,
    }
    /// `bnxt_re_uctx_resp`.
    UctxResp: 48 {
        dev_id: u32, max_qp: u32, pg_size: u32, cqe_sz: u32, max_cqd: u32, rsvd: u32, comp_mask: u64, chip_id0: u32,
        chip_id1: u32, mode: u32, rsvd1: u32,
    }
    /// `bnxt_re_cq_req`.
    CqReq: 24 { cq_va: u64, cq_handle: u64, comp_mask: u64, }
    /// `bnxt_re_cq_resp`.
    CqResp: 24 { cqid: u32, tail: u32, phase: u32, rsvd: u32, comp_mask: u64, }
    /// `bnxt_re_resize_cq_req`.
    ResizeCqReq: 8 { cq_va: u64, }
    /// `bnxt_re_qp_req`.
    QpReq: 40 { qpsva: u64, qprva: u64, qp_handle: u64, comp_mask: u64, sq_slots: u32, sq_npsn: u32, }
    /// `bnxt_re_qp_resp`.
    QpResp: 8 { qpid: u32, rsvd: u32, }
    /// `bnxt_re_srq_req`.
    SrqReq: 16 { srqva: u64, srq_handle: u64, }
    /// `bnxt_re_srq_resp`.
    SrqResp: 16 { srqid: u32, rsvd: u32, comp_mask: u64, }
    /// What the kernel shares about doorbell pacing, at the beginning of the page of pacing parameters. Source: rdma-core.
    PacingParameters: 28 {
        do_pacing: u32, pacing_th: u32, alarm_th: u32, fifo_max_depth: u32, fifo_room_mask: u32,
        fifo_room_shift: u32, grc_reg_offset: u32,
    }
}
