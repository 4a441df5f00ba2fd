//! Statistics. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{request, response};
use crate::layout::layout;

/// Bit of [`StatCtxAllocInput::stat_ctx_flags`]: of RoCE.
pub const STAT_CTX_ROCE: u8 = 1;

request! {
    /// Creates a statistics context.
    pub struct StatCtxAllocInput: "hwrm_stat_ctx_alloc_input", 48, STAT_CTX_ALLOC => StatCtxAllocOutput {
        /// Where the device writes statistics.
        stats_dma_addr: le::U64 = 16,
        /// How often it does, in milliseconds; 0 is never.
        update_period_ms: le::U32 = 24,
        /// 1: of RoCE.
        stat_ctx_flags: u8 = 28,
        /// Zero.
        unused_0: u8 = 29,
        /// Bytes that it writes.
        stats_dma_length: le::U16 = 30,
        /// Flags.
        flags: le::U16 = 32,
        /// Steering tag.
        steering_tag: le::U16 = 34,
        /// Statistics context.
        stat_ctx_id: le::U32 = 36,
        /// Sequence of allocations.
        alloc_seq_id: le::U16 = 40,
        /// Zero.
        unused_1: [u8; 6] = 42,
    }
}
response! {
    /// The context.
    pub struct StatCtxAllocOutput: "hwrm_stat_ctx_alloc_output", 16 {
        /// Statistics context.
        stat_ctx_id: le::U32 = 8,
        /// Zero.
        unused_0: [u8; 3] = 12,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
layout! {
    /// What the device writes for a statistics context.
    pub struct CtxHwStats: "bnxt_re" "ctx_hw_stats", 160 {
        /// Packets received, to one receiver.
        rx_ucast_pkts: le::U64 = 0,
        /// To a group.
        rx_mcast_pkts: le::U64 = 8,
        /// To all.
        rx_bcast_pkts: le::U64 = 16,
        /// Packets received and dropped.
        rx_discard_pkts: le::U64 = 24,
        /// Packets received with errors.
        rx_error_pkts: le::U64 = 32,
        /// Bytes received, to one receiver.
        rx_ucast_bytes: le::U64 = 40,
        /// To a group.
        rx_mcast_bytes: le::U64 = 48,
        /// To all.
        rx_bcast_bytes: le::U64 = 56,
        /// Packets sent, to one receiver.
        tx_ucast_pkts: le::U64 = 64,
        /// To a group.
        tx_mcast_pkts: le::U64 = 72,
        /// To all.
        tx_bcast_pkts: le::U64 = 80,
        /// Packets that could not be sent for errors.
        tx_error_pkts: le::U64 = 88,
        /// Packets dropped instead of sent.
        tx_discard_pkts: le::U64 = 96,
        /// Bytes sent, to one receiver.
        tx_ucast_bytes: le::U64 = 104,
        /// To a group.
        tx_mcast_bytes: le::U64 = 112,
        /// To all.
        tx_bcast_bytes: le::U64 = 120,
        /// Packets that were joined to others on receipt.
        tpa_pkts: le::U64 = 128,
        /// Bytes of them.
        tpa_bytes: le::U64 = 136,
        /// Joined packets that came of them.
        tpa_events: le::U64 = 144,
        /// Joins that were given up.
        tpa_aborts: le::U64 = 152,
    }
}
request! {
    /// Destroys a statistics context.
    pub struct StatCtxFreeInput: "hwrm_stat_ctx_free_input", 24, STAT_CTX_FREE => StatCtxAllocOutput {
        /// Statistics context.
        stat_ctx_id: le::U32 = 16,
        /// Zero.
        unused_0: [u8; 4] = 20,
    }
}
request! {
    /// Asks for counters of the port.
    pub struct PortQstatsInput: "hwrm_port_qstats_input", 40, PORT_QSTATS => PortQstatsOutput {
        /// Port.
        port_id: le::U16 = 16,
        /// Flags.
        flags: u8 = 18,
        /// Zero.
        unused_0: [u8; 5] = 19,
        /// Transmit statistics contexts host address.
        tx_stat_host_addr: le::U64 = 24,
        /// Receive statistics contexts host address.
        rx_stat_host_addr: le::U64 = 32,
    }
}
response! {
    /// Counters were written.
    pub struct PortQstatsOutput: "hwrm_port_qstats_output", 16 {
        /// Transmit statistics contexts size.
        tx_stat_size: le::U16 = 8,
        /// Receive statistics contexts size.
        rx_stat_size: le::U16 = 10,
        /// Flags.
        flags: u8 = 12,
        /// Zero.
        unused_0: [u8; 2] = 13,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
request! {
    /// Asks for more counters of the port.
    pub struct PortQstatsExtInput: "hwrm_port_qstats_ext_input", 40, PORT_QSTATS_EXT => PortQstatsExtOutput {
        /// Port.
        port_id: le::U16 = 16,
        /// Transmit statistics contexts size.
        tx_stat_size: le::U16 = 18,
        /// Receive statistics contexts size.
        rx_stat_size: le::U16 = 20,
        /// Flags.
        flags: u8 = 22,
        /// Zero.
        unused_0: u8 = 23,
        /// Transmit statistics contexts host address.
        tx_stat_host_addr: le::U64 = 24,
        /// Receive statistics contexts host address.
        rx_stat_host_addr: le::U64 = 32,
    }
}
response! {
    /// Counters were written.
    pub struct PortQstatsExtOutput: "hwrm_port_qstats_ext_output", 16 {
        /// Transmit statistics contexts size.
        tx_stat_size: le::U16 = 8,
        /// Receive statistics contexts size.
        rx_stat_size: le::U16 = 10,
        /// Total active cos queues.
        total_active_cos_queues: le::U16 = 12,
        /// Flags.
        flags: u8 = 14,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
