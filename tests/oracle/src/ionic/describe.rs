//! Differences in words.

use directverbs::ionic::cqe::{CqeType, QidTypeFlags, RecvCqe, SendCqe};
use directverbs::ionic::doorbell::{DbRing, DoorbellWord};
use directverbs::ionic::wqe::{
    AtomicWqeV1, AtomicWqeV2, BaseHeader, BindMwWqe, RdmaVersion, RdmaWqe, RecvWqe, SendWqe, SqOp,
};
use directverbs::layout::Layout;
use zerocopy::FromBytes;

use super::memory::DOORBELL;
use super::ours::{RECV_CMB, SEND_CMB, Setup};
use super::pair::{CQ, RECV, SEND};
use crate::case::{Access, Area};

/// The layout of what is at `offset` of an area, and where it begins.
pub(super) fn layout_at(setup: &Setup, area: &Area, offset: usize) -> Option<(&'static Layout, usize)> {
    let is = |names: &[&str]| names.contains(&area.name);
    let (sq, rq) = (setup.plan.sq.ring.stride() as usize, setup.plan.rq.ring.stride() as usize);
    let start = |stride: usize| offset & !(stride - 1);
    if is(&SEND) || is(&SEND_CMB) {
        let at = start(sq);
        let (header, _) = BaseHeader::read_from_prefix(area.theirs.get(at..)?).ok()?;
        Some((send_layout(setup.caps.version, header.op), at))
    } else if is(&RECV) || is(&RECV_CMB) {
        Some((&RecvWqe::LAYOUT, start(rq)))
    } else if is(&CQ[0]) || is(&CQ[1]) {
        let at = start(32);
        let last = area.theirs.get(at + 28..at + 32)?.first_chunk()?;
        let kind = CqeType(QidTypeFlags::from_bits(u32::from_be_bytes(*last)).cqe_type());
        Some((if kind == CqeType::RECV { &RecvCqe::LAYOUT } else { &SendCqe::LAYOUT }, at))
    } else {
        None
    }
}

fn send_layout(version: RdmaVersion, opcode: u8) -> &'static Layout {
    match SqOp::from_opcode(version, opcode) {
        Some(SqOp::Read | SqOp::Write | SqOp::WriteImm) => &RdmaWqe::LAYOUT,
        Some(SqOp::CompareSwap | SqOp::FetchAdd) => match version {
            RdmaVersion::V1 => &AtomicWqeV1::LAYOUT,
            RdmaVersion::V2 => &AtomicWqeV2::LAYOUT,
        },
        Some(SqOp::BindMw) => &BindMwWqe::LAYOUT,
        _ => &SendWqe::LAYOUT,
    }
}

/// An access in words.
pub(super) fn access(setup: &Setup, access: &Access) -> String {
    let Access::Store { page, offset, value } = access else { return format!("{access:x?}") };
    if *page != DOORBELL {
        return format!("{page} at {offset:#x}: {value:#018x}");
    }
    let queues = [
        (setup.caps.sq_qtype, "send"),
        (setup.caps.rq_qtype, "receive"),
        (setup.caps.cq_qtype, "completion"),
    ];
    let queue =
        queues.iter().find(|(qtype, _)| qtype.register() * 8 == *offset).map_or("no", |(_, name)| name);
    let word = DoorbellWord::from_bits(*value);
    let ring = match word.ring() {
        ring if ring == DbRing::Index as u8 => "",
        ring if ring == DbRing::ArmAny as u8 => " armed",
        ring if ring == DbRing::ArmSolicited as u8 => " armed for solicited",
        _ => " of an unknown ring",
    };
    format!("{queue} queue {:#x}{ring}, index {} ({value:#x})", word.qid(), word.index())
}
