//! The driver's part of requests and replies. Source: Linux `include/uapi/rdma/ionic-abi.h`. The reply to opening a context
//! is `directverbs::ionic::caps::ContextReply`.

use directverbs::layout::{ByteOrder, FieldType, Layout, layout};
use zerocopy::little_endian as le;

layout! {
    /// GET_CONTEXT.
    pub struct ContextRequest: "ionic" "ionic_ctx_req", 8 {
        /// Zero.
        rsvd: [le::U32; 2] = 0,
    }
}

layout! {
    /// A ring of the application.
    pub struct QueueDescriptor: "ionic" "ionic_qdesc", 16 {
        /// Address: the begin of a page.
        addr: le::U64 = 0,
        /// Bytes.
        size: le::U32 = 8,
        /// Entries less one.
        mask: le::U16 = 12,
        /// Entries, base-two logarithm.
        depth_log2: u8 = 14,
        /// Bytes of an entry, base-two logarithm.
        stride_log2: u8 = 15,
    }
}

impl FieldType for QueueDescriptor {
    const ORDER: ByteOrder = ByteOrder::Little;
}

layout! {
    /// CREATE_AH. It follows a reply of 4 bytes.
    pub struct AhReply: "ionic" "ionic_ah_resp", 8 {
        /// Number.
        ahid: le::U32 = 0,
        /// Zero.
        pad: le::U32 = 4,
    }
}

layout! {
    /// CQ_CREATE.
    pub struct CqRequest: "ionic" "ionic_cq_req", 40 {
        /// A ring on each pipeline of the mask.
        cq: [QueueDescriptor; 2] = 0,
        /// Pipelines.
        udma_mask: u8 = 32,
        /// Zero.
        rsvd: [u8; 7] = 33,
    }
}

layout! {
    /// CQ_CREATE.
    pub struct CqReply: "ionic" "ionic_cq_resp", 16 {
        /// Numbers of the rings.
        cqid: [le::U32; 2] = 0,
        /// Pipelines that have one.
        udma_mask: u8 = 8,
        /// Zero.
        rsvd: [u8; 7] = 9,
    }
}

layout! {
    /// QP_CREATE.
    pub struct QpRequest: "ionic" "ionic_qp_req", 40 {
        /// Send ring.
        sq: QueueDescriptor = 0,
        /// Receive ring.
        rq: QueueDescriptor = 16,
        /// Most SGEs with a list of lengths, of send WQEs.
        sq_spec: u8 = 32,
        /// The same of receive WQEs.
        rq_spec: u8 = 33,
        /// Where the send queue shall be.
        sq_cmb: u8 = 34,
        /// Where the receive queue shall be.
        rq_cmb: u8 = 35,
        /// Pipelines to choose from.
        udma_mask: u8 = 36,
        /// Zero.
        rsvd: [u8; 3] = 37,
    }
}

layout! {
    /// QP_CREATE.
    pub struct QpReply: "ionic" "ionic_qp_resp", 24 {
        /// Number.
        qpid: le::U32 = 0,
        /// Where the send queue is.
        sq_cmb: u8 = 4,
        /// Where the receive queue is.
        rq_cmb: u8 = 5,
        /// Pipeline.
        udma_idx: u8 = 6,
        /// Zero.
        rsvd: u8 = 7,
        /// Where the send queue is mapped from.
        sq_cmb_offset: le::U64 = 8,
        /// Where the receive queue is mapped from.
        rq_cmb_offset: le::U64 = 16,
    }
}

/// All layouts of this module.
pub const LAYOUTS: &[Layout] = &[
    ContextRequest::LAYOUT,
    QueueDescriptor::LAYOUT,
    AhReply::LAYOUT,
    CqRequest::LAYOUT,
    CqReply::LAYOUT,
    QpRequest::LAYOUT,
    QpReply::LAYOUT,
];
