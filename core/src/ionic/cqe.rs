//! Completion queue entries, 32 bytes. The last word says what the first 24 bytes are.
//! Source: rdma-core `ionic_fw_types.h`; admin: kernel `ionic_fw.h`.

use zerocopy::{big_endian as be, little_endian as le};

use crate::layout::{Layout, bits, layout};
use crate::verbs::WcStatus;

/// Bytes of a CQE.
pub const CQE_BYTES: usize = 32;

/// Base-two logarithm of [`CQE_BYTES`].
pub const CQE_LOG2: u32 = 5;

/// Offset of the word that holds the color.
pub const QTF_OFFSET: usize = 28;

bits! {
    /// Last word of every CQE, big-endian in memory.
    pub struct QidTypeFlags(u32) {
        /// Pass over the ring: 1 in the first, flips with every wrap.
        color: bool = 1,
        /// `status_length` is a status.
        error: bool = 1,
        __: u8 = 3,
        /// What the CQE is, see [`CqeType`].
        cqe_type: u8 = 3,
        /// Queue pair, or admin queue.
        qid: u32 = 24,
    }
}

bits! {
    /// WQE index and device clock, little-endian in memory.
    pub struct IdxTimestamp(u64) {
        /// Position of the WQE in its ring.
        wqe_idx: u16 = 16,
        /// Device clock, low 48 bits.
        timestamp: u64 = 48,
    }
}

bits! {
    /// Source and operation of a received message, big-endian in memory.
    pub struct SrcQpnOp(u32) {
        /// Sender's queue pair.
        src_qpn: u32 = 24,
        /// Operation, see [`RecvOp`].
        op: u8 = 5,
        __: u8 = 1,
        /// The frame had a VLAN tag.
        vlan: bool = 1,
        /// The frame was IPv4.
        ipv4: bool = 1,
    }
}

layout! {
    /// Admin command done.
    pub struct AdminCqe: "ionic" "ionic_v1_cqe", 32 {
        /// Position of the command in its ring.
        cmd_idx: be::U16 = 0,
        /// Command.
        cmd_op: u8 = 2,
        /// Reserved.
        rsvd: [u8; 17] = 3,
        /// Consumer of the old send completion queue.
        old_sq_cindex: le::U16 = 20,
        /// Consumer of the old receive queue or its completion queue.
        old_rq_cq_cindex: le::U16 = 22,
        /// Status if the error bit is set.
        status_length: be::U32 = 24,
        /// Type and flags.
        qid_type_flags: be::U32 as QidTypeFlags = 28,
    }
}

layout! {
    /// Message received.
    pub struct RecvCqe: "ionic" "ionic_v1_cqe", 32 {
        /// Index of the receive WQE, and time.
        wqe_idx_timestamp: le::U64 as IdxTimestamp = 0,
        /// Sender and operation.
        src_qpn_op: be::U32 as SrcQpnOp = 8,
        /// Sender's Ethernet address.
        src_mac: [u8; 6] = 12,
        /// 802.1Q tag; its top three bits are the priority, also without a tag in the frame.
        vlan_tag: be::U16 = 18,
        /// Immediate data, or the key that was invalidated.
        imm_data_rkey: be::U32 = 20,
        /// Length in bytes, or status if the error bit is set.
        status_length: be::U32 = 24,
        /// Type and flags.
        qid_type_flags: be::U32 as QidTypeFlags = 28,
    }
}

