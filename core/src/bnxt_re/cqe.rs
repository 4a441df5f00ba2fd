//! CQEs (32 bytes) and notification queue entries (16 bytes). Source of all layouts: `roce_hsi.h`.

use zerocopy::little_endian as le;

use crate::layout::{bits, layout};
use crate::verbs::WcStatus;

/// Bytes of a CQE.
pub const CQE_BYTES: u32 = 32;
/// Byte offset of the word that holds toggle (phase), type, status and flags.
pub const PHASE_OFFSET: usize = 24;

bits! {
    /// First byte of the last quarter of a CQE.
    pub struct CqeTypeToggle(u8) {
        /// Phase: 1 in the first lap of the ring, flips with each lap.
        toggle: bool = 1,
        /// Type, see [`CqeType`].
        cqe_type: u8 = 4,
        /// Toggle of a resize (cut-off), or push (requester).
        resize_toggle: u8 = 2,
        __: bool = 1,
    }
}
bits! {
    /// Flags of a received message.
    pub struct CqeResFlags(u16) {
        /// The request came from a shared receive queue.
        srq: bool = 1,
        /// Immediate data is there.
        imm: bool = 1,
        /// A key of ours was invalidated.
        inv: bool = 1,
        /// RDMA WRITE instead of SEND.
        rdma: bool = 1,
        /// Of a datagram: 0 RoCE v1, 2 v2 over IPv4, 3 v2 over IPv6.
        roce_ip_ver: u8 = 2,
        /// Of a datagram: 0 none, 1 VLAN, 2 tunnel id, 3 channel data, 4 header offset.
        meta_format: u8 = 4,
        /// Of a datagram: more of the format.
        ext_meta_format: u8 = 2,
        __: u8 = 4,
    }
}
bits! {
    /// Number of a receive request.
    pub struct CqeTag(u32) {
        /// Index in the receive queue, or tag in the shared one.
        wr_id: u32 = 20,
        __: u8 = 4,
        /// Source queue pair, bits 16 to 23 (datagram), or offset of the payload (raw).
        high: u8 = 8,
    }
}
bits! {
    /// Length of a datagram or frame.
    pub struct CqeLength(u16) {
        /// Bytes.
        length: u16 = 14,
        __: u8 = 2,
    }
}
bits! {
    /// VLAN tag.
    pub struct CqeVlan(u16) {
        /// VLAN id.
        vid: u16 = 12,
        /// Drop eligible.
        de: bool = 1,
        /// Priority.
        pri: u8 = 3,
    }
}

