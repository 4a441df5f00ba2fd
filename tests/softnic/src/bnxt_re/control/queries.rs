//! Queries.

use directverbs::bnxt_re::psn::Retransmit;
use directverbs::bnxt_re::rcfw::event::Status;
use directverbs::bnxt_re::rcfw::function::{CreqQueryFuncRespSb, caps, caps_ext, caps_ext2};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::parameter::{ModifyCongestion, Parameter};
use directverbs::bnxt_re::rcfw::srq::{CmdqQuerySrq, CreqQuerySrqRespSb};
use directverbs::bnxt_re::rcfw::stats::{CreqQueryRoceStatsExtRespSb, CreqQueryRoceStatsRespSb};
use directverbs::bnxt_re::wqe::{STATIC_SGES, WqeMode};
use directverbs::verbs::SrqId;
use zerocopy::{IntoBytes, little_endian as le};

use super::channel::{Outcome, Reply};
use super::chip::{MAX_AH, MAX_CQ, MAX_GID, MAX_MR, MAX_RD_ATOMIC, MAX_SRQ};
use super::function::BnxtFunction;

/// SGEs of a WQE of variable size.
pub(super) const MAX_SGES: u32 = 13;
/// CQEs of a completion queue.
const MAX_CQE: u32 = 0x10_0000;

impl BnxtFunction {
    /// What the function can do.
    pub(super) fn query_func(&self) -> Reply {
        let n = |value: u32| le::U32::new(value);
        let p7 = self.chip.is_p7();
        let table = match self.chip.front_end().retransmit {
            Retransmit::Msn => caps_ext2::HOST_MSN_TABLE,
            _ => 0,
        };
        let told = CreqQueryFuncRespSb {
            opcode: Opcode::QUERY_FUNC.0,
            max_mr_size: le::U64::new(1 << 40),
            max_qp: n(self.chip.max_qp - 1),
            max_qp_wr: le::U16::new(0xff7f),
            dev_cap_flags: le::U16::new(if p7 { caps::MR_REGISTER_ALLOC } else { 0 }),
            max_cq: n(MAX_CQ),
            max_cqe: n(MAX_CQE),
            max_pd: n(1 << 16),
            max_sge: STATIC_SGES as u8,
            max_srq_sge: STATIC_SGES as u8,
            max_qp_rd_atom: MAX_RD_ATOMIC,
            max_qp_init_rd_atom: MAX_RD_ATOMIC,
            max_mr: n(MAX_MR),
            max_mw: n(MAX_MR),
            max_ah: n(MAX_AH),
            max_srq_wr: n(0xffff),
            max_pkeys: n(1),
            max_inline_data: n(STATIC_SGES * 16),
            max_srq: le::U16::new(MAX_SRQ),
            max_gid: n(MAX_GID),
            max_dpi: n(self.chip.pages()),
            max_sge_var_wqe: MAX_SGES as u8,
            dev_cap_ext_flags: match self.chip.wqe_mode {
                WqeMode::Variable => caps_ext::FIXED_SIZE_WQE_DISABLED,
                WqeMode::Static => 0,
            },
            max_inline_data_var_wqe: le::U16::new((MAX_SGES * 16) as u16),
            dev_cap_ext_flags_2: le::U16::new(table | if p7 { caps_ext2::OPTIMIZE_MODIFY_QP } else { 0 }),
            ..CreqQueryFuncRespSb::ZERO
        };
        Reply::side(told.as_bytes())
    }

    pub(super) fn query_srq(&self, command: &CmdqQuerySrq) -> Outcome {
        let srq = command.srq_cid.get();
        if !self.state.objects.srqs.contains_key(&srq) {
            self.violation(format_args!("QUERY_SRQ: no shared receive queue {srq:#x}"));
            return Err(Status::INVALID_PARAMETER);
        }
        let limit = self.nic.lock().hardware().srq_limit(SrqId::truncated(srq));
        let told = CreqQuerySrqRespSb {
            opcode: Opcode::QUERY_SRQ.0,
            xid: command.srq_cid,
            srq_limit: le::U16::new(limit.unwrap_or(0) as u16),
            ..CreqQuerySrqRespSb::ZERO
        };
        Ok(Reply::side(told.as_bytes()))
    }

    /// Counters of errors, as far as the engine counts them.
    pub(super) fn query_stats(&self) -> Reply {
        let counters = self.nic.lock().hardware().counters();
        let n = le::U64::new;
        let told = CreqQueryRoceStatsRespSb {
            opcode: Opcode::QUERY_ROCE_STATS.0,
            to_retransmits: n(counters.timeouts),
            dup_req: n(counters.duplicates),
            res_oos_drop_count: n(counters.sequence_naks),
            active_qp_count_p0: n(self.state.objects.qps.len() as u64),
            ..CreqQueryRoceStatsRespSb::ZERO
        };
        Reply::side(told.as_bytes())
    }

    /// Counters of packets, as far as the engine counts them.
    pub(super) fn query_stats_ext(&self) -> Reply {
        let counters = self.nic.lock().hardware().counters();
        let n = le::U64::new;
        let told = CreqQueryRoceStatsExtRespSb {
            opcode: Opcode::QUERY_ROCE_STATS_EXT.0,
            tx_roce_pkts: n(counters.sent),
            rx_roce_pkts: n(counters.received),
            rx_roce_good_pkts: n(counters.received),
            tx_roce_bytes: n(counters.sent_bytes),
            rx_roce_bytes: n(counters.received_bytes),
            rx_roce_good_bytes: n(counters.received_bytes),
            to_retransmit: n(counters.timeouts),
            dup_req: n(counters.duplicates),
            ..CreqQueryRoceStatsExtRespSb::ZERO
        };
        Reply::side(told.as_bytes())
    }

    /// How congestion is handled; all of it, if `room` bytes hold that.
    pub(super) fn query_congestion(&self, room: usize) -> Reply {
        let mut told = self.state.congestion;
        told.base.opcode = Opcode::QUERY_ROCE_CC.0;
        if room < told.as_bytes().len() {
            Reply::side(told.base.as_bytes())
        } else {
            Reply::side(told.as_bytes())
        }
    }

    /// Changes how congestion is handled. It is kept and told; frames are sent as before, as no wire marks them.
    pub(super) fn modify_congestion(&mut self, change: &ModifyCongestion) -> Outcome {
        let mut changed = self.state.congestion;
        for parameter in Parameter::ALL {
            match change.get(*parameter) {
                Some(value) if value > parameter.max() => {
                    self.violation(format_args!("MODIFY_ROCE_CC: {} is {value}", parameter.name()));
                    return Err(Status::INVALID_PARAMETER);
                }
                Some(value) => changed.put(*parameter, value),
                None => {}
            }
        }
        if !change.is_well_formed() {
            self.violation("MODIFY_ROCE_CC: parts or masks that there are not");
            return Err(Status::INVALID_PARAMETER);
        }
        self.state.congestion = changed;
        Ok(Reply::default())
    }
}
