//! Congestion control. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqDone, CreqSize, command, side_buffer};
use crate::layout::layout;

command! {
    /// Asks how congestion is handled.
    pub struct CmdqQueryRoceCc: "cmdq_query_roce_cc", 16, QUERY_ROCE_CC => CreqSize {
    }
}
side_buffer! {
    /// How congestion is handled.
    pub struct CreqQueryRoceCcRespSb: "creq_query_roce_cc_resp_sb", 32 {
        /// Congestion control.
        enable_cc: u8 = 8,
        /// ECN in bits 0 and 1, DSCP above.
        tos_dscp_tos_ecn: u8 = 9,
        /// G.
        g: u8 = 10,
        /// Number of phases per state.
        num_phases_per_state: u8 = 11,
        /// Init current rate.
        init_cr: le::U16 = 12,
        /// Init target rate.
        init_tr: le::U16 = 14,
        /// Alt VLAN priority.
        alt_vlan_pcp: u8 = 16,
        /// Alt TOS DSCP.
        alt_tos_dscp: u8 = 17,
        /// Cc mode.
        cc_mode: u8 = 18,
        /// Transmit queue.
        tx_queue: u8 = 19,
        /// Round-trip time.
        rtt: le::U16 = 20,
        /// Tcp congestion probability.
        tcp_cp: le::U16 = 22,
        /// Inactivity threshold.
        inactivity_th: le::U16 = 24,
        /// Packets per phase.
        pkts_per_phase: u8 = 26,
        /// Time per phase.
        time_per_phase: u8 = 27,
        /// Zero.
        reserved32: le::U32 = 28,
    }
}
command! {
    /// Changes how congestion is handled.
    pub struct CmdqModifyRoceCc: "cmdq_modify_roce_cc", 56, MODIFY_ROCE_CC => CreqDone {
        /// Which of the fields count, a bit each.
        modify_mask: le::U32 = 16,
        /// Congestion control.
        enable_cc: u8 = 20,
        /// G.
        g: u8 = 21,
        /// Number of phases per state.
        num_phases_per_state: u8 = 22,
        /// Packets per phase.
        pkts_per_phase: u8 = 23,
        /// Init current rate.
        init_cr: le::U16 = 24,
        /// Init target rate.
        init_tr: le::U16 = 26,
        /// ECN in bits 0 and 1, DSCP above.
        tos_dscp_tos_ecn: u8 = 28,
        /// Alt VLAN priority.
        alt_vlan_pcp: u8 = 29,
        /// Alt TOS DSCP.
        alt_tos_dscp: le::U16 = 30,
        /// Round-trip time.
        rtt: le::U16 = 32,
        /// Tcp congestion probability.
        tcp_cp: le::U16 = 34,
        /// Cc mode.
        cc_mode: u8 = 36,
        /// Transmit queue.
        tx_queue: u8 = 37,
        /// Inactivity threshold.
        inactivity_th: le::U16 = 38,
        /// Time per phase.
        time_per_phase: u8 = 40,
        /// Zero.
        reserved8_1: u8 = 41,
        /// Zero.
        reserved16: le::U16 = 42,
        /// Zero.
        reserved32: le::U32 = 44,
        /// Zero.
        reserved64: le::U64 = 48,
    }
}
layout! {
    /// More of [`CmdqModifyRoceCc`], in a part behind it.
    pub struct CmdqModifyRoceCcGen1Tlv: "bnxt_re" "cmdq_modify_roce_cc_gen1_tlv", 96 {
        /// Discriminator of the list.
        cmd_discr: le::U16 = 0,
        /// Zero.
        reserved_8b: u8 = 2,
        /// 1: another part follows; 2: it must be understood.
        tlv_flags: u8 = 3,
        /// Kind of part.
        tlv_type: le::U16 = 4,
        /// Bytes of the part.
        length: le::U16 = 6,
        /// Zero.
        reserved64: le::U64 = 8,
        /// Which of the fields count, a bit each.
        modify_mask: le::U64 = 16,
        /// Inactivity threshold hi.
        inactivity_th_hi: le::U16 = 24,
        /// Fewest time between CNPs.
        min_time_between_cnps: le::U16 = 26,
        /// Init congestion probability.
        init_cp: le::U16 = 28,
        /// Target rate update mode.
        tr_update_mode: u8 = 30,
        /// Target rate update cycles.
        tr_update_cycles: u8 = 31,
        /// Fr num round trips.
        fr_num_rtts: u8 = 32,
        /// Ai rate increase.
        ai_rate_increase: u8 = 33,
        /// Reduction relax round trips threshold.
        reduction_relax_rtts_th: le::U16 = 34,
        /// Additional relax current rate threshold.
        additional_relax_cr_th: le::U16 = 36,
        /// Current rate least threshold.
        cr_min_th: le::U16 = 38,
        /// Bandwidth avg weight.
        bw_avg_weight: u8 = 40,
        /// Actual current rate factor.
        actual_cr_factor: u8 = 41,
        /// Most congestion probability current rate threshold.
        max_cp_cr_th: le::U16 = 42,
        /// Congestion probability bias enabled.
        cp_bias_en: u8 = 44,
        /// Congestion probability bias.
        cp_bias: u8 = 45,
        /// CNP ECN.
        cnp_ecn: u8 = 46,
        /// Round-trip time jitter enabled.
        rtt_jitter_en: u8 = 47,
        /// Link bytes per usec.
        link_bytes_per_usec: le::U16 = 48,
        /// Reset cc current rate threshold.
        reset_cc_cr_th: le::U16 = 50,
        /// Current rate width.
        cr_width: u8 = 52,
        /// Version of quota period, minor number.
        quota_period_min: u8 = 53,
        /// Quota period max.
        quota_period_max: u8 = 54,
        /// Quota period abs max.
        quota_period_abs_max: u8 = 55,
        /// Target rate lower bound.
        tr_lower_bound: le::U16 = 56,
        /// Current rate prob factor.
        cr_prob_factor: u8 = 58,
        /// Target rate prob factor.
        tr_prob_factor: u8 = 59,
        /// Fairness current rate threshold.
        fairness_cr_th: le::U16 = 60,
        /// Red div.
        red_div: u8 = 62,
        /// CNP ratio threshold.
        cnp_ratio_th: u8 = 63,
        /// Exp ai round trips.
        exp_ai_rtts: le::U16 = 64,
        /// Exp ai current rate congestion probability ratio.
        exp_ai_cr_cp_ratio: u8 = 66,
        /// Use rate table.
        use_rate_table: u8 = 67,
        /// Congestion probability exp update threshold.
        cp_exp_update_th: le::U16 = 68,
        /// High exp ai round trips th1.
        high_exp_ai_rtts_th1: le::U16 = 70,
        /// High exp ai round trips th2.
        high_exp_ai_rtts_th2: le::U16 = 72,
        /// Actual current rate cong free round trips threshold.
        actual_cr_cong_free_rtts_th: le::U16 = 74,
        /// Severe cong current rate th1.
        severe_cong_cr_th1: le::U16 = 76,
        /// Severe cong current rate th2.
        severe_cong_cr_th2: le::U16 = 78,
        /// Link64B per round-trip time.
        link64b_per_rtt: le::U32 = 80,
        /// Cc ack bytes.
        cc_ack_bytes: u8 = 84,
        /// Reduce init enabled.
        reduce_init_en: u8 = 85,
        /// Reduce init cong free round trips threshold.
        reduce_init_cong_free_rtts_th: le::U16 = 86,
        /// Random no red enabled.
        random_no_red_en: u8 = 88,
        /// Actual current rate shift correction enabled.
        actual_cr_shift_correction_en: u8 = 89,
        /// Quota period adjust enabled.
        quota_period_adjust_en: u8 = 90,
        /// Zero.
        reserved: [u8; 5] = 91,
    }
}
layout! {
    /// More of [`CreqQueryRoceCcRespSb`], in a part behind it.
    pub struct CreqQueryRoceCcGen1RespSbTlv: "bnxt_re" "creq_query_roce_cc_gen1_resp_sb_tlv", 88 {
        /// Discriminator of the list.
        cmd_discr: le::U16 = 0,
        /// Zero.
        reserved_8b: u8 = 2,
        /// 1: another part follows; 2: it must be understood.
        tlv_flags: u8 = 3,
        /// Kind of part.
        tlv_type: le::U16 = 4,
        /// Bytes of the part.
        length: le::U16 = 6,
        /// Zero.
        reserved64: le::U64 = 8,
        /// Inactivity threshold hi.
        inactivity_th_hi: le::U16 = 16,
        /// Fewest time between CNPs.
        min_time_between_cnps: le::U16 = 18,
        /// Init congestion probability.
        init_cp: le::U16 = 20,
        /// Target rate update mode.
        tr_update_mode: u8 = 22,
        /// Target rate update cycles.
        tr_update_cycles: u8 = 23,
        /// Fr num round trips.
        fr_num_rtts: u8 = 24,
        /// Ai rate increase.
        ai_rate_increase: u8 = 25,
        /// Reduction relax round trips threshold.
        reduction_relax_rtts_th: le::U16 = 26,
        /// Additional relax current rate threshold.
        additional_relax_cr_th: le::U16 = 28,
        /// Current rate least threshold.
        cr_min_th: le::U16 = 30,
        /// Bandwidth avg weight.
        bw_avg_weight: u8 = 32,
        /// Actual current rate factor.
        actual_cr_factor: u8 = 33,
        /// Most congestion probability current rate threshold.
        max_cp_cr_th: le::U16 = 34,
        /// Congestion probability bias enabled.
        cp_bias_en: u8 = 36,
        /// Congestion probability bias.
        cp_bias: u8 = 37,
        /// CNP ECN.
        cnp_ecn: u8 = 38,
        /// Round-trip time jitter enabled.
        rtt_jitter_en: u8 = 39,
        /// Link bytes per usec.
        link_bytes_per_usec: le::U16 = 40,
        /// Reset cc current rate threshold.
        reset_cc_cr_th: le::U16 = 42,
        /// Current rate width.
        cr_width: u8 = 44,
        /// Version of quota period, minor number.
        quota_period_min: u8 = 45,
        /// Quota period max.
        quota_period_max: u8 = 46,
        /// Quota period abs max.
        quota_period_abs_max: u8 = 47,
        /// Target rate lower bound.
        tr_lower_bound: le::U16 = 48,
        /// Current rate prob factor.
        cr_prob_factor: u8 = 50,
        /// Target rate prob factor.
        tr_prob_factor: u8 = 51,
        /// Fairness current rate threshold.
        fairness_cr_th: le::U16 = 52,
        /// Red div.
        red_div: u8 = 54,
        /// CNP ratio threshold.
        cnp_ratio_th: u8 = 55,
        /// Exp ai round trips.
        exp_ai_rtts: le::U16 = 56,
        /// Exp ai current rate congestion probability ratio.
        exp_ai_cr_cp_ratio: u8 = 58,
        /// Use rate table.
        use_rate_table: u8 = 59,
        /// Congestion probability exp update threshold.
        cp_exp_update_th: le::U16 = 60,
        /// High exp ai round trips th1.
        high_exp_ai_rtts_th1: le::U16 = 62,
        /// High exp ai round trips th2.
        high_exp_ai_rtts_th2: le::U16 = 64,
        /// Actual current rate cong free round trips threshold.
        actual_cr_cong_free_rtts_th: le::U16 = 66,
        /// Severe cong current rate th1.
        severe_cong_cr_th1: le::U16 = 68,
        /// Severe cong current rate th2.
        severe_cong_cr_th2: le::U16 = 70,
        /// Link64B per round-trip time.
        link64b_per_rtt: le::U32 = 72,
        /// Cc ack bytes.
        cc_ack_bytes: u8 = 76,
        /// Reduce init enabled.
        reduce_init_en: u8 = 77,
        /// Reduce init cong free round trips threshold.
        reduce_init_cong_free_rtts_th: le::U16 = 78,
        /// Random no red enabled.
        random_no_red_en: u8 = 80,
        /// Actual current rate shift correction enabled.
        actual_cr_shift_correction_en: u8 = 81,
        /// Quota period adjust enabled.
        quota_period_adjust_en: u8 = 82,
        /// Zero.
        reserved: [u8; 5] = 83,
    }
}
