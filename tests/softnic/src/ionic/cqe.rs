//! Encodes completion queue entries.

use directverbs::ionic::cqe::{
    CQE_BYTES, CqeType, IdxTimestamp, QidTypeFlags, RecvCqe, RecvOp, SendCqe, SrcQpnOp, Status,
};
use directverbs::verbs::{QpId, WcOpcode, WcStatus};
use zerocopy::IntoBytes;

use crate::roce::Completion;

/// A completion that waits for its entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cqe {
    /// All remote send requests before message `msn` are done; with a status, the last of them failed.
    Msn { msn: u32, status: Status },
    /// The send request at `index` is done, or failed.
    Npg { index: u16, status: Status },
    /// A receive request is done, or failed.
    Recv(Completion),
    /// The send queue flushes what is left.
    SendFlushed,
    /// The receive queue flushes what is left.
    RecvFlushed,
}

/// The device's code of a status.
pub(super) const fn vendor_status(status: WcStatus) -> Status {
    match status {
        WcStatus::Success => Status::OK,
        WcStatus::LocLen => Status::LOCAL_LEN,
        WcStatus::LocQpOp => Status::LOCAL_QP_OPER,
        WcStatus::LocProt => Status::LOCAL_PROT,
        WcStatus::WrFlush => Status::WQE_FLUSHED,
        WcStatus::MwBind => Status::MEM_MGMT_OPER,
        WcStatus::BadResp => Status::BAD_RESP,
        WcStatus::LocAccess => Status::LOCAL_ACC,
        WcStatus::RemInvReq => Status::REMOTE_INV_REQ,
        WcStatus::RemAccess => Status::REMOTE_ACC,
        WcStatus::RemOp => Status::REMOTE_OPER,
        WcStatus::RetryExceeded => Status::RETRY_EXCEEDED,
        WcStatus::RnrRetryExceeded => Status::RNR_RETRY_EXCEEDED,
        _ => Status::XRC_VIO,
    }
}

impl Cqe {
    /// Whether the completion wakes a queue that waits for solicited ones.
    pub const fn wakes_solicited(&self) -> bool {
        match self {
            Self::Msn { status, .. } | Self::Npg { status, .. } => status.0 != Status::OK.0,
            Self::Recv(done) => done.solicited || !matches!(done.status, WcStatus::Success),
            Self::SendFlushed | Self::RecvFlushed => true,
        }
    }

    /// The entry's bytes. `now` is the device clock.
    pub fn encode(&self, qp: QpId, color: bool, now: u64) -> [u8; CQE_BYTES] {
        let last = |kind: CqeType, error: bool| {
            QidTypeFlags::new()
                .with_color(color)
                .with_error(error)
                .with_cqe_type(kind.0)
                .with_qid(qp.get())
                .into_bits()
        };
        let time = IdxTimestamp::new().with_timestamp(now & (u64::MAX >> 16));
        let send = |kind: CqeType, msn: u32, index: u16, status: Status| SendCqe {
            msg_msn: msn.into(),
            npg_wqe_idx_timestamp: time.with_wqe_idx(index).into_bits().into(),
            status_length: status.0.into(),
            qid_type_flags: last(kind, status != Status::OK).into(),
            ..SendCqe::ZERO
        };
        match self {
            Self::Msn { msn, status } => bytes(&send(CqeType::SEND_MSN, *msn, 0, *status)),
            Self::Npg { index, status } => bytes(&send(CqeType::SEND_NPG, 0, *index, *status)),
            Self::SendFlushed => bytes(&send(CqeType::SEND_NPG, 0, 0, Status::WQE_FLUSHED)),
            Self::RecvFlushed => bytes(&RecvCqe {
                status_length: Status::WQE_FLUSHED.0.into(),
                qid_type_flags: last(CqeType::RECV, true).into(),
                ..RecvCqe::ZERO
            }),
            Self::Recv(done) => {
                let failed = done.status != WcStatus::Success;
                let op = match (done.opcode, done.imm, done.invalidated) {
                    (WcOpcode::RecvRdmaWithImm, ..) => RecvOp::RDMA_IMM,
                    (_, Some(_), _) => RecvOp::SEND_IMM,
                    (_, _, Some(_)) => RecvOp::SEND_INV,
                    _ => RecvOp::SEND,
                };
                let source = done.source.unwrap_or_default();
                let word = done.imm.map(|i| i.get()).or(done.invalidated.map(|k| k.get()));
                bytes(&RecvCqe {
                    wqe_idx_timestamp: time.with_wqe_idx(done.token as u16).into_bits().into(),
                    src_qpn_op: SrcQpnOp::new()
                        .with_src_qpn(source.qp.get())
                        .with_op(op.0)
                        .with_vlan(source.vlan.is_some())
                        .with_ipv4(done.source.is_some() && !source.ipv6)
                        .into_bits()
                        .into(),
                    src_mac: source.mac.0,
                    vlan_tag: source.vlan.unwrap_or(0).into(),
                    imm_data_rkey: word.unwrap_or(0).into(),
                    status_length: if failed { vendor_status(done.status).0 } else { done.byte_len }.into(),
                    qid_type_flags: last(CqeType::RECV, failed).into(),
                })
            }
        }
    }
}

fn bytes(cqe: &(impl IntoBytes + zerocopy::Immutable)) -> [u8; CQE_BYTES] {
    let mut out = [0; CQE_BYTES];
    out.copy_from_slice(cqe.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_comes_back_as_itself() {
        use WcStatus::*;
        let all = [
            Success,
            LocLen,
            LocQpOp,
            LocProt,
            WrFlush,
            MwBind,
            BadResp,
            LocAccess,
            RemInvReq,
            RemAccess,
            RemOp,
            RetryExceeded,
            RnrRetryExceeded,
            General,
        ];
        for status in all {
            assert_eq!(vendor_status(status).wc_status(), status);
        }
    }
}
