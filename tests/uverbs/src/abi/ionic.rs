//! What ionic's driver adds to the commands. Source: kernel `rdma/ionic-abi.h`.

use super::structures;

/// Bits of `sq_cmb` and `rq_cmb`.
pub mod cmb {
    /// In controller memory.
    pub const ENABLE: u8 = 1;
    /// Fail rather than go without.
    pub const REQUIRE: u8 = 2;
    /// With express doorbells.
    pub const EXPDB: u8 = 4;
    /// Mapped write-combining.
    pub const WC: u8 = 8;
    /// Mapped uncached.
    pub const UC: u8 = 16;
}

structures! {
    /// `ionic_ctx_req`.
    CtxReq: 8 { rsvd: [u32; 2], }
    /// `ionic_ctx_resp`.
    CtxResp: 40 {
        rsvd: u32, page_shift: u32, dbell_offset: u64, version: u16, qp_opcodes: u8, admin_opcodes: u8, sq_qtype: u8,
        rq_qtype: u8, cq_qtype: u8, admin_qtype: u8, max_stride: u8, max_spec: u8, udma_count: u8, expdb_mask: u8,
        expdb_qtypes: u8, rsvd2: [u8; 3], phc_offset: u64,
    }
    /// `ionic_qdesc`.
    Qdesc: 16 { addr: u64, size: u32, mask: u16, depth_log2: u8, stride_log2: u8, }
    /// `ionic_ah_resp`.
    AhResp: 8 { ahid: u32, pad: u32, }
    /// `ionic_cq_req`.
    CqReq: 40 { cq: [Qdesc; 2], udma_mask: u8, rsvd: [u8; 7], }
    /// `ionic_cq_resp`.
    CqResp: 16 { cqid: [u32; 2], udma_mask: u8, rsvd: [u8; 7], }
    /// `ionic_qp_req`.
    QpReq: 40 {
        sq: Qdesc, rq: Qdesc, sq_spec: u8, rq_spec: u8, sq_cmb: u8, rq_cmb: u8, udma_mask: u8, rsvd: [u8; 3],
    }
    /// `ionic_qp_resp`.
    QpResp: 24 {
        qpid: u32, sq_cmb: u8, rq_cmb: u8, udma_idx: u8, rsvd: u8, sq_cmb_offset: u64, rq_cmb_offset: u64,
    }
    /// `ib_uverbs_clock_info`, at the beginning of the clock page.
    ClockInfo: 56 {
        sign: u32, resv: u32, nsec: u64, cycles: u64, frac: u64, mult: u32, shift: u32, mask: u64,
        overflow_period: u64,
    }
}
