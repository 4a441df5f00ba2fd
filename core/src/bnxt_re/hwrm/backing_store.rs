//! Backing store, version 1: one message for all context memory. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{HwrmDone, request, response};

request! {
    /// Asks for the context memory that the device needs.
    pub struct FuncBackingStoreQcapsInput: "hwrm_func_backing_store_qcaps_input", 16, FUNC_BACKING_STORE_QCAPS => FuncBackingStoreQcapsOutput {
    }
}
response! {
    /// Context memory that the device needs.
    pub struct FuncBackingStoreQcapsOutput: "hwrm_func_backing_store_qcaps_output", 104 {
        /// Most entries of queue pairs.
        qp_max_entries: le::U32 = 8,
        /// Fewest entries of queue pairs for qp1.
        qp_min_qp1_entries: le::U16 = 12,
        /// Most entries of queue pairs for Ethernet.
        qp_max_l2_entries: le::U16 = 14,
        /// Bytes of an entry of queue pairs.
        qp_entry_size: le::U16 = 16,
        /// Most entries of shared receive queues for Ethernet.
        srq_max_l2_entries: le::U16 = 18,
        /// Most entries of shared receive queues.
        srq_max_entries: le::U32 = 20,
        /// Bytes of an entry of shared receive queues.
        srq_entry_size: le::U16 = 24,
        /// Most entries of completion queues for Ethernet.
        cq_max_l2_entries: le::U16 = 26,
        /// Most entries of completion queues.
        cq_max_entries: le::U32 = 28,
        /// Bytes of an entry of completion queues.
        cq_entry_size: le::U16 = 32,
        /// Most entries of VNICs for VNICs.
        vnic_max_vnic_entries: le::U16 = 34,
        /// Most entries of VNICs for ring table.
        vnic_max_ring_table_entries: le::U16 = 36,
        /// Bytes of an entry of VNICs.
        vnic_entry_size: le::U16 = 38,
        /// Most entries of statistics contexts.
        stat_max_entries: le::U32 = 40,
        /// Bytes of an entry of statistics contexts.
        stat_entry_size: le::U16 = 44,
        /// Bytes of an entry of transmit queue manager.
        tqm_entry_size: le::U16 = 46,
        /// Fewest entries of transmit queue manager per ring.
        tqm_min_entries_per_ring: le::U32 = 48,
        /// Most entries of transmit queue manager per ring.
        tqm_max_entries_per_ring: le::U32 = 52,
        /// Most entries of regions and address handles.
        mrav_max_entries: le::U32 = 56,
        /// Bytes of an entry of regions and address handles.
        mrav_entry_size: le::U16 = 60,
        /// Bytes of an entry of timers.
        tim_entry_size: le::U16 = 62,
        /// Most entries of timers.
        tim_max_entries: le::U32 = 64,
        /// Unit of region and address handle counts when they come apart.
        mrav_num_entries_units: le::U16 = 68,
        /// Entries of the transmit queue manager come in multiples of this.
        tqm_entries_multiple: u8 = 70,
        /// Byte that entries are initialised with.
        ctx_kind_initializer: u8 = 71,
        /// Kinds to initialise, a bit each: queue pairs, shared receive queues, completion queues, VNICs, statistics, regions.
        ctx_init_mask: le::U16 = 72,
        /// Byte to initialise in each entry of queue pairs, in words of 4 bytes.
        qp_init_offset: u8 = 74,
        /// Byte to initialise in each entry of shared receive queues, in words of 4 bytes.
        srq_init_offset: u8 = 75,
        /// Byte to initialise in each entry of completion queues, in words of 4 bytes.
        cq_init_offset: u8 = 76,
        /// Byte to initialise in each entry of VNICs, in words of 4 bytes.
        vnic_init_offset: u8 = 77,
        /// Fast-path rings of the transmit queue manager.
        tqm_fp_rings_count: u8 = 78,
        /// Byte to initialise in each entry of statistics contexts, in words of 4 bytes.
        stat_init_offset: u8 = 79,
        /// Byte to initialise in each entry of regions and address handles, in words of 4 bytes.
        mrav_init_offset: u8 = 80,
        /// More of them.
        tqm_fp_rings_count_ext: u8 = 81,
        /// Byte to initialise in each entry of transmit keys, in words of 4 bytes.
        tkc_init_offset: u8 = 82,
        /// Byte to initialise in each entry of receive keys, in words of 4 bytes.
        rkc_init_offset: u8 = 83,
        /// Bytes of an entry of transmit keys.
        tkc_entry_size: le::U16 = 84,
        /// Bytes of an entry of receive keys.
        rkc_entry_size: le::U16 = 86,
        /// Most entries of transmit keys.
        tkc_max_entries: le::U32 = 88,
        /// Most entries of receive keys.
        rkc_max_entries: le::U32 = 92,
        /// Entries of fast qpmd queue pairs.
        fast_qpmd_qp_num_entries: le::U16 = 96,
        /// Zero.
        rsvd1: [u8; 5] = 98,
        /// 1 when the response is complete; written last.
        valid: u8 = 103,
    }
}
request! {
    /// Gives the device context memory.
    pub struct FuncBackingStoreCfgInput: "hwrm_func_backing_store_cfg_input", 336, FUNC_BACKING_STORE_CFG => HwrmDone {
        /// 1 before boot; 2: entries of regions and address handles come apart.
        flags: le::U32 = 16,
        /// Which of the fields below count, a bit each.
        enables: le::U32 = 20,
        /// Page size and level of queue pairs.
        qpc_pg_size_qpc_lvl: u8 = 24,
        /// Page size and level of shared receive queues.
        srq_pg_size_srq_lvl: u8 = 25,
        /// Page size and level of completion queues.
        cq_pg_size_cq_lvl: u8 = 26,
        /// Page size and level of VNICs.
        vnic_pg_size_vnic_lvl: u8 = 27,
        /// Page size and level of statistics contexts.
        stat_pg_size_stat_lvl: u8 = 28,
        /// Page size and level of transmit queue manager sp.
        tqm_sp_pg_size_tqm_sp_lvl: u8 = 29,
        /// Page size and level of transmit queue manager ring0.
        tqm_ring0_pg_size_tqm_ring0_lvl: u8 = 30,
        /// Page size and level of transmit queue manager ring1.
        tqm_ring1_pg_size_tqm_ring1_lvl: u8 = 31,
        /// Page size and level of transmit queue manager ring2.
        tqm_ring2_pg_size_tqm_ring2_lvl: u8 = 32,
        /// Page size and level of transmit queue manager ring3.
        tqm_ring3_pg_size_tqm_ring3_lvl: u8 = 33,
        /// Page size and level of transmit queue manager ring4.
        tqm_ring4_pg_size_tqm_ring4_lvl: u8 = 34,
        /// Page size and level of transmit queue manager ring5.
        tqm_ring5_pg_size_tqm_ring5_lvl: u8 = 35,
        /// Page size and level of transmit queue manager ring6.
        tqm_ring6_pg_size_tqm_ring6_lvl: u8 = 36,
        /// Page size and level of transmit queue manager ring7.
        tqm_ring7_pg_size_tqm_ring7_lvl: u8 = 37,
        /// Page size and level of regions and address handles.
        mrav_pg_size_mrav_lvl: u8 = 38,
        /// Page size and level of timers.
        tim_pg_size_tim_lvl: u8 = 39,
        /// Address of the page directory of queue pairs.
        qpc_page_dir: le::U64 = 40,
        /// Address of the page directory of shared receive queues.
        srq_page_dir: le::U64 = 48,
        /// Address of the page directory of completion queues.
        cq_page_dir: le::U64 = 56,
        /// Address of the page directory of VNICs.
        vnic_page_dir: le::U64 = 64,
        /// Address of the page directory of statistics contexts.
        stat_page_dir: le::U64 = 72,
        /// Address of the page directory of transmit queue manager sp.
        tqm_sp_page_dir: le::U64 = 80,
        /// Address of the page directory of transmit queue manager ring0.
        tqm_ring0_page_dir: le::U64 = 88,
        /// Address of the page directory of transmit queue manager ring1.
        tqm_ring1_page_dir: le::U64 = 96,
        /// Address of the page directory of transmit queue manager ring2.
        tqm_ring2_page_dir: le::U64 = 104,
        /// Address of the page directory of transmit queue manager ring3.
        tqm_ring3_page_dir: le::U64 = 112,
        /// Address of the page directory of transmit queue manager ring4.
        tqm_ring4_page_dir: le::U64 = 120,
        /// Address of the page directory of transmit queue manager ring5.
        tqm_ring5_page_dir: le::U64 = 128,
        /// Address of the page directory of transmit queue manager ring6.
        tqm_ring6_page_dir: le::U64 = 136,
        /// Address of the page directory of transmit queue manager ring7.
        tqm_ring7_page_dir: le::U64 = 144,
        /// Address of the page directory of regions and address handles.
        mrav_page_dir: le::U64 = 152,
        /// Address of the page directory of timers.
        tim_page_dir: le::U64 = 160,
        /// Entries of queue pairs.
        qp_num_entries: le::U32 = 168,
        /// Entries of shared receive queues.
        srq_num_entries: le::U32 = 172,
        /// Entries of completion queues.
        cq_num_entries: le::U32 = 176,
        /// Entries of statistics contexts.
        stat_num_entries: le::U32 = 180,
        /// Entries of transmit queue manager sp.
        tqm_sp_num_entries: le::U32 = 184,
        /// Entries of transmit queue manager ring0.
        tqm_ring0_num_entries: le::U32 = 188,
        /// Entries of transmit queue manager ring1.
        tqm_ring1_num_entries: le::U32 = 192,
        /// Entries of transmit queue manager ring2.
        tqm_ring2_num_entries: le::U32 = 196,
        /// Entries of transmit queue manager ring3.
        tqm_ring3_num_entries: le::U32 = 200,
        /// Entries of transmit queue manager ring4.
        tqm_ring4_num_entries: le::U32 = 204,
        /// Entries of transmit queue manager ring5.
        tqm_ring5_num_entries: le::U32 = 208,
        /// Entries of transmit queue manager ring6.
        tqm_ring6_num_entries: le::U32 = 212,
        /// Entries of transmit queue manager ring7.
        tqm_ring7_num_entries: le::U32 = 216,
        /// Entries of regions and address handles.
        mrav_num_entries: le::U32 = 220,
        /// Entries of timers.
        tim_num_entries: le::U32 = 224,
        /// Entries of queue pairs for qp1.
        qp_num_qp1_entries: le::U16 = 228,
        /// Entries of queue pairs for Ethernet.
        qp_num_l2_entries: le::U16 = 230,
        /// Bytes of an entry of queue pairs.
        qp_entry_size: le::U16 = 232,
        /// Entries of shared receive queues for Ethernet.
        srq_num_l2_entries: le::U16 = 234,
        /// Bytes of an entry of shared receive queues.
        srq_entry_size: le::U16 = 236,
        /// Entries of completion queues for Ethernet.
        cq_num_l2_entries: le::U16 = 238,
        /// Bytes of an entry of completion queues.
        cq_entry_size: le::U16 = 240,
        /// Entries of VNICs for VNICs.
        vnic_num_vnic_entries: le::U16 = 242,
        /// Entries of VNICs for ring table.
        vnic_num_ring_table_entries: le::U16 = 244,
        /// Bytes of an entry of VNICs.
        vnic_entry_size: le::U16 = 246,
        /// Bytes of an entry of statistics contexts.
        stat_entry_size: le::U16 = 248,
        /// Bytes of an entry of transmit queue manager.
        tqm_entry_size: le::U16 = 250,
        /// Bytes of an entry of regions and address handles.
        mrav_entry_size: le::U16 = 252,
        /// Bytes of an entry of timers.
        tim_entry_size: le::U16 = 254,
        /// Page size and level of transmit queue manager ring8.
        tqm_ring8_pg_size_tqm_ring_lvl: u8 = 256,
        /// Zero.
        ring8_unused: [u8; 3] = 257,
        /// Entries of transmit queue manager ring8.
        tqm_ring8_num_entries: le::U32 = 260,
        /// Address of the page directory of transmit queue manager ring8.
        tqm_ring8_page_dir: le::U64 = 264,
        /// Page size and level of transmit queue manager ring9.
        tqm_ring9_pg_size_tqm_ring_lvl: u8 = 272,
        /// Zero.
        ring9_unused: [u8; 3] = 273,
        /// Entries of transmit queue manager ring9.
        tqm_ring9_num_entries: le::U32 = 276,
        /// Address of the page directory of transmit queue manager ring9.
        tqm_ring9_page_dir: le::U64 = 280,
        /// Page size and level of transmit queue manager ring10.
        tqm_ring10_pg_size_tqm_ring_lvl: u8 = 288,
        /// Zero.
        ring10_unused: [u8; 3] = 289,
        /// Entries of transmit queue manager ring10.
        tqm_ring10_num_entries: le::U32 = 292,
        /// Address of the page directory of transmit queue manager ring10.
        tqm_ring10_page_dir: le::U64 = 296,
        /// Entries of transmit keys.
        tkc_num_entries: le::U32 = 304,
        /// Entries of receive keys.
        rkc_num_entries: le::U32 = 308,
        /// Address of the page directory of transmit keys.
        tkc_page_dir: le::U64 = 312,
        /// Address of the page directory of receive keys.
        rkc_page_dir: le::U64 = 320,
        /// Bytes of an entry of transmit keys.
        tkc_entry_size: le::U16 = 328,
        /// Bytes of an entry of receive keys.
        rkc_entry_size: le::U16 = 330,
        /// Page size and level of transmit keys.
        tkc_pg_size_tkc_lvl: u8 = 332,
        /// Page size and level of receive keys.
        rkc_pg_size_rkc_lvl: u8 = 333,
        /// Entries of queue pairs for fast qpmd.
        qp_num_fast_qpmd_entries: le::U16 = 334,
    }
}
