//! Statistics. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{request, response};

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