layout! {
    /// What all CQEs have in common.
    pub struct CqBase: "bnxt_re" "cq_base", 32 {
        /// Depends on the type.
        reserved64_1: le::U64 = 0,
        /// Depends on the type.
        reserved64_2: le::U64 = 8,
        /// Depends on the type.
        reserved64_3: le::U64 = 16,
        /// Phase and type.
        cqe_type_toggle: u8 as CqeTypeToggle = 24,
        /// Status.
        status: u8 = 25,
        /// Flags of a received message.
        reserved16: le::U16 = 26,
        /// Depends on the type.
        opaque: le::U32 = 28,
    }
}
layout! {
    /// Requester: all send requests up to an index have completed.
    pub struct CqReq: "bnxt_re" "cq_req", 32 {
        /// Handle given at the queue pair's creation.
        qp_handle: le::U64 = 0,
        /// WQE index behind the last request that completed; in an error of variable mode, slot of the request that
        /// failed.
        sq_cons_idx: le::U16 = 8,
        /// Zero.
        reserved16_1: le::U16 = 10,
        /// Zero.
        reserved32_2: le::U32 = 12,
        /// Zero.
        reserved64: le::U64 = 16,
        /// Phase and type.
        cqe_type_toggle: u8 as CqeTypeToggle = 24,
        /// See [`ReqStatus`].
        status: u8 = 25,
        /// Zero.
        reserved16_2: le::U16 = 26,
        /// Zero.
        reserved32_1: le::U32 = 28,
    }
}
layout! {
    /// Message received on a reliable connection.
    pub struct CqResRc: "bnxt_re" "cq_res_rc", 32 {
        /// Bytes received.
        length: le::U32 = 0,
        /// Immediate data, or the key of ours that was invalidated.
        imm_data_or_inv_r_key: le::U32 = 4,
        /// Handle given at the queue pair's creation.
        qp_handle: le::U64 = 8,
        /// Handle of the region invalidated.
        mr_handle: le::U64 = 16,
        /// Phase and type.
        cqe_type_toggle: u8 as CqeTypeToggle = 24,
        /// See [`ResStatus`].
        status: u8 = 25,
        /// Flags.
        flags: le::U16 as CqeResFlags = 26,
        /// Number of the receive request.
        srq_or_rq_wr_id: le::U32 as CqeTag = 28,
    }
}
layout! {
    /// Datagram received.
    pub struct CqResUd: "bnxt_re" "cq_res_ud", 32 {
        /// Bytes received, GRH included.
        length: le::U16 as CqeLength = 0,
        /// VLAN tag.
        cfa_metadata: le::U16 as CqeVlan = 2,
        /// Immediate data.
        imm_data: le::U32 = 4,
        /// Handle given at the queue pair's creation.
        qp_handle: le::U64 = 8,
        /// The sender's Ethernet address.
        src_mac: [le::U16; 3] = 16,
        /// The sender's queue pair, bits 0 to 15.
        src_qp_low: le::U16 = 22,
        /// Phase and type.
        cqe_type_toggle: u8 as CqeTypeToggle = 24,
        /// See [`ResStatus`].
        status: u8 = 25,
        /// Flags.
        flags: le::U16 as CqeResFlags = 26,
        /// Number of the receive request, and the rest of the sender's queue pair.
        src_qp_high_srq_or_rq_wr_id: le::U32 as CqeTag = 28,
    }
}
layout! {
    /// Ethernet frame received on a raw queue pair.
    pub struct CqResRawEthQp1: "bnxt_re" "cq_res_raweth_qp1", 32 {
        /// Bytes received.
        length: le::U16 as CqeLength = 0,
        /// Error and kind of packet.
        raweth_qp1_flags: le::U16 = 2,
        /// Checksum and header errors.
        raweth_qp1_errors: le::U16 = 4,
        /// Flow action.
        raweth_qp1_cfa_code: le::U16 = 6,
        /// Handle given at the queue pair's creation.
        qp_handle: le::U64 = 8,
        /// Checksums that were computed, and their sum.
        raweth_qp1_flags2: le::U32 = 16,
        /// VLAN tag and its protocol.
        raweth_qp1_metadata: le::U32 = 20,
        /// Phase and type.
        cqe_type_toggle: u8 as CqeTypeToggle = 24,
        /// See [`ResStatus`].
        status: u8 = 25,
        /// Flags.
        flags: le::U16 as CqeResFlags = 26,
        /// Number of the receive request, and offset of the payload.
        raweth_qp1_payload_offset_srq_or_rq_wr_id: le::U32 as CqeTag = 28,
    }
}
layout! {
    /// The queue pair has gone into error.
    pub struct CqTerminal: "bnxt_re" "cq_terminal", 32 {
        /// Handle given at the queue pair's creation.
        qp_handle: le::U64 = 0,
        /// Consumer index of the send queue.
        sq_cons_idx: le::U16 = 8,
        /// Consumer index of the receive queue.
        rq_cons_idx: le::U16 = 10,
        /// Zero.
        reserved32_1: le::U32 = 12,
        /// Zero.
        reserved64_3: le::U64 = 16,
        /// Phase and type.
        cqe_type_toggle: u8 as CqeTypeToggle = 24,
        /// Zero.
        status: u8 = 25,
        /// Zero.
        reserved16: le::U16 = 26,
        /// Zero.
        reserved32_2: le::U32 = 28,
    }
}
layout! {
    /// The last CQE in the old memory of a queue that is resized.
    pub struct CqCutoff: "bnxt_re" "cq_cutoff", 32 {
        /// Zero.
        reserved64_1: le::U64 = 0,
        /// Zero.
        reserved64_2: le::U64 = 8,
        /// Zero.
        reserved64_3: le::U64 = 16,
        /// Phase, type, and the toggle that the acknowledge carries.
        cqe_type_toggle: u8 as CqeTypeToggle = 24,
        /// Zero.
        status: u8 = 25,
        /// Zero.
        reserved16: le::U16 = 26,
        /// Zero.
        reserved32: le::U32 = 28,
    }
}

