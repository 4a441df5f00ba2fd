//! `ionic_fw_types.h`, the reply to opening a context in `ionic-abi.h`, and the clock page in `ib_user_verbs.h`.

use directverbs::ionic::cqe::{CqeType, RecvOp, Status};
use directverbs::ionic::wqe::{self, RdmaVersion, SqOp};

use super::{Family, Pair, Same};

const WQE: &str = "struct ionic_v1_wqe";
const CQE: &str = "struct ionic_v1_cqe";

const INDEX: Same = Same("wqe_idx", 0, "base.wqe_idx", "");
const OP: Same = Same("op", 0, "base.op", "");
const SGES: Same = Same("num_sge", 0, "base.num_sge_key", "");
const SGES_KEY: Same = Same("num_sge_key", 0, "base.num_sge_key", "");
const IMM_KEY: Same = Same("imm_data_key", 0, "base.imm_data_key", "");

const FLAGS: Same = Same("flags", 0, "base.flags", "");
const FENCE: Same = Same("flags.fence", 0, "base.flags", "IONIC_V1_FLAG_FENCE");
const SOLICITED: Same = Same("flags.solicited", 0, "base.flags", "IONIC_V1_FLAG_SOL");
const INLINE: Same = Same("flags.inline", 0, "base.flags", "IONIC_V1_FLAG_INL");
const SIGNALED: Same = Same("flags.signaled", 0, "base.flags", "IONIC_V1_FLAG_SIG");
const COLOR: Same = Same("flags.color", 0, "base.flags", "IONIC_V1_FLAG_COLOR");

const PAYLOAD: Same = Same("payload", 0, "common.pld.data", "");

const STATUS: Same = Same("status_length", 0, "status_length", "");
const CQE_COLOR: Same = Same("qid_type_flags.color", 0, "qid_type_flags", "IONIC_V1_CQE_COLOR");
const CQE_ERROR: Same = Same("qid_type_flags.error", 0, "qid_type_flags", "IONIC_V1_CQE_ERROR");
const CQE_TYPE: Same =
    Same("qid_type_flags.cqe_type", 0, "qid_type_flags", "IONIC_V1_CQE_TYPE_MASK << IONIC_V1_CQE_TYPE_SHIFT");
const CQE_QID: Same = Same("qid_type_flags.qid", 0, "qid_type_flags", "~0u << IONIC_V1_CQE_QID_SHIFT");

