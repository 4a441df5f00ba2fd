//! Commands of the RDMA admin queue: a header of 4 bytes, and a payload that goes on into the next strides if it does not
//! fit. Source: Linux `ionic_fw.h`.

use zerocopy::{FromBytes, Immutable, IntoBytes, big_endian as be, little_endian as le};

use super::flags::{QpFlags, QpTypeState};
use super::opcode::AdminOp;
use crate::ionic::wqe::MrFlags;
use crate::layout::{Layout, bits, layout};

/// Bytes of a stride.
pub const STRIDE_BYTES: usize = 64;
/// Bytes of a command before its payload.
pub const HEADER_BYTES: usize = 4;
/// Longest payload.
pub const PAYLOAD_MAX: usize = 64;
/// `tbl_index` of a command whose page table the device places itself.
pub const ANY_TABLE: u32 = u32::MAX;

/// The payload of a command.
pub trait AdminCommand: FromBytes + IntoBytes + Immutable + Copy {
    /// What the command does.
    const OP: AdminOp;
}

layout! {
    /// A command as it is in the ring; what is behind its length is not there.
    pub struct AdminWqe: "ionic" "ionic_v1_admin_wqe", 68 {
        /// See [`AdminOp`].
        op: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Bytes of the payload.
        len: le::U16 = 2,
        /// The payload.
        cmd: [u8; 64] = 4,
    }
}

layout! {
    /// Asks for names or values of statistics.
    pub struct StatsCmd: "ionic" "ionic_admin_stats_hdr", 17 {
        /// Where to write them.
        dma_addr: le::U64 = 0,
        /// How many bytes there are.
        length: le::U32 = 8,
        /// Queue pair, for those of one.
        id_ver: le::U32 = 12,
        /// Which statistics.
        type_state: u8 = 16,
    }
}

layout! {
    /// Creates an address handle.
    pub struct CreateAhCmd: "ionic" "ionic_admin_create_ah", 24 {
        /// Where the headers are, see [`super::HeaderTemplate`].
        dma_addr: le::U64 = 0,
        /// Their length in bytes.
        length: le::U32 = 8,
        /// Protection domain.
        pd_id: le::U32 = 12,
        /// Number to give it.
        id_ver: le::U32 = 16,
        /// Doorbell page.
        dbid_flags: le::U16 = 20,
        /// Which checksums the device fills in, see [`super::CsumProfile`].
        csum_profile: u8 = 22,
        /// 0.
        crypto: u8 = 23,
    }
}

layout! {
    /// Destroys an address handle.
    pub struct DestroyAhCmd: "ionic" "ionic_admin_destroy_ah", 4 {
        /// Its number.
        ah_id: le::U32 = 0,
    }
}

layout! {
    /// Reads an address handle.
    pub struct QueryAhCmd: "ionic" "ionic_admin_query_ah", 8 {
        /// Where to write it.
        dma_addr: le::U64 = 0,
    }
}

layout! {
    /// Creates a memory region or window.
    pub struct CreateMrCmd: "ionic" "ionic_admin_create_mr", 45 {
        /// First address, as requests name it.
        va: le::U64 = 0,
        /// Length in bytes.
        length: le::U64 = 8,
        /// Protection domain.
        pd_id: le::U32 = 16,
        /// Number and key to give it.
        id_ver: le::U32 = 20,
        /// [`ANY_TABLE`].
        tbl_index: le::U32 = 24,
        /// Pages.
        map_count: le::U32 = 28,
        /// Of one page, where the region begins; of more, where the list of their addresses is.
        dma_addr: le::U64 = 32,
        /// What it is and allows. Unlike in WQEs, little-endian.
        dbid_flags: le::U16 as MrFlags = 40,
        /// 0.
        pt_type: u8 = 42,
        /// 0.
        dir_size_log2: u8 = 43,
        /// Bytes of a page, base-two logarithm.
        page_size_log2: u8 = 44,
    }
}

layout! {
    /// Destroys a memory region or window.
    pub struct DestroyMrCmd: "ionic" "ionic_admin_destroy_mr", 4 {
        /// Its number and key.
        mr_id: le::U32 = 0,
    }
}

layout! {
    /// Creates a ring of a completion queue.
    pub struct CreateCqCmd: "ionic" "ionic_admin_create_cq", 34 {
        /// Event queue that it reports to.
        eq_id: le::U32 = 0,
        /// Entries, base-two logarithm.
        depth_log2: u8 = 4,
        /// Bytes of an entry, base-two logarithm.
        stride_log2: u8 = 5,
        /// Reserved.
        dir_size_log2_rsvd: u8 = 6,
        /// Bytes of a page, base-two logarithm.
        page_size_log2: u8 = 7,
        /// 0.
        cq_flags: le::U32 = 8,
        /// Number to give it.
        id_ver: le::U32 = 12,
        /// [`ANY_TABLE`].
        tbl_index: le::U32 = 16,
        /// Pages.
        map_count: le::U32 = 20,
        /// Of one page, where the ring begins; of more, where the list of their addresses is.
        dma_addr: le::U64 = 24,
        /// Doorbell page that rings it.
        dbid_flags: le::U16 = 32,
    }
}

