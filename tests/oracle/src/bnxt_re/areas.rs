//! The memory that both sides fill, and what is where in it.

use directverbs::bnxt_re::psn::{Retransmit, SqMsnSearch, SqPsnSearch, SqPsnSearchExt};
use directverbs::bnxt_re::wqe::{RqWqeHdr, SLOT_BYTES, SqAtomicHdr, SqRdmaHdr, SqSendHdr, SqSge, WqeType};
use directverbs::layout::Layout;

use super::ours::Ours;
use super::theirs::Theirs;
use crate::case::Area;

/// Names of the areas of up to two queue pairs.
pub const SEND_RING: [&str; 2] = ["send ring", "send ring of the second queue pair"];
/// Behind the rings.
pub const TABLE: [&str; 2] = ["retransmit table", "retransmit table of the second queue pair"];
const RECV_RING: [&str; 2] = ["receive ring", "receive ring of the second queue pair"];
const SHARED_RING: &str = "shared receive ring";

/// All that both sides have filled.
pub fn all(theirs: &Theirs, ours: &Ours) -> Vec<Area> {
    let mut areas = Vec::new();
    for (qp, plan) in ours.qp_plans.iter().enumerate() {
        let (send, memory) = (&plan.send, &ours.send_memory[qp]);
        let table = (send.npsn * send.retransmit.entry_bytes()) as usize;
        let at = send.table_offset as usize;
        areas.push(Area {
            name: SEND_RING[qp],
            theirs: theirs.send_memory(qp, 0, at),
            ours: memory.read(0, at),
        });
        areas.push(Area {
            name: TABLE[qp],
            theirs: theirs.send_memory(qp, at, table),
            ours: memory.read(at, table),
        });
        if let (Some(recv), Some(memory)) = (&plan.recv, &ours.recv_memory[qp]) {
            let len = (recv.slots * SLOT_BYTES) as usize;
            areas.push(Area {
                name: RECV_RING[qp],
                theirs: theirs.recv_memory(qp, len),
                ours: memory.read(0, len),
            });
        }
    }
    if let Some(memory) = ours.srq_memory.first() {
        let len = ours.srq_bytes as usize;
        areas.push(Area { name: SHARED_RING, theirs: theirs.shared_memory(len), ours: memory.read(0, len) });
    }
    areas
}

/// Gives our memory bytes of an area.
pub fn write(ours: &Ours, area: &'static str, offset: usize, bytes: &[u8]) {
    for (qp, plan) in ours.qp_plans.iter().enumerate() {
        if area == SEND_RING[qp] {
            ours.send_memory[qp].write(offset, bytes);
        } else if area == TABLE[qp] {
            ours.send_memory[qp].write(plan.send.table_offset as usize + offset, bytes);
        }
    }
}

/// The layout around byte `offset` of an area, and where it begins.
pub fn layout_at(ours: &Ours, area: &Area, offset: usize) -> Option<(&'static Layout, usize)> {
    let sge = offset & !15;
    for (qp, plan) in ours.qp_plans.iter().enumerate() {
        if area.name == TABLE[qp] {
            let layout = match plan.send.retransmit {
                Retransmit::Psn => &SqPsnSearch::LAYOUT,
                Retransmit::PsnExt => &SqPsnSearchExt::LAYOUT,
                Retransmit::Msn => &SqMsnSearch::LAYOUT,
            };
            return Some((layout, offset / layout.size * layout.size));
        }
        if area.name == RECV_RING[qp] {
            let wqe = plan.recv.as_ref()?.wqe_slots as usize * 16;
            let at = offset / wqe * wqe;
            return Some(if offset < at + 32 { (&RqWqeHdr::LAYOUT, at) } else { (&SqSge::LAYOUT, sge) });
        }
        if area.name == SEND_RING[qp] {
            let slot = offset as u32 / SLOT_BYTES;
            let start = ours
                .outstanding(qp)
                .find_map(|(_, start, slots)| (start <= slot && slot < start + slots).then_some(start));
            let at = (start? * SLOT_BYTES) as usize;
            if offset >= at + 32 {
                return Some((&SqSge::LAYOUT, sge));
            }
            let layout = match WqeType(area.theirs[at]) {
                WqeType::WRITE | WqeType::WRITE_IMM | WqeType::READ => &SqRdmaHdr::LAYOUT,
                WqeType::ATOMIC_CS | WqeType::ATOMIC_FA => &SqAtomicHdr::LAYOUT,
                _ => &SqSendHdr::LAYOUT,
            };
            return Some((layout, at));
        }
    }
    let at = offset & !127;
    Some(if offset < at + 32 { (&RqWqeHdr::LAYOUT, at) } else { (&SqSge::LAYOUT, sge) })
}
