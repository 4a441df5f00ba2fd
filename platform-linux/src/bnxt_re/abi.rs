//! The driver's part of requests and replies, and methods of its own. Source: Linux `include/uapi/rdma/bnxt_re-abi.h`.

use directverbs::layout::{Layout, layout};
use zerocopy::little_endian::{self as le, U32, U64};

use crate::uverbs::abi::attribute::{Attribute, Constant, Handle, Input, Method, NewHandle, Output};

layout! {
    /// GET_CONTEXT: what the library can do.
    pub struct ContextRequest: "bnxt_re" "bnxt_re_uctx_req", 8 {
        /// [`request_bits`].
        comp_mask: le::U64 = 0,
    }
}

layout! {
    /// GET_CONTEXT: what the device is.
    pub struct ContextReply: "bnxt_re" "bnxt_re_uctx_resp", 48 {
        /// Number of the device.
        dev_id: le::U32 = 0,
        /// Queue pairs.
        max_qp: le::U32 = 4,
        /// Bytes of a page.
        pg_size: le::U32 = 8,
        /// Bytes of a CQE.
        cqe_sz: le::U32 = 12,
        /// Entries of a completion queue.
        max_cqd: le::U32 = 16,
        /// Zero.
        rsvd: le::U32 = 20,
        /// `directverbs::bnxt_re::caps::context_bits`.
        comp_mask: le::U64 = 24,
        /// Chip number, revision and metal.
        chip_id0: le::U32 = 32,
        /// More of it.
        chip_id1: le::U32 = 36,
        /// 0 static, 1 variable.
        mode: le::U32 = 40,
        /// Zero.
        rsvd1: le::U32 = 44,
    }
}

/// Bits of [`ContextRequest::comp_mask`].
pub mod request_bits {
    /// The library copes with depths that are no powers of two.
    pub const POW2_SUPPORT: u64 = 1;
    /// The library copes with WQEs of variable size.
    pub const VAR_WQE_SUPPORT: u64 = 1 << 1;
}

/// Bit of [`ContextReply::comp_mask`]: toggle pages are named by the kernel's handles.
pub const TOGGLE_BY_HANDLE: u64 = 0x40_0000;

layout! {
    /// ALLOC_PD. It follows a reply of 4 bytes.
    pub struct PdReply: "bnxt_re" "bnxt_re_pd_resp", 16 {
        /// Number.
        pdid: le::U32 = 0,
        /// Doorbell page of the context.
        dpi: le::U32 = 4,
        /// Where it is mapped from.
        dbr: le::U64 = 8,
    }
}

layout! {
    /// CQ_CREATE.
    pub struct CqRequest: "bnxt_re" "bnxt_re_cq_req", 24 {
        /// Address of the ring.
        cq_va: le::U64 = 0,
        /// Ignored.
        cq_handle: le::U64 = 8,
        /// [`FIXED_NUM_CQE`]. Kernels before 7.2 do not have the field.
        comp_mask: le::U64 = 16,
    }
}

/// Bytes of [`CqRequest`] before Linux 7.2.
pub const OLD_CQ_REQUEST: usize = 16;
/// Bit of [`CqRequest::comp_mask`]: the number of entries is taken as it is.
pub const FIXED_NUM_CQE: u64 = 1;

layout! {
    /// CQ_CREATE.
    pub struct CqReply: "bnxt_re" "bnxt_re_cq_resp", 24 {
        /// Number.
        cqid: le::U32 = 0,
        /// Index of the first CQE.
        tail: le::U32 = 4,
        /// Phase of a new CQE.
        phase: le::U32 = 8,
        /// Zero.
        rsvd: le::U32 = 12,
        /// [`TOGGLE_PAGE`].
        comp_mask: le::U64 = 16,
    }
}

/// Bit of replies: the queue has a toggle page.
pub const TOGGLE_PAGE: u64 = 1;

layout! {
    /// RESIZE_CQ.
    pub struct ResizeCqRequest: "bnxt_re" "bnxt_re_resize_cq_req", 8 {
        /// Address of the new ring.
        cq_va: le::U64 = 0,
    }
}