layout! {
    /// Destroys a ring of a completion queue.
    pub struct DestroyCqCmd: "ionic" "ionic_admin_destroy_cq", 4 {
        /// Its number.
        cq_id: le::U32 = 0,
    }
}

layout! {
    /// Creates a queue pair.
    pub struct CreateQpCmd: "ionic" "ionic_admin_create_qp", 64 {
        /// Protection domain.
        pd_id: le::U32 = 0,
        /// What it is and allows.
        priv_flags: be::U32 as QpFlags = 4,
        /// Ring that its send requests complete to.
        sq_cq_id: le::U32 = 8,
        /// Entries of its send queue, base-two logarithm.
        sq_depth_log2: u8 = 12,
        /// Bytes of an entry, base-two logarithm.
        sq_stride_log2: u8 = 13,
        /// Reserved.
        sq_dir_size_log2_rsvd: u8 = 14,
        /// Bytes of a page, base-two logarithm.
        sq_page_size_log2: u8 = 15,
        /// [`ANY_TABLE`].
        sq_tbl_index_xrcd_id: le::U32 = 16,
        /// Pages.
        sq_map_count: le::U32 = 20,
        /// Of one page, where the ring begins; of more, where the list of their addresses is.
        sq_dma_addr: le::U64 = 24,
        /// Ring that its receive requests complete to.
        rq_cq_id: le::U32 = 32,
        /// Entries of its receive queue, base-two logarithm.
        rq_depth_log2: u8 = 36,
        /// Bytes of an entry, base-two logarithm.
        rq_stride_log2: u8 = 37,
        /// Reserved.
        rq_dir_size_log2_rsvd: u8 = 38,
        /// Bytes of a page, base-two logarithm.
        rq_page_size_log2: u8 = 39,
        /// [`ANY_TABLE`].
        rq_tbl_index_srq_id: le::U32 = 40,
        /// Pages.
        rq_map_count: le::U32 = 44,
        /// Of one page, where the ring begins; of more, where the list of their addresses is.
        rq_dma_addr: le::U64 = 48,
        /// Number to give it.
        id_ver: le::U32 = 56,
        /// Doorbell page that rings it.
        dbid_flags: le::U16 = 60,
        /// Its kind.
        type_state: u8 as QpTypeState = 62,
        /// Reserved.
        rsvd: u8 = 63,
    }
}

layout! {
    /// Destroys a queue pair.
    pub struct DestroyQpCmd: "ionic" "ionic_admin_destroy_qp", 4 {
        /// Its number.
        qp_id: le::U32 = 0,
    }
}

bits! {
    /// `retry` of [`ModifyQpCmd`].
    pub struct Retries(u8) {
        /// Retries without an answer.
        count: u8 = 4,
        /// Retries after an RNR NAK; 7 retries for ever.
        rnr: u8 = 4,
    }
}

bits! {
    /// `ah_id_len` of [`ModifyQpCmd`].
    pub struct AhIdLen(u32) {
        /// Address handle of the queue pair.
        ah_id: u32 = 24,
        /// Bytes of its headers.
        length: u8 = 8,
    }
}

layout! {
    /// Changes a queue pair.
    pub struct ModifyQpCmd: "ionic" "ionic_admin_mod_qp", 60 {
        /// What is changed, see [`super::AttrMask`].
        attr_mask: be::U32 = 0,
        /// Profile of congestion control.
        dcqcn_profile: u8 = 4,
        /// Which checksums the device fills in, see [`super::CsumProfile`].
        tfp_csum_profile: u8 = 5,
        /// What the peer may do: the low half of [`QpFlags`].
        access_flags: be::U16 = 6,
        /// First sequence number expected.
        rq_psn: le::U32 = 8,
        /// First sequence number sent.
        sq_psn: le::U32 = 12,
        /// The peer's queue pair, or the queue key of a datagram one.
        qkey_dest_qpn: le::U32 = 16,
        /// Rate limit in kb/s; 0 is none.
        rate_limit_kbps: le::U32 = 20,
        /// Path MTU, base-two logarithm of its bytes.
        pmtu: u8 = 24,
        /// Retries.
        retry: u8 as Retries = 25,
        /// RNR NAK timer code.
        rnr_timer: u8 = 26,
        /// Acknowledge time-out code.
        retry_timeout: u8 = 27,
        /// READs and atomics as responder, base-two logarithm of one more.
        rsq_depth: u8 = 28,
        /// READs and atomics as requester, base-two logarithm of two more, less one.
        rrq_depth: u8 = 29,
        /// Index of the partition key.
        pkey_id: le::U16 = 30,
        /// Address handle, and length of its headers.
        ah_id_len: le::U32 as AhIdLen = 32,
        /// 1: frames have the VLAN priority of the headers.
        en_pcp: u8 = 36,
        /// DSCP of the headers.
        ip_dscp: u8 = 37,
        /// Reserved.
        rsvd2: u8 = 38,
        /// State to go to, and to come from.
        type_state: u8 as QpTypeState = 39,
        /// [`ANY_TABLE`].
        rrq_index: le::U32 = 40,
        /// [`ANY_TABLE`].
        rsq_index: le::U32 = 44,
        /// Where the headers are.
        dma_addr: le::U64 = 48,
        /// The queue pair.
        id_ver: le::U32 = 56,
    }
}