/// The tables.
pub const FAMILY: Family = Family {
    name: "ionic",
    layouts: directverbs::ionic::LAYOUTS,
    headers: &["ionic/ionic_fw_types.h", "rdma/ionic-abi.h", "rdma/ib_user_verbs.h"],
    pairs: &[
        Pair {
            layout: "Sge",
            parts: &["struct ionic_sge"],
            fields: &[Same("va", 0, "va", ""), Same("len", 0, "len", ""), Same("lkey", 0, "lkey", "")],
        },
        Pair {
            layout: "BaseHeader",
            parts: &["struct ionic_v1_base_hdr"],
            fields: &[
                Same("wqe_idx", 0, "wqe_idx", ""),
                Same("op", 0, "op", ""),
                Same("num_sge_key", 0, "num_sge_key", ""),
                Same("flags", 0, "flags", ""),
                Same("imm_data_key", 0, "imm_data_key", ""),
            ],
        },
        Pair {
            layout: "SendWqe",
            parts: &[WQE],
            fields: &[
                INDEX,
                OP,
                SGES,
                FLAGS,
                FENCE,
                SOLICITED,
                INLINE,
                SIGNALED,
                COLOR,
                IMM_KEY,
                Same("ah_id", 0, "common.send.ah_id", ""),
                Same("dest_qpn", 0, "common.send.dest_qpn", ""),
                Same("dest_qkey", 0, "common.send.dest_qkey", ""),
                Same("length", 0, "common.length", ""),
                PAYLOAD,
            ],
        },
        Pair {
            layout: "RdmaWqe",
            parts: &[WQE],
            fields: &[
                INDEX,
                OP,
                SGES,
                FLAGS,
                Same("imm_data", 0, "base.imm_data_key", ""),
                Same("remote_va_high", 0, "common.rdma.remote_va_high", ""),
                Same("remote_va_low", 0, "common.rdma.remote_va_low", ""),
                Same("remote_rkey", 0, "common.rdma.remote_rkey", ""),
                Same("length", 0, "common.length", ""),
                PAYLOAD,
            ],
        },
        Pair {
            layout: "AtomicWqeV1",
            parts: &[WQE],
            fields: &[
                INDEX,
                OP,
                SGES,
                FLAGS,
                IMM_KEY,
                Same("remote_va_high", 0, "atomic.remote_va_high", ""),
                Same("remote_va_low", 0, "atomic.remote_va_low", ""),
                Same("remote_rkey", 0, "atomic.remote_rkey", ""),
                Same("swap_add_high", 0, "atomic.swap_add_high", ""),
                Same("swap_add_low", 0, "atomic.swap_add_low", ""),
                Same("compare_high", 0, "atomic.compare_high", ""),
                Same("compare_low", 0, "atomic.compare_low", ""),
                Same("va", 0, "atomic.sge.va", ""),
                Same("len", 0, "atomic.sge.len", ""),
                Same("lkey", 0, "atomic.sge.lkey", ""),
            ],
        },
        Pair {
            layout: "AtomicWqeV2",
            parts: &[WQE],
            fields: &[
                INDEX,
                OP,
                SGES,
                FLAGS,
                IMM_KEY,
                Same("remote_va_high", 0, "atomic_v2.remote_va_high", ""),
                Same("remote_va_low", 0, "atomic_v2.remote_va_low", ""),
                Same("remote_rkey", 0, "atomic_v2.remote_rkey", ""),
                Same("swap_add_high", 0, "atomic_v2.swap_add_high", ""),
                Same("swap_add_low", 0, "atomic_v2.swap_add_low", ""),
                Same("compare_high", 0, "atomic_v2.compare_high", ""),
                Same("compare_low", 0, "atomic_v2.compare_low", ""),
                Same("lkey", 0, "atomic_v2.lkey", ""),
                Same("local_va", 0, "atomic_v2.local_va", ""),
                Same("express", 0, "atomic_v2.rsvd_expdb", ""),
            ],
        },
        Pair {
            layout: "BindMwWqe",
            parts: &[WQE],
            fields: &[
                INDEX,
                OP,
                SGES_KEY,
                FLAGS,
                IMM_KEY,
                Same("va", 0, "bind_mw.va", ""),
                Same("length", 0, "bind_mw.length", ""),
                Same("lkey", 0, "bind_mw.lkey", ""),
                Same("mr_flags", 0, "bind_mw.flags", ""),
                Same("mr_flags.local_write", 0, "bind_mw.flags", "IONIC_MRF_LOCAL_WRITE"),
                Same("mr_flags.remote_write", 0, "bind_mw.flags", "IONIC_MRF_REMOTE_WRITE"),
                Same("mr_flags.remote_read", 0, "bind_mw.flags", "IONIC_MRF_REMOTE_READ"),
                Same("mr_flags.remote_atomic", 0, "bind_mw.flags", "IONIC_MRF_REMOTE_ATOMIC"),
                Same("mr_flags.mw_bind", 0, "bind_mw.flags", "IONIC_MRF_MW_BIND"),
                Same("mr_flags.zero_based", 0, "bind_mw.flags", "IONIC_MRF_ZERO_BASED"),
                Same("mr_flags.on_demand", 0, "bind_mw.flags", "IONIC_MRF_ON_DEMAND"),
                Same("mr_flags.pb", 0, "bind_mw.flags", "IONIC_MRF_PB"),
                Same("mr_flags.is_mw", 0, "bind_mw.flags", "IONIC_MRF_IS_MW"),
                Same("mr_flags.inv_en", 0, "bind_mw.flags", "IONIC_MRF_INV_EN"),
            ],
        },
        Pair {
            layout: "RecvWqe",
            parts: &[WQE],
            fields: &[INDEX, OP, SGES, FLAGS, Same("payload", 0, "recv.pld.data", "")],
        },
        Pair {
            layout: "RecvCqe",
            parts: &[CQE],
            fields: &[
                STATUS,
                CQE_COLOR,
                CQE_ERROR,
                CQE_TYPE,
                CQE_QID,
                Same("wqe_idx_timestamp", 0, "recv.wqe_idx_timestamp", ""),
                Same("wqe_idx_timestamp.wqe_idx", 0, "recv.wqe_idx_timestamp", "IONIC_V1_CQE_WQE_IDX_MASK"),
                Same(
                    "wqe_idx_timestamp.timestamp",
                    0,
                    "recv.wqe_idx_timestamp",
                    "~0ull << IONIC_V1_CQE_TIMESTAMP_SHIFT",
                ),
                Same("src_qpn_op", 0, "recv.src_qpn_op", ""),
                Same("src_qpn_op.src_qpn", 0, "recv.src_qpn_op", "IONIC_V1_CQE_RECV_QPN_MASK"),
                Same(
                    "src_qpn_op.op",
                    0,
                    "recv.src_qpn_op",
                    "IONIC_V1_CQE_RECV_OP_MASK << IONIC_V1_CQE_RECV_OP_SHIFT",
                ),
                Same("src_qpn_op.vlan", 0, "recv.src_qpn_op", "IONIC_V1_CQE_RECV_IS_VLAN"),
                Same("src_qpn_op.ipv4", 0, "recv.src_qpn_op", "IONIC_V1_CQE_RECV_IS_IPV4"),
                Same("src_mac", 0, "recv.src_mac", ""),
                Same("vlan_tag", 0, "recv.vlan_tag", ""),
                Same("imm_data_rkey", 0, "recv.imm_data_rkey", ""),
            ],
        },
        Pair {
            layout: "SendCqe",
            parts: &[CQE],
            fields: &[
                STATUS,
                CQE_COLOR,
                CQE_ERROR,
                CQE_TYPE,
                CQE_QID,
                Same("msg_msn", 0, "send.msg_msn", ""),
                Same("npg_wqe_idx_timestamp", 0, "send.npg_wqe_idx_timestamp", ""),
            ],
        },
        Pair {
            layout: "ContextReply",
            parts: &["struct ionic_ctx_resp"],
            fields: &[
                Same("page_shift", 0, "page_shift", ""),
                Same("dbell_offset", 0, "dbell_offset", ""),
                Same("version", 0, "version", ""),
                Same("qp_opcodes", 0, "qp_opcodes", ""),
                Same("admin_opcodes", 0, "admin_opcodes", ""),
                Same("sq_qtype", 0, "sq_qtype", ""),
                Same("rq_qtype", 0, "rq_qtype", ""),
                Same("cq_qtype", 0, "cq_qtype", ""),
                Same("admin_qtype", 0, "admin_qtype", ""),
                Same("max_stride", 0, "max_stride", ""),
                Same("max_spec", 0, "max_spec", ""),
                Same("udma_count", 0, "udma_count", ""),
                Same("expdb_mask", 0, "expdb_mask", ""),
                Same("expdb_qtypes", 0, "expdb_qtypes", ""),
                Same("phc_offset", 0, "phc_offset", ""),
            ],
        },
        Pair {
            layout: "ClockInfo",
            parts: &["struct ib_uverbs_clock_info"],
            fields: &[
                Same("sign", 0, "sign", ""),
                Same("resv", 0, "resv", ""),
                Same("nsec", 0, "nsec", ""),
                Same("cycles", 0, "cycles", ""),
                Same("frac", 0, "frac", ""),
                Same("mult", 0, "mult", ""),
                Same("shift", 0, "shift", ""),
                Same("mask", 0, "mask", ""),
                Same("overflow_period", 0, "overflow_period", ""),
            ],
        },
    ],
    unknown: &["RegMrWqe", "AdminCqe"],
    constants,
};

