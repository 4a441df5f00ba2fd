//! Devices and queues of the family, for code that posts and polls by itself.

use super::cq::CqState;
use super::doorbell::{DbError, DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use super::plan::{CqPlan, QpPlan};
use super::psn::Retransmit;
use super::qp::{QueuePairInit, QueuePairState};
use super::wqe::{SLOT_BYTES, WqeMode};
use crate::description::{NONE, description};
use crate::layout::Layout;
use crate::verbs::CqId;

/// Every description of the family.
pub const LAYOUTS: &[Layout] = &[ContextDescription::LAYOUT, CqDescription::LAYOUT, QpDescription::LAYOUT];

description! {
    /// A device that was opened.
    pub struct ContextDescription: "bnxt_re", 56 {
        /// Address of the doorbell page that all queues share; 0 if there is none yet.
        doorbell: u64 = 8,
        /// Address of the write-combining push page; 0 if there is none.
        push: u64 = 16,
        /// Index of the doorbell page.
        dpi: u32 = 24,
        /// Index of the push page.
        push_dpi: u32 = 28,
        /// Generation of the chip: 5, 7, or 0 before these.
        generation: u32 = 32,
        /// 0: every WQE takes 8 slots; 1: a WQE takes the slots that it needs.
        wqe_mode: u32 = 36,
        /// Bytes of a slot.
        slot_bytes: u32 = 40,
        /// Bytes of a CQE.
        cqe_bytes: u32 = 44,
        /// Page size that ring lengths are rounded to.
        page_bytes: u32 = 48,
        /// 1: doorbells shall be paced, which this description does not tell how to.
        pacing: u32 = 52,
    }
}

description! {
    /// A completion queue.
    ///
    /// A CQE at the index is new if its toggle bit is the phase. Behind the last entry the index is 0 again, and phase and
    /// epoch change. A doorbell is its base, with the epoch in bit 24 and the index in bits 0 to 23; an arm has the toggle
    /// in bits 25 and 26 besides.
    pub struct CqDescription: "bnxt_re", 80 {
        /// Address of the ring; 0 if it is in memory that has no address in this process.
        ring: u64 = 8,
        /// Address that doorbells are stored to.
        doorbell: u64 = 16,
        /// Base of doorbells that tell the index of the next CQE.
        doorbell_base: u64 = 24,
        /// Base of arms for any completion.
        arm_all_base: u64 = 32,
        /// Base of arms for solicited completions.
        arm_solicited_base: u64 = 40,
        /// Address of the 32-bit word with the toggle of the next arm; 0 if it is always zero.
        toggle: u64 = 48,
        /// Number.
        id: u32 = 56,
        /// Entries of the ring.
        entries: u32 = 60,
        /// Bytes of an entry.
        entry_bytes: u32 = 64,
        /// Index of the next CQE.
        index: u32 = 68,
        /// Phase of a new CQE.
        phase: u32 = 72,
        /// Epoch of the next doorbell.
        epoch: u32 = 76,
    }
}

description! {
    /// A queue pair.
    ///
    /// A send WQE begins at a slot; its doorbell, like that of its completion, counts slots in variable mode and WQEs in
    /// static mode, with the epoch in bit 24, which changes when the index wraps. `sq_reserved_slots` stay free. Each
    /// message has an entry in the retransmit table: at its number with the MSN table, or else at its doorbell index.
    pub struct QpDescription: "bnxt_re", 192 {
        /// Address of the send ring; 0 if it is in memory that has no address in this process.
        sq_ring: u64 = 8,
        /// Address of the receive ring, likewise; 0 also if there is none.
        rq_ring: u64 = 16,
        /// Address that doorbells of both are stored to.
        doorbell: u64 = 24,
        /// Base of the send queue's doorbells.
        sq_doorbell_base: u64 = 32,
        /// Base of the receive queue's doorbells.
        rq_doorbell_base: u64 = 40,
        /// Number.
        id: u32 = 48,
        /// Handle that CQEs name it by.
        handle: u32 = 52,
        /// Kind, as `ibv_qp_type`: 2 RC, 4 UD, 8 raw packets.
        qp_type: u32 = 56,
        /// State, as `ibv_qp_state`.
        state: u32 = 60,
        /// Completion queue of send requests.
        send_cq: u32 = 64,
        /// Completion queue of receive requests.
        recv_cq: u32 = 68,
        /// Shared receive queue; 0xffffffff if there is none.
        srq: u32 = 72,
        /// Path MTU in bytes.
        mtu: u32 = 76,
        /// Slots of the send ring.
        sq_slots: u32 = 80,
        /// Slots that stay free.
        sq_reserved_slots: u32 = 84,
        /// Modulus of the indices of send WQEs: slots in variable mode, WQEs in static mode.
        sq_wqe_modulus: u32 = 88,
        /// Requests outstanding at once.
        sq_max_wr: u32 = 92,
        /// SGEs of a send request.
        sq_max_sge: u32 = 96,
        /// Inline bytes of a send request.
        sq_max_inline: u32 = 100,
        /// 0: every send WQE takes 8 slots; 1: the slots that it needs.
        sq_wqe_mode: u32 = 104,
        /// Retransmit table: 0 entries of 8 bytes by index, 1 entries of 16 bytes by index, 2 MSN table.
        sq_table: u32 = 108,
        /// Byte offset of the retransmit table in the send ring.
        sq_table_offset: u32 = 112,
        /// Bytes of an entry of the retransmit table.
        sq_table_entry_bytes: u32 = 116,
        /// Entries of the retransmit table.
        sq_npsn: u32 = 120,
        /// Modulus of message numbers; 0 without the MSN table.
        sq_msn_modulus: u32 = 124,
        /// Slot of the next send WQE.
        sq_slot: u32 = 128,
        /// Index of the next send WQE.
        sq_wqe: u32 = 132,
        /// Epoch of the next doorbell of the send queue.
        sq_epoch: u32 = 136,
        /// PSN of the next packet.
        sq_psn: u32 = 140,
        /// Number of the next message.
        sq_msn: u32 = 144,
        /// Slots of the receive ring; 0 if there is none.
        rq_slots: u32 = 148,
        /// WQEs of the receive ring; one stays free.
        rq_wqes: u32 = 152,
        /// Slots of a receive WQE.
        rq_wqe_slots: u32 = 156,
        /// Requests outstanding at once.
        rq_max_wr: u32 = 160,
        /// SGEs of a receive request.
        rq_max_sge: u32 = 164,
        /// Index of the next receive WQE.
        rq_wqe: u32 = 168,
        /// Epoch of the next doorbell of the receive queue.
        rq_epoch: u32 = 172,
        /// Slot of the oldest outstanding send WQE.
        sq_oldest_slot: u32 = 176,
        /// Index of the oldest outstanding send WQE.
        sq_oldest_wqe: u32 = 180,
        /// Index of the oldest outstanding receive WQE.
        rq_oldest_wqe: u32 = 184,
        /// Zero.
        reserved: u32 = 188,
    }
}

/// Where a completion queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqAddresses {
    /// Ring, or 0.
    pub ring: u64,
    /// Register of its doorbells.
    pub doorbell: u64,
    /// Toggle, or 0.
    pub toggle: u64,
}

