//! `bnxt_re-abi.h`.

use directverbs::bnxt_re::cqe::{CqeType, ReqStatus, ResStatus};
use directverbs::bnxt_re::doorbell::DbType;
use directverbs::bnxt_re::wqe::{self, WqeType};

use super::{Family, Pair, Same};

const HEAD: &str = "struct bnxt_re_bsqe";
const TAIL: &str = "struct bnxt_re_bcqe";

const TYPE: Same = Same("wqe_type", 0, "rsv_ws_fl_wt", "BNXT_RE_HDR_WT_MASK");
const FLAGS: Same = Same("flags", 0, "rsv_ws_fl_wt", "BNXT_RE_HDR_FLAGS_MASK << BNXT_RE_HDR_FLAGS_SHIFT");
const SIZE: Same = Same("wqe_size", 0, "rsv_ws_fl_wt", "BNXT_RE_HDR_WS_MASK << BNXT_RE_HDR_WS_SHIFT");

const fn flag(ours: &'static str, theirs: &'static str) -> Same {
    Same(ours, 0, "rsv_ws_fl_wt", theirs)
}
const SIGNALED: Same = flag("flags.signal_comp", "BNXT_RE_WR_FLAGS_SIGNALED << BNXT_RE_HDR_FLAGS_SHIFT");
const RD_FENCE: Same =
    flag("flags.rd_or_atomic_fence", "BNXT_RE_WR_FLAGS_RD_FENCE << BNXT_RE_HDR_FLAGS_SHIFT");
const UC_FENCE: Same = flag("flags.uc_fence", "BNXT_RE_WR_FLAGS_UC_FENCE << BNXT_RE_HDR_FLAGS_SHIFT");
const SOLICITED: Same = flag("flags.se", "BNXT_RE_WR_FLAGS_SE << BNXT_RE_HDR_FLAGS_SHIFT");
const INLINE: Same = flag("flags.inline_data", "BNXT_RE_WR_FLAGS_INLINE << BNXT_RE_HDR_FLAGS_SHIFT");

const fn word(ours: &'static str, theirs: &'static str) -> Same {
    Same(ours, 1, "flg_st_typ_ph", theirs)
}
const PHASE: Same = word("cqe_type_toggle.toggle", "BNXT_RE_BCQE_PH_MASK");
const CQE_TYPE: Same = word("cqe_type_toggle.cqe_type", "BNXT_RE_BCQE_TYPE_MASK << BNXT_RE_BCQE_TYPE_SHIFT");
const RESIZE: Same =
    word("cqe_type_toggle.resize_toggle", "BNXT_RE_BCQE_RESIZE_TOG_MASK << BNXT_RE_BCQE_RESIZE_TOG_SHIFT");
const STATUS: Same = word("status", "BNXT_RE_BCQE_STATUS_MASK << BNXT_RE_BCQE_STATUS_SHIFT");
const CQE_FLAGS: Same = word("flags", "BNXT_RE_BCQE_FLAGS_MASK << BNXT_RE_BCQE_FLAGS_SHIFT");
const SRQ: Same = word("flags.srq", "BNXT_RE_RC_FLAGS_SRQ_RQ_MASK << BNXT_RE_BCQE_FLAGS_SHIFT");
const IMM: Same = word("flags.imm", "BNXT_RE_RC_FLAGS_IMM_MASK << BNXT_RE_BCQE_FLAGS_SHIFT");
const INV: Same = word("flags.inv", "BNXT_RE_RC_FLAGS_INV_MASK << BNXT_RE_BCQE_FLAGS_SHIFT");
const RDMA: Same = word("flags.rdma", "BNXT_RE_RC_FLAGS_RDMA_MASK << BNXT_RE_BCQE_FLAGS_SHIFT");
const IP_VER: Same = word("flags.roce_ip_ver", "BNXT_RE_UD_FLAGS_IP_VER_MASK << BNXT_RE_BCQE_FLAGS_SHIFT");
const META: Same = word("flags.meta_format", "BNXT_RE_UD_FLAGS_META_MASK << BNXT_RE_BCQE_FLAGS_SHIFT");
const EXT_META: Same =
    word("flags.ext_meta_format", "BNXT_RE_UD_FLAGS_EXT_META_MASK << BNXT_RE_BCQE_FLAGS_SHIFT");

