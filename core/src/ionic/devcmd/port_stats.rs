//! What a port counts, and where it tells. Source: `ionic_if.h`.

use zerocopy::little_endian as le;

use super::port::{PortConfig, PortStatus};
use crate::layout::{Layout, layout};

layout! {
    /// What a port has counted. Bytes of frames include the check sequence.
    pub struct PortStats: "ionic" "ionic_port_stats", 712 {
        /// Frames received: good.
        frames_rx_ok: le::U64 = 0,
        /// Frames received: all.
        frames_rx_all: le::U64 = 8,
        /// Frames received: bad check sequence.
        frames_rx_bad_fcs: le::U64 = 16,
        /// Frames received: bad all.
        frames_rx_bad_all: le::U64 = 24,
        /// Bytes received: good.
        octets_rx_ok: le::U64 = 32,
        /// Bytes received: all.
        octets_rx_all: le::U64 = 40,
        /// Frames received: to one receiver.
        frames_rx_unicast: le::U64 = 48,
        /// Frames received: to a group.
        frames_rx_multicast: le::U64 = 56,
        /// Frames received: to all.
        frames_rx_broadcast: le::U64 = 64,
        /// Frames received: pauses.
        frames_rx_pause: le::U64 = 72,
        /// Frames received: bad length.
        frames_rx_bad_length: le::U64 = 80,
        /// Frames received: undersized.
        frames_rx_undersized: le::U64 = 88,
        /// Frames received: oversized.
        frames_rx_oversized: le::U64 = 96,
        /// Frames received: fragments.
        frames_rx_fragments: le::U64 = 104,
        /// Frames received: jabber.
        frames_rx_jabber: le::U64 = 112,
        /// Frames received: pauses of a priority.
        frames_rx_pripause: le::U64 = 120,
        /// Frames received: stomped check sequence.
        frames_rx_stomped_crc: le::U64 = 128,
        /// Frames received: too long.
        frames_rx_too_long: le::U64 = 136,
        /// Frames received: tagged good.
        frames_rx_vlan_good: le::U64 = 144,
        /// Frames received: dropped.
        frames_rx_dropped: le::U64 = 152,
        /// Frames received of less than 64 bytes.
        frames_rx_less_than_64b: le::U64 = 160,
        /// Frames received of 64 bytes.
        frames_rx_64b: le::U64 = 168,
        /// Frames received of 65 to 127 bytes.
        frames_rx_65b_127b: le::U64 = 176,
        /// Frames received of 128 to 255 bytes.
        frames_rx_128b_255b: le::U64 = 184,
        /// Frames received of 256 to 511 bytes.
        frames_rx_256b_511b: le::U64 = 192,
        /// Frames received of 512 to 1023 bytes.
        frames_rx_512b_1023b: le::U64 = 200,
        /// Frames received of 1024 to 1518 bytes.
        frames_rx_1024b_1518b: le::U64 = 208,
        /// Frames received of 1519 to 2047 bytes.
        frames_rx_1519b_2047b: le::U64 = 216,
        /// Frames received of 2048 to 4095 bytes.
        frames_rx_2048b_4095b: le::U64 = 224,
        /// Frames received of 4096 to 8191 bytes.
        frames_rx_4096b_8191b: le::U64 = 232,
        /// Frames received of 8192 to 9215 bytes.
        frames_rx_8192b_9215b: le::U64 = 240,
        /// Frames received: of other lengths.
        frames_rx_other: le::U64 = 248,
        /// Frames sent: good.
        frames_tx_ok: le::U64 = 256,
        /// Frames sent: all.
        frames_tx_all: le::U64 = 264,
        /// Frames sent: bad.
        frames_tx_bad: le::U64 = 272,
        /// Bytes sent: good.
        octets_tx_ok: le::U64 = 280,
        /// Bytes sent: all.
        octets_tx_total: le::U64 = 288,
        /// Frames sent: to one receiver.
        frames_tx_unicast: le::U64 = 296,
        /// Frames sent: to a group.
        frames_tx_multicast: le::U64 = 304,
        /// Frames sent: to all.
        frames_tx_broadcast: le::U64 = 312,
        /// Frames sent: pauses.
        frames_tx_pause: le::U64 = 320,
        /// Frames sent: pauses of a priority.
        frames_tx_pripause: le::U64 = 328,
        /// Frames sent: tagged.
        frames_tx_vlan: le::U64 = 336,
        /// Frames sent of less than 64 bytes.
        frames_tx_less_than_64b: le::U64 = 344,
        /// Frames sent of 64 bytes.
        frames_tx_64b: le::U64 = 352,
        /// Frames sent of 65 to 127 bytes.
        frames_tx_65b_127b: le::U64 = 360,
        /// Frames sent of 128 to 255 bytes.
        frames_tx_128b_255b: le::U64 = 368,
        /// Frames sent of 256 to 511 bytes.
        frames_tx_256b_511b: le::U64 = 376,
        /// Frames sent of 512 to 1023 bytes.
        frames_tx_512b_1023b: le::U64 = 384,
        /// Frames sent of 1024 to 1518 bytes.
        frames_tx_1024b_1518b: le::U64 = 392,
        /// Frames sent of 1519 to 2047 bytes.
        frames_tx_1519b_2047b: le::U64 = 400,
        /// Frames sent of 2048 to 4095 bytes.
        frames_tx_2048b_4095b: le::U64 = 408,
        /// Frames sent of 4096 to 8191 bytes.
        frames_tx_4096b_8191b: le::U64 = 416,
        /// Frames sent of 8192 to 9215 bytes.
        frames_tx_8192b_9215b: le::U64 = 424,
        /// Frames sent: of other lengths.
        frames_tx_other: le::U64 = 432,
        /// Frames sent, priority 0.
        frames_tx_pri_0: le::U64 = 440,
        /// Frames sent, priority 1.
        frames_tx_pri_1: le::U64 = 448,
        /// Frames sent, priority 2.
        frames_tx_pri_2: le::U64 = 456,
        /// Frames sent, priority 3.
        frames_tx_pri_3: le::U64 = 464,
        /// Frames sent, priority 4.
        frames_tx_pri_4: le::U64 = 472,
        /// Frames sent, priority 5.
        frames_tx_pri_5: le::U64 = 480,
        /// Frames sent, priority 6.
        frames_tx_pri_6: le::U64 = 488,
        /// Frames sent, priority 7.
        frames_tx_pri_7: le::U64 = 496,
        /// Frames received, priority 0.
        frames_rx_pri_0: le::U64 = 504,
        /// Frames received, priority 1.
        frames_rx_pri_1: le::U64 = 512,
        /// Frames received, priority 2.
        frames_rx_pri_2: le::U64 = 520,
        /// Frames received, priority 3.
        frames_rx_pri_3: le::U64 = 528,
        /// Frames received, priority 4.
        frames_rx_pri_4: le::U64 = 536,
        /// Frames received, priority 5.
        frames_rx_pri_5: le::U64 = 544,
        /// Frames received, priority 6.
        frames_rx_pri_6: le::U64 = 552,
        /// Frames received, priority 7.
        frames_rx_pri_7: le::U64 = 560,
        /// Microseconds that priority 0 was held, sending.
        tx_pripause_0_1us_count: le::U64 = 568,
        /// Microseconds that priority 1 was held, sending.
        tx_pripause_1_1us_count: le::U64 = 576,
        /// Microseconds that priority 2 was held, sending.
        tx_pripause_2_1us_count: le::U64 = 584,
        /// Microseconds that priority 3 was held, sending.
        tx_pripause_3_1us_count: le::U64 = 592,
        /// Microseconds that priority 4 was held, sending.
        tx_pripause_4_1us_count: le::U64 = 600,
        /// Microseconds that priority 5 was held, sending.
        tx_pripause_5_1us_count: le::U64 = 608,
        /// Microseconds that priority 6 was held, sending.
        tx_pripause_6_1us_count: le::U64 = 616,
        /// Microseconds that priority 7 was held, sending.
        tx_pripause_7_1us_count: le::U64 = 624,
        /// Microseconds that priority 0 was held, receiving.
        rx_pripause_0_1us_count: le::U64 = 632,
        /// Microseconds that priority 1 was held, receiving.
        rx_pripause_1_1us_count: le::U64 = 640,
        /// Microseconds that priority 2 was held, receiving.
        rx_pripause_2_1us_count: le::U64 = 648,
        /// Microseconds that priority 3 was held, receiving.
        rx_pripause_3_1us_count: le::U64 = 656,
        /// Microseconds that priority 4 was held, receiving.
        rx_pripause_4_1us_count: le::U64 = 664,
        /// Microseconds that priority 5 was held, receiving.
        rx_pripause_5_1us_count: le::U64 = 672,
        /// Microseconds that priority 6 was held, receiving.
        rx_pripause_6_1us_count: le::U64 = 680,
        /// Microseconds that priority 7 was held, receiving.
        rx_pripause_7_1us_count: le::U64 = 688,
        /// Microseconds that the peer was held.
        rx_pause_1us_count: le::U64 = 696,
        /// Frames sent: truncated.
        frames_tx_truncated: le::U64 = 704,
    }
}

/// What a port keeps up to date in memory: the first part of `ionic_port_info`.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable,
)]
#[repr(C)]
pub struct PortInfo {
    /// How it is configured.
    pub config: PortConfig,
    /// How it is.
    pub status: PortStatus,
    /// What it has counted.
    pub stats: PortStats,
}

const _: () = assert!(core::mem::offset_of!(PortInfo, stats) == 576 && size_of::<PortInfo>() == 1288);

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 1] = [PortStats::LAYOUT];
