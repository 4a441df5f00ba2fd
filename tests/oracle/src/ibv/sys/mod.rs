//! Types of libibverbs. Source: its `verbs.h`, version 65; sizes and offsets are asserted at the end.

#![allow(missing_docs, non_camel_case_types)]

use std::ffi::{c_int, c_uint};
use std::mem::offset_of;

mod attributes;
mod objects;
mod requests;

pub use attributes::*;
pub use objects::*;
pub use requests::*;

pub const SEND_FENCE: c_uint = 1;
pub const SEND_SIGNALED: c_uint = 1 << 1;
pub const SEND_SOLICITED: c_uint = 1 << 2;
pub const SEND_INLINE: c_uint = 1 << 3;

/// `enum ibv_wr_opcode`.
pub mod wr {
    pub const RDMA_WRITE: u32 = 0;
    pub const RDMA_WRITE_WITH_IMM: u32 = 1;
    pub const SEND: u32 = 2;
    pub const SEND_WITH_IMM: u32 = 3;
    pub const RDMA_READ: u32 = 4;
    pub const ATOMIC_CMP_AND_SWP: u32 = 5;
    pub const ATOMIC_FETCH_AND_ADD: u32 = 6;
    pub const LOCAL_INV: u32 = 7;
    pub const BIND_MW: u32 = 8;
    pub const SEND_WITH_INV: u32 = 9;
}

/// `enum ibv_qp_attr_mask`.
pub mod qp_attr {
    pub const STATE: c_int = 1;
    pub const ACCESS_FLAGS: c_int = 1 << 3;
    pub const PKEY_INDEX: c_int = 1 << 4;
    pub const PORT: c_int = 1 << 5;
    pub const QKEY: c_int = 1 << 6;
    pub const AV: c_int = 1 << 7;
    pub const PATH_MTU: c_int = 1 << 8;
    pub const TIMEOUT: c_int = 1 << 9;
    pub const RETRY_CNT: c_int = 1 << 10;
    pub const RNR_RETRY: c_int = 1 << 11;
    pub const RQ_PSN: c_int = 1 << 12;
    pub const MAX_QP_RD_ATOMIC: c_int = 1 << 13;
    pub const MIN_RNR_TIMER: c_int = 1 << 15;
    pub const SQ_PSN: c_int = 1 << 16;
    pub const MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
    pub const DEST_QPN: c_int = 1 << 20;

    use super::c_int;
}

/// `IBV_QP_INIT_ATTR_*`.
pub const QP_INIT_PD: u32 = 1;
pub const QP_INIT_SEND_OPS: u32 = 1 << 6;
/// `IBV_CQ_INIT_ATTR_MASK_*`.
pub const CQ_INIT_FLAGS: u32 = 1;
pub const CQ_INIT_PD: u32 = 1 << 1;
/// `IBV_WC_EX_WITH_*`.
pub mod wc_ex {
    pub const BYTE_LEN: u64 = 1;
    pub const IMM: u64 = 1 << 1;
    pub const QP_NUM: u64 = 1 << 2;
    pub const SRC_QP: u64 = 1 << 3;
    pub const SLID: u64 = 1 << 4;
    pub const SL: u64 = 1 << 5;
    pub const DLID_PATH_BITS: u64 = 1 << 6;
    pub const COMPLETION_TIMESTAMP: u64 = 1 << 7;
    pub const COMPLETION_TIMESTAMP_WALLCLOCK: u64 = 1 << 11;
    /// All but the timestamps.
    pub const STANDARD: u64 = (1 << 7) - 1;
}

// Sizes and offsets as a C compiler gives them for x86_64.
#[cfg(target_arch = "x86_64")]
const _: () = {
    assert!(size_of::<ibv_device>() == 664);
    assert!(size_of::<ibv_device_attr>() == 232);
    assert!(size_of::<ibv_context>() == 328);
    assert!(offset_of!(ibv_context, cmd_fd) == 264);
    assert!(offset_of!(ibv_context_ops, alloc_mw) == 56);
    assert!(offset_of!(ibv_context_ops, poll_cq) == 88);
    assert!(offset_of!(ibv_context_ops, post_srq_recv) == 160);
    assert!(offset_of!(ibv_context_ops, post_send) == 200);
    assert!(size_of::<ibv_context_ops>() == 256);
    assert!(size_of::<verbs_context>() == 696);
    assert!(offset_of!(verbs_context, alloc_parent_domain) == 160);
    assert!(offset_of!(verbs_context, create_cq_ex) == 248);
    assert!(offset_of!(verbs_context, create_qp_ex) == 312);
    assert!(offset_of!(verbs_context, context) == 368);
    assert!(size_of::<ibv_cq>() == 128);
    assert!(size_of::<ibv_cq_ex>() == 288);
    assert!(offset_of!(ibv_cq_ex, start_poll) == 144);
    assert!(offset_of!(ibv_cq_ex, read_completion_ts) == 248);
    assert!(size_of::<ibv_cq_init_attr_ex>() == 56);
    assert!(size_of::<ibv_srq>() == 128);
    assert!(size_of::<ibv_srq_init_attr>() == 24);
    assert!(size_of::<ibv_qp>() == 160);
    assert!(size_of::<ibv_qp_ex>() == 360);
    assert!(offset_of!(ibv_qp_ex, wr_set_sge_list) == 312);
    assert!(offset_of!(ibv_qp_ex, wr_abort) == 336);
    assert!(size_of::<ibv_qp_init_attr>() == 64);
    assert!(size_of::<ibv_qp_init_attr_ex>() == 136);
    assert!(offset_of!(ibv_qp_init_attr_ex, pd) == 64);
    assert!(offset_of!(ibv_qp_init_attr_ex, send_ops_flags) == 128);
    assert!(size_of::<ibv_qp_attr>() == 144);
    assert!(offset_of!(ibv_qp_attr, pkey_index) == 120);
    assert!(size_of::<ibv_ah_attr>() == 32);
    assert!(size_of::<ibv_mr>() == 48);
    assert!(size_of::<ibv_mw>() == 32);
    assert!(size_of::<ibv_mw_bind>() == 48);
    assert!(size_of::<ibv_send_wr>() == 128);
    assert!(offset_of!(ibv_send_wr, wr) == 40);
    assert!(offset_of!(ibv_send_wr, bind_mw) == 80);
    assert!(size_of::<ibv_recv_wr>() == 32);
    assert!(size_of::<ibv_wc>() == 48);
    assert!(size_of::<ibv_parent_domain_init_attr>() == 48);
};