/// The tables.
pub const FAMILY: Family = Family {
    name: "bnxt_re",
    layouts: directverbs::bnxt_re::LAYOUTS,
    headers: &["bnxt_re/bnxt_re-abi.h"],
    pairs: &[
        Pair {
            layout: "DbcDbc",
            parts: &["struct bnxt_re_db_hdr"],
            fields: &[
                Same("index.index", 0, "indx", "BNXT_RE_DB_INDX_MASK"),
                Same("index.epoch", 0, "indx", "1 << BNXT_RE_DB_EPOCH_SHIFT"),
                Same("index.toggle", 0, "indx", "3 << BNXT_RE_DB_TOGGLE_SHIFT"),
                Same("type_path_xid.xid", 0, "typ_qid", "BNXT_RE_DB_QID_MASK"),
                Same("type_path_xid.valid", 0, "typ_qid", "1 << BNXT_RE_DB_VALID_SHIFT"),
                Same("type_path_xid.db_type", 0, "typ_qid", "BNXT_RE_DB_TYP_MASK << BNXT_RE_DB_TYP_SHIFT"),
            ],
        },
        Pair {
            layout: "DbcPush",
            parts: &["struct bnxt_re_db_hdr"],
            fields: &[
                Same("index_page.index", 0, "indx", "BNXT_RE_DB_INDX_MASK"),
                Same("index_page.page_low", 0, "indx", "BNXT_RE_DB_PILO_MASK << BNXT_RE_DB_PILO_SHIFT"),
                Same("type_path_page_xid.xid", 0, "typ_qid", "BNXT_RE_DB_QID_MASK"),
                Same(
                    "type_path_page_xid.page_high",
                    0,
                    "typ_qid",
                    "BNXT_RE_DB_PIHI_MASK << BNXT_RE_DB_PIHI_SHIFT",
                ),
                Same("type_path_page_xid.valid", 0, "typ_qid", "1 << BNXT_RE_DB_VALID_SHIFT"),
                Same(
                    "type_path_page_xid.db_type",
                    0,
                    "typ_qid",
                    "BNXT_RE_DB_TYP_MASK << BNXT_RE_DB_TYP_SHIFT",
                ),
            ],
        },
        Pair {
            layout: "SqSge",
            parts: &["struct bnxt_re_sge"],
            fields: &[
                Same("va_or_pa", 0, "pa", ""),
                Same("l_key", 0, "lkey", ""),
                Same("size", 0, "length", ""),
            ],
        },
        Pair {
            layout: "SqSendHdr",
            parts: &[HEAD, "struct bnxt_re_send"],
            fields: &[
                TYPE,
                FLAGS,
                SIZE,
                SIGNALED,
                RD_FENCE,
                UC_FENCE,
                SOLICITED,
                INLINE,
                Same("inv_key_or_imm_data", 0, "key_immd", ""),
                Same("length", 0, "lhdr.qkey_len", "0xFFFFFFFFull"),
                Same("q_key", 0, "lhdr.qkey_len", "0xFFFFFFFFull << 32"),
                Same("dst_qp", 1, "dst_qp", ""),
                Same("avid", 1, "avid", ""),
            ],
        },
        Pair {
            layout: "SqRawHdr",
            parts: &[HEAD, "struct bnxt_re_raw"],
            fields: &[
                TYPE,
                FLAGS,
                SIZE,
                Same("length", 0, "lhdr.qkey_len", "0xFFFFFFFFull"),
                Same("cfa_meta", 1, "cfa_meta", ""),
            ],
        },
        Pair {
            layout: "SqRdmaHdr",
            parts: &[HEAD, "struct bnxt_re_rdma"],
            fields: &[
                TYPE,
                FLAGS,
                SIZE,
                Same("imm_data", 0, "key_immd", ""),
                Same("length", 0, "lhdr.qkey_len", "0xFFFFFFFFull"),
                Same("remote_va", 1, "rva", ""),
                Same("remote_key", 1, "rkey", ""),
            ],
        },
        Pair {
            layout: "SqAtomicHdr",
            parts: &[HEAD, "struct bnxt_re_atomic"],
            fields: &[
                TYPE,
                FLAGS,
                Same("remote_key", 0, "key_immd", ""),
                Same("remote_va", 0, "lhdr.rva", ""),
                Same("swap_data", 1, "swp_dt", ""),
                Same("cmp_data", 1, "cmp_dt", ""),
            ],
        },
        Pair {
            layout: "SqLocalInvalidate",
            parts: &[HEAD, "struct bnxt_re_inval"],
            fields: &[TYPE, FLAGS, Same("inv_l_key", 0, "key_immd", "")],
        },
        Pair {
            layout: "SqBind",
            parts: &[HEAD, "struct bnxt_re_bind"],
            fields: &[
                TYPE,
                FLAGS,
                Same("parent_l_key", 0, "lhdr.lkey_plkey", "0xFFFFFFFFull"),
                Same("l_key", 0, "lhdr.lkey_plkey", "0xFFFFFFFFull << 32"),
                Same("va", 1, "va", ""),
                Same("length", 1, "len", "0xFFFFFFFFFFull"),
            ],
        },
        Pair {
            layout: "RqWqeHdr",
            parts: &["struct bnxt_re_brqe", "struct bnxt_re_rqe"],
            fields: &[TYPE, FLAGS, SIZE, Same("wr_id.wr_id", 0, "wrid", "0xFFFFF")],
        },
        Pair {
            layout: "SqPsnSearch",
            parts: &["struct bnxt_re_psns"],
            fields: &[
                Same("opcode_start_psn.start_psn", 0, "opc_spsn", "BNXT_RE_PSNS_SPSN_MASK"),
                Same(
                    "opcode_start_psn.opcode",
                    0,
                    "opc_spsn",
                    "BNXT_RE_PSNS_OPCD_MASK << BNXT_RE_PSNS_OPCD_SHIFT",
                ),
                Same("flags_next_psn.next_psn", 0, "flg_npsn", "BNXT_RE_PSNS_NPSN_MASK"),
                Same(
                    "flags_next_psn.flags",
                    0,
                    "flg_npsn",
                    "BNXT_RE_PSNS_FLAGS_MASK << BNXT_RE_PSNS_FLAGS_SHIFT",
                ),
            ],
        },
        Pair {
            layout: "SqPsnSearchExt",
            parts: &["struct bnxt_re_psns_ext"],
            fields: &[
                Same("opcode_start_psn", 0, "opc_spsn", ""),
                Same("flags_next_psn", 0, "flg_npsn", ""),
                Same("start_slot_idx", 0, "st_slot_idx", ""),
            ],
        },
        Pair {
            layout: "SqMsnSearch",
            parts: &["struct bnxt_re_msns"],
            fields: &[
                Same(
                    "start_idx_next_psn_start_psn.start_psn",
                    0,
                    "start_idx_next_psn_start_psn",
                    "BNXT_RE_SQ_MSN_SEARCH_START_PSN_MASK",
                ),
                Same(
                    "start_idx_next_psn_start_psn.next_psn",
                    0,
                    "start_idx_next_psn_start_psn",
                    "BNXT_RE_SQ_MSN_SEARCH_NEXT_PSN_MASK",
                ),
                Same(
                    "start_idx_next_psn_start_psn.start_idx",
                    0,
                    "start_idx_next_psn_start_psn",
                    "BNXT_RE_SQ_MSN_SEARCH_START_IDX_MASK",
                ),
            ],
        },
        Pair {
            layout: "CqReq",
            parts: &["struct bnxt_re_req_cqe", TAIL],
            fields: &[
                PHASE,
                CQE_TYPE,
                STATUS,
                Same("qp_handle", 0, "qp_handle", ""),
                Same("sq_cons_idx", 0, "con_indx", "0xFFFF"),
            ],
        },
        Pair {
            layout: "CqResRc",
            parts: &["struct bnxt_re_rc_cqe", TAIL],
            fields: &[
                PHASE,
                CQE_TYPE,
                STATUS,
                CQE_FLAGS,
                SRQ,
                IMM,
                INV,
                RDMA,
                Same("length", 0, "length", ""),
                Same("imm_data_or_inv_r_key", 0, "imm_key", ""),
                Same("qp_handle", 0, "qp_handle", ""),
                Same("mr_handle", 0, "mr_handle", ""),
                Same("srq_or_rq_wr_id.wr_id", 1, "qphi_rwrid", "BNXT_RE_BCQE_RWRID_MASK"),
            ],
        },
        Pair {
            layout: "CqResUd",
            parts: &["struct bnxt_re_ud_cqe", TAIL],
            fields: &[
                PHASE,
                CQE_TYPE,
                STATUS,
                CQE_FLAGS,
                SRQ,
                IMM,
                IP_VER,
                META,
                EXT_META,
                Same("length.length", 0, "length", "BNXT_RE_UD_CQE_LEN_MASK"),
                Same("imm_data", 0, "immd", ""),
                Same("qp_handle", 0, "qp_handle", ""),
                Same("src_mac", 0, "qplo_mac", "BNXT_RE_UD_CQE_MAC_MASK"),
                Same(
                    "src_qp_low",
                    0,
                    "qplo_mac",
                    "(__u64)BNXT_RE_UD_CQE_SRCQPLO_MASK << BNXT_RE_UD_CQE_SRCQPLO_SHIFT",
                ),
                Same("src_qp_high_srq_or_rq_wr_id.wr_id", 1, "qphi_rwrid", "BNXT_RE_BCQE_RWRID_MASK"),
                Same(
                    "src_qp_high_srq_or_rq_wr_id.high",
                    1,
                    "qphi_rwrid",
                    "BNXT_RE_BCQE_SRCQP_MASK << BNXT_RE_BCQE_SRCQP_SHIFT",
                ),
            ],
        },
        Pair {
            layout: "CqTerminal",
            parts: &["struct bnxt_re_term_cqe", TAIL],
            fields: &[
                PHASE,
                CQE_TYPE,
                STATUS,
                Same("qp_handle", 0, "qp_handle", ""),
                Same("sq_cons_idx", 0, "rq_sq_cidx", "0xFFFF"),
                Same("rq_cons_idx", 0, "rq_sq_cidx", "0xFFFFu << 16"),
            ],
        },
        Pair {
            layout: "CqCutoff",
            parts: &["struct bnxt_re_term_cqe", TAIL],
            fields: &[PHASE, CQE_TYPE, RESIZE, STATUS],
        },
    ],
    unknown: &["SqBase", "SqFrPmr", "CqBase", "CqResRawEthQp1", "NqBase", "NqCn", "NqSrqEvent", "NqDbqEvent"],
    constants,
};

