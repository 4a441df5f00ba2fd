//! What a port counts besides: by class of service, pauses, corrected errors. Source: `hsi.h`.

use zerocopy::little_endian as le;

use crate::layout::layout;

layout! {
    /// What was sent, written by PORT_QSTATS_EXT.
    pub struct TxPortStatsExt: "bnxt_re" "tx_port_stats_ext", 256 {
        /// Bytes sent, class 0.
        tx_bytes_cos0: le::U64 = 0,
        /// Bytes sent, class 1.
        tx_bytes_cos1: le::U64 = 8,
        /// Bytes sent, class 2.
        tx_bytes_cos2: le::U64 = 16,
        /// Bytes sent, class 3.
        tx_bytes_cos3: le::U64 = 24,
        /// Bytes sent, class 4.
        tx_bytes_cos4: le::U64 = 32,
        /// Bytes sent, class 5.
        tx_bytes_cos5: le::U64 = 40,
        /// Bytes sent, class 6.
        tx_bytes_cos6: le::U64 = 48,
        /// Bytes sent, class 7.
        tx_bytes_cos7: le::U64 = 56,
        /// Packets sent, class 0.
        tx_packets_cos0: le::U64 = 64,
        /// Packets sent, class 1.
        tx_packets_cos1: le::U64 = 72,
        /// Packets sent, class 2.
        tx_packets_cos2: le::U64 = 80,
        /// Packets sent, class 3.
        tx_packets_cos3: le::U64 = 88,
        /// Packets sent, class 4.
        tx_packets_cos4: le::U64 = 96,
        /// Packets sent, class 5.
        tx_packets_cos5: le::U64 = 104,
        /// Packets sent, class 6.
        tx_packets_cos6: le::U64 = 112,
        /// Packets sent, class 7.
        tx_packets_cos7: le::U64 = 120,
        /// Microseconds that priority 0 was held, sending.
        pfc_pri0_tx_duration_us: le::U64 = 128,
        /// How often priority 0 was held, sending.
        pfc_pri0_tx_transitions: le::U64 = 136,
        /// Microseconds that priority 1 was held, sending.
        pfc_pri1_tx_duration_us: le::U64 = 144,
        /// How often priority 1 was held, sending.
        pfc_pri1_tx_transitions: le::U64 = 152,
        /// Microseconds that priority 2 was held, sending.
        pfc_pri2_tx_duration_us: le::U64 = 160,
        /// How often priority 2 was held, sending.
        pfc_pri2_tx_transitions: le::U64 = 168,
        /// Microseconds that priority 3 was held, sending.
        pfc_pri3_tx_duration_us: le::U64 = 176,
        /// How often priority 3 was held, sending.
        pfc_pri3_tx_transitions: le::U64 = 184,
        /// Microseconds that priority 4 was held, sending.
        pfc_pri4_tx_duration_us: le::U64 = 192,
        /// How often priority 4 was held, sending.
        pfc_pri4_tx_transitions: le::U64 = 200,
        /// Microseconds that priority 5 was held, sending.
        pfc_pri5_tx_duration_us: le::U64 = 208,
        /// How often priority 5 was held, sending.
        pfc_pri5_tx_transitions: le::U64 = 216,
        /// Microseconds that priority 6 was held, sending.
        pfc_pri6_tx_duration_us: le::U64 = 224,
        /// How often priority 6 was held, sending.
        pfc_pri6_tx_transitions: le::U64 = 232,
        /// Microseconds that priority 7 was held, sending.
        pfc_pri7_tx_duration_us: le::U64 = 240,
        /// How often priority 7 was held, sending.
        pfc_pri7_tx_transitions: le::U64 = 248,
    }
}
layout! {
    /// What was received, and what happened to the link.
    pub struct RxPortStatsExt: "bnxt_re" "rx_port_stats_ext", 488 {
        /// How often the link went down.
        link_down_events: le::U64 = 0,
        /// Pauses that did not end.
        continuous_pause_events: le::U64 = 8,
        /// Pauses that ended after all.
        resume_pause_events: le::U64 = 16,
        /// Pauses of RoCE that did not end.
        continuous_roce_pause_events: le::U64 = 24,
        /// Pauses of RoCE that ended after all.
        resume_roce_pause_events: le::U64 = 32,
        /// Bytes received, class 0.
        rx_bytes_cos0: le::U64 = 40,
        /// Bytes received, class 1.
        rx_bytes_cos1: le::U64 = 48,
        /// Bytes received, class 2.
        rx_bytes_cos2: le::U64 = 56,
        /// Bytes received, class 3.
        rx_bytes_cos3: le::U64 = 64,
        /// Bytes received, class 4.
        rx_bytes_cos4: le::U64 = 72,
        /// Bytes received, class 5.
        rx_bytes_cos5: le::U64 = 80,
        /// Bytes received, class 6.
        rx_bytes_cos6: le::U64 = 88,
        /// Bytes received, class 7.
        rx_bytes_cos7: le::U64 = 96,
        /// Packets received, class 0.
        rx_packets_cos0: le::U64 = 104,
        /// Packets received, class 1.
        rx_packets_cos1: le::U64 = 112,
        /// Packets received, class 2.
        rx_packets_cos2: le::U64 = 120,
        /// Packets received, class 3.
        rx_packets_cos3: le::U64 = 128,
        /// Packets received, class 4.
        rx_packets_cos4: le::U64 = 136,
        /// Packets received, class 5.
        rx_packets_cos5: le::U64 = 144,
        /// Packets received, class 6.
        rx_packets_cos6: le::U64 = 152,
        /// Packets received, class 7.
        rx_packets_cos7: le::U64 = 160,
        /// Microseconds that priority 0 was held, receiving.
        pfc_pri0_rx_duration_us: le::U64 = 168,
        /// How often priority 0 was held, receiving.
        pfc_pri0_rx_transitions: le::U64 = 176,
        /// Microseconds that priority 1 was held, receiving.
        pfc_pri1_rx_duration_us: le::U64 = 184,
        /// How often priority 1 was held, receiving.
        pfc_pri1_rx_transitions: le::U64 = 192,
        /// Microseconds that priority 2 was held, receiving.
        pfc_pri2_rx_duration_us: le::U64 = 200,
        /// How often priority 2 was held, receiving.
        pfc_pri2_rx_transitions: le::U64 = 208,
        /// Microseconds that priority 3 was held, receiving.
        pfc_pri3_rx_duration_us: le::U64 = 216,
        /// How often priority 3 was held, receiving.
        pfc_pri3_rx_transitions: le::U64 = 224,
        /// Microseconds that priority 4 was held, receiving.
        pfc_pri4_rx_duration_us: le::U64 = 232,
        /// How often priority 4 was held, receiving.
        pfc_pri4_rx_transitions: le::U64 = 240,
        /// Microseconds that priority 5 was held, receiving.
        pfc_pri5_rx_duration_us: le::U64 = 248,
        /// How often priority 5 was held, receiving.
        pfc_pri5_rx_transitions: le::U64 = 256,
        /// Microseconds that priority 6 was held, receiving.
        pfc_pri6_rx_duration_us: le::U64 = 264,
        /// How often priority 6 was held, receiving.
        pfc_pri6_rx_transitions: le::U64 = 272,
        /// Microseconds that priority 7 was held, receiving.
        pfc_pri7_rx_duration_us: le::U64 = 280,
        /// How often priority 7 was held, receiving.
        pfc_pri7_rx_transitions: le::U64 = 288,
        /// Bits received.
        rx_bits: le::U64 = 296,
        /// How often the buffer was filled beyond its threshold.
        rx_buffer_passed_threshold: le::U64 = 304,
        /// Symbols with errors.
        rx_pcs_symbol_err: le::U64 = 312,
        /// Bits corrected.
        rx_corrected_bits: le::U64 = 320,
        /// Bytes dropped, class 0.
        rx_discard_bytes_cos0: le::U64 = 328,
        /// Bytes dropped, class 1.
        rx_discard_bytes_cos1: le::U64 = 336,
        /// Bytes dropped, class 2.
        rx_discard_bytes_cos2: le::U64 = 344,
        /// Bytes dropped, class 3.
        rx_discard_bytes_cos3: le::U64 = 352,
        /// Bytes dropped, class 4.
        rx_discard_bytes_cos4: le::U64 = 360,
        /// Bytes dropped, class 5.
        rx_discard_bytes_cos5: le::U64 = 368,
        /// Bytes dropped, class 6.
        rx_discard_bytes_cos6: le::U64 = 376,
        /// Bytes dropped, class 7.
        rx_discard_bytes_cos7: le::U64 = 384,
        /// Packets dropped, class 0.
        rx_discard_packets_cos0: le::U64 = 392,
        /// Packets dropped, class 1.
        rx_discard_packets_cos1: le::U64 = 400,
        /// Packets dropped, class 2.
        rx_discard_packets_cos2: le::U64 = 408,
        /// Packets dropped, class 3.
        rx_discard_packets_cos3: le::U64 = 416,
        /// Packets dropped, class 4.
        rx_discard_packets_cos4: le::U64 = 424,
        /// Packets dropped, class 5.
        rx_discard_packets_cos5: le::U64 = 432,
        /// Packets dropped, class 6.
        rx_discard_packets_cos6: le::U64 = 440,
        /// Packets dropped, class 7.
        rx_discard_packets_cos7: le::U64 = 448,
        /// Blocks corrected.
        rx_fec_corrected_blocks: le::U64 = 456,
        /// Blocks that could not be corrected.
        rx_fec_uncorrectable_blocks: le::U64 = 464,
        /// Frames that no filter took.
        rx_filter_miss: le::U64 = 472,
        /// Symbols with errors that were corrected.
        rx_fec_symbol_err: le::U64 = 480,
    }
}
