//! The devices that both sides believe to have: what their kernel drivers would say of them.

use directverbs::bnxt_re::caps::{ContextReply as BnxtReReply, DeviceCaps, Limits, context_bits};
use directverbs::ionic::caps::{Caps, ContextReply as IonicReply};

/// BCM5760x with variable WQEs and MSN table.
pub const BNXT_RE: BnxtReReply = BnxtReReply {
    comp_mask: context_bits::HAVE_CCTX
        | context_bits::HAVE_MODE
        | context_bits::MSN_TABLE_ENABLED
        | context_bits::POW2_DISABLED,
    chip_id0: 0x1760,
    mode: 1,
    pg_size: 4096,
    cqe_sz: 32,
    max_cqd: 0x1_0000,
};

/// Its limits.
pub const BNXT_RE_LIMITS: Limits =
    Limits { max_qp_wr: 32768, max_sge: 13, max_srq_wr: 32768, max_srq_sge: 6, atomics: true };

/// What it can do.
pub fn bnxt_re() -> DeviceCaps {
    DeviceCaps::from_context(&BNXT_RE, BNXT_RE_LIMITS)
}

/// ionic with rdma version 2 and one pipeline.
pub fn ionic_reply() -> IonicReply {
    IonicReply {
        page_shift: 12.into(),
        version: 2.into(),
        qp_opcodes: 10,
        sq_qtype: 3,
        rq_qtype: 4,
        cq_qtype: 5,
        max_stride: 9,
        max_spec: 8,
        udma_count: 1,
        ..IonicReply::ZERO
    }
}

/// What it can do.
pub fn ionic() -> Caps {
    Caps::from_reply(&ionic_reply()).expect("a reply with all that the driver needs")
}
