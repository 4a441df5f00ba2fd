//! Commands that have no ioctl method of their own, and their replies. A reply's address is the first field of its command;
//! the ioctl interface ignores it.

use directverbs::layout::{ByteOrder, FieldType, Layout, layout};
use zerocopy::little_endian as le;

layout! {
    /// A command that has nothing but a reply: QUERY_DEVICE, ALLOC_PD, CREATE_COMP_CHANNEL.
    pub struct ReplyOnly: "uverbs" "ib_uverbs_alloc_pd", 8 {
        /// Address of the reply.
        response: le::U64 = 0,
    }
}

layout! {
    /// Reply with one handle: ALLOC_PD, CREATE_AH.
    pub struct HandleReply: "uverbs" "ib_uverbs_alloc_pd_resp", 4 {
        /// Handle of the object.
        handle: le::U32 = 0,
    }
}

layout! {
    /// Reply to CREATE_COMP_CHANNEL.
    pub struct ChannelReply: "uverbs" "ib_uverbs_create_comp_channel_resp", 4 {
        /// File descriptor.
        fd: le::U32 = 0,
    }
}

layout! {
    /// REG_MR: registers application memory.
    pub struct RegMr: "uverbs" "ib_uverbs_reg_mr", 40 {
        /// Address of the reply.
        response: le::U64 = 0,
        /// First byte.
        start: le::U64 = 8,
        /// Bytes.
        length: le::U64 = 16,
        /// Address that requests name it by.
        hca_va: le::U64 = 24,
        /// Protection domain.
        pd_handle: le::U32 = 32,
        /// `ib_uverbs_access_flags`.
        access_flags: le::U32 = 36,
    }
}

layout! {
    /// Reply to REG_MR.
    pub struct RegMrReply: "uverbs" "ib_uverbs_reg_mr_resp", 12 {
        /// Handle.
        mr_handle: le::U32 = 0,
        /// Local key.
        lkey: le::U32 = 4,
        /// Remote key.
        rkey: le::U32 = 8,
    }
}

layout! {
    /// ALLOC_MW: creates a memory window.
    pub struct AllocMw: "uverbs" "ib_uverbs_alloc_mw", 16 {
        /// Address of the reply.
        response: le::U64 = 0,
        /// Protection domain.
        pd_handle: le::U32 = 8,
        /// 1 or 2.
        mw_type: u8 = 12,
        /// Zero.
        reserved: [u8; 3] = 13,
    }
}

layout! {
    /// Reply to ALLOC_MW.
    pub struct AllocMwReply: "uverbs" "ib_uverbs_alloc_mw_resp", 8 {
        /// Handle.
        mw_handle: le::U32 = 0,
        /// Remote key.
        rkey: le::U32 = 4,
    }
}

layout! {
    /// RESIZE_CQ.
    pub struct ResizeCq: "uverbs" "ib_uverbs_resize_cq", 16 {
        /// Address of the reply.
        response: le::U64 = 0,
        /// Completion queue.
        cq_handle: le::U32 = 8,
        /// Entries.
        cqe: le::U32 = 12,
    }
}

layout! {
    /// Reply to RESIZE_CQ.
    pub struct ResizeCqReply: "uverbs" "ib_uverbs_resize_cq_resp", 8 {
        /// Entries granted.
        cqe: le::U32 = 0,
        /// Zero.
        reserved: le::U32 = 4,
    }
}

layout! {
    /// Where a packet goes: CREATE_AH.
    pub struct AhAttributes: "uverbs" "ib_uverbs_ah_attr", 32 {
        /// GID of the destination.
        dgid: [u8; 16] = 0,
        /// Flow label.
        flow_label: le::U32 = 16,
        /// Index of our GID.
        sgid_index: u8 = 20,
        /// Hops.
        hop_limit: u8 = 21,
        /// Traffic class.
        traffic_class: u8 = 22,
        /// Zero.
        grh_reserved: u8 = 23,
        /// Unused by RoCE.
        dlid: le::U16 = 24,
        /// Service level: the VLAN priority.
        sl: u8 = 26,
        /// Unused by RoCE.
        src_path_bits: u8 = 27,
        /// 0: no limit.
        static_rate: u8 = 28,
        /// 1: the GIDs count.
        is_global: u8 = 29,
        /// Port.
        port_num: u8 = 30,
        /// Zero.
        reserved: u8 = 31,
    }
}

layout! {
    /// CREATE_AH: creates an address handle.
    pub struct CreateAh: "uverbs" "ib_uverbs_create_ah", 56 {
        /// Address of the reply.
        response: le::U64 = 0,
        /// User handle.
        user_handle: le::U64 = 8,
        /// Protection domain.
        pd_handle: le::U32 = 16,
        /// Zero.
        reserved: le::U32 = 20,
        /// Where to.
        attr: AhAttributes = 24,
    }
}

