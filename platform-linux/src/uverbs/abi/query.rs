//! Replies to queries of a device, a port and its GIDs.

use directverbs::layout::{ByteOrder, FieldType, Layout, layout};
use zerocopy::{big_endian as be, little_endian as le};

layout! {
    /// Limits and features of a device.
    pub struct QueryDeviceReply: "uverbs" "ib_uverbs_query_device_resp", 176 {
        /// Firmware version, as the driver packs it.
        fw_ver: le::U64 = 0,
        /// GUID of the device.
        node_guid: be::U64 = 8,
        /// GUID of the system it is in.
        sys_image_guid: be::U64 = 16,
        /// Bytes of a memory region.
        max_mr_size: le::U64 = 24,
        /// Page sizes, a bit for each.
        page_size_cap: le::U64 = 32,
        /// Vendor of the card.
        vendor_id: le::U32 = 40,
        /// Part number.
        vendor_part_id: le::U32 = 44,
        /// Revision.
        hw_ver: le::U32 = 48,
        /// Queue pairs.
        max_qp: le::U32 = 52,
        /// Requests of a queue.
        max_qp_wr: le::U32 = 56,
        /// `ibv_device_cap_flags`.
        device_cap_flags: le::U32 = 60,
        /// SGEs of a request.
        max_sge: le::U32 = 64,
        /// SGEs of an RDMA READ.
        max_sge_rd: le::U32 = 68,
        /// Completion queues.
        max_cq: le::U32 = 72,
        /// Entries of a completion queue.
        max_cqe: le::U32 = 76,
        /// Memory regions.
        max_mr: le::U32 = 80,
        /// Protection domains.
        max_pd: le::U32 = 84,
        /// READs and atomics outstanding as responder.
        max_qp_rd_atom: le::U32 = 88,
        /// Unused.
        max_ee_rd_atom: le::U32 = 92,
        /// READs and atomics outstanding as responder, of all queue pairs.
        max_res_rd_atom: le::U32 = 96,
        /// READs and atomics outstanding as requester.
        max_qp_init_rd_atom: le::U32 = 100,
        /// Unused.
        max_ee_init_rd_atom: le::U32 = 104,
        /// `ibv_atomic_cap`: 0 none, 1 among this device's queue pairs, 2 also with the processor.
        atomic_cap: le::U32 = 108,
        /// Unused.
        max_ee: le::U32 = 112,
        /// Unused.
        max_rdd: le::U32 = 116,
        /// Memory windows.
        max_mw: le::U32 = 120,
        /// Unused.
        max_raw_ipv6_qp: le::U32 = 124,
        /// Unused.
        max_raw_ethy_qp: le::U32 = 128,
        /// Multicast groups.
        max_mcast_grp: le::U32 = 132,
        /// Queue pairs of a multicast group.
        max_mcast_qp_attach: le::U32 = 136,
        /// Queue pairs of all multicast groups.
        max_total_mcast_qp_attach: le::U32 = 140,
        /// Address handles.
        max_ah: le::U32 = 144,
        /// Unused.
        max_fmr: le::U32 = 148,
        /// Unused.
        max_map_per_fmr: le::U32 = 152,
        /// Shared receive queues.
        max_srq: le::U32 = 156,
        /// Requests of a shared receive queue.
        max_srq_wr: le::U32 = 160,
        /// SGEs of its requests.
        max_srq_sge: le::U32 = 164,
        /// Partition keys.
        max_pkeys: le::U16 = 168,
        /// Delay of acknowledgements: 4.096 us * 2^n.
        local_ca_ack_delay: u8 = 170,
        /// Ports.
        phys_port_cnt: u8 = 171,
        /// Zero.
        reserved: [u8; 4] = 172,
    }
}

layout! {
    /// Asks for [`QueryDeviceExReply`].
    pub struct QueryDeviceEx: "uverbs" "ib_uverbs_ex_query_device", 8 {
        /// Zero.
        comp_mask: le::U32 = 0,
        /// Zero.
        reserved: le::U32 = 4,
    }
}

