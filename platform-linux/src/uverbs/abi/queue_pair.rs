//! Attributes of queue pairs in commands: MODIFY_QP and QUERY_QP.

use directverbs::layout::{ByteOrder, FieldType, Layout, layout};
use zerocopy::little_endian as le;

layout! {
    /// Capabilities asked for or granted.
    pub struct QpCap: "uverbs" "ib_uverbs_qp_cap", 20 {
        /// Send requests.
        max_send_wr: le::U32 = 0,
        /// Receive requests.
        max_recv_wr: le::U32 = 4,
        /// SGEs of a send request.
        max_send_sge: le::U32 = 8,
        /// SGEs of a receive request.
        max_recv_sge: le::U32 = 12,
        /// Inline bytes.
        max_inline_data: le::U32 = 16,
    }
}

layout! {
    /// The path of a connected queue pair.
    pub struct QpDestination: "uverbs" "ib_uverbs_qp_dest", 32 {
        /// GID of the peer.
        dgid: [u8; 16] = 0,
        /// Flow label.
        flow_label: le::U32 = 16,
        /// Unused by RoCE.
        dlid: le::U16 = 20,
        /// Zero.
        reserved: le::U16 = 22,
        /// Index of our GID.
        sgid_index: u8 = 24,
        /// Hops.
        hop_limit: u8 = 25,
        /// Traffic class.
        traffic_class: u8 = 26,
        /// Service level: the VLAN priority.
        sl: u8 = 27,
        /// Unused by RoCE.
        src_path_bits: u8 = 28,
        /// 0: no limit.
        static_rate: u8 = 29,
        /// 1: the GIDs count.
        is_global: u8 = 30,
        /// Port.
        port_num: u8 = 31,
    }
}

layout! {
    /// MODIFY_QP; only what the mask names counts.
    pub struct ModifyQp: "uverbs" "ib_uverbs_modify_qp", 112 {
        /// Path.
        dest: QpDestination = 0,
        /// Alternate path; unused.
        alt_dest: QpDestination = 32,
        /// Queue pair.
        qp_handle: le::U32 = 64,
        /// [`mask`].
        attr_mask: le::U32 = 68,
        /// Queue key.
        qkey: le::U32 = 72,
        /// First sequence number expected.
        rq_psn: le::U32 = 76,
        /// First sequence number sent.
        sq_psn: le::U32 = 80,
        /// The peer's queue pair.
        dest_qp_num: le::U32 = 84,
        /// What the peer may do.
        qp_access_flags: le::U32 = 88,
        /// Index of the partition key.
        pkey_index: le::U16 = 92,
        /// Unused.
        alt_pkey_index: le::U16 = 94,
        /// State.
        qp_state: u8 = 96,
        /// State that the caller believes it to be in.
        cur_qp_state: u8 = 97,
        /// Code of the path MTU.
        path_mtu: u8 = 98,
        /// Unused.
        path_mig_state: u8 = 99,
        /// Ask for an event when the send queue is drained.
        en_sqd_async_notify: u8 = 100,
        /// READs and atomics as requester.
        max_rd_atomic: u8 = 101,
        /// READs and atomics as responder.
        max_dest_rd_atomic: u8 = 102,
        /// RNR NAK timer.
        min_rnr_timer: u8 = 103,
        /// Port.
        port_num: u8 = 104,
        /// Acknowledge time-out.
        timeout: u8 = 105,
        /// Retries without an answer.
        retry_cnt: u8 = 106,
        /// Retries after an RNR NAK.
        rnr_retry: u8 = 107,
        /// Unused.
        alt_port_num: u8 = 108,
        /// Unused.
        alt_timeout: u8 = 109,
        /// Zero.
        reserved: [u8; 2] = 110,
    }
}

layout! {
    /// MODIFY_QP_EX.
    pub struct ModifyQpEx: "uverbs" "ib_uverbs_ex_modify_qp", 120 {
        /// As in [`ModifyQp`].
        base: ModifyQp = 0,
        /// Rate limit in kbit/s; 0 takes it off.
        rate_limit: le::U32 = 112,
        /// Zero.
        reserved: le::U32 = 116,
    }
}

layout! {
    /// Reply to MODIFY_QP_EX.
    pub struct ModifyQpExReply: "uverbs" "ib_uverbs_ex_modify_qp_resp", 8 {
        /// Zero.
        comp_mask: le::U32 = 0,
        /// Bytes written.
        response_length: le::U32 = 4,
    }
}

