//! The user ABI of the uverbs core and, below, of the two drivers. Source: kernel `rdma/ib_user_verbs.h`,
//! `rdma/rdma_user_ioctl_cmds.h`.
//!
//! This is a declaration of its own: what it judges, the platform crate, has another one, and nothing is shared. Numbers
//! and structures are in the machine's byte order, as the kernel's are.

pub mod bnxt_re;
pub mod ionic;

/// `IB_USER_VERBS_CMD_*`, named as there.
#[allow(missing_docs)]
pub mod command {
    pub const GET_CONTEXT: u32 = 0;
    pub const QUERY_DEVICE: u32 = 1;
    pub const QUERY_PORT: u32 = 2;
    pub const ALLOC_PD: u32 = 3;
    pub const DEALLOC_PD: u32 = 4;
    pub const CREATE_AH: u32 = 5;
    pub const DESTROY_AH: u32 = 8;
    pub const REG_MR: u32 = 9;
    pub const DEREG_MR: u32 = 13;
    pub const ALLOC_MW: u32 = 14;
    pub const DEALLOC_MW: u32 = 16;
    pub const CREATE_COMP_CHANNEL: u32 = 17;
    pub const CREATE_CQ: u32 = 18;
    pub const RESIZE_CQ: u32 = 19;
    pub const DESTROY_CQ: u32 = 20;
    pub const POLL_CQ: u32 = 21;
    pub const REQ_NOTIFY_CQ: u32 = 23;
    pub const CREATE_QP: u32 = 24;
    pub const QUERY_QP: u32 = 25;
    pub const MODIFY_QP: u32 = 26;
    pub const DESTROY_QP: u32 = 27;
    pub const CREATE_SRQ: u32 = 32;
    pub const MODIFY_SRQ: u32 = 33;
    pub const QUERY_SRQ: u32 = 34;
    pub const DESTROY_SRQ: u32 = 35;
}

/// Bit of a command word: the extended form.
pub const EXTENDED: u32 = 0x8000_0000;
/// Bits of a command word with the number.
pub const NUMBER: u32 = 0xff;

/// `_IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr)`.
pub const RDMA_VERBS_IOCTL: u64 = 0xc018_1b01;