bits! {
    /// First half-word of a notification queue entry.
    pub struct NqType(u16) {
        /// Type: 0x30 completion, 0x32 shared receive queue, 0x34 doorbell queue, 0x38 queue pair, 0x3a function.
        nqe_type: u8 = 6,
        /// Toggle for the next arm.
        toggle: u8 = 2,
        __: u8 = 8,
    }
}
bits! {
    /// Word with the phase of a notification queue entry.
    pub struct NqValid(u32) {
        /// Phase: 1 in the first lap of the ring, flips with each lap.
        v: bool = 1,
        __: u32 = 31,
    }
}
bits! {
    /// Type byte of an event.
    pub struct NqEventType(u8) {
        /// Type, as in [`NqType`].
        nqe_type: u8 = 6,
        /// Toggle for the next arm.
        toggle: u8 = 2,
    }
}
bits! {
    /// Doorbell that overran its queue.
    pub struct NqDbqDoorbell(u32) {
        /// Id.
        db_xid: u32 = 20,
        __: u8 = 8,
        /// Type.
        db_type: u8 = 4,
    }
}

layout! {
    /// What all notification queue entries have in common.
    pub struct NqBase: "bnxt_re" "nq_base", 16 {
        /// Type.
        info10_type: le::U16 as NqType = 0,
        /// Depends on the type.
        info16: le::U16 = 2,
        /// Depends on the type.
        info32: le::U32 = 4,
        /// Phase in bit 0 of the first word; the rest depends on the type.
        info63_v: [le::U32; 2] as NqValid = 8,
    }
}
layout! {
    /// An armed completion queue has a new CQE.
    pub struct NqCn: "bnxt_re" "nq_cn", 16 {
        /// Type and toggle.
        r#type: le::U16 as NqType = 0,
        /// Zero.
        reserved16: le::U16 = 2,
        /// Handle given at the queue's creation, low half.
        cq_handle_low: le::U32 = 4,
        /// Phase.
        v: le::U32 as NqValid = 8,
        /// High half.
        cq_handle_high: le::U32 = 12,
    }
}
layout! {
    /// A shared receive queue has reached its limit.
    pub struct NqSrqEvent: "bnxt_re" "nq_srq_event", 16 {
        /// Type and toggle.
        r#type: u8 as NqEventType = 0,
        /// 1: limit reached.
        event: u8 = 1,
        /// Zero.
        reserved16: le::U16 = 2,
        /// Handle given at the queue's creation, low half.
        srq_handle_low: le::U32 = 4,
        /// Phase.
        v: le::U32 as NqValid = 8,
        /// High half.
        srq_handle_high: le::U32 = 12,
    }
}
layout! {
    /// The doorbell queue has reached its threshold.
    pub struct NqDbqEvent: "bnxt_re" "nq_dbq_event", 16 {
        /// Type and toggle.
        r#type: u8 as NqEventType = 0,
        /// 1: threshold reached.
        event: u8 = 1,
        /// Function, 4 bits.
        db_pfid: le::U16 = 2,
        /// Doorbell page, 20 bits.
        db_dpi: le::U32 = 4,
        /// Phase.
        v: le::U32 as NqValid = 8,
        /// The doorbell.
        db_type_db_xid: le::U32 as NqDbqDoorbell = 12,
    }
}

/// Type of a CQE. Open: any value of four bits is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CqeType(pub u8);

impl CqeType {
    /// [`CqReq`].
    pub const REQ: Self = Self(0x0);
    /// [`CqResRc`].
    pub const RES_RC: Self = Self(0x1);
    /// [`CqResUd`].
    pub const RES_UD: Self = Self(0x2);
    /// [`CqResRawEthQp1`].
    pub const RES_RAWETH_QP1: Self = Self(0x3);
    /// Nothing happened.
    pub const NO_OP: Self = Self(0xd);
    /// [`CqTerminal`].
    pub const TERMINAL: Self = Self(0xe);
    /// [`CqCutoff`].
    pub const CUT_OFF: Self = Self(0xf);
}

/// Status of a requester CQE. Open: any byte is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReqStatus(pub u8);

impl ReqStatus {
    /// Success.
    pub const OK: Self = Self(0x0);
    /// The answer makes no sense.
    pub const BAD_RESPONSE_ERR: Self = Self(0x1);
    /// Message longer than allowed.
    pub const LOCAL_LENGTH_ERR: Self = Self(0x2);
    /// Wrong request.
    pub const LOCAL_QP_OPERATION_ERR: Self = Self(0x3);
    /// Wrong local key.
    pub const LOCAL_PROTECTION_ERR: Self = Self(0x4);
    /// Bind, invalidate or register failed.
    pub const MEMORY_MGT_OPERATION_ERR: Self = Self(0x5);
    /// The peer refused the request as invalid.
    pub const REMOTE_INVALID_REQUEST_ERR: Self = Self(0x6);
    /// Wrong remote key.
    pub const REMOTE_ACCESS_ERR: Self = Self(0x7);
    /// The peer failed.
    pub const REMOTE_OPERATION_ERR: Self = Self(0x8);
    /// The peer had no receive request.
    pub const RNR_NAK_RETRY_CNT_ERR: Self = Self(0x9);
    /// The peer did not answer.
    pub const TRANSPORT_RETRY_CNT_ERR: Self = Self(0xa);
    /// Flushed by the device.
    pub const WORK_REQUEST_FLUSHED_ERR: Self = Self(0xb);

