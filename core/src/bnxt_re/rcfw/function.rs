//! The function: what it can do, and its life. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqDone, CreqSize, command, completion, side_buffer};

/// Bits of [`CreqQueryFuncRespSb::dev_cap_flags`].
pub mod caps {
    /// Queue pairs have statistics of their own.
    pub const EXT_STATS: u16 = 0x10;
    /// REGISTER_MR allocates the key.
    pub const MR_REGISTER_ALLOC: u16 = 0x20;
    /// The device retransmits by itself: there are no tables of the host.
    pub const HW_RETX: u16 = 0x600;
}

/// Bits of [`CreqQueryFuncRespSb::dev_cap_ext_flags`].
pub mod caps_ext {
    /// There are no atomics.
    pub const ATOMIC_OPS_NOT_SUPPORTED: u8 = 0x1;
    /// WQEs take as many slots as they need: nothing else is allowed.
    pub const FIXED_SIZE_WQE_DISABLED: u8 = 0x40;
}

/// Bits of [`CreqQueryFuncRespSb::dev_cap_ext_flags_2`].
pub mod caps_ext2 {
    /// MODIFY_QP wants the kind of queue pair, and access flags on the way to RTR.
    pub const OPTIMIZE_MODIFY_QP: u16 = 0x1;
    /// Regions may be relaxed in order.
    pub const MEMORY_REGION_RO: u16 = 0x8;
    /// Retransmit table of the host: bits 4 and 5.
    pub const RETRANSMISSION: u16 = 0x30;
    /// It is the MSN table.
    pub const HOST_MSN_TABLE: u16 = 0x10;
}

/// Bits of the flags of [`CmdqInitializeFw`].
pub mod init_flags {
    /// The host keeps retransmit tables.
    pub const HW_REQUESTER_RETX: u16 = 0x2;
    /// The driver knows [`caps_ext2::OPTIMIZE_MODIFY_QP`].
    pub const OPTIMIZE_MODIFY_QP: u16 = 0x8;
}