layout! {
    /// QP_CREATE.
    pub struct QpRequest: "bnxt_re" "bnxt_re_qp_req", 40 {
        /// Address of the send ring.
        qpsva: le::U64 = 0,
        /// Address of the receive ring.
        qprva: le::U64 = 8,
        /// What CQEs name the queue pair by.
        qp_handle: le::U64 = 16,
        /// [`FIXED_QUE_ATTR`].
        comp_mask: le::U64 = 24,
        /// Slots of the send ring, in variable mode.
        sq_slots: le::U32 = 32,
        /// Entries of the retransmit table, with [`FIXED_QUE_ATTR`].
        sq_npsn: le::U32 = 36,
    }
}

/// Bit of [`QpRequest::comp_mask`]: sizes are taken as they are. Kernels before 7.2 use the bit for something else.
pub const FIXED_QUE_ATTR: u64 = 1;

layout! {
    /// QP_CREATE.
    pub struct QpReply: "bnxt_re" "bnxt_re_qp_resp", 8 {
        /// Number.
        qpid: le::U32 = 0,
        /// Zero.
        rsvd: le::U32 = 4,
    }
}

layout! {
    /// SRQ_CREATE.
    pub struct SrqRequest: "bnxt_re" "bnxt_re_srq_req", 16 {
        /// Address of the ring.
        srqva: le::U64 = 0,
        /// Ignored.
        srq_handle: le::U64 = 8,
    }
}

layout! {
    /// SRQ_CREATE.
    pub struct SrqReply: "bnxt_re" "bnxt_re_srq_resp", 16 {
        /// Number.
        srqid: le::U32 = 0,
        /// Zero.
        rsvd: le::U32 = 4,
        /// [`TOGGLE_PAGE`].
        comp_mask: le::U64 = 8,
    }
}

layout! {
    /// A doorbell region.
    pub struct DbRegion: "bnxt_re" "bnxt_re_db_region", 16 {
        /// Doorbell page; 0 if there is none yet.
        dpi: le::U32 = 0,
        /// Zero.
        reserved: le::U32 = 4,
        /// Zero. It is no address: [`dbr_alloc::OFFSET`] is where the page is mapped from.
        reserved2: le::U64 = 8,
    }
}

/// All layouts of this module.
pub const LAYOUTS: &[Layout] = &[
    ContextRequest::LAYOUT,
    ContextReply::LAYOUT,
    PdReply::LAYOUT,
    CqRequest::LAYOUT,
    CqReply::LAYOUT,
    ResizeCqRequest::LAYOUT,
    QpRequest::LAYOUT,
    QpReply::LAYOUT,
    SrqRequest::LAYOUT,
    SrqReply::LAYOUT,
    DbRegion::LAYOUT,
];

const fn method(
    object_id: u16,
    method_id: u16,
    object: &'static str,
    name: &'static str,
    attributes: &'static [crate::uverbs::abi::attribute::Spec],
) -> Method {
    Method { object_id, method_id, object, name, attributes }
}

/// Attribute of QP_CREATE: the doorbell region.
pub const QP_DBR_HANDLE: Attribute<Handle> = Attribute::new(0x1002, "DBR_HANDLE");

/// ALLOC_PAGE.ALLOC.
pub mod alloc_page {
    use super::*;
    /// Handle.
    pub const HANDLE: Attribute<NewHandle> = Attribute::new(0x1000, "HANDLE");
    /// Which page.
    pub const TYPE: Attribute<Constant> = Attribute::new(0x1001, "TYPE");
    /// Doorbell page.
    pub const DPI: Attribute<Output<U32>> = Attribute::new(0x1002, "DPI");
    /// Where it is mapped from.
    pub const MMAP_OFFSET: Attribute<Output<U64>> = Attribute::new(0x1003, "MMAP_OFFSET");
    /// Bytes.
    pub const MMAP_LENGTH: Attribute<Output<U32>> = Attribute::new(0x1004, "MMAP_LENGTH");
    /// Allocates a page.
    pub const METHOD: Method = method(
        0x1000,
        0x1000,
        "page",
        "ALLOC_PAGE",
        &[HANDLE.required(), TYPE.required(), DPI.required(), MMAP_OFFSET.required(), MMAP_LENGTH.required()],
    );
    /// [`TYPE`]: write-combining push page.
    pub const WC_PAGE: u64 = 0;
    /// [`TYPE`]: the page of the doorbell FIFO's register.
    pub const DBR_BAR_PAGE: u64 = 1;
    /// [`TYPE`]: the parameters of pacing.
    pub const DBR_PAGE: u64 = 2;
}