impl CqDescription {
    /// Describes a queue.
    ///
    /// # Errors
    /// The number is wider than a doorbell has room for.
    pub const fn new(id: CqId, plan: &CqPlan, state: &CqState, at: &CqAddresses) -> Result<Self, DbError> {
        let xid = match Xid::cq(id) {
            Ok(xid) => xid,
            Err(e) => return Err(e),
        };
        Ok(Self {
            ring: at.ring,
            doorbell: at.doorbell,
            doorbell_base: base(DbType::CQ, xid),
            arm_all_base: base(DbType::CQ_ARMALL, xid),
            arm_solicited_base: base(DbType::CQ_ARMSE, xid),
            toggle: at.toggle,
            id: id.get(),
            entries: plan.entries,
            entry_bytes: super::cqe::CQE_BYTES,
            index: state.head,
            phase: state.phase as u32,
            epoch: state.epoch as u32,
            ..Self::EMPTY
        })
    }
}

/// Where a queue pair is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpAddresses {
    /// Send ring, or 0.
    pub sq_ring: u64,
    /// Receive ring, or 0.
    pub rq_ring: u64,
    /// Register of its doorbells.
    pub doorbell: u64,
}

impl QpDescription {
    /// Describes a queue pair.
    ///
    /// # Errors
    /// The number is wider than a doorbell has room for.
    pub const fn new(
        init: &QueuePairInit,
        plan: &QpPlan,
        state: &QueuePairState,
        at: &QpAddresses,
    ) -> Result<Self, DbError> {
        let xid = match Xid::qp(init.id) {
            Ok(xid) => xid,
            Err(e) => return Err(e),
        };
        let send = &plan.send;
        let described = Self {
            sq_ring: at.sq_ring,
            doorbell: at.doorbell,
            sq_doorbell_base: base(DbType::SQ, xid),
            id: init.id.get(),
            handle: init.handle,
            qp_type: init.qp_type as u32,
            state: state.state as u32,
            send_cq: init.send_cq.get(),
            recv_cq: init.recv_cq.get(),
            srq: match init.srq {
                Some(srq) => srq.get(),
                None => NONE,
            },
            mtu: 1u32.wrapping_shl(state.send.mtu_log2),
            sq_slots: send.slots,
            sq_reserved_slots: send.reserve,
            sq_wqe_modulus: send.records,
            sq_max_wr: init.capabilities.max_send_wr,
            sq_max_sge: init.capabilities.max_send_sge,
            sq_max_inline: init.capabilities.max_inline_data,
            sq_wqe_mode: mode(send.mode),
            sq_table: match send.retransmit {
                Retransmit::Psn => 0,
                Retransmit::PsnExt => 1,
                Retransmit::Msn => 2,
            },
            sq_table_offset: send.table_offset,
            sq_table_entry_bytes: send.retransmit.entry_bytes(),
            sq_npsn: send.npsn,
            sq_msn_modulus: send.msn_modulus,
            sq_slot: state.send.tail,
            sq_wqe: state.send.next,
            sq_epoch: state.send.epoch as u32,
            sq_psn: state.send.psn,
            sq_msn: state.send.msn,
            sq_oldest_slot: state.send.head,
            sq_oldest_wqe: state.send.oldest,
            ..Self::EMPTY
        };
        let Some(recv) = &plan.recv else { return Ok(described) };
        Ok(Self {
            rq_ring: at.rq_ring,
            rq_doorbell_base: base(DbType::RQ, xid),
            rq_slots: recv.slots,
            rq_wqes: recv.wqes,
            rq_wqe_slots: recv.wqe_slots,
            rq_max_wr: init.capabilities.max_recv_wr,
            rq_max_sge: init.capabilities.max_recv_sge,
            rq_wqe: state.recv.next,
            rq_epoch: state.recv.epoch as u32,
            rq_oldest_wqe: state.recv.oldest,
            ..described
        })
    }
}

impl ContextDescription {
    /// Describes a device; whoever maps its pages adds their addresses and numbers.
    pub const fn new(caps: &super::caps::DeviceCaps) -> Self {
        use super::caps::Generation;
        Self {
            generation: match caps.generation {
                Generation::Legacy => 0,
                Generation::P5 => 5,
                Generation::P7 => 7,
            },
            wqe_mode: mode(caps.wqe_mode),
            slot_bytes: SLOT_BYTES,
            cqe_bytes: caps.cqe_bytes,
            page_bytes: caps.page_size,
            pacing: caps.pacing as u32,
            ..Self::EMPTY
        }
    }
}

const fn mode(mode: WqeMode) -> u32 {
    match mode {
        WqeMode::Static => 0,
        WqeMode::Variable => 1,
    }
}

const fn base(db_type: DbType, xid: Xid) -> u64 {
    DbWord::ring(db_type, xid, DbIndex::ZERO, Epoch(false), Toggle::ZERO).to_u64()
}
