//! Rings: CREQ, notification queues, and those of Ethernet. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{HwrmDone, request, response};

/// Values of [`RingAllocInput::ring_type`].
pub mod ring_type {
    /// Completions of Ethernet.
    pub const L2_CMPL: u8 = 0;
    /// Transmit.
    pub const TX: u8 = 1;
    /// Receive.
    pub const RX: u8 = 2;
    /// Notifications.
    pub const NQ: u8 = 5;
}

/// Value of [`RingAllocInput::int_mode`].
pub const INT_MODE_MSIX: u8 = 2;
/// Value of [`RingAllocInput::int_mode`]: no interrupts.
pub const INT_MODE_POLL: u8 = 3;

request! {
    /// Creates a ring.
    pub struct RingAllocInput: "hwrm_ring_alloc_input", 96, RING_ALLOC => RingAllocOutput {
        /// Which of the fields below count, a bit each.
        enables: le::U32 = 16,
        /// 0 Ethernet completion, 1 transmit, 2 receive, 3 RoCE completion, 4 aggregation, 5 notification.
        ring_type: u8 = 20,
        /// Completions that are joined.
        cmpl_coal_cnt: u8 = 21,
        /// Flags.
        flags: le::U16 = 22,
        /// Address of the page, or of the page list.
        page_tbl_addr: le::U64 = 24,
        /// Offset in the first page.
        fbo: le::U32 = 32,
        /// Base-two logarithm of the page size; 0 for one page.
        page_size: u8 = 36,
        /// 1 if the address is that of a page list.
        page_tbl_depth: u8 = 37,
        /// Scheduler queue.
        schq_id: le::U16 = 38,
        /// Entries of 16 bytes.
        length: le::U32 = 40,
        /// Interrupt vector of a notification queue.
        logical_id: le::U16 = 44,
        /// Completion ring.
        cmpl_ring_id: le::U16 = 46,
        /// Queue of the port.
        queue_id: le::U16 = 48,
        /// Bytes of a receive buffer.
        rx_buf_size: le::U16 = 50,
        /// Receive ring.
        rx_ring_id: le::U16 = 52,
        /// Notification queue.
        nq_ring_id: le::U16 = 54,
        /// Arbitration.
        ring_arb_cfg: le::U16 = 56,
        /// Steering tag.
        steering_tag: le::U16 = 58,
        /// Zero.
        reserved3: le::U32 = 60,
        /// Statistics context.
        stat_ctx_id: le::U32 = 64,
        /// Zero.
        reserved4: le::U32 = 68,
        /// Most bandwidth.
        max_bw: le::U32 = 72,
        /// How interrupts are raised: 2 MSI-X, 3 not at all.
        int_mode: u8 = 76,
        /// Mid-path channel.
        mpc_chnls_type: u8 = 77,
        /// Rate profile.
        rx_rate_profile_sel: u8 = 78,
        /// Zero.
        unused_4: u8 = 79,
        /// Comes back in notifications.
        cq_handle: le::U64 = 80,
        /// Doorbell page.
        dpi: le::U16 = 88,
        /// Zero.
        unused_5: [le::U16; 3] = 90,
    }
}
response! {
    /// The ring.
    pub struct RingAllocOutput: "hwrm_ring_alloc_output", 16 {
        /// Ring.
        ring_id: le::U16 = 8,
        /// Its logical number.
        logical_ring_id: le::U16 = 10,
        /// Push buffer.
        push_buffer_index: u8 = 12,
        /// Zero.
        unused_0: [u8; 2] = 13,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
request! {
    /// Destroys a ring.
    pub struct RingFreeInput: "hwrm_ring_free_input", 32, RING_FREE => HwrmDone {
        /// 0 Ethernet completion, 1 transmit, 2 receive, 3 RoCE completion, 4 aggregation, 5 notification.
        ring_type: u8 = 16,
        /// Flags.
        flags: u8 = 17,
        /// Ring.
        ring_id: le::U16 = 18,
        /// Producer index.
        prod_idx: le::U32 = 20,
        /// Comes back in the flush completion.
        opaque: le::U32 = 24,
        /// Zero.
        unused_1: le::U32 = 28,
    }
}
request! {
    /// Sets how interrupts of a ring are joined.
    pub struct RingCmplRingCfgAggintParamsInput: "hwrm_ring_cmpl_ring_cfg_aggint_params_input", 40, RING_CMPL_RING_CFG_AGGINT_PARAMS => HwrmDone {
        /// Ring.
        ring_id: le::U16 = 16,
        /// Flags.
        flags: le::U16 = 18,
        /// Number of completion DMA aggr.
        num_cmpl_dma_aggr: le::U16 = 20,
        /// Number of completion DMA aggr during int.
        num_cmpl_dma_aggr_during_int: le::U16 = 22,
        /// Completion aggr DMA tmr.
        cmpl_aggr_dma_tmr: le::U16 = 24,
        /// Completion aggr DMA tmr during int.
        cmpl_aggr_dma_tmr_during_int: le::U16 = 26,
        /// Version of int lat tmr, minor number.
        int_lat_tmr_min: le::U16 = 28,
        /// Int lat tmr max.
        int_lat_tmr_max: le::U16 = 30,
        /// Number of completion aggr int.
        num_cmpl_aggr_int: le::U16 = 32,
        /// Which of the fields below count, a bit each.
        enables: le::U16 = 34,
        /// Zero.
        unused_0: [u8; 4] = 36,
    }
}