layout! {
    /// Reads a queue pair.
    pub struct QueryQpCmd: "ionic" "ionic_admin_query_qp", 34 {
        /// Where to write its headers.
        hdr_dma_addr: le::U64 = 0,
        /// Where to write a [`super::QuerySq`].
        sq_dma_addr: le::U64 = 8,
        /// Where to write a [`super::QueryRq`].
        rq_dma_addr: le::U64 = 16,
        /// Its address handle.
        ah_id: le::U32 = 24,
        /// The queue pair.
        id_ver: le::U32 = 28,
        /// Doorbell page.
        dbid_flags: le::U16 = 32,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 13] = [
    AdminWqe::LAYOUT,
    StatsCmd::LAYOUT,
    CreateAhCmd::LAYOUT,
    DestroyAhCmd::LAYOUT,
    QueryAhCmd::LAYOUT,
    CreateMrCmd::LAYOUT,
    DestroyMrCmd::LAYOUT,
    CreateCqCmd::LAYOUT,
    DestroyCqCmd::LAYOUT,
    CreateQpCmd::LAYOUT,
    DestroyQpCmd::LAYOUT,
    ModifyQpCmd::LAYOUT,
    QueryQpCmd::LAYOUT,
];

impl AdminCommand for CreateAhCmd {
    const OP: AdminOp = AdminOp::CREATE_AH;
}

impl AdminCommand for DestroyAhCmd {
    const OP: AdminOp = AdminOp::DESTROY_AH;
}

impl AdminCommand for QueryAhCmd {
    const OP: AdminOp = AdminOp::QUERY_AH;
}

impl AdminCommand for CreateMrCmd {
    const OP: AdminOp = AdminOp::CREATE_MR;
}

impl AdminCommand for DestroyMrCmd {
    const OP: AdminOp = AdminOp::DESTROY_MR;
}

impl AdminCommand for CreateCqCmd {
    const OP: AdminOp = AdminOp::CREATE_CQ;
}

impl AdminCommand for DestroyCqCmd {
    const OP: AdminOp = AdminOp::DESTROY_CQ;
}

impl AdminCommand for CreateQpCmd {
    const OP: AdminOp = AdminOp::CREATE_QP;
}

impl AdminCommand for DestroyQpCmd {
    const OP: AdminOp = AdminOp::DESTROY_QP;
}

impl AdminCommand for ModifyQpCmd {
    const OP: AdminOp = AdminOp::MODIFY_QP;
}

impl AdminCommand for QueryQpCmd {
    const OP: AdminOp = AdminOp::QUERY_QP;
}

/// Strides that a command with `payload` bytes takes.
pub const fn strides(payload: usize) -> usize {
    (HEADER_BYTES + payload).div_ceil(STRIDE_BYTES)
}

/// The command with the payload `payload`, which may have been cut off at [`PAYLOAD_MAX`].
pub fn encode(op: AdminOp, payload: &[u8]) -> AdminWqe {
    let mut wqe = AdminWqe { op: op.0, ..AdminWqe::ZERO };
    let len = payload.len().min(PAYLOAD_MAX);
    for (to, from) in wqe.cmd.iter_mut().zip(payload) {
        *to = *from;
    }
    wqe.len = (len as u16).into();
    wqe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_longest_command_takes_two_strides() {
        assert_eq!([0, 4, 60, 61, 64].map(strides), [1, 1, 1, 2, 2]);
        assert_eq!(strides(size_of::<CreateQpCmd>()), 2);
        assert_eq!(strides(size_of::<ModifyQpCmd>()), 1);
    }

    #[test]
    fn a_command_has_opcode_and_length_before_its_payload() {
        let cmd = DestroyMrCmd { mr_id: 0x0102_0304.into() };
        let wqe = encode(DestroyMrCmd::OP, cmd.as_bytes());
        assert_eq!(wqe.as_bytes()[..9], [6, 0, 4, 0, 4, 3, 2, 1, 0]);
        assert_eq!(encode(AdminOp::NOOP, &[7; 100]).len.get(), 64);
    }

    #[test]
    fn words_within_commands() {
        assert_eq!(Retries::new().with_count(7).with_rnr(6).into_bits(), 0x67);
        assert_eq!(AhIdLen::new().with_ah_id(5).with_length(42).into_bits(), 0x2a00_0005);
        let create = CreateQpCmd {
            priv_flags: u32::from(QpFlags::new().with_sq_cmb(true)).into(),
            ..CreateQpCmd::ZERO
        };
        assert_eq!(create.as_bytes()[4..8], [0, 0, 0x20, 0]);
    }
}
