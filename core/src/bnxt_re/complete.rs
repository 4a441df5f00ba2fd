//! What one CQE does to a queue pair.

use zerocopy::IntoBytes;

use super::cqe::{CqeResFlags, CqeType, CqeTypeToggle, ReqStatus, ResStatus};
use super::doorbell::Toggle;
use super::qp::QueuePair;
use super::send::SendRecord;
use crate::queue::Store;
use crate::verbs::{CqId, FaultKind, QpId, QpType, SrqId, WcFlags, WcOpcode, WcStatus, WorkCompletion};

/// A CQE as it was read: four words.
#[derive(Clone, Copy)]
pub(super) struct Cqe(pub [u64; 4]);

impl Cqe {
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        let [a, b, c, d] = self.0;
        match index {
            0 => a,
            1 => b,
            2 => c,
            _ => d,
        }
    }

    #[inline(always)]
    fn type_toggle(&self) -> CqeTypeToggle {
        CqeTypeToggle::from_bits(self.word(3) as u8)
    }

    #[inline(always)]
    pub fn cqe_type(&self) -> CqeType {
        CqeType(self.type_toggle().cqe_type())
    }

    pub fn phase(&self) -> bool {
        self.type_toggle().toggle()
    }

    pub fn resize_toggle(&self) -> Toggle {
        Toggle::truncated(self.type_toggle().resize_toggle().into())
    }

    #[inline(always)]
    pub fn status(&self) -> u8 {
        (self.word(3) >> 8) as u8
    }

    #[inline(always)]
    fn flags(&self) -> CqeResFlags {
        CqeResFlags::from_bits((self.word(3) >> 16) as u16)
    }

    /// Number of the receive request.
    #[inline(always)]
    fn tag(&self) -> u32 {
        (self.word(3) >> 32) as u32 & 0xf_ffff
    }

    pub fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.map(u64::to_le).as_bytes());
        bytes
    }
}

/// What became of a CQE.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// It is done with.
    Consumed,
    /// It completes more than there was room for.
    Kept,
    /// It was the cut-off: the queue works on its new memory.
    Switched,
}

/// What became of a CQE; one that makes no sense is done with.
pub(super) type Taken = Result<Step, FaultKind>;

/// What most requester CQEs are: success of the oldest request, which asked for a completion. `None`, and nothing was
/// done, if it is something else.
#[inline(always)]
pub(super) fn one<S: Store>(qp: &mut QueuePair<'_, S>, cq: CqId, index: u16) -> Option<(SendRecord, QpId)> {
    if qp.send_cq() != cq {
        return None;
    }
    let record = qp.send.complete_one(index)?;
    Some((record, qp.send.qp()))
}

/// A requester CQE: everything up to its index has completed.
pub(super) fn requester<S: Store>(
    qp: &mut QueuePair<'_, S>,
    cq: CqId,
    cqe: &Cqe,
    out: &mut [WorkCompletion],
    filled: &mut usize,
) -> Taken {
    if qp.send_cq() != cq {
        return Err(FaultKind::UnknownQp(cqe.word(0)));
    }
    let index = cqe.word(1) as u16;
    if cqe.status() != ReqStatus::OK.0 {
        return failure(qp, cqe, index, out, filled);
    }
    match qp.send.completed_by(index) {
        Some(count) => Ok(carried_out(qp, count, WcStatus::Success, out, filled)),
        None => unmatched(qp, index),
    }
}

/// Completes `count` requests; those that succeeded and asked for no completion give none.
fn carried_out<S: Store>(
    qp: &mut QueuePair<'_, S>,
    count: u32,
    status: WcStatus,
    out: &mut [WorkCompletion],
    filled: &mut usize,
) -> Step {
    for _ in 0..count {
        let Some(wc) = out.get_mut(*filled) else { return Step::Kept };
        if qp.send.write_oldest(status, 0, wc) {
            *filled += 1;
        }
        qp.send.pop();
    }
    Step::Consumed
}

/// A CQE whose index names nothing outstanding. After a flush the device's own late CQEs are no news.
fn unmatched<S: Store>(qp: &QueuePair<'_, S>, index: u16) -> Taken {
    if qp.flushes_send() {
        return Ok(Step::Consumed);
    }
    Err(FaultKind::BadIndex { qp: qp.id().get(), index: index.into() })
}

/// A request has failed.
fn failure<S: Store>(
    qp: &mut QueuePair<'_, S>,
    cqe: &Cqe,
    index: u16,
    out: &mut [WorkCompletion],
    filled: &mut usize,
) -> Taken {
    let Some(position) = qp.send.failed_by(index) else {
        return unmatched(qp, index);
    };
    // Requests before the first that fails were carried out, those before a later one were not.
    let earlier = if qp.send.failed() { WcStatus::WrFlush } else { WcStatus::Success };
    if let Step::Kept = carried_out(qp, position, earlier, out, filled) {
        return Ok(Step::Kept);
    }
    let Some(wc) = out.get_mut(*filled) else { return Ok(Step::Kept) };
    let status = ReqStatus(cqe.status());
    if qp.send.write_oldest(status.status(), status.0.into(), wc) {
        *filled += 1;
    }
    qp.send.pop();
    qp.send_failed();
    Ok(Step::Consumed)
}