layout! {
    /// Send requests completed: up to a message ([`CqeType::SEND_MSN`]), or one by position ([`CqeType::SEND_NPG`]).
    pub struct SendCqe: "ionic" "ionic_v1_cqe", 32 {
        /// Reserved.
        rsvd: [u8; 4] = 0,
        /// Number of messages acknowledged, 24 bits: all before it have completed.
        msg_msn: be::U32 = 4,
        /// Reserved.
        rsvd2: [u8; 8] = 8,
        /// Index of the WQE (for [`CqeType::SEND_NPG`]), and time.
        npg_wqe_idx_timestamp: le::U64 as IdxTimestamp = 16,
        /// Status if the error bit is set.
        status_length: be::U32 = 24,
        /// Type and flags.
        qid_type_flags: be::U32 as QidTypeFlags = 28,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 3] = [AdminCqe::LAYOUT, RecvCqe::LAYOUT, SendCqe::LAYOUT];

/// What a CQE is. Open: a device may report others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CqeType(pub u8);

impl CqeType {
    /// Admin command done.
    pub const ADMIN: Self = Self(0);
    /// Message received.
    pub const RECV: Self = Self(1);
    /// Send requests completed up to a message.
    pub const SEND_MSN: Self = Self(2);
    /// One send request completed, by position.
    pub const SEND_NPG: Self = Self(3);
    /// Message received, indirect (no driver uses it).
    pub const RECV_INDIR: Self = Self(4);
}

/// Operation that a receive completion reports. Open: a device may report others, which are plain receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecvOp(pub u8);

impl RecvOp {
    /// SEND.
    pub const SEND: Self = Self(0);
    /// SEND that invalidated one of our keys.
    pub const SEND_INV: Self = Self(1);
    /// SEND with immediate data.
    pub const SEND_IMM: Self = Self(2);
    /// RDMA WRITE with immediate data.
    pub const RDMA_IMM: Self = Self(3);
}

/// Status of a completion with the error bit. Open: a device may report others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

impl Status {
    /// No error.
    pub const OK: Self = Self(0);
    /// Local length.
    pub const LOCAL_LEN: Self = Self(1);
    /// Local queue pair operation.
    pub const LOCAL_QP_OPER: Self = Self(2);
    /// Local protection.
    pub const LOCAL_PROT: Self = Self(3);
    /// Flushed. The CQE names no WQE: the host flushes the rest itself.
    pub const WQE_FLUSHED: Self = Self(4);
    /// Memory management operation.
    pub const MEM_MGMT_OPER: Self = Self(5);
    /// Bad response of the peer.
    pub const BAD_RESP: Self = Self(6);
    /// Local access.
    pub const LOCAL_ACC: Self = Self(7);
    /// The peer refused the request as invalid.
    pub const REMOTE_INV_REQ: Self = Self(8);
    /// The peer refused the access.
    pub const REMOTE_ACC: Self = Self(9);
    /// The peer could not carry it out.
    pub const REMOTE_OPER: Self = Self(10);
    /// No answer.
    pub const RETRY_EXCEEDED: Self = Self(11);
    /// The peer had no receive request.
    pub const RNR_RETRY_EXCEEDED: Self = Self(12);
    /// XRC violation.
    pub const XRC_VIO: Self = Self(13);
    /// Local scatter/gather list.
    pub const LOCAL_SGL_INV: Self = Self(14);

    /// The field's status; codes without one of their own are [`WcStatus::General`].
    pub const fn wc_status(self) -> WcStatus {
        match self {
            Self::OK => WcStatus::Success,
            Self::LOCAL_LEN => WcStatus::LocLen,
            Self::LOCAL_QP_OPER => WcStatus::LocQpOp,
            Self::LOCAL_PROT => WcStatus::LocProt,
            Self::WQE_FLUSHED => WcStatus::WrFlush,
            Self::MEM_MGMT_OPER => WcStatus::MwBind,
            Self::BAD_RESP => WcStatus::BadResp,
            Self::LOCAL_ACC => WcStatus::LocAccess,
            Self::REMOTE_INV_REQ => WcStatus::RemInvReq,
            Self::REMOTE_ACC => WcStatus::RemAccess,
            Self::REMOTE_OPER => WcStatus::RemOp,
            Self::RETRY_EXCEEDED => WcStatus::RetryExceeded,
            Self::RNR_RETRY_EXCEEDED => WcStatus::RnrRetryExceeded,
            _ => WcStatus::General,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_has_qid_type_error_and_color() {
        let word = QidTypeFlags::from_bits(0xabcd_ef63);
        assert_eq!((word.qid(), word.cqe_type()), (0xab_cdef, CqeType::SEND_NPG.0));
        assert!(word.color() && word.error());
        let back = QidTypeFlags::new().with_qid(0xab_cdef).with_cqe_type(3).with_color(true).with_error(true);
        assert_eq!(back.into_bits(), 0xabcd_ef63);
    }

    #[test]
    fn source_and_operation_share_a_word() {
        let word = SrcQpnOp::from_bits(0xc312_3456);
        assert_eq!((word.src_qpn(), word.op()), (0x12_3456, RecvOp::RDMA_IMM.0));
        assert!(word.ipv4() && word.vlan());
    }

    #[test]
    fn a_timestamp_has_48_bits_over_the_index() {
        let word = IdxTimestamp::from_bits(0x1234_5678_9abc_def0);
        assert_eq!((word.wqe_idx(), word.timestamp()), (0xdef0, 0x1234_5678_9abc));
    }

    #[test]
    fn every_status_maps_and_an_unknown_one_is_general() {
        let want = [
            WcStatus::Success,
            WcStatus::LocLen,
            WcStatus::LocQpOp,
            WcStatus::LocProt,
            WcStatus::WrFlush,
            WcStatus::MwBind,
            WcStatus::BadResp,
            WcStatus::LocAccess,
            WcStatus::RemInvReq,
            WcStatus::RemAccess,
            WcStatus::RemOp,
            WcStatus::RetryExceeded,
            WcStatus::RnrRetryExceeded,
            WcStatus::General,
            WcStatus::General,
            WcStatus::General,
        ];
        for (code, want) in want.into_iter().enumerate() {
            assert_eq!(Status(code as u32).wc_status(), want, "{code}");
        }
        assert_eq!(Status(u32::MAX).wc_status(), WcStatus::General);
    }
}