/// Declares structures as the kernel has them, all fields `u64`, `u32`, ... in place order and without padding.
macro_rules! structures {
    ($($(#[doc = $doc:literal])* $name:ident: $bytes:literal { $($field:ident: $type:ty,)* })*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
        #[repr(C)]
        #[allow(missing_docs)]
        pub struct $name { $(pub $field: $type,)* }
        const _: () = assert!(size_of::<$name>() == $bytes);
    )* };
}
pub(super) use structures;

structures! {
    /// `ib_uverbs_ioctl_hdr`, before the attributes.
    IoctlHeader: 24 {
        length: u16, object: u16, method: u16, attributes: u16, reserved1: u64, driver: u32, reserved2: u32,
    }
    /// `ib_uverbs_attr`. `data` is the value if it has at most 8 bytes and goes in, else its address.
    IoctlAttribute: 16 { id: u16, len: u16, flags: u16, extra: u16, data: u64, }
    /// `ib_uverbs_query_device_resp`.
    QueryDevice: 176 {
        fw_ver: u64, node_guid: u64, sys_image_guid: u64, max_mr_size: u64, page_size_cap: u64, vendor_id: u32,
        vendor_part_id: u32, hw_ver: u32, max_qp: u32, max_qp_wr: u32, device_cap_flags: u32, max_sge: u32,
        max_sge_rd: u32, max_cq: u32, max_cqe: u32, max_mr: u32, max_pd: u32, max_qp_rd_atom: u32,
        max_ee_rd_atom: u32, max_res_rd_atom: u32, max_qp_init_rd_atom: u32, max_ee_init_rd_atom: u32,
        atomic_cap: u32, max_ee: u32, max_rdd: u32, max_mw: u32, max_raw_ipv6_qp: u32, max_raw_ethy_qp: u32,
        max_mcast_grp: u32, max_mcast_qp_attach: u32, max_total_mcast_qp_attach: u32, max_ah: u32, max_fmr: u32,
        max_map_per_fmr: u32, max_srq: u32, max_srq_wr: u32, max_srq_sge: u32, max_pkeys: u16,
        local_ca_ack_delay: u8, phys_port_cnt: u8, reserved: [u8; 4],
    }
    /// `ib_uverbs_query_port_resp`.
    QueryPort: 40 {
        port_cap_flags: u32, max_msg_sz: u32, bad_pkey_cntr: u32, qkey_viol_cntr: u32, gid_tbl_len: u32,
        pkey_tbl_len: u16, lid: u16, sm_lid: u16, state: u8, max_mtu: u8, active_mtu: u8, lmc: u8, max_vl_num: u8,
        sm_sl: u8, subnet_timeout: u8, init_type_reply: u8, active_width: u8, active_speed: u8, phys_state: u8,
        link_layer: u8, flags: u8, reserved: u8,
    }
    /// `ib_uverbs_gid_entry`.
    GidEntry: 32 { gid: [u8; 16], gid_index: u32, port_num: u32, gid_type: u32, netdev_ifindex: u32, }
    /// `ib_uverbs_reg_mr`.
    RegMr: 40 { response: u64, start: u64, length: u64, hca_va: u64, pd: u32, access: u32, }
    /// `ib_uverbs_alloc_mw`.
    AllocMw: 16 { response: u64, pd: u32, mw_type: u8, reserved: [u8; 3], }
    /// `ib_uverbs_create_cq`.
    CreateCq: 32 {
        response: u64, user_handle: u64, cqe: u32, comp_vector: u32, comp_channel: i32, reserved: u32,
    }
    /// `ib_uverbs_ex_create_cq`.
    CreateCqEx: 32 {
        user_handle: u64, cqe: u32, comp_vector: u32, comp_channel: i32, comp_mask: u32, flags: u32, reserved: u32,
    }
    /// `ib_uverbs_resize_cq`.
    ResizeCq: 16 { response: u64, cq: u32, cqe: u32, }
    /// `ib_uverbs_create_qp`, and the first part of the extended form, which lacks `response`.
    CreateQp: 48 {
        user_handle: u64, pd: u32, send_cq: u32, recv_cq: u32, srq: u32, max_send_wr: u32, max_recv_wr: u32,
        max_send_sge: u32, max_recv_sge: u32, max_inline_data: u32, sq_sig_all: u8, qp_type: u8, is_srq: u8,
        reserved: u8,
    }
    /// `ib_uverbs_create_qp_resp`.
    CreateQpResp: 32 {
        handle: u32, qpn: u32, max_send_wr: u32, max_recv_wr: u32, max_send_sge: u32, max_recv_sge: u32,
        max_inline_data: u32, reserved: u32,
    }
    /// `ib_uverbs_qp_dest`.
    QpDest: 32 {
        dgid: [u8; 16], flow_label: u32, dlid: u16, reserved: u16, sgid_index: u8, hop_limit: u8, traffic_class: u8,
        sl: u8, src_path_bits: u8, static_rate: u8, is_global: u8, port_num: u8,
    }
    /// `ib_uverbs_modify_qp`.
    ModifyQp: 112 {
        dest: QpDest, alt_dest: QpDest, qp: u32, attr_mask: u32, qkey: u32, rq_psn: u32, sq_psn: u32,
        dest_qp_num: u32, qp_access_flags: u32, pkey_index: u16, alt_pkey_index: u16, qp_state: u8,
        cur_qp_state: u8, path_mtu: u8, path_mig_state: u8, en_sqd_async_notify: u8, max_rd_atomic: u8,
        max_dest_rd_atomic: u8, min_rnr_timer: u8, port_num: u8, timeout: u8, retry_cnt: u8, rnr_retry: u8,
        alt_port_num: u8, alt_timeout: u8, reserved: [u8; 2],
    }
    /// `ib_uverbs_query_qp_resp`.
    QueryQpResp: 128 {
        dest: QpDest, alt_dest: QpDest, max_send_wr: u32, max_recv_wr: u32, max_send_sge: u32, max_recv_sge: u32,
        max_inline_data: u32, qkey: u32, rq_psn: u32, sq_psn: u32, dest_qp_num: u32, qp_access_flags: u32,
        pkey_index: u16, alt_pkey_index: u16, qp_state: u8, cur_qp_state: u8, path_mtu: u8, path_mig_state: u8,
        sq_draining: u8, max_rd_atomic: u8, max_dest_rd_atomic: u8, min_rnr_timer: u8, port_num: u8, timeout: u8,
        retry_cnt: u8, rnr_retry: u8, alt_port_num: u8, alt_timeout: u8, sq_sig_all: u8, reserved: [u8; 5],
    }
    /// `ib_uverbs_create_srq`.
    CreateSrq: 32 { response: u64, user_handle: u64, pd: u32, max_wr: u32, max_sge: u32, limit: u32, }
    /// `ib_uverbs_modify_srq`.
    ModifySrq: 16 { srq: u32, attr_mask: u32, max_wr: u32, limit: u32, }
    /// `ib_uverbs_create_ah`.
    CreateAh: 56 {
        response: u64, user_handle: u64, pd: u32, reserved: u32, dgid: [u8; 16], flow_label: u32, sgid_index: u8,
        hop_limit: u8, traffic_class: u8, reserved2: u8, dlid: u16, sl: u8, src_path_bits: u8, static_rate: u8,
        is_global: u8, port_num: u8, reserved3: u8,
    }
    /// `ib_uverbs_ex_query_device_resp` behind the plain reply.
    QueryDeviceTail: 128 {
        comp_mask: u32, response_length: u32, odp: [u32; 6], timestamp_mask: u64, hca_core_clock: u64,
        device_cap_flags_ex: u64, rss: [u32; 4], max_wq_type_rq: u32, raw_packet_caps: u32, tm: [u32; 6],
        cq_moderation: [u32; 2], max_dm_size: u64, xrc_odp_caps: u32, reserved: u32,
    }
    /// `ib_uverbs_query_port_resp_ex`.
    QueryPortEx: 48 { legacy: QueryPort, port_cap_flags2: u16, reserved: [u8; 2], active_speed_ex: u32, }
    /// `ib_uverbs_qp_cap`.
    QpCap: 20 {
        max_send_wr: u32, max_recv_wr: u32, max_send_sge: u32, max_recv_sge: u32, max_inline_data: u32,
    }
    /// `ib_uverbs_buffer_desc`. `kind` 0 is a dma-buf, 1 memory of the process.
    BufferDesc: 32 { kind: u32, fd: i32, flags: u32, optional_flags: u32, addr: u64, length: u64, }
    /// `ib_uverbs_query_qp`, `ib_uverbs_query_srq`, `ib_uverbs_destroy_*`: a reply's address and a handle.
    HandleOnly: 16 { response: u64, handle: u32, more: u32, }
    /// `ib_uverbs_req_notify_cq`.
    ReqNotifyCq: 8 { cq: u32, solicited_only: u32, }
    /// `ib_uverbs_async_event_desc`.
    AsyncEvent: 16 { element: u64, event_type: u32, reserved: u32, }
}
