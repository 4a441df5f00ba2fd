//! What a port counts. Source: `hsi.h`.

use zerocopy::little_endian as le;

use crate::layout::layout;

layout! {
    /// What was sent, written by PORT_QSTATS. Bytes of frames include the check sequence.
    pub struct TxPortStats: "bnxt_re" "tx_port_stats", 408 {
        /// Frames sent of 64 bytes.
        tx_64b_frames: le::U64 = 0,
        /// Frames sent of 65 to 127 bytes.
        tx_65b_127b_frames: le::U64 = 8,
        /// Frames sent of 128 to 255 bytes.
        tx_128b_255b_frames: le::U64 = 16,
        /// Frames sent of 256 to 511 bytes.
        tx_256b_511b_frames: le::U64 = 24,
        /// Frames sent of 512 to 1023 bytes.
        tx_512b_1023b_frames: le::U64 = 32,
        /// Frames sent of 1024 to 1518 bytes.
        tx_1024b_1518b_frames: le::U64 = 40,
        /// Frames sent: good vlan.
        tx_good_vlan_frames: le::U64 = 48,
        /// Frames sent of 1519 to 2047 bytes.
        tx_1519b_2047b_frames: le::U64 = 56,
        /// Frames sent of 2048 to 4095 bytes.
        tx_2048b_4095b_frames: le::U64 = 64,
        /// Frames sent of 4096 to 9216 bytes.
        tx_4096b_9216b_frames: le::U64 = 72,
        /// Frames sent of 9217 to 16383 bytes.
        tx_9217b_16383b_frames: le::U64 = 80,
        /// Frames sent: good.
        tx_good_frames: le::U64 = 88,
        /// Frames sent: total.
        tx_total_frames: le::U64 = 96,
        /// Frames sent: to one receiver.
        tx_ucast_frames: le::U64 = 104,
        /// Frames sent: to a group.
        tx_mcast_frames: le::U64 = 112,
        /// Frames sent: to all.
        tx_bcast_frames: le::U64 = 120,
        /// Frames sent: pause.
        tx_pause_frames: le::U64 = 128,
        /// Frames sent: priority flow control.
        tx_pfc_frames: le::U64 = 136,
        /// Frames sent: jabber.
        tx_jabber_frames: le::U64 = 144,
        /// Frames sent: check sequence errors.
        tx_fcs_err_frames: le::U64 = 152,
        /// Frames sent: control.
        tx_control_frames: le::U64 = 160,
        /// Frames sent: too long.
        tx_oversz_frames: le::U64 = 168,
        /// Frames sent: single deferral.
        tx_single_dfrl_frames: le::U64 = 176,
        /// Frames sent: multi deferral.
        tx_multi_dfrl_frames: le::U64 = 184,
        /// Frames sent: single collision.
        tx_single_coll_frames: le::U64 = 192,
        /// Frames sent: multi collision.
        tx_multi_coll_frames: le::U64 = 200,
        /// Frames sent: late collision.
        tx_late_coll_frames: le::U64 = 208,
        /// Frames sent: excessive collision.
        tx_excessive_coll_frames: le::U64 = 216,
        /// Frames sent: fragment.
        tx_frag_frames: le::U64 = 224,
        /// Frames that could not be sent.
        tx_err: le::U64 = 232,
        /// Frames sent: tagged.
        tx_tagged_frames: le::U64 = 240,
        /// Frames sent: doubly tagged.
        tx_dbl_tagged_frames: le::U64 = 248,
        /// Frames sent: runt.
        tx_runt_frames: le::U64 = 256,
        /// Fifo underruns, sent.
        tx_fifo_underruns: le::U64 = 264,
        /// Frames sent: priority flow control enabled, priority 0.
        tx_pfc_ena_frames_pri0: le::U64 = 272,
        /// Frames sent: priority flow control enabled, priority 1.
        tx_pfc_ena_frames_pri1: le::U64 = 280,
        /// Frames sent: priority flow control enabled, priority 2.
        tx_pfc_ena_frames_pri2: le::U64 = 288,
        /// Frames sent: priority flow control enabled, priority 3.
        tx_pfc_ena_frames_pri3: le::U64 = 296,
        /// Frames sent: priority flow control enabled, priority 4.
        tx_pfc_ena_frames_pri4: le::U64 = 304,
        /// Frames sent: priority flow control enabled, priority 5.
        tx_pfc_ena_frames_pri5: le::U64 = 312,
        /// Frames sent: priority flow control enabled, priority 6.
        tx_pfc_ena_frames_pri6: le::U64 = 320,
        /// Frames sent: priority flow control enabled, priority 7.
        tx_pfc_ena_frames_pri7: le::U64 = 328,
        /// How often the link idled at low power.
        tx_eee_lpi_events: le::U64 = 336,
        /// Microseconds that it did.
        tx_eee_lpi_duration: le::U64 = 344,
        /// Link-level flow control logical messages, sent.
        tx_llfc_logical_msgs: le::U64 = 352,
        /// Hierarchical flow control messages, sent.
        tx_hcfc_msgs: le::U64 = 360,
        /// Total collisions, sent.
        tx_total_collisions: le::U64 = 368,
        /// Bytes sent.
        tx_bytes: le::U64 = 376,
        /// Frames sent: held.
        tx_xthol_frames: le::U64 = 384,
        /// Frames dropped.
        tx_stat_discard: le::U64 = 392,
        /// Frames with errors.
        tx_stat_error: le::U64 = 400,
    }
}
layout! {
    /// What was received.
    pub struct RxPortStats: "bnxt_re" "rx_port_stats", 528 {
        /// Frames received of 64 bytes.
        rx_64b_frames: le::U64 = 0,
        /// Frames received of 65 to 127 bytes.
        rx_65b_127b_frames: le::U64 = 8,
        /// Frames received of 128 to 255 bytes.
        rx_128b_255b_frames: le::U64 = 16,
        /// Frames received of 256 to 511 bytes.
        rx_256b_511b_frames: le::U64 = 24,
        /// Frames received of 512 to 1023 bytes.
        rx_512b_1023b_frames: le::U64 = 32,
        /// Frames received of 1024 to 1518 bytes.
        rx_1024b_1518b_frames: le::U64 = 40,
        /// Frames received: good vlan.
        rx_good_vlan_frames: le::U64 = 48,
        /// Frames received of 1519 to 2047 bytes.
        rx_1519b_2047b_frames: le::U64 = 56,
        /// Frames received of 2048 to 4095 bytes.
        rx_2048b_4095b_frames: le::U64 = 64,
        /// Frames received of 4096 to 9216 bytes.
        rx_4096b_9216b_frames: le::U64 = 72,
        /// Frames received of 9217 to 16383 bytes.
        rx_9217b_16383b_frames: le::U64 = 80,
        /// Frames received: total.
        rx_total_frames: le::U64 = 88,
        /// Frames received: to one receiver.
        rx_ucast_frames: le::U64 = 96,
        /// Frames received: to a group.
        rx_mcast_frames: le::U64 = 104,
        /// Frames received: to all.
        rx_bcast_frames: le::U64 = 112,
        /// Frames received: check sequence errors.
        rx_fcs_err_frames: le::U64 = 120,
        /// Frames received: control.
        rx_ctrl_frames: le::U64 = 128,
        /// Frames received: pause.
        rx_pause_frames: le::U64 = 136,
        /// Frames received: priority flow control.
        rx_pfc_frames: le::U64 = 144,
        /// Frames received: unsupported opcode.
        rx_unsupported_opcode_frames: le::U64 = 152,
        /// Frames received: unsupported destination address pausepfc.
        rx_unsupported_da_pausepfc_frames: le::U64 = 160,
        /// Frames received: wrong source address.
        rx_wrong_sa_frames: le::U64 = 168,
        /// Frames received: align errors.
        rx_align_err_frames: le::U64 = 176,
        /// Frames received: out of range length.
        rx_oor_len_frames: le::U64 = 184,
        /// Frames received: code errors.
        rx_code_err_frames: le::U64 = 192,
        /// Frames received: false carrier.
        rx_false_carrier_frames: le::U64 = 200,
        /// Frames received: too long.
        rx_ovrsz_frames: le::U64 = 208,
        /// Frames received: jabber.
        rx_jbr_frames: le::U64 = 216,
        /// Frames received: MTU errors.
        rx_mtu_err_frames: le::U64 = 224,
        /// Frames received: match check sequence.
        rx_match_crc_frames: le::U64 = 232,
        /// Frames received: promiscuous.
        rx_promiscuous_frames: le::U64 = 240,
        /// Frames received: tagged.
        rx_tagged_frames: le::U64 = 248,
        /// Frames received: double tagged.
        rx_double_tagged_frames: le::U64 = 256,
        /// Frames received: cut.
        rx_trunc_frames: le::U64 = 264,
        /// Frames received: good.
        rx_good_frames: le::U64 = 272,
        /// Frames received: priority flow control xon2xoff, priority 0.
        rx_pfc_xon2xoff_frames_pri0: le::U64 = 280,
        /// Frames received: priority flow control xon2xoff, priority 1.
        rx_pfc_xon2xoff_frames_pri1: le::U64 = 288,
        /// Frames received: priority flow control xon2xoff, priority 2.
        rx_pfc_xon2xoff_frames_pri2: le::U64 = 296,
        /// Frames received: priority flow control xon2xoff, priority 3.
        rx_pfc_xon2xoff_frames_pri3: le::U64 = 304,
        /// Frames received: priority flow control xon2xoff, priority 4.
        rx_pfc_xon2xoff_frames_pri4: le::U64 = 312,
        /// Frames received: priority flow control xon2xoff, priority 5.
        rx_pfc_xon2xoff_frames_pri5: le::U64 = 320,
        /// Frames received: priority flow control xon2xoff, priority 6.
        rx_pfc_xon2xoff_frames_pri6: le::U64 = 328,
        /// Frames received: priority flow control xon2xoff, priority 7.
        rx_pfc_xon2xoff_frames_pri7: le::U64 = 336,
        /// Frames received: priority flow control enabled, priority 0.
        rx_pfc_ena_frames_pri0: le::U64 = 344,
        /// Frames received: priority flow control enabled, priority 1.
        rx_pfc_ena_frames_pri1: le::U64 = 352,
        /// Frames received: priority flow control enabled, priority 2.
        rx_pfc_ena_frames_pri2: le::U64 = 360,
        /// Frames received: priority flow control enabled, priority 3.
        rx_pfc_ena_frames_pri3: le::U64 = 368,
        /// Frames received: priority flow control enabled, priority 4.
        rx_pfc_ena_frames_pri4: le::U64 = 376,
        /// Frames received: priority flow control enabled, priority 5.
        rx_pfc_ena_frames_pri5: le::U64 = 384,
        /// Frames received: priority flow control enabled, priority 6.
        rx_pfc_ena_frames_pri6: le::U64 = 392,
        /// Frames received: priority flow control enabled, priority 7.
        rx_pfc_ena_frames_pri7: le::U64 = 400,
        /// Frames received: scheduler check sequence errors.
        rx_sch_crc_err_frames: le::U64 = 408,
        /// Frames received: too short.
        rx_undrsz_frames: le::U64 = 416,
        /// Frames received: fragment.
        rx_frag_frames: le::U64 = 424,
        /// How often the link idled at low power.
        rx_eee_lpi_events: le::U64 = 432,
        /// Microseconds that it did.
        rx_eee_lpi_duration: le::U64 = 440,
        /// Link-level flow control physical messages, received.
        rx_llfc_physical_msgs: le::U64 = 448,
        /// Link-level flow control logical messages, received.
        rx_llfc_logical_msgs: le::U64 = 456,
        /// Link-level flow control messages with check sequence errors, received.
        rx_llfc_msgs_with_crc_err: le::U64 = 464,
        /// Hierarchical flow control messages, received.
        rx_hcfc_msgs: le::U64 = 472,
        /// Hierarchical flow control messages with check sequence errors, received.
        rx_hcfc_msgs_with_crc_err: le::U64 = 480,
        /// Bytes received.
        rx_bytes: le::U64 = 488,
        /// Runt bytes, received.
        rx_runt_bytes: le::U64 = 496,
        /// Frames received: runt.
        rx_runt_frames: le::U64 = 504,
        /// Frames dropped.
        rx_stat_discard: le::U64 = 512,
        /// Frames with errors.
        rx_stat_err: le::U64 = 520,
    }
}