command! {
    /// Asks what the function can do.
    pub struct CmdqQueryFunc: "cmdq_query_func", 16, QUERY_FUNC => CreqSize {
    }
}
side_buffer! {
    /// What the function can do.
    pub struct CreqQueryFuncRespSb: "creq_query_func_resp_sb", 160 {
        /// Largest region in bytes.
        max_mr_size: le::U64 = 8,
        /// Queue pairs, less one.
        max_qp: le::U32 = 16,
        /// Requests of a queue.
        max_qp_wr: le::U16 = 20,
        /// Capabilities, see [`caps`].
        dev_cap_flags: le::U16 = 22,
        /// Most completion queues.
        max_cq: le::U32 = 24,
        /// CQEs of a completion queue.
        max_cqe: le::U32 = 28,
        /// Most protection domains.
        max_pd: le::U32 = 32,
        /// Most SGEs.
        max_sge: u8 = 36,
        /// Most shared receive queues SGEs.
        max_srq_sge: u8 = 37,
        /// READs and atomics as responder.
        max_qp_rd_atom: u8 = 38,
        /// READs and atomics as requester.
        max_qp_init_rd_atom: u8 = 39,
        /// Most memory regions.
        max_mr: le::U32 = 40,
        /// Most memory windows.
        max_mw: le::U32 = 44,
        /// Most raw eth queue pairs.
        max_raw_eth_qp: le::U32 = 48,
        /// Most address handles.
        max_ah: le::U32 = 52,
        /// Most fmr.
        max_fmr: le::U32 = 56,
        /// Most shared receive queues requests.
        max_srq_wr: le::U32 = 60,
        /// Most pkeys.
        max_pkeys: le::U32 = 64,
        /// Inline bytes of a send request.
        max_inline_data: le::U32 = 68,
        /// Most map per fmr.
        max_map_per_fmr: u8 = 72,
        /// Ethernet doorbells: not used.
        l2_db_space_size: u8 = 73,
        /// Most shared receive queues.
        max_srq: le::U16 = 74,
        /// Most GIDs.
        max_gid: le::U32 = 76,
        /// Transmit queue manager: not used.
        tqm_alloc_reqs: [le::U32; 12] = 80,
        /// Most doorbell pages.
        max_dpi: le::U32 = 128,
        /// Most SGEs var WQE.
        max_sge_var_wqe: u8 = 132,
        /// More capabilities, see [`caps_ext`].
        dev_cap_ext_flags: u8 = 133,
        /// Most inline data var WQE.
        max_inline_data_var_wqe: le::U16 = 134,
        /// First queue pair.
        start_qid: le::U32 = 136,
        /// Most MSN table size.
        max_msn_table_size: u8 = 140,
        /// Zero.
        reserved8_1: u8 = 141,
        /// Still more capabilities, see [`caps_ext2`].
        dev_cap_ext_flags_2: le::U16 = 142,
        /// Most xp queue pairs size.
        max_xp_qp_size: le::U16 = 144,
        /// Create queue pairs batch size.
        create_qp_batch_size: le::U16 = 146,
        /// Destroy queue pairs batch size.
        destroy_qp_batch_size: le::U16 = 148,
        /// Most shared receive queues ext.
        max_srq_ext: le::U16 = 150,
        /// Zero.
        reserved16: le::U16 = 152,
        /// Version of rate limit, minor number.
        rate_limit_min: le::U16 = 154,
        /// Rate limit max.
        rate_limit_max: le::U32 = 156,
    }
}
command! {
    /// Asks for versions.
    pub struct CmdqQueryVersion: "cmdq_query_version", 16, QUERY_VERSION => CreqQueryVersionResp {
    }
}
completion! {
    /// Versions.
    pub struct CreqQueryVersionResp: "creq_query_version_resp" {
        {
            /// Version of the firmware, major number.
            fw_maj: u8 = 4,
            /// Minor number.
            fw_minor: u8 = 5,
            /// Build number.
            fw_bld: u8 = 6,
            /// Zero.
            fw_rsvd: u8 = 7,
        }
        {
            /// Zero.
            reserved16: le::U16 = 10,
            /// Version of the interface, major number.
            intf_maj: u8 = 12,
            /// Minor number.
            intf_minor: u8 = 13,
            /// Build number.
            intf_bld: u8 = 14,
            /// Zero.
            intf_rsvd: u8 = 15,
        }
    }
}
command! {
    /// Starts RoCE. Until then only this and the queries above are allowed.
    pub struct CmdqInitializeFw: "cmdq_initialize_fw", 112, INITIALIZE_FW => CreqDone {
        /// Page size and level of queue pairs.
        qpc_pg_size_qpc_lvl: u8 = 16,
        /// Page size and level of memory regions and windows.
        mrw_pg_size_mrw_lvl: u8 = 17,
        /// Page size and level of shared receive queues.
        srq_pg_size_srq_lvl: u8 = 18,
        /// Page size and level of completion queues.
        cq_pg_size_cq_lvl: u8 = 19,
        /// Page size and level of transmit queue manager.
        tqm_pg_size_tqm_lvl: u8 = 20,
        /// Page size and level of timers.
        tim_pg_size_tim_lvl: u8 = 21,
        /// Doorbell pages have 4096 bytes times two to this power.
        log2_dbr_pg_size: le::U16 = 22,
        /// Address of the page directory of queue pairs.
        qpc_page_dir: le::U64 = 24,
        /// Address of the page directory of memory regions and windows.
        mrw_page_dir: le::U64 = 32,
        /// Address of the page directory of shared receive queues.
        srq_page_dir: le::U64 = 40,
        /// Address of the page directory of completion queues.
        cq_page_dir: le::U64 = 48,
        /// Address of the page directory of transmit queue manager.
        tqm_page_dir: le::U64 = 56,
        /// Address of the page directory of timers.
        tim_page_dir: le::U64 = 64,
        /// Number of queue pairs.
        number_of_qp: le::U32 = 72,
        /// Number of memory regions and windows.
        number_of_mrw: le::U32 = 76,
        /// Number of shared receive queues.
        number_of_srq: le::U32 = 80,
        /// Number of completion queues.
        number_of_cq: le::U32 = 84,
        /// Most queue pairs per VF.
        max_qp_per_vf: le::U32 = 88,
        /// Most memory regions and windows per VF.
        max_mrw_per_vf: le::U32 = 92,
        /// Most shared receive queues per VF.
        max_srq_per_vf: le::U32 = 96,
        /// Most completion queues per VF.
        max_cq_per_vf: le::U32 = 100,
        /// Most GIDs per VF.
        max_gid_per_vf: le::U32 = 104,
        /// Statistics context.
        stat_ctx_id: le::U32 = 108,
    }
}
command! {
    /// Stops RoCE.
    pub struct CmdqDeinitializeFw: "cmdq_deinitialize_fw", 16, DEINITIALIZE_FW => CreqDone {
    }
}
command! {
    /// Shares resources out to VFs.
    pub struct CmdqSetFuncResources: "cmdq_set_func_resources", 56, SET_FUNC_RESOURCES => CreqDone {
        /// Number of queue pairs.
        number_of_qp: le::U32 = 16,
        /// Number of memory regions and windows.
        number_of_mrw: le::U32 = 20,
        /// Number of shared receive queues.
        number_of_srq: le::U32 = 24,
        /// Number of completion queues.
        number_of_cq: le::U32 = 28,
        /// Most queue pairs per VF.
        max_qp_per_vf: le::U32 = 32,
        /// Most memory regions and windows per VF.
        max_mrw_per_vf: le::U32 = 36,
        /// Most shared receive queues per VF.
        max_srq_per_vf: le::U32 = 40,
        /// Most completion queues per VF.
        max_cq_per_vf: le::U32 = 44,
        /// Most GIDs per VF.
        max_gid_per_vf: le::U32 = 48,
        /// Statistics context.
        stat_ctx_id: le::U32 = 52,
    }
}
