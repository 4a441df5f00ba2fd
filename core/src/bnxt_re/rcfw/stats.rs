//! Statistics of RoCE. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqSize, command};
use crate::layout::layout;

command! {
    /// Asks for counters of errors.
    pub struct CmdqQueryRoceStats: "cmdq_query_roce_stats", 24, [collection_id] QUERY_ROCE_STATS => CreqSize {
        /// Function.
        function_id: le::U32 = 16,
        /// Zero.
        reserved32: le::U32 = 20,
    }
}
layout! {
    /// Counters of errors.
    pub struct CreqQueryRoceStatsRespSb: "bnxt_re" "creq_query_roce_stats_resp_sb", 368 {
        /// Opcode.
        opcode: u8 = 0,
        /// Status.
        status: u8 = 1,
        /// Cookie.
        cookie: le::U16 = 2,
        /// Flags.
        flags: le::U16 = 4,
        /// Resp size.
        resp_size: u8 = 6,
        /// Zero.
        rsvd: u8 = 7,
        /// Number of counters.
        num_counters: le::U32 = 8,
        /// Zero.
        rsvd1: le::U32 = 12,
        /// To retransmits.
        to_retransmits: le::U64 = 16,
        /// Sequence errors naks rcvd.
        seq_err_naks_rcvd: le::U64 = 24,
        /// Most retry exceeded.
        max_retry_exceeded: le::U64 = 32,
        /// RNR naks rcvd.
        rnr_naks_rcvd: le::U64 = 40,
        /// Missing resp.
        missing_resp: le::U64 = 48,
        /// Unrecoverable errors.
        unrecoverable_err: le::U64 = 56,
        /// Bad resp errors.
        bad_resp_err: le::U64 = 64,
        /// Local queue pairs op errors.
        local_qp_op_err: le::U64 = 72,
        /// Local protection errors.
        local_protection_err: le::U64 = 80,
        /// Mem management op errors.
        mem_mgmt_op_err: le::U64 = 88,
        /// Remote invalid requester errors.
        remote_invalid_req_err: le::U64 = 96,
        /// Remote access errors.
        remote_access_err: le::U64 = 104,
        /// Remote op errors.
        remote_op_err: le::U64 = 112,
        /// Dup requester.
        dup_req: le::U64 = 120,
        /// Responder exceed max.
        res_exceed_max: le::U64 = 128,
        /// Responder length mismatch.
        res_length_mismatch: le::U64 = 136,
        /// Responder exceeds WQE.
        res_exceeds_wqe: le::U64 = 144,
        /// Responder opcode errors.
        res_opcode_err: le::U64 = 152,
        /// Responder receive invalid rkey.
        res_rx_invalid_rkey: le::U64 = 160,
        /// Responder receive domain errors.
        res_rx_domain_err: le::U64 = 168,
        /// Responder receive no perm.
        res_rx_no_perm: le::U64 = 176,
        /// Responder receive range errors.
        res_rx_range_err: le::U64 = 184,
        /// Responder transmit invalid rkey.
        res_tx_invalid_rkey: le::U64 = 192,
        /// Responder transmit domain errors.
        res_tx_domain_err: le::U64 = 200,
        /// Responder transmit no perm.
        res_tx_no_perm: le::U64 = 208,
        /// Responder transmit range errors.
        res_tx_range_err: le::U64 = 216,
        /// Responder irrq oflow.
        res_irrq_oflow: le::U64 = 224,
        /// Responder unsup opcode.
        res_unsup_opcode: le::U64 = 232,
        /// Responder unaligned atomic.
        res_unaligned_atomic: le::U64 = 240,
        /// Responder rem inv errors.
        res_rem_inv_err: le::U64 = 248,
        /// Responder mem error.
        res_mem_error: le::U64 = 256,
        /// Responder shared receive queues errors.
        res_srq_err: le::U64 = 264,
        /// Responder cmp errors.
        res_cmp_err: le::U64 = 272,
        /// Responder invalid dup rkey.
        res_invalid_dup_rkey: le::U64 = 280,
        /// Responder WQE format errors.
        res_wqe_format_err: le::U64 = 288,
        /// Responder completion queues load errors.
        res_cq_load_err: le::U64 = 296,
        /// Responder shared receive queues load errors.
        res_srq_load_err: le::U64 = 304,
        /// Responder transmit pci errors.
        res_tx_pci_err: le::U64 = 312,
        /// Responder receive pci errors.
        res_rx_pci_err: le::U64 = 320,
        /// Responder oos drop count.
        res_oos_drop_count: le::U64 = 328,
        /// Active queue pairs count p0.
        active_qp_count_p0: le::U64 = 336,
        /// Active queue pairs count p1.
        active_qp_count_p1: le::U64 = 344,
        /// Active queue pairs count p2.
        active_qp_count_p2: le::U64 = 352,
        /// Active queue pairs count p3.
        active_qp_count_p3: le::U64 = 360,
    }
}
command! {
    /// Asks for counters of packets.
    pub struct CmdqQueryRoceStatsExt: "cmdq_query_roce_stats_ext", 24, [collection_id] QUERY_ROCE_STATS_EXT => CreqSize {
        /// Function.
        function_id: le::U32 = 16,
        /// Zero.
        reserved32: le::U32 = 20,
    }
}
layout! {
    /// Counters of packets.
    pub struct CreqQueryRoceStatsExtRespSb: "bnxt_re" "creq_query_roce_stats_ext_resp_sb", 232 {
        /// Opcode.
        opcode: u8 = 0,
        /// Status.
        status: u8 = 1,
        /// Cookie.
        cookie: le::U16 = 2,
        /// Flags.
        flags: le::U16 = 4,
        /// Resp size.
        resp_size: u8 = 6,
        /// Zero.
        rsvd: u8 = 7,
        /// Transmit atomic requester packets.
        tx_atomic_req_pkts: le::U64 = 8,
        /// Transmit read requester packets.
        tx_read_req_pkts: le::U64 = 16,
        /// Transmit read responder packets.
        tx_read_res_pkts: le::U64 = 24,
        /// Transmit write requester packets.
        tx_write_req_pkts: le::U64 = 32,
        /// Transmit send requester packets.
        tx_send_req_pkts: le::U64 = 40,
        /// Transmit RoCE packets.
        tx_roce_pkts: le::U64 = 48,
        /// Transmit RoCE bytes.
        tx_roce_bytes: le::U64 = 56,
        /// Receive atomic requester packets.
        rx_atomic_req_pkts: le::U64 = 64,
        /// Receive read requester packets.
        rx_read_req_pkts: le::U64 = 72,
        /// Receive read responder packets.
        rx_read_res_pkts: le::U64 = 80,
        /// Receive write requester packets.
        rx_write_req_pkts: le::U64 = 88,
        /// Receive send requester packets.
        rx_send_req_pkts: le::U64 = 96,
        /// Receive RoCE packets.
        rx_roce_pkts: le::U64 = 104,
        /// Receive RoCE bytes.
        rx_roce_bytes: le::U64 = 112,
        /// Receive RoCE good packets.
        rx_roce_good_pkts: le::U64 = 120,
        /// Receive RoCE good bytes.
        rx_roce_good_bytes: le::U64 = 128,
        /// Receive out of buffer packets.
        rx_out_of_buffer_pkts: le::U64 = 136,
        /// Receive out of sequence packets.
        rx_out_of_sequence_pkts: le::U64 = 144,
        /// Transmit CNP packets.
        tx_cnp_pkts: le::U64 = 152,
        /// Receive CNP packets.
        rx_cnp_pkts: le::U64 = 160,
        /// Receive ECN marked packets.
        rx_ecn_marked_pkts: le::U64 = 168,
        /// Transmit CNP bytes.
        tx_cnp_bytes: le::U64 = 176,
        /// Receive CNP bytes.
        rx_cnp_bytes: le::U64 = 184,
        /// Sequence errors naks rcvd.
        seq_err_naks_rcvd: le::U64 = 192,
        /// RNR naks rcvd.
        rnr_naks_rcvd: le::U64 = 200,
        /// Missing resp.
        missing_resp: le::U64 = 208,
        /// To retransmit.
        to_retransmit: le::U64 = 216,
        /// Dup requester.
        dup_req: le::U64 = 224,
    }
}