layout! {
    /// QUERY_QP.
    pub struct QueryQp: "uverbs" "ib_uverbs_query_qp", 16 {
        /// Address of the reply.
        response: le::U64 = 0,
        /// Queue pair.
        qp_handle: le::U32 = 8,
        /// [`mask`] of what is asked for.
        attr_mask: le::U32 = 12,
    }
}

layout! {
    /// Reply to QUERY_QP.
    pub struct QueryQpReply: "uverbs" "ib_uverbs_query_qp_resp", 128 {
        /// Path.
        dest: QpDestination = 0,
        /// Alternate path.
        alt_dest: QpDestination = 32,
        /// Capabilities.
        cap: QpCap = 64,
        /// Queue key.
        qkey: le::U32 = 84,
        /// Sequence number expected.
        rq_psn: le::U32 = 88,
        /// Sequence number to be sent.
        sq_psn: le::U32 = 92,
        /// The peer's queue pair.
        dest_qp_num: le::U32 = 96,
        /// What the peer may do.
        qp_access_flags: le::U32 = 100,
        /// Index of the partition key.
        pkey_index: le::U16 = 104,
        /// Unused.
        alt_pkey_index: le::U16 = 106,
        /// State.
        qp_state: u8 = 108,
        /// State.
        cur_qp_state: u8 = 109,
        /// Code of the path MTU.
        path_mtu: u8 = 110,
        /// Unused.
        path_mig_state: u8 = 111,
        /// The send queue is draining.
        sq_draining: u8 = 112,
        /// READs and atomics as requester.
        max_rd_atomic: u8 = 113,
        /// READs and atomics as responder.
        max_dest_rd_atomic: u8 = 114,
        /// RNR NAK timer.
        min_rnr_timer: u8 = 115,
        /// Port.
        port_num: u8 = 116,
        /// Acknowledge time-out.
        timeout: u8 = 117,
        /// Retries without an answer.
        retry_cnt: u8 = 118,
        /// Retries after an RNR NAK.
        rnr_retry: u8 = 119,
        /// Unused.
        alt_port_num: u8 = 120,
        /// Unused.
        alt_timeout: u8 = 121,
        /// Every send request produces a completion.
        sq_sig_all: u8 = 122,
        /// Zero.
        reserved: [u8; 5] = 123,
    }
}

/// Bits of `attr_mask`: `ibv_qp_attr_mask`.
pub mod mask {
    /// State.
    pub const STATE: u32 = 1;
    /// Ask for an event when the send queue is drained.
    pub const EN_SQD_ASYNC_NOTIFY: u32 = 1 << 2;
    /// What the peer may do.
    pub const ACCESS_FLAGS: u32 = 1 << 3;
    /// Index of the partition key.
    pub const PKEY_INDEX: u32 = 1 << 4;
    /// Port.
    pub const PORT: u32 = 1 << 5;
    /// Queue key.
    pub const QKEY: u32 = 1 << 6;
    /// Path.
    pub const AV: u32 = 1 << 7;
    /// Path MTU.
    pub const PATH_MTU: u32 = 1 << 8;
    /// Acknowledge time-out.
    pub const TIMEOUT: u32 = 1 << 9;
    /// Retries without an answer.
    pub const RETRY_CNT: u32 = 1 << 10;
    /// Retries after an RNR NAK.
    pub const RNR_RETRY: u32 = 1 << 11;
    /// Sequence number expected.
    pub const RQ_PSN: u32 = 1 << 12;
    /// READs and atomics as requester.
    pub const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    /// RNR NAK timer.
    pub const MIN_RNR_TIMER: u32 = 1 << 15;
    /// Sequence number sent.
    pub const SQ_PSN: u32 = 1 << 16;
    /// READs and atomics as responder.
    pub const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    /// Capabilities.
    pub const CAP: u32 = 1 << 19;
    /// The peer's queue pair.
    pub const DEST_QPN: u32 = 1 << 20;
    /// Rate limit; only in the extended command.
    pub const RATE_LIMIT: u32 = 1 << 25;
}

impl FieldType for QpCap {
    const ORDER: ByteOrder = ByteOrder::Little;
}

impl FieldType for QpDestination {
    const ORDER: ByteOrder = ByteOrder::Little;
}

impl FieldType for ModifyQp {
    const ORDER: ByteOrder = ByteOrder::Little;
}

/// All layouts of this module.
pub const LAYOUTS: &[Layout] = &[
    QpCap::LAYOUT,
    QpDestination::LAYOUT,
    ModifyQp::LAYOUT,
    ModifyQpEx::LAYOUT,
    ModifyQpExReply::LAYOUT,
    QueryQp::LAYOUT,
    QueryQpReply::LAYOUT,
];