layout! {
    /// What follows [`QueryDeviceReply`] in the extended reply, as far as this crate reads it.
    pub struct QueryDeviceExtra: "uverbs" "", 56 {
        /// Zero.
        comp_mask: le::U32 = 0,
        /// Bytes that the kernel has written, [`QueryDeviceReply`] included.
        response_length: le::U32 = 4,
        /// On-demand paging: general, RC, UC, UD, reserved.
        odp_caps: [le::U32; 6] = 8,
        /// Bits of the completion timestamp.
        timestamp_mask: le::U64 = 32,
        /// Rate of the device clock in kHz.
        hca_core_clock: le::U64 = 40,
        /// More features.
        device_cap_flags_ex: le::U64 = 48,
    }
}

layout! {
    /// State of a port.
    pub struct QueryPortReply: "uverbs" "ib_uverbs_query_port_resp", 40 {
        /// `ib_uverbs_query_port_cap_flags`.
        port_cap_flags: le::U32 = 0,
        /// Bytes of a message.
        max_msg_sz: le::U32 = 4,
        /// Packets with a wrong partition key.
        bad_pkey_cntr: le::U32 = 8,
        /// Packets with a wrong queue key.
        qkey_viol_cntr: le::U32 = 12,
        /// Entries of the GID table.
        gid_tbl_len: le::U32 = 16,
        /// Entries of the table of partition keys.
        pkey_tbl_len: le::U16 = 20,
        /// Unused by RoCE.
        lid: le::U16 = 22,
        /// Unused by RoCE.
        sm_lid: le::U16 = 24,
        /// `ib_port_state`: 4 is active.
        state: u8 = 26,
        /// Code of the largest path MTU.
        max_mtu: u8 = 27,
        /// Code of the path MTU in force.
        active_mtu: u8 = 28,
        /// Unused by RoCE.
        lmc: u8 = 29,
        /// Unused by RoCE.
        max_vl_num: u8 = 30,
        /// Unused by RoCE.
        sm_sl: u8 = 31,
        /// Unused by RoCE.
        subnet_timeout: u8 = 32,
        /// Unused by RoCE.
        init_type_reply: u8 = 33,
        /// Lanes, a code.
        active_width: u8 = 34,
        /// Rate of a lane, a code.
        active_speed: u8 = 35,
        /// Physical state: 5 is up.
        phys_state: u8 = 36,
        /// 1 InfiniBand, 2 Ethernet.
        link_layer: u8 = 37,
        /// `ib_uverbs_query_port_flags`.
        flags: u8 = 38,
        /// Zero.
        reserved: u8 = 39,
    }
}

layout! {
    /// What the ioctl method writes about a port.
    pub struct QueryPortReplyEx: "uverbs" "ib_uverbs_query_port_resp_ex", 48 {
        /// State.
        legacy_resp: QueryPortReply = 0,
        /// More flags.
        port_cap_flags2: le::U16 = 40,
        /// Zero.
        reserved: [u8; 2] = 42,
        /// Rate of a lane, a wider code; 0 on older kernels.
        active_speed_ex: le::U32 = 44,
    }
}

layout! {
    /// One entry of the GID tables.
    pub struct GidRecord: "uverbs" "ib_uverbs_gid_entry", 32 {
        /// GID.
        gid: [u8; 16] = 0,
        /// Index in the port's table.
        gid_index: le::U32 = 16,
        /// Port.
        port_num: le::U32 = 20,
        /// 0 InfiniBand, 1 RoCE v1, 2 RoCE v2.
        gid_type: le::U32 = 24,
        /// Network interface; 0 if there is none.
        netdev_ifindex: le::U32 = 28,
    }
}

impl FieldType for QueryPortReply {
    const ORDER: ByteOrder = ByteOrder::Little;
}

/// All layouts of this module.
pub const LAYOUTS: &[Layout] = &[
    QueryDeviceReply::LAYOUT,
    QueryDeviceEx::LAYOUT,
    QueryDeviceExtra::LAYOUT,
    QueryPortReply::LAYOUT,
    QueryPortReplyEx::LAYOUT,
    GidRecord::LAYOUT,
];
