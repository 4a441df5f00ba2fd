//! Queue pairs. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqSize, CreqXid, command, completion, side_buffer};
use crate::bnxt_re::pbl::PageAttribute;

/// Kinds of queue pair.
pub mod kind {
    /// Reliable connection.
    pub const RC: u8 = 2;
    /// Datagrams.
    pub const UD: u8 = 4;
    /// Raw Ethernet frames.
    pub const RAW_ETHERTYPE: u8 = 6;
    /// General services.
    pub const GSI: u8 = 7;
}

/// Bits of [`CmdqCreateQp::qp_flags`].
pub mod create_flags {
    /// Receives come from a shared receive queue.
    pub const SRQ_USED: u32 = 0x1;
    /// Every send request completes.
    pub const FORCE_COMPLETION: u32 = 0x2;
    /// The reserved key is allowed.
    pub const RESERVED_LKEY_ENABLE: u32 = 0x4;
    /// Fast registration is allowed.
    pub const FR_PMR_ENABLED: u32 = 0x8;
    /// WQEs take as many slots as they need.
    pub const VARIABLE_SIZED_WQE: u32 = 0x10;
}

/// Bits of [`CmdqModifyQp::modify_mask`].
pub mod mask {
    /// State.
    pub const STATE: u32 = 0x1;
    /// Access.
    pub const ACCESS: u32 = 0x4;
    /// Partition key.
    pub const PKEY: u32 = 0x8;
    /// Queue key.
    pub const QKEY: u32 = 0x10;
    /// GID of the destination.
    pub const DGID: u32 = 0x20;
    /// Flow label.
    pub const FLOW_LABEL: u32 = 0x40;
    /// Index of our GID.
    pub const SGID_INDEX: u32 = 0x80;
    /// Hop limit.
    pub const HOP_LIMIT: u32 = 0x100;
    /// Traffic class.
    pub const TRAFFIC_CLASS: u32 = 0x200;
    /// Address of the next hop.
    pub const DEST_MAC: u32 = 0x400;
    /// Path MTU.
    pub const PATH_MTU: u32 = 0x1000;
    /// Acknowledge time-out.
    pub const TIMEOUT: u32 = 0x2000;
    /// Retries.
    pub const RETRY_CNT: u32 = 0x4000;
    /// Retries after an RNR NAK.
    pub const RNR_RETRY: u32 = 0x8000;
    /// First sequence number expected.
    pub const RQ_PSN: u32 = 0x1_0000;
    /// Outgoing READs and atomics.
    pub const MAX_RD_ATOMIC: u32 = 0x2_0000;
    /// RNR NAK timer.
    pub const MIN_RNR_TIMER: u32 = 0x4_0000;
    /// First sequence number sent.
    pub const SQ_PSN: u32 = 0x8_0000;
    /// Incoming READs and atomics.
    pub const MAX_DEST_RD_ATOMIC: u32 = 0x10_0000;
    /// The peer's queue pair.
    pub const DEST_QP_ID: u32 = 0x400_0000;
    /// Our Ethernet address.
    pub const SRC_MAC: u32 = 0x800_0000;
    /// VLAN.
    pub const VLAN_ID: u32 = 0x1000_0000;
}

