//! What the device keeps up to date in memory about a LIF. Source: Linux `ionic_if.h`.

use zerocopy::little_endian as le;

use super::lif::LifConfig;
use crate::layout::{Layout, layout, nested};

layout! {
    /// What there is to know about a LIF.
    pub struct LifInfo: "ionic" "ionic_lif_info", 1344 {
        /// How it is configured.
        config: LifConfig = 0,
        /// How it is.
        status: LifStatus = 256,
        /// What it has counted.
        stats: LifStats = 320,
    }
}

layout! {
    /// How a LIF is.
    pub struct LifStatus: "ionic" "ionic_lif_status", 64 {
        /// Number of the last notification.
        eid: le::U64 = 0,
        /// Its port.
        port_num: u8 = 8,
        /// Reserved.
        rsvd: u8 = 9,
        /// See [`super::PortOper`].
        link_status: le::U16 = 10,
        /// Speed in Mb/s.
        link_speed: le::U32 = 12,
        /// How often the link went down.
        link_down_count: le::U16 = 16,
        /// Reserved.
        rsvd2: [u8; 46] = 18,
    }
}

layout! {
    /// What a LIF has counted.
    pub struct LifStats: "ionic" "ionic_lif_stats", 1024 {
        /// Received unicast bytes.
        rx_ucast_bytes: le::U64 = 0,
        /// Received unicast packets.
        rx_ucast_packets: le::U64 = 8,
        /// Received multicast bytes.
        rx_mcast_bytes: le::U64 = 16,
        /// Received multicast packets.
        rx_mcast_packets: le::U64 = 24,
        /// Received broadcast bytes.
        rx_bcast_bytes: le::U64 = 32,
        /// Received broadcast packets.
        rx_bcast_packets: le::U64 = 40,
        /// Reserved.
        rsvd0: le::U64 = 48,
        /// Reserved.
        rsvd1: le::U64 = 56,
        /// Received unicast dropped bytes.
        rx_ucast_drop_bytes: le::U64 = 64,
        /// Received unicast dropped packets.
        rx_ucast_drop_packets: le::U64 = 72,
        /// Received multicast dropped bytes.
        rx_mcast_drop_bytes: le::U64 = 80,
        /// Received multicast dropped packets.
        rx_mcast_drop_packets: le::U64 = 88,
        /// Received broadcast dropped bytes.
        rx_bcast_drop_bytes: le::U64 = 96,
        /// Received broadcast dropped packets.
        rx_bcast_drop_packets: le::U64 = 104,
        /// Received DMA error.
        rx_dma_error: le::U64 = 112,
        /// Reserved.
        rsvd2: le::U64 = 120,
        /// Sent unicast bytes.
        tx_ucast_bytes: le::U64 = 128,
        /// Sent unicast packets.
        tx_ucast_packets: le::U64 = 136,
        /// Sent multicast bytes.
        tx_mcast_bytes: le::U64 = 144,
        /// Sent multicast packets.
        tx_mcast_packets: le::U64 = 152,
        /// Sent broadcast bytes.
        tx_bcast_bytes: le::U64 = 160,
        /// Sent broadcast packets.
        tx_bcast_packets: le::U64 = 168,
        /// Reserved.
        rsvd3: le::U64 = 176,
        /// Reserved.
        rsvd4: le::U64 = 184,
        /// Sent unicast dropped bytes.
        tx_ucast_drop_bytes: le::U64 = 192,
        /// Sent unicast dropped packets.
        tx_ucast_drop_packets: le::U64 = 200,
        /// Sent multicast dropped bytes.
        tx_mcast_drop_bytes: le::U64 = 208,
        /// Sent multicast dropped packets.
        tx_mcast_drop_packets: le::U64 = 216,
        /// Sent broadcast dropped bytes.
        tx_bcast_drop_bytes: le::U64 = 224,
        /// Sent broadcast dropped packets.
        tx_bcast_drop_packets: le::U64 = 232,
        /// Sent DMA error.
        tx_dma_error: le::U64 = 240,
        /// Reserved.
        rsvd5: le::U64 = 248,
        /// Received queue disabled.
        rx_queue_disabled: le::U64 = 256,
        /// Received queue empty.
        rx_queue_empty: le::U64 = 264,
        /// Received queue error.
        rx_queue_error: le::U64 = 272,
        /// Received descriptor fetch error.
        rx_desc_fetch_error: le::U64 = 280,
        /// Received descriptor data error.
        rx_desc_data_error: le::U64 = 288,
        /// Reserved.
        rsvd6: le::U64 = 296,
        /// Reserved.
        rsvd7: le::U64 = 304,
        /// Reserved.
        rsvd8: le::U64 = 312,
        /// Sent queue disabled.
        tx_queue_disabled: le::U64 = 320,
        /// Sent queue error.
        tx_queue_error: le::U64 = 328,
        /// Sent descriptor fetch error.
        tx_desc_fetch_error: le::U64 = 336,
        /// Sent descriptor data error.
        tx_desc_data_error: le::U64 = 344,
        /// Sent queue empty.
        tx_queue_empty: le::U64 = 352,
        /// Reserved.
        rsvd10: le::U64 = 360,
        /// Reserved.
        rsvd11: le::U64 = 368,
        /// Reserved.
        rsvd12: le::U64 = 376,
        /// Sent RDMA unicast bytes.
        tx_rdma_ucast_bytes: le::U64 = 384,
        /// Sent RDMA unicast packets.
        tx_rdma_ucast_packets: le::U64 = 392,
        /// Sent RDMA multicast bytes.
        tx_rdma_mcast_bytes: le::U64 = 400,
        /// Sent RDMA multicast packets.
        tx_rdma_mcast_packets: le::U64 = 408,
        /// Sent RDMA CNP packets.
        tx_rdma_cnp_packets: le::U64 = 416,
        /// Reserved.
        rsvd13: le::U64 = 424,
        /// Reserved.
        rsvd14: le::U64 = 432,
        /// Reserved.
        rsvd15: le::U64 = 440,
        /// Received RDMA unicast bytes.
        rx_rdma_ucast_bytes: le::U64 = 448,
        /// Received RDMA unicast packets.
        rx_rdma_ucast_packets: le::U64 = 456,
        /// Received RDMA multicast bytes.
        rx_rdma_mcast_bytes: le::U64 = 464,
        /// Received RDMA multicast packets.
        rx_rdma_mcast_packets: le::U64 = 472,
        /// Received RDMA CNP packets.
        rx_rdma_cnp_packets: le::U64 = 480,
        /// Received RDMA ECN packets.
        rx_rdma_ecn_packets: le::U64 = 488,
        /// Reserved.
        rsvd16: le::U64 = 496,
        /// Reserved.
        rsvd17: le::U64 = 504,
        /// Reserved.
        rsvd18: le::U64 = 512,
        /// Reserved.
        rsvd19: le::U64 = 520,
        /// Reserved.
        rsvd20: le::U64 = 528,
        /// Reserved.
        rsvd21: le::U64 = 536,
        /// Reserved.
        rsvd22: le::U64 = 544,
        /// Reserved.
        rsvd23: le::U64 = 552,
        /// Reserved.
        rsvd24: le::U64 = 560,
        /// Reserved.
        rsvd25: le::U64 = 568,
        /// Reserved.
        rsvd26: le::U64 = 576,
        /// Reserved.
        rsvd27: le::U64 = 584,
        /// Reserved.
        rsvd28: le::U64 = 592,
        /// Reserved.
        rsvd29: le::U64 = 600,
        /// Reserved.
        rsvd30: le::U64 = 608,
        /// Reserved.
        rsvd31: le::U64 = 616,
        /// Reserved.
        rsvd32: le::U64 = 624,
        /// Reserved.
        rsvd33: le::U64 = 632,
        /// Reserved.
        rsvd34: le::U64 = 640,
        /// Reserved.
        rsvd35: le::U64 = 648,
        /// Reserved.
        rsvd36: le::U64 = 656,
        /// Reserved.
        rsvd37: le::U64 = 664,
        /// Reserved.
        rsvd38: le::U64 = 672,
        /// Reserved.
        rsvd39: le::U64 = 680,
        /// Reserved.
        rsvd40: le::U64 = 688,
        /// Reserved.
        rsvd41: le::U64 = 696,
        /// Reserved.
        rsvd42: le::U64 = 704,
        /// Reserved.
        rsvd43: le::U64 = 712,
        /// Reserved.
        rsvd44: le::U64 = 720,
        /// Reserved.
        rsvd45: le::U64 = 728,
        /// Reserved.
        rsvd46: le::U64 = 736,
        /// Reserved.
        rsvd47: le::U64 = 744,
        /// Reserved.
        rsvd48: le::U64 = 752,
        /// Reserved.
        rsvd49: le::U64 = 760,
        /// RDMA, as requester, receiving: packets out of sequence.
        rdma_req_rx_pkt_seq_err: le::U64 = 768,
        /// RDMA, as requester, receiving: receiver not ready for too long.
        rdma_req_rx_rnr_retry_err: le::U64 = 776,
        /// RDMA, as requester, receiving: access refused.
        rdma_req_rx_remote_access_err: le::U64 = 784,
        /// RDMA, as requester, receiving: request refused.
        rdma_req_rx_remote_inv_req_err: le::U64 = 792,
        /// RDMA, as requester, receiving: peer failed.
        rdma_req_rx_remote_oper_err: le::U64 = 800,
        /// RDMA, as requester, receiving: answers that imply a loss.
        rdma_req_rx_implied_nak_seq_err: le::U64 = 808,
        /// RDMA, as requester, receiving: completions with an error.
        rdma_req_rx_cqe_err: le::U64 = 816,
        /// RDMA, as requester, receiving: completions flushed.
        rdma_req_rx_cqe_flush_err: le::U64 = 824,
        /// RDMA, as requester, receiving: answers received again.
        rdma_req_rx_dup_responses: le::U64 = 832,
        /// RDMA, as requester, receiving: packets that make no sense.
        rdma_req_rx_invalid_packets: le::U64 = 840,
        /// RDMA, as requester, sending: own access refused.
        rdma_req_tx_local_access_err: le::U64 = 848,
        /// RDMA, as requester, sending: own operation failed.
        rdma_req_tx_local_oper_err: le::U64 = 856,
        /// RDMA, as requester, sending: memory operation failed.
        rdma_req_tx_memory_mgmt_err: le::U64 = 864,
        /// Reserved.
        rsvd52: le::U64 = 872,
        /// Reserved.
        rsvd53: le::U64 = 880,
        /// Reserved.
        rsvd54: le::U64 = 888,
        /// RDMA, as responder, receiving: requests received again.
        rdma_resp_rx_dup_requests: le::U64 = 896,
        /// RDMA, as responder, receiving: no receive request ready.
        rdma_resp_rx_out_of_buffer: le::U64 = 904,
        /// RDMA, as responder, receiving: packets out of sequence.
        rdma_resp_rx_out_of_seq_pkts: le::U64 = 912,
        /// RDMA, as responder, receiving: completions with an error.
        rdma_resp_rx_cqe_err: le::U64 = 920,
        /// RDMA, as responder, receiving: completions flushed.
        rdma_resp_rx_cqe_flush_err: le::U64 = 928,
        /// RDMA, as responder, receiving: message longer than its buffers.
        rdma_resp_rx_local_len_err: le::U64 = 936,
        /// RDMA, as responder, receiving: request that makes no sense.
        rdma_resp_rx_inv_request_err: le::U64 = 944,
        /// RDMA, as responder, receiving: queue pair failed.
        rdma_resp_rx_local_qp_oper_err: le::U64 = 952,
        /// RDMA, as responder, receiving: too many READs and atomics.
        rdma_resp_rx_out_of_atomic_resource: le::U64 = 960,
        /// RDMA, as responder, sending: packets out of sequence.
        rdma_resp_tx_pkt_seq_err: le::U64 = 968,
        /// RDMA, as responder, sending: request refused.
        rdma_resp_tx_remote_inv_req_err: le::U64 = 976,
        /// RDMA, as responder, sending: access refused.
        rdma_resp_tx_remote_access_err: le::U64 = 984,
        /// RDMA, as responder, sending: peer failed.
        rdma_resp_tx_remote_oper_err: le::U64 = 992,
        /// RDMA, as responder, sending: receiver not ready for too long.
        rdma_resp_tx_rnr_retry_err: le::U64 = 1000,
        /// Reserved.
        rsvd57: le::U64 = 1008,
        /// Reserved.
        rsvd58: le::U64 = 1016,
    }
}

nested!(LifStatus, LifStats);

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 3] = [LifInfo::LAYOUT, LifStatus::LAYOUT, LifStats::LAYOUT];