    const MAP: [WcStatus; 12] = [
        WcStatus::Success,
        WcStatus::BadResp,
        WcStatus::LocLen,
        WcStatus::LocQpOp,
        WcStatus::LocProt,
        WcStatus::MwBind,
        WcStatus::RemInvReq,
        WcStatus::RemAccess,
        WcStatus::RemOp,
        WcStatus::RnrRetryExceeded,
        WcStatus::RetryExceeded,
        WcStatus::WrFlush,
    ];

    /// The field's status; an unknown code becomes a general error.
    pub const fn status(self) -> WcStatus {
        if (self.0 as usize) < Self::MAP.len() { Self::MAP[self.0 as usize] } else { WcStatus::General }
    }

    /// The code for a status, if the device has one.
    pub fn from_status(status: WcStatus) -> Option<Self> {
        code_of(&Self::MAP, status).map(Self)
    }
}

/// Status of a responder CQE. Open: any byte is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResStatus(pub u8);

impl ResStatus {
    /// Success.
    pub const OK: Self = Self(0x0);
    /// Access violation of an incoming WRITE with immediate data.
    pub const LOCAL_ACCESS_ERROR: Self = Self(0x1);
    /// Message longer than the request's buffers.
    pub const LOCAL_LENGTH_ERR: Self = Self(0x2);
    /// Wrong local key.
    pub const LOCAL_PROTECTION_ERR: Self = Self(0x3);
    /// Wrong request.
    pub const LOCAL_QP_OPERATION_ERR: Self = Self(0x4);
    /// Invalidation failed.
    pub const MEMORY_MGT_OPERATION_ERR: Self = Self(0x5);
    /// The peer's request is invalid.
    pub const REMOTE_INVALID_REQUEST_ERR: Self = Self(0x6);
    /// Flushed by the device.
    pub const WORK_REQUEST_FLUSHED_ERR: Self = Self(0x7);
    /// Flushed inside the device; no request belongs to it, so pollers pass over it.
    pub const HW_FLUSH_ERR: Self = Self(0x8);

    const MAP: [WcStatus; 9] = [
        WcStatus::Success,
        WcStatus::LocAccess,
        WcStatus::LocLen,
        WcStatus::LocProt,
        WcStatus::LocQpOp,
        WcStatus::MwBind,
        WcStatus::RemInvReq,
        WcStatus::WrFlush,
        WcStatus::Fatal,
    ];

    /// The field's status; an unknown code becomes a general error.
    pub const fn status(self) -> WcStatus {
        if (self.0 as usize) < Self::MAP.len() { Self::MAP[self.0 as usize] } else { WcStatus::General }
    }

    /// The code for a status, if the device has one.
    pub fn from_status(status: WcStatus) -> Option<Self> {
        code_of(&Self::MAP, status).map(Self)
    }
}

fn code_of(map: &[WcStatus], status: WcStatus) -> Option<u8> {
    map.iter().position(|s| *s == status).map(|code| code as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_maps_and_back() {
        for code in 0..=0xb {
            let status = ReqStatus(code).status();
            assert_eq!(ReqStatus::from_status(status), Some(ReqStatus(code)));
        }
        for code in 0..=8 {
            assert_eq!(ResStatus::from_status(ResStatus(code).status()), Some(ResStatus(code)));
        }
        assert_eq!(
            (ReqStatus(0xc).status(), ResStatus(0xff).status()),
            (WcStatus::General, WcStatus::General)
        );
        assert_eq!(ReqStatus::from_status(WcStatus::Fatal), None);
    }

    #[test]
    fn the_phase_word_holds_type_and_toggle() {
        let byte = CqeTypeToggle::new().with_toggle(true).with_cqe_type(0xf).with_resize_toggle(2);
        assert_eq!(byte.into_bits(), 0x5f);
    }
}