command! {
    /// Creates a queue pair.
    pub struct CmdqCreateQp: "cmdq_create_qp", 104, CREATE_QP => CreqCreateQpResp {
        /// Comes back in CQEs.
        qp_handle: le::U64 = 16,
        /// See [`create_flags`].
        qp_flags: le::U32 = 24,
        /// Kind, see [`kind`].
        r#type: u8 = 28,
        /// Page size and level of the send ring.
        sq_pg_size_sq_lvl: u8 as PageAttribute = 29,
        /// Page size and level of the receive ring.
        rq_pg_size_rq_lvl: u8 as PageAttribute = 30,
        /// Zero.
        unused_0: u8 = 31,
        /// Doorbell page.
        dpi: le::U32 = 32,
        /// Send queue: WQEs in static mode, slots in variable mode.
        sq_size: le::U32 = 36,
        /// Receive queue: WQEs.
        rq_size: le::U32 = 40,
        /// SGEs in bits 0 to 3, offset of the first WQE above.
        sq_fwo_sq_sge: le::U16 = 44,
        /// SGEs in bits 0 to 3, offset of the first WQE above.
        rq_fwo_rq_sge: le::U16 = 46,
        /// Completion queue of send requests.
        scq_cid: le::U32 = 48,
        /// Completion queue of receive requests.
        rcq_cid: le::U32 = 52,
        /// Shared receive queue.
        srq_cid: le::U32 = 56,
        /// Protection domain.
        pd_id: le::U32 = 60,
        /// Page or page list of the send ring.
        sq_pbl: le::U64 = 64,
        /// Page or page list of the receive ring.
        rq_pbl: le::U64 = 72,
        /// Address of the table of incoming READs and atomics.
        irrq_addr: le::U64 = 80,
        /// Address of the table of outgoing READs and atomics.
        orrq_addr: le::U64 = 88,
        /// Number that is asked for.
        request_xid: le::U32 = 96,
        /// Steering tag.
        steering_tag: le::U16 = 100,
        /// Zero.
        reserved16: le::U16 = 102,
    }
}
completion! {
    /// The queue pair.
    pub struct CreqCreateQpResp: "creq_create_qp_resp" {
        {
            /// Number of the object.
            xid: le::U32 = 4,
        }
        {
            /// Optimised transmission.
            optimized_transmit_enabled: u8 = 10,
            /// Zero.
            reserved48: [u8; 5] = 11,
        }
    }
}
command! {
    /// Destroys a queue pair.
    pub struct CmdqDestroyQp: "cmdq_destroy_qp", 24, DESTROY_QP => CreqXid {
        /// Queue pair.
        qp_cid: le::U32 = 16,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
command! {
    /// Modifies a queue pair.
    pub struct CmdqModifyQp: "cmdq_modify_qp", 144, [qp_type] MODIFY_QP => CreqModifyQpResp {
        /// Which of the fields count, a bit each; see [`mask`].
        modify_mask: le::U32 = 16,
        /// Queue pair.
        qp_cid: le::U32 = 20,
        /// State in bits 0 to 3, notification of a drained queue in bit 4, network in bits 6 and 7.
        network_type_en_sqd_async_notify_new_state: u8 = 24,
        /// What is allowed.
        access: u8 = 25,
        /// Partition key.
        pkey: le::U16 = 26,
        /// Queue key.
        qkey: le::U32 = 28,
        /// GID of the destination, in the order of the wire.
        dgid: [le::U32; 4] = 32,
        /// Flow label.
        flow_label: le::U32 = 48,
        /// Index of our GID.
        sgid_index: le::U16 = 52,
        /// Hop limit.
        hop_limit: u8 = 54,
        /// Traffic class.
        traffic_class: u8 = 55,
        /// Ethernet address of the next hop, in the order of the wire.
        dest_mac: [le::U16; 3] = 56,
        /// ECN in bits 0 and 1, DSCP above.
        tos_dscp_tos_ecn: u8 = 62,
        /// Path MTU code in bits 4 to 7.
        path_mtu_pingpong_push_enable: u8 = 63,
        /// Acknowledge time-out.
        timeout: u8 = 64,
        /// Retries without an answer.
        retry_cnt: u8 = 65,
        /// Retries after an RNR NAK.
        rnr_retry: u8 = 66,
        /// RNR NAK timer code.
        min_rnr_timer: u8 = 67,
        /// First sequence number expected.
        rq_psn: le::U32 = 68,
        /// First sequence number sent.
        sq_psn: le::U32 = 72,
        /// Entries of the table of outgoing READs and atomics.
        max_rd_atomic: u8 = 76,
        /// Entries of the table of incoming READs and atomics.
        max_dest_rd_atomic: u8 = 77,
        /// Congestion control.
        enable_cc: le::U16 = 78,
        /// Send queue: WQEs in static mode, slots in variable mode.
        sq_size: le::U32 = 80,
        /// Receive queue: WQEs.
        rq_size: le::U32 = 84,
        /// SGEs of a send request.
        sq_sge: le::U16 = 88,
        /// SGEs of a receive request.
        rq_sge: le::U16 = 90,
        /// Inline bytes of a send request.
        max_inline_data: le::U32 = 92,
        /// The peer's queue pair.
        dest_qp_id: le::U32 = 96,
        /// Push page.
        pingpong_push_dpi: le::U32 = 100,
        /// Our Ethernet address.
        src_mac: [le::U16; 3] = 104,
        /// VLAN id, drop eligible, priority.
        vlan_pcp_vlan_dei_vlan_id: le::U16 = 110,
        /// Address of the table of incoming READs and atomics.
        irrq_addr: le::U64 = 112,
        /// Address of the table of outgoing READs and atomics.
        orrq_addr: le::U64 = 120,
        /// More of the mask.
        ext_modify_mask: le::U32 = 128,
        /// Statistics context.
        ext_stats_ctx_id: le::U32 = 132,
        /// Scheduler queue.
        schq_id: le::U16 = 136,
        /// Zero.
        unused_0: le::U16 = 138,
        /// Rate limit.
        rate_limit: le::U32 = 140,
    }
}
completion! {
    /// The queue pair was modified.
    pub struct CreqModifyQpResp: "creq_modify_qp_resp" {
        {
            /// Number of the object.
            xid: le::U32 = 4,
        }
        {
            /// State of push.
            pingpong_push_state_index_enabled: u8 = 10,
            /// 1: a rate limiter is there.
            shaper_allocation_status: u8 = 11,
            /// Our address on an aggregated link.
            lag_src_mac: le::U32 = 12,
        }
    }
}
command! {
    /// Asks for the attributes of a queue pair.
    pub struct CmdqQueryQp: "cmdq_query_qp", 24, QUERY_QP => CreqSize {
        /// Queue pair.
        qp_cid: le::U32 = 16,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
side_buffer! {
    /// Attributes of a queue pair.
    pub struct CreqQueryQpRespSb: "creq_query_qp_resp_sb", 104 {
        /// Number of the object.
        xid: le::U32 = 8,
        /// State in bits 0 to 3, notification of a drained queue in bit 4.
        en_sqd_async_notify_state: u8 = 12,
        /// What is allowed.
        access: u8 = 13,
        /// Partition key.
        pkey: le::U16 = 14,
        /// Queue key.
        qkey: le::U32 = 16,
        /// UDP source port.
        udp_src_port: le::U16 = 20,
        /// Zero.
        reserved16: le::U16 = 22,
        /// GID of the destination, in the order of the wire.
        dgid: [le::U32; 4] = 24,
        /// Flow label.
        flow_label: le::U32 = 40,
        /// Index of our GID.
        sgid_index: le::U16 = 44,
        /// Hop limit.
        hop_limit: u8 = 46,
        /// Traffic class.
        traffic_class: u8 = 47,
        /// Ethernet address of the next hop, in the order of the wire.
        dest_mac: [le::U16; 3] = 48,
        /// VLAN id in bits 0 to 11, path MTU code above.
        path_mtu_dest_vlan_id: le::U16 = 54,
        /// Acknowledge time-out.
        timeout: u8 = 56,
        /// Retries without an answer.
        retry_cnt: u8 = 57,
        /// Retries after an RNR NAK.
        rnr_retry: u8 = 58,
        /// RNR NAK timer code.
        min_rnr_timer: u8 = 59,
        /// First sequence number expected.
        rq_psn: le::U32 = 60,
        /// First sequence number sent.
        sq_psn: le::U32 = 64,
        /// Entries of the table of outgoing READs and atomics.
        max_rd_atomic: u8 = 68,
        /// Entries of the table of incoming READs and atomics.
        max_dest_rd_atomic: u8 = 69,
        /// ECN in bits 0 and 1, DSCP above.
        tos_dscp_tos_ecn: u8 = 70,
        /// Congestion control.
        enable_cc: u8 = 71,
        /// Send queue: WQEs in static mode, slots in variable mode.
        sq_size: le::U32 = 72,
        /// Receive queue: WQEs.
        rq_size: le::U32 = 76,
        /// SGEs of a send request.
        sq_sge: le::U16 = 80,
        /// SGEs of a receive request.
        rq_sge: le::U16 = 82,
        /// Inline bytes of a send request.
        max_inline_data: le::U32 = 84,
        /// The peer's queue pair.
        dest_qp_id: le::U32 = 88,
        /// Port.
        port_id: le::U16 = 92,
        /// Zero.
        unused_0: u8 = 94,
        /// Collection of statistics.
        stat_collection_id: u8 = 95,
        /// Our Ethernet address.
        src_mac: [le::U16; 3] = 96,
        /// VLAN id, drop eligible, priority.
        vlan_pcp_vlan_dei_vlan_id: le::U16 = 102,
    }
}
command! {
    /// Creates the queue pair of general services, before P5.
    pub struct CmdqCreateQp1: "cmdq_create_qp1", 80, CREATE_QP1 => CreqXid {
        /// Comes back in CQEs.
        qp_handle: le::U64 = 16,
        /// See [`create_flags`].
        qp_flags: le::U32 = 24,
        /// Kind: 1.
        r#type: u8 = 28,
        /// Page size and level of the send ring.
        sq_pg_size_sq_lvl: u8 as PageAttribute = 29,
        /// Page size and level of the receive ring.
        rq_pg_size_rq_lvl: u8 as PageAttribute = 30,
        /// Zero.
        unused_0: u8 = 31,
        /// Doorbell page.
        dpi: le::U32 = 32,
        /// Send queue: WQEs in static mode, slots in variable mode.
        sq_size: le::U32 = 36,
        /// Receive queue: WQEs.
        rq_size: le::U32 = 40,
        /// SGEs in bits 0 to 3, offset of the first WQE above.
        sq_fwo_sq_sge: le::U16 = 44,
        /// SGEs in bits 0 to 3, offset of the first WQE above.
        rq_fwo_rq_sge: le::U16 = 46,
        /// Completion queue of send requests.
        scq_cid: le::U32 = 48,
        /// Completion queue of receive requests.
        rcq_cid: le::U32 = 52,
        /// Shared receive queue.
        srq_cid: le::U32 = 56,
        /// Protection domain.
        pd_id: le::U32 = 60,
        /// Page or page list of the send ring.
        sq_pbl: le::U64 = 64,
        /// Page or page list of the receive ring.
        rq_pbl: le::U64 = 72,
    }
}
command! {
    /// Destroys it.
    pub struct CmdqDestroyQp1: "cmdq_destroy_qp1", 24, DESTROY_QP1 => CreqXid {
        /// Queue pair.
        qp1_cid: le::U32 = 16,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