layout! {
    /// MODIFY_SRQ.
    pub struct ModifySrq: "uverbs" "ib_uverbs_modify_srq", 16 {
        /// Shared receive queue.
        srq_handle: le::U32 = 0,
        /// 1 the depth, 2 the limit.
        attr_mask: le::U32 = 4,
        /// Depth.
        max_wr: le::U32 = 8,
        /// Requests left that raise the limit event.
        srq_limit: le::U32 = 12,
    }
}

layout! {
    /// QUERY_SRQ.
    pub struct QuerySrq: "uverbs" "ib_uverbs_query_srq", 16 {
        /// Address of the reply.
        response: le::U64 = 0,
        /// Shared receive queue.
        srq_handle: le::U32 = 8,
        /// Zero.
        reserved: le::U32 = 12,
    }
}

layout! {
    /// Reply to QUERY_SRQ.
    pub struct QuerySrqReply: "uverbs" "ib_uverbs_query_srq_resp", 16 {
        /// Depth.
        max_wr: le::U32 = 0,
        /// SGEs of a request.
        max_sge: le::U32 = 4,
        /// Limit armed; 0 if none is.
        srq_limit: le::U32 = 8,
        /// Zero.
        reserved: le::U32 = 12,
    }
}

layout! {
    /// REQ_NOTIFY_CQ: asks for a completion event through the kernel, for devices without a doorbell for it.
    pub struct ReqNotifyCq: "uverbs" "ib_uverbs_req_notify_cq", 8 {
        /// Completion queue.
        cq_handle: le::U32 = 0,
        /// 1: only for solicited completions.
        solicited_only: le::U32 = 4,
    }
}

impl FieldType for AhAttributes {
    const ORDER: ByteOrder = ByteOrder::Little;
}

/// A command: its number, and how errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Number; bit 31 set for an extended one.
    pub number: u32,
    /// Name in the kernel's header, without its prefix.
    pub name: &'static str,
    /// What it is about.
    pub object: &'static str,
    /// Its first field is the address of a reply.
    pub replies: bool,
}

impl Command {
    const fn new(number: u32, name: &'static str, object: &'static str) -> Self {
        Self { number, name, object, replies: true }
    }

    const fn silent(self) -> Self {
        Self { replies: false, ..self }
    }

    const fn extended(self) -> Self {
        Self { number: self.number | super::packet::EXTENDED, replies: false, ..self }
    }

    /// Whether it has the extended header.
    pub const fn is_extended(&self) -> bool {
        self.number & super::packet::EXTENDED != 0
    }
}

/// Limits of the device.
pub const QUERY_DEVICE: Command = Command::new(1, "QUERY_DEVICE", "device");
/// Limits of the device, and what came later.
pub const QUERY_DEVICE_EX: Command = QUERY_DEVICE.extended();
/// Creates a protection domain.
pub const ALLOC_PD: Command = Command::new(3, "ALLOC_PD", "protection domain");
/// Creates an address handle.
pub const CREATE_AH: Command = Command::new(5, "CREATE_AH", "address handle");
/// Registers memory.
pub const REG_MR: Command = Command::new(9, "REG_MR", "memory region");
/// Creates a memory window.
pub const ALLOC_MW: Command = Command::new(14, "ALLOC_MW", "memory window");
/// Creates a completion channel.
pub const CREATE_COMP_CHANNEL: Command = Command::new(17, "CREATE_COMP_CHANNEL", "completion channel");
/// Resizes a completion queue.
pub const RESIZE_CQ: Command = Command::new(19, "RESIZE_CQ", "completion queue");
/// Asks for a completion event.
pub const REQ_NOTIFY_CQ: Command = Command::new(23, "REQ_NOTIFY_CQ", "completion queue").silent();
/// Reads attributes of a queue pair.
pub const QUERY_QP: Command = Command::new(25, "QUERY_QP", "queue pair");
/// Changes attributes of a queue pair.
pub const MODIFY_QP: Command = Command::new(26, "MODIFY_QP", "queue pair").silent();
/// The same, with the rate limit.
pub const MODIFY_QP_EX: Command = MODIFY_QP.extended();
/// Changes a shared receive queue.
pub const MODIFY_SRQ: Command = Command::new(33, "MODIFY_SRQ", "shared receive queue").silent();
/// Reads attributes of a shared receive queue.
pub const QUERY_SRQ: Command = Command::new(34, "QUERY_SRQ", "shared receive queue");

/// All layouts of this module.
pub const LAYOUTS: &[Layout] = &[
    ReplyOnly::LAYOUT,
    HandleReply::LAYOUT,
    ChannelReply::LAYOUT,
    RegMr::LAYOUT,
    RegMrReply::LAYOUT,
    AllocMw::LAYOUT,
    AllocMwReply::LAYOUT,
    ResizeCq::LAYOUT,
    ResizeCqReply::LAYOUT,
    AhAttributes::LAYOUT,
    CreateAh::LAYOUT,
    ModifySrq::LAYOUT,
    QuerySrq::LAYOUT,
    QuerySrqReply::LAYOUT,
    ReqNotifyCq::LAYOUT,
];