fn constants() -> Vec<(&'static str, u64)> {
    let mut all = vec![
        ("IONIC_EXP_DBELL_SZ", wqe::EXPRESS_BYTES as u64),
        ("IONIC_V1_SPEC_FIRST_SGE", u64::from(wqe::SPEC_FIRST_SGE)),
        ("IONIC_V1_CQE_TYPE_RECV", u64::from(CqeType::RECV.0)),
        ("IONIC_V1_CQE_TYPE_SEND_MSN", u64::from(CqeType::SEND_MSN.0)),
        ("IONIC_V1_CQE_TYPE_SEND_NPG", u64::from(CqeType::SEND_NPG.0)),
        ("IONIC_V1_CQE_TYPE_RECV_INDIR", u64::from(CqeType::RECV_INDIR.0)),
        ("IONIC_V1_CQE_RECV_OP_SEND", u64::from(RecvOp::SEND.0)),
        ("IONIC_V1_CQE_RECV_OP_SEND_INV", u64::from(RecvOp::SEND_INV.0)),
        ("IONIC_V1_CQE_RECV_OP_SEND_IMM", u64::from(RecvOp::SEND_IMM.0)),
        ("IONIC_V1_CQE_RECV_OP_RDMA_IMM", u64::from(RecvOp::RDMA_IMM.0)),
    ];
    let statuses = [
        ("IONIC_STS_OK", Status::OK),
        ("IONIC_STS_LOCAL_LEN_ERR", Status::LOCAL_LEN),
        ("IONIC_STS_LOCAL_QP_OPER_ERR", Status::LOCAL_QP_OPER),
        ("IONIC_STS_LOCAL_PROT_ERR", Status::LOCAL_PROT),
        ("IONIC_STS_WQE_FLUSHED_ERR", Status::WQE_FLUSHED),
        ("IONIC_STS_MEM_MGMT_OPER_ERR", Status::MEM_MGMT_OPER),
        ("IONIC_STS_BAD_RESP_ERR", Status::BAD_RESP),
        ("IONIC_STS_LOCAL_ACC_ERR", Status::LOCAL_ACC),
        ("IONIC_STS_REMOTE_INV_REQ_ERR", Status::REMOTE_INV_REQ),
        ("IONIC_STS_REMOTE_ACC_ERR", Status::REMOTE_ACC),
        ("IONIC_STS_REMOTE_OPER_ERR", Status::REMOTE_OPER),
        ("IONIC_STS_RETRY_EXCEEDED", Status::RETRY_EXCEEDED),
        ("IONIC_STS_RNR_RETRY_EXCEEDED", Status::RNR_RETRY_EXCEEDED),
        ("IONIC_STS_XRC_VIO_ERR", Status::XRC_VIO),
    ];
    all.extend(statuses.map(|(name, status)| (name, u64::from(status.0))));
    let v1 = [
        ("IONIC_V1_OP_SEND", SqOp::Send),
        ("IONIC_V1_OP_SEND_INV", SqOp::SendInv),
        ("IONIC_V1_OP_SEND_IMM", SqOp::SendImm),
        ("IONIC_V1_OP_RDMA_READ", SqOp::Read),
        ("IONIC_V1_OP_RDMA_WRITE", SqOp::Write),
        ("IONIC_V1_OP_RDMA_WRITE_IMM", SqOp::WriteImm),
        ("IONIC_V1_OP_ATOMIC_CS", SqOp::CompareSwap),
        ("IONIC_V1_OP_ATOMIC_FA", SqOp::FetchAdd),
        ("IONIC_V1_OP_REG_MR", SqOp::RegMr),
        ("IONIC_V1_OP_LOCAL_INV", SqOp::LocalInv),
        ("IONIC_V1_OP_BIND_MW", SqOp::BindMw),
    ];
    all.extend(v1.map(|(name, op)| (name, u64::from(op.opcode(RdmaVersion::V1)))));
    let v2 = [
        ("IONIC_V2_OP_SEND", SqOp::Send),
        ("IONIC_V2_OP_SEND_INV", SqOp::SendInv),
        ("IONIC_V2_OP_SEND_IMM", SqOp::SendImm),
        ("IONIC_V2_OP_RDMA_READ", SqOp::Read),
        ("IONIC_V2_OP_RDMA_WRITE", SqOp::Write),
        ("IONIC_V2_OP_RDMA_WRITE_IMM", SqOp::WriteImm),
        ("IONIC_V2_OP_ATOMIC_CS", SqOp::CompareSwap),
        ("IONIC_V2_OP_ATOMIC_FA", SqOp::FetchAdd),
        ("IONIC_V2_OP_REG_MR", SqOp::RegMr),
        ("IONIC_V2_OP_LOCAL_INV", SqOp::LocalInv),
        ("IONIC_V2_OP_BIND_MW", SqOp::BindMw),
    ];
    all.extend(v2.map(|(name, op)| (name, u64::from(op.opcode(RdmaVersion::V2)))));
    all
}