fn constants() -> Vec<(&'static str, u64)> {
    let mut all = vec![("BNXT_RE_STATIC_WQE_MAX_SGE", u64::from(wqe::STATIC_SGES))];
    let mut add =
        |rows: &[(&'static str, u8)]| all.extend(rows.iter().map(|(name, value)| (*name, u64::from(*value))));
    add(&[
        ("BNXT_RE_WR_OPCD_SEND", WqeType::SEND.0),
        ("BNXT_RE_WR_OPCD_SEND_IMM", WqeType::SEND_IMM.0),
        ("BNXT_RE_WR_OPCD_SEND_INVAL", WqeType::SEND_INV.0),
        ("BNXT_RE_WR_OPCD_RDMA_WRITE", WqeType::WRITE.0),
        ("BNXT_RE_WR_OPCD_RDMA_WRITE_IMM", WqeType::WRITE_IMM.0),
        ("BNXT_RE_WR_OPCD_RDMA_READ", WqeType::READ.0),
        ("BNXT_RE_WR_OPCD_ATOMIC_CS", WqeType::ATOMIC_CS.0),
        ("BNXT_RE_WR_OPCD_ATOMIC_FA", WqeType::ATOMIC_FA.0),
        ("BNXT_RE_WR_OPCD_LOC_INVAL", WqeType::LOCAL_INV.0),
        ("BNXT_RE_WR_OPCD_BIND", WqeType::BIND.0),
        ("BNXT_RE_WR_OPCD_RECV", WqeType::RECV.0),
        ("BNXT_RE_QUE_TYPE_SQ", DbType::SQ.code()),
        ("BNXT_RE_QUE_TYPE_RQ", DbType::RQ.code()),
        ("BNXT_RE_QUE_TYPE_SRQ", DbType::SRQ.code()),
        ("BNXT_RE_QUE_TYPE_SRQ_ARM", DbType::SRQ_ARM.code()),
        ("BNXT_RE_QUE_TYPE_CQ", DbType::CQ.code()),
        ("BNXT_RE_QUE_TYPE_CQ_ARMSE", DbType::CQ_ARMSE.code()),
        ("BNXT_RE_QUE_TYPE_CQ_ARMALL", DbType::CQ_ARMALL.code()),
        ("BNXT_RE_QUE_TYPE_CQ_ARMENA", DbType::CQ_ARMENA.code()),
        ("BNXT_RE_QUE_TYPE_SRQ_ARMENA", DbType::SRQ_ARMENA.code()),
        ("BNXT_RE_QUE_TYPE_CQ_CUT_ACK", DbType::CQ_CUTOFF_ACK.code()),
        ("BNXT_RE_PUSH_TYPE_START", DbType::PUSH_START.code()),
        ("BNXT_RE_PUSH_TYPE_END", DbType::PUSH_END.code()),
        ("BNXT_RE_QUE_TYPE_NULL", DbType::NULL.code()),
        ("BNXT_RE_WC_TYPE_SEND", CqeType::REQ.0),
        ("BNXT_RE_WC_TYPE_RECV_RC", CqeType::RES_RC.0),
        ("BNXT_RE_WC_TYPE_RECV_UD", CqeType::RES_UD.0),
        ("BNXT_RE_WC_TYPE_RECV_RAW", CqeType::RES_RAWETH_QP1.0),
        ("BNXT_RE_WC_TYPE_TERM", CqeType::TERMINAL.0),
        ("BNXT_RE_WC_TYPE_COFF", CqeType::CUT_OFF.0),
        ("BNXT_RE_REQ_ST_OK", ReqStatus::OK.0),
        ("BNXT_RE_REQ_ST_BAD_RESP", ReqStatus::BAD_RESPONSE_ERR.0),
        ("BNXT_RE_REQ_ST_LOC_LEN", ReqStatus::LOCAL_LENGTH_ERR.0),
        ("BNXT_RE_REQ_ST_LOC_QP_OP", ReqStatus::LOCAL_QP_OPERATION_ERR.0),
        ("BNXT_RE_REQ_ST_PROT", ReqStatus::LOCAL_PROTECTION_ERR.0),
        ("BNXT_RE_REQ_ST_MEM_OP", ReqStatus::MEMORY_MGT_OPERATION_ERR.0),
        ("BNXT_RE_REQ_ST_REM_INVAL", ReqStatus::REMOTE_INVALID_REQUEST_ERR.0),
        ("BNXT_RE_REQ_ST_REM_ACC", ReqStatus::REMOTE_ACCESS_ERR.0),
        ("BNXT_RE_REQ_ST_REM_OP", ReqStatus::REMOTE_OPERATION_ERR.0),
        ("BNXT_RE_REQ_ST_RNR_NAK_XCED", ReqStatus::RNR_NAK_RETRY_CNT_ERR.0),
        ("BNXT_RE_REQ_ST_TRNSP_XCED", ReqStatus::TRANSPORT_RETRY_CNT_ERR.0),
        ("BNXT_RE_REQ_ST_WR_FLUSH", ReqStatus::WORK_REQUEST_FLUSHED_ERR.0),
        ("BNXT_RE_RSP_ST_OK", ResStatus::OK.0),
        ("BNXT_RE_RSP_ST_LOC_ACC", ResStatus::LOCAL_ACCESS_ERROR.0),
        ("BNXT_RE_RSP_ST_LOC_LEN", ResStatus::LOCAL_LENGTH_ERR.0),
        ("BNXT_RE_RSP_ST_LOC_PROT", ResStatus::LOCAL_PROTECTION_ERR.0),
        ("BNXT_RE_RSP_ST_LOC_QP_OP", ResStatus::LOCAL_QP_OPERATION_ERR.0),
        ("BNXT_RE_RSP_ST_MEM_OP", ResStatus::MEMORY_MGT_OPERATION_ERR.0),
        ("BNXT_RE_RSP_ST_REM_INVAL", ResStatus::REMOTE_INVALID_REQUEST_ERR.0),
        ("BNXT_RE_RSP_ST_WR_FLUSH", ResStatus::WORK_REQUEST_FLUSHED_ERR.0),
        ("BNXT_RE_RSP_ST_HW_FLUSH", ResStatus::HW_FLUSH_ERR.0),
    ]);
    all
}
