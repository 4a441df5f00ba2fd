//! Encodes CQEs.

use directverbs::bnxt_re::cqe::{
    CqCutoff, CqReq, CqResRawEthQp1, CqResRc, CqResUd, CqTerminal, CqeLength, CqeResFlags, CqeTag, CqeType,
    CqeTypeToggle, CqeVlan, ReqStatus, ResStatus,
};
use directverbs::verbs::{QpType, WcOpcode, WcStatus};
use zerocopy::{IntoBytes, little_endian as le};

use super::cq::CQE_BYTES;
use crate::roce::Completion;

/// A CQE without its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqe([u8; CQE_BYTES as usize]);

/// Where all CQEs have phase, type and resize toggle.
const TYPE_BYTE: usize = 24;

impl Cqe {
    /// Completes the send requests up to an index, or fails one.
    pub fn requester(handle: u64, sq_cons_idx: u16, status: WcStatus) -> Self {
        let cqe = CqReq {
            qp_handle: le::U64::new(handle),
            sq_cons_idx: le::U16::new(sq_cons_idx),
            cqe_type_toggle: type_byte(CqeType::REQ, 0),
            status: requester_status(status).0,
            ..CqReq::ZERO
        };
        Self::of(&cqe)
    }

    /// Completes a receive request, whose number is `tag`.
    pub fn responder(qp_type: QpType, tag: u32, completion: &Completion) -> Self {
        match qp_type {
            QpType::Rc => Self::connected(tag, completion),
            QpType::Ud => Self::datagram(tag, completion),
            QpType::RawPacket => Self::raw(tag, completion),
        }
    }

    /// The queue pair has gone into error. An index is `None` on a completion queue that the side does not complete to.
    pub fn terminal(handle: u64, sq_cons_idx: Option<u16>, rq_cons_idx: Option<u16>) -> Self {
        let cqe = CqTerminal {
            qp_handle: le::U64::new(handle),
            sq_cons_idx: le::U16::new(sq_cons_idx.unwrap_or(u16::MAX)),
            rq_cons_idx: le::U16::new(rq_cons_idx.unwrap_or(u16::MAX)),
            cqe_type_toggle: type_byte(CqeType::TERMINAL, 0),
            ..CqTerminal::ZERO
        };
        Self::of(&cqe)
    }

    /// The last CQE in the old ring of a queue that is resized.
    pub fn cut_off(resize_toggle: u8) -> Self {
        let cqe = CqCutoff { cqe_type_toggle: type_byte(CqeType::CUT_OFF, resize_toggle), ..CqCutoff::ZERO };
        Self::of(&cqe)
    }

    /// The bytes, with the phase of the ring's lap.
    pub fn bytes(mut self, phase: bool) -> [u8; CQE_BYTES as usize] {
        if let Some(byte) = self.0.get_mut(TYPE_BYTE) {
            *byte = CqeTypeToggle::from_bits(*byte).with_toggle(phase).into_bits();
        }
        self.0
    }

    fn connected(tag: u32, completion: &Completion) -> Self {
        let value = match (completion.imm, completion.invalidated) {
            (Some(imm), _) => imm.get(),
            (None, Some(key)) => key.get(),
            (None, None) => 0,
        };
        let flags = flags(completion)
            .with_inv(completion.invalidated.is_some())
            .with_rdma(completion.opcode == WcOpcode::RecvRdmaWithImm);
        let cqe = CqResRc {
            length: le::U32::new(completion.byte_len),
            imm_data_or_inv_r_key: le::U32::new(value),
            qp_handle: le::U64::new(completion.handle),
            cqe_type_toggle: type_byte(CqeType::RES_RC, 0),
            status: responder_status(completion.status).0,
            flags: le::U16::new(flags.into_bits()),
            srq_or_rq_wr_id: le::U32::new(CqeTag::new().with_wr_id(tag).into_bits()),
            ..CqResRc::ZERO
        };
        Self::of(&cqe)
    }

    fn datagram(tag: u32, completion: &Completion) -> Self {
        let source = completion.source.unwrap_or_default();
        let [a, b, c, d, e, f] = source.mac.0;
        let flags = flags(completion)
            .with_roce_ip_ver(if source.ipv6 { 3 } else { 2 })
            .with_meta_format(source.vlan.is_some().into());
        let from = source.qp.get();
        let cqe = CqResUd {
            length: le::U16::new(length(completion)),
            cfa_metadata: le::U16::new(CqeVlan::from_bits(source.vlan.unwrap_or(0)).into_bits()),
            imm_data: le::U32::new(completion.imm.map_or(0, |imm| imm.get())),
            qp_handle: le::U64::new(completion.handle),
            src_mac: [[a, b], [c, d], [e, f]].map(|pair| le::U16::new(u16::from_be_bytes(pair))),
            src_qp_low: le::U16::new(from as u16),
            cqe_type_toggle: type_byte(CqeType::RES_UD, 0),
            status: responder_status(completion.status).0,
            flags: le::U16::new(flags.into_bits()),
            src_qp_high_srq_or_rq_wr_id: le::U32::new(
                CqeTag::new().with_wr_id(tag).with_high((from >> 16) as u8).into_bits(),
            ),
        };
        Self::of(&cqe)
    }

    fn raw(tag: u32, completion: &Completion) -> Self {
        let cqe = CqResRawEthQp1 {
            length: le::U16::new(length(completion)),
            qp_handle: le::U64::new(completion.handle),
            cqe_type_toggle: type_byte(CqeType::RES_RAWETH_QP1, 0),
            status: responder_status(completion.status).0,
            flags: le::U16::new(flags(completion).into_bits()),
            raweth_qp1_payload_offset_srq_or_rq_wr_id: le::U32::new(
                CqeTag::new().with_wr_id(tag).into_bits(),
            ),
            ..CqResRawEthQp1::ZERO
        };
        Self::of(&cqe)
    }

    fn of<T>(cqe: &T) -> Self
    where
        T: IntoBytes + zerocopy::Immutable,
    {
        let mut bytes = [0; CQE_BYTES as usize];
        bytes.copy_from_slice(cqe.as_bytes());
        Self(bytes)
    }
}

fn type_byte(cqe_type: CqeType, resize_toggle: u8) -> u8 {
    CqeTypeToggle::new().with_cqe_type(cqe_type.0).with_resize_toggle(resize_toggle).into_bits()
}

fn flags(completion: &Completion) -> CqeResFlags {
    CqeResFlags::new().with_srq(completion.srq.is_some()).with_imm(completion.imm.is_some())
}

/// Length of a datagram or frame; both are shorter than the field's 16 KiB.
fn length(completion: &Completion) -> u16 {
    CqeLength::new().with_length(completion.byte_len.min(0x3fff) as u16).into_bits()
}

/// The code for what failed a send request. A status without a code of its own is a wrong operation.
fn requester_status(status: WcStatus) -> ReqStatus {
    ReqStatus::from_status(status).unwrap_or(ReqStatus::LOCAL_QP_OPERATION_ERR)
}

/// The code for what failed a receive request. A status without a code of its own is a wrong operation.
fn responder_status(status: WcStatus) -> ResStatus {
    match status {
        WcStatus::RemAccess => ResStatus::LOCAL_ACCESS_ERROR,
        WcStatus::RemOp => ResStatus::LOCAL_QP_OPERATION_ERR,
        other => ResStatus::from_status(other).unwrap_or(ResStatus::LOCAL_QP_OPERATION_ERR),
    }
}