/// Handle of an object of the driver's that is destroyed.
const OLD_HANDLE: Attribute<Handle> = Attribute::new(0x1000, "HANDLE");

/// Frees a page.
pub const DESTROY_PAGE: Method = method(0x1000, 0x1001, "page", "DESTROY_PAGE", &[OLD_HANDLE.required()]);

/// Tells the driver that the doorbell FIFO is filling up.
pub const NOTIFY_DRV: Method = method(0x1001, 0x1000, "doorbell pacing", "NOTIFY_DRV", &[]);

/// GET_TOGGLE_MEM.
pub mod get_toggle {
    use super::*;
    /// Handle.
    pub const HANDLE: Attribute<NewHandle> = Attribute::new(0x1000, "HANDLE");
    /// Kind of queue: 0 completion, 1 shared receive.
    pub const TYPE: Attribute<Constant> = Attribute::new(0x1001, "TYPE");
    /// Number of the queue.
    pub const RES_ID: Attribute<Input<U32>> = Attribute::new(0x1002, "RES_ID");
    /// Where the page is mapped from.
    pub const MMAP_PAGE: Attribute<Output<U64>> = Attribute::new(0x1003, "MMAP_PAGE");
    /// Where in the page the word is.
    pub const MMAP_OFFSET: Attribute<Output<U32>> = Attribute::new(0x1004, "MMAP_OFFSET");
    /// Bytes of the page.
    pub const MMAP_LENGTH: Attribute<Output<U32>> = Attribute::new(0x1005, "MMAP_LENGTH");
    /// Completion queue, with [`TOGGLE_BY_HANDLE`].
    pub const CQ_HANDLE: Attribute<Handle> = Attribute::new(0x1006, "CQ_HANDLE");
    /// Shared receive queue, with [`TOGGLE_BY_HANDLE`].
    pub const SRQ_HANDLE: Attribute<Handle> = Attribute::new(0x1007, "SRQ_HANDLE");
    /// Makes a queue's toggle page mappable.
    pub const METHOD: Method = method(
        0x1002,
        0x1000,
        "toggle page",
        "GET_TOGGLE_MEM",
        &[
            HANDLE.required(),
            TYPE.optional(),
            RES_ID.optional(),
            MMAP_PAGE.required(),
            MMAP_OFFSET.required(),
            MMAP_LENGTH.required(),
            CQ_HANDLE.optional(),
            SRQ_HANDLE.optional(),
        ],
    );
}

/// Lets go of a toggle page.
pub const RELEASE_TOGGLE: Method =
    method(0x1002, 0x1001, "toggle page", "TOGGLE_MEM_RELEASE", &[OLD_HANDLE.required()]);

/// DBR.ALLOC.
pub mod dbr_alloc {
    use super::*;
    /// Handle.
    pub const HANDLE: Attribute<NewHandle> = Attribute::new(0x1000, "HANDLE");
    /// The region.
    pub const ATTR: Attribute<Output<DbRegion>> = Attribute::new(0x1001, "ATTR");
    /// Where it is mapped from.
    pub const OFFSET: Attribute<Output<U64>> = Attribute::new(0x1002, "OFFSET");
    /// Allocates a doorbell region.
    pub const METHOD: Method = method(
        0x1003,
        0x1000,
        "doorbell region",
        "DBR_ALLOC",
        &[HANDLE.required(), ATTR.required(), OFFSET.required()],
    );
}

/// Frees a doorbell region.
pub const DBR_FREE: Method = method(0x1003, 0x1001, "doorbell region", "DBR_FREE", &[OLD_HANDLE.required()]);

/// DEFAULT_DBR.GET_DEFAULT.
pub mod get_default_dbr {
    use super::*;
    /// The region.
    pub const ATTR: Attribute<Output<DbRegion>> = Attribute::new(0x1000, "ATTR");
    /// Asks for the context's own doorbell region.
    pub const METHOD: Method =
        method(0x1004, 0x1002, "doorbell region", "GET_DEFAULT_DBR", &[ATTR.required()]);
}

/// All methods of this module.
pub const METHODS: &[&Method] = &[
    &alloc_page::METHOD,
    &DESTROY_PAGE,
    &NOTIFY_DRV,
    &get_toggle::METHOD,
    &RELEASE_TOGGLE,
    &dbr_alloc::METHOD,
    &DBR_FREE,
    &get_default_dbr::METHOD,
];