/// A responder CQE: one receive request has completed. One from a shared receive queue is left unfinished in
/// `out[filled]`, and `tagged` says which.
pub(super) fn responder<S: Store>(
    qp: &mut QueuePair<'_, S>,
    cq: CqId,
    cqe: &Cqe,
    out: &mut [WorkCompletion],
    filled: &mut usize,
    tagged: &mut Option<(SrqId, u32)>,
) -> Taken {
    if qp.recv_cq() != cq {
        return Err(FaultKind::UnknownQp(cqe.word(1)));
    }
    let qp_type = match cqe.cqe_type() {
        CqeType::RES_RC => QpType::Rc,
        CqeType::RES_UD => QpType::Ud,
        _ => QpType::RawPacket,
    };
    if qp_type as u8 != qp.qp_type() as u8 {
        return Err(FaultKind::Unexpected(cqe.cqe_type().0));
    }
    if cqe.status() == ResStatus::HW_FLUSH_ERR.0 {
        return Ok(Step::Consumed);
    }
    let Some(wc) = out.get_mut(*filled) else { return Ok(Step::Kept) };
    let tag = cqe.tag();
    let (mut wr_id, srq, flushes) = (0, qp.srq(), qp.flushes_recv());
    match (&mut qp.recv, srq) {
        (Some(recv), _) => match recv.oldest() {
            Some((index, oldest)) if index == tag => {
                wr_id = oldest;
                recv.pop();
                *filled += 1;
            }
            _ if flushes => return Ok(Step::Consumed),
            _ => return Err(FaultKind::BadIndex { qp: qp.id().get(), index: tag }),
        },
        (None, Some(srq)) => *tagged = Some((srq, tag)),
        (None, None) => return Err(FaultKind::Unexpected(cqe.cqe_type().0)),
    }
    *wc = received(cqe, qp_type, qp.id());
    wc.wr_id = wr_id;
    if wc.status as u8 != 0 {
        qp.recv_failed();
    }
    Ok(Step::Consumed)
}

/// What a responder CQE says about the message.
#[inline(always)]
fn received(cqe: &Cqe, qp_type: QpType, qp: QpId) -> WorkCompletion {
    let status = ResStatus(cqe.status());
    let mut wc = WorkCompletion {
        qp,
        status: status.status(),
        vendor_err: status.0.into(),
        opcode: WcOpcode::Recv,
        ..WorkCompletion::default()
    };
    if status.0 != ResStatus::OK.0 {
        return wc;
    }
    let flags = cqe.flags();
    let length = cqe.word(0) as u32;
    let key = (cqe.word(0) >> 32) as u32;
    match qp_type {
        QpType::Rc => {
            wc.byte_len = length;
            if flags.imm() {
                wc.imm_or_rkey = key;
                wc.flags = WcFlags::WITH_IMM;
                if flags.rdma() {
                    wc.opcode = WcOpcode::RecvRdmaWithImm;
                }
            } else if flags.inv() {
                wc.imm_or_rkey = key;
                wc.flags = WcFlags::WITH_INV;
            }
        }
        QpType::Ud => {
            wc.byte_len = length & 0x3fff;
            wc.flags = WcFlags::GRH;
            if flags.imm() {
                wc.imm_or_rkey = key;
                wc.flags |= WcFlags::WITH_IMM;
            }
            // The provider of rdma-core v65 loses most of the high byte to a wrong mask.
            let high = (cqe.word(3) >> 56) as u32;
            wc.src_qp = QpId::truncated(high << 16 | (cqe.word(2) >> 48) as u32);
            wc.sl = flags.roce_ip_ver();
        }
        QpType::RawPacket => wc.byte_len = length & 0x3fff,
    }
    wc
}

/// Flushes what is outstanding at a queue pair and completes at `cq`; `false` if `out` is full before the end.
#[cold]
pub(super) fn flush<S: Store>(
    qp: &mut QueuePair<'_, S>,
    cq: CqId,
    out: &mut [WorkCompletion],
    filled: &mut usize,
) -> bool {
    if qp.flushes_send() && qp.send_cq() == cq {
        while !qp.send.is_empty() {
            let Some(wc) = out.get_mut(*filled) else { return false };
            if qp.send.write_oldest(WcStatus::WrFlush, 0, wc) {
                *filled += 1;
            }
            qp.send.pop();
        }
    }
    let id = qp.id();
    if qp.flushes_recv()
        && qp.recv_cq() == cq
        && let Some(recv) = &mut qp.recv
    {
        while let Some((_, wr_id)) = recv.oldest() {
            let Some(wc) = out.get_mut(*filled) else { return false };
            *wc = WorkCompletion {
                wr_id,
                qp: id,
                status: WcStatus::WrFlush,
                opcode: WcOpcode::Recv,
                ..WorkCompletion::default()
            };
            *filled += 1;
            recv.pop();
        }
    }
    true
}
