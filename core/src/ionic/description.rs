//! Devices and queues of the family, for code that posts and polls by itself.

use super::caps::Caps;
use super::cmb::CmbGrant;
use super::cq::CqState;
use super::doorbell::{DbRing, QueueDoorbell, RingIdx};
use super::plan::{CqPlan, QpPlan, WorkQueuePlan};
use super::qp::SavedQp;
use super::wqe::RdmaVersion;
use crate::description::description;
use crate::layout::{Layout, bits};
use crate::verbs::{CqId, QpId, QpType};

/// Every description of the family.
pub const LAYOUTS: &[Layout] = &[ContextDescription::LAYOUT, CqDescription::LAYOUT, QpDescription::LAYOUT];

bits! {
    /// Where a queue was placed, as the user ABI tells it.
    pub struct PlacementWord(u32) {
        /// In controller memory; the ring in host memory holds a copy.
        cmb: bool = 1,
        __: bool = 1,
        /// The last 8 bytes of each WQE are its doorbell.
        express: bool = 1,
        /// Controller memory is mapped write-combining.
        write_combined: bool = 1,
        /// Controller memory is mapped uncached.
        uncached: bool = 1,
        __: u32 = 27,
    }
}

description! {
    /// A device that was opened.
    pub struct ContextDescription: "ionic", 48 {
        /// Address of the doorbell page: a register of 8 bytes for each queue type.
        doorbell: u64 = 8,
        /// Address of the clock page; 0 if there is none.
        clock: u64 = 16,
        /// Version of the WQE and CQE formats, 1 or 2.
        rdma_version: u32 = 24,
        /// Pipelines.
        udma_count: u32 = 28,
        /// Queue type of send queues.
        sq_qtype: u32 = 32,
        /// Queue type of receive queues.
        rq_qtype: u32 = 36,
        /// Queue type of completion queues.
        cq_qtype: u32 = 40,
        /// Page size that rings are rounded to.
        page_bytes: u32 = 44,
    }
}

description! {
    /// The ring of a completion queue on one pipeline.
    ///
    /// A CQE at the index is new if its color bit is the color, which changes behind the last entry. A doorbell is its base,
    /// with the index in bits 0 to 15; that of an arm counts the arms, modulo the depth.
    pub struct CqDescription: "ionic", 88 {
        /// Address of the ring.
        ring: u64 = 8,
        /// Address that doorbells are stored to.
        doorbell: u64 = 16,
        /// Base of doorbells that tell the index of the next CQE.
        doorbell_base: u64 = 24,
        /// Base of arms for any completion.
        arm_any_base: u64 = 32,
        /// Base of arms for solicited completions.
        arm_solicited_base: u64 = 40,
        /// Number.
        id: u32 = 48,
        /// Pipeline.
        udma: u32 = 52,
        /// Entries of the ring, base-two logarithm.
        depth_log2: u32 = 56,
        /// Bytes of an entry, base-two logarithm.
        stride_log2: u32 = 60,
        /// Index of the next CQE.
        index: u32 = 64,
        /// Color of a new CQE.
        color: u32 = 68,
        /// Index that the device was last told.
        told: u32 = 72,
        /// Requests that may be posted before the device is told a new index; negative numbers are 0.
        credit: u32 = 76,
        /// Arms for any completion so far, modulo the depth.
        arms_any: u32 = 80,
        /// Arms for solicited completions so far, modulo the depth.
        arms_solicited: u32 = 84,
    }
}

description! {
    /// A queue pair.
    ///
    /// Indices are modulo the depth; one entry stays free. A doorbell is its base with the index of the next free entry in
    /// bits 0 to 15; an express doorbell is its own base with the index behind its WQE, in the last 8 bytes of the WQE.
    pub struct QpDescription: "ionic", 192 {
        /// Address of the send ring in host memory.
        sq_ring: u64 = 8,
        /// Address of the send ring in controller memory; 0 if it is not there.
        sq_cmb: u64 = 16,
        /// Address that the send queue's doorbells are stored to.
        sq_doorbell: u64 = 24,
        /// Base of the send queue's doorbells.
        sq_doorbell_base: u64 = 32,
        /// Base of the send queue's express doorbells.
        sq_express_base: u64 = 40,
        /// Address of the receive ring in host memory.
        rq_ring: u64 = 48,
        /// Address of the receive ring in controller memory; 0 if it is not there.
        rq_cmb: u64 = 56,
        /// Address that the receive queue's doorbells are stored to.
        rq_doorbell: u64 = 64,
        /// Base of the receive queue's doorbells.
        rq_doorbell_base: u64 = 72,
        /// Base of the receive queue's express doorbells.
        rq_express_base: u64 = 80,
        /// Number.
        id: u32 = 88,
        /// Kind, as `ibv_qp_type`: 2 RC, 4 UD.
        qp_type: u32 = 92,
        /// State, as `ibv_qp_state`.
        state: u32 = 96,
        /// Pipeline that it is on.
        udma: u32 = 100,
        /// Version of the WQE formats, 1 or 2.
        rdma_version: u32 = 104,
        /// Completion queue ring of send requests, on that pipeline.
        send_cq: u32 = 108,
        /// Completion queue ring of receive requests, on that pipeline.
        recv_cq: u32 = 112,
        /// Placement granted to the send queue.
        sq_placement: u32 as PlacementWord = 116,
        /// Entries of the send ring, base-two logarithm.
        sq_depth_log2: u32 = 120,
        /// Bytes of a send WQE, base-two logarithm.
        sq_stride_log2: u32 = 124,
        /// Send WQEs of up to so many SGEs have a list of their lengths; 0 if none do.
        sq_spec: u32 = 128,
        /// SGEs of a send request.
        sq_max_sge: u32 = 132,
        /// Inline bytes of a send request.
        sq_max_inline: u32 = 136,
        /// Index of the next send WQE.
        sq_index: u32 = 140,
        /// Color of the next send WQE.
        sq_color: u32 = 144,
        /// Number of the next message, 24 bits.
        sq_msn: u32 = 148,
        /// Index of the oldest outstanding send WQE.
        sq_oldest: u32 = 152,
        /// Placement granted to the receive queue.
        rq_placement: u32 as PlacementWord = 156,
        /// Entries of the receive ring, base-two logarithm.
        rq_depth_log2: u32 = 160,
        /// Bytes of a receive WQE, base-two logarithm.
        rq_stride_log2: u32 = 164,
        /// Receive WQEs of up to so many SGEs have a list of their lengths; 0 if none do.
        rq_spec: u32 = 168,
        /// SGEs of a receive request.
        rq_max_sge: u32 = 172,
        /// Index of the next receive WQE.
        rq_index: u32 = 176,
        /// Index of the oldest outstanding receive WQE.
        rq_oldest: u32 = 180,
        /// Number of the first message that is not acknowledged, 24 bits.
        sq_oldest_msn: u32 = 184,
        /// Zero.
        reserved: u32 = 188,
    }
}

impl ContextDescription {
    /// Describes a device; whoever maps its pages adds their addresses.
    pub const fn new(caps: &Caps) -> Self {
        Self {
            rdma_version: version(caps.version),
            udma_count: caps.udma_count as u32,
            sq_qtype: caps.sq_qtype.get() as u32,
            rq_qtype: caps.rq_qtype.get() as u32,
            cq_qtype: caps.cq_qtype.get() as u32,
            page_bytes: 1u32.wrapping_shl(caps.page_shift as u32),
            ..Self::EMPTY
        }
    }
}

impl CqDescription {
    /// Describes the ring on a pipeline: at address `ring`, with the doorbell page at `page`.
    pub const fn new(
        caps: &Caps,
        (id, udma): (CqId, u8),
        plan: &CqPlan,
        state: &CqState,
        (ring, page): (u64, u64),
    ) -> Self {
        let doorbell = QueueDoorbell::completion_queue(caps.cq_qtype, id);
        let zero = RingIdx(0);
        Self {
            ring,
            doorbell: register(page, doorbell),
            doorbell_base: doorbell.index(zero),
            arm_any_base: doorbell.word(DbRing::ArmAny, zero),
            arm_solicited_base: doorbell.word(DbRing::ArmSolicited, zero),
            id: id.get(),
            udma: udma as u32,
            depth_log2: plan.ring.depth_log2 as u32,
            stride_log2: plan.ring.stride_log2 as u32,
            index: state.prod as u32,
            color: state.color as u32,
            told: state.cons as u32,
            credit: if state.reserve > 0 { state.reserve as u32 } else { 0 },
            arms_any: state.arm_any as u32,
            arms_solicited: state.arm_solicited as u32,
            ..Self::EMPTY
        }
    }
}

/// A work queue, where it is and what it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Address of the ring in host memory.
    pub ring: u64,
    /// Address in controller memory, or 0.
    pub cmb: u64,
    /// What was granted.
    pub grant: CmbGrant,
}

/// What the device told of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpIdentity {
    /// Number.
    pub id: QpId,
    /// Kind.
    pub qp_type: QpType,
    /// Pipeline.
    pub udma: u8,
    /// Completion queue ring of send requests on that pipeline.
    pub send_cq: CqId,
    /// Completion queue ring of receive requests on that pipeline.
    pub recv_cq: CqId,
}

impl QpDescription {
    /// Describes a queue pair, with the doorbell page at `page`.
    pub const fn new(
        caps: &Caps,
        of: &QpIdentity,
        plan: &QpPlan,
        state: &SavedQp,
        (sq, rq): (&Placed, &Placed),
        page: u64,
    ) -> Self {
        let sq_doorbell = QueueDoorbell::queue_pair(caps.sq_qtype, of.id);
        let rq_doorbell = QueueDoorbell::queue_pair(caps.rq_qtype, of.id);
        Self {
            sq_ring: sq.ring,
            sq_cmb: sq.cmb,
            sq_doorbell: register(page, sq_doorbell),
            sq_doorbell_base: sq_doorbell.index(RingIdx(0)),
            sq_express_base: express(sq_doorbell),
            rq_ring: rq.ring,
            rq_cmb: rq.cmb,
            rq_doorbell: register(page, rq_doorbell),
            rq_doorbell_base: rq_doorbell.index(RingIdx(0)),
            rq_express_base: express(rq_doorbell),
            id: of.id.get(),
            qp_type: of.qp_type as u32,
            state: state.state as u32,
            udma: of.udma as u32,
            rdma_version: version(caps.version),
            send_cq: of.send_cq.get(),
            recv_cq: of.recv_cq.get(),
            sq_placement: sq.grant.to_abi() as u32,
            sq_depth_log2: plan.sq.ring.depth_log2 as u32,
            sq_stride_log2: plan.sq.ring.stride_log2 as u32,
            sq_spec: plan.sq.spec as u32,
            sq_max_sge: sges(&plan.sq, sq.grant),
            sq_max_inline: plan.sq.max_inline(sq.grant.express()),
            sq_index: state.sq.prod as u32,
            sq_color: state.sq.color as u32,
            sq_msn: state.sq.msn_prod,
            sq_oldest: state.sq.cons as u32,
            rq_placement: rq.grant.to_abi() as u32,
            rq_depth_log2: plan.rq.ring.depth_log2 as u32,
            rq_stride_log2: plan.rq.ring.stride_log2 as u32,
            rq_spec: plan.rq.spec as u32,
            rq_max_sge: sges(&plan.rq, rq.grant),
            rq_index: state.rq.prod as u32,
            rq_oldest: state.rq.cons as u32,
            sq_oldest_msn: state.sq.msn_cons,
            ..Self::EMPTY
        }
    }
}

const fn sges(plan: &WorkQueuePlan, grant: CmbGrant) -> u32 {
    plan.max_sge(grant.express())
}

const fn version(version: RdmaVersion) -> u32 {
    match version {
        RdmaVersion::V1 => 1,
        RdmaVersion::V2 => 2,
    }
}

const fn register(page: u64, doorbell: QueueDoorbell) -> u64 {
    page.wrapping_add(8 * doorbell.register() as u64)
}

/// The express doorbell, but for its index: that of the first WQE tells 1.
const fn express(doorbell: QueueDoorbell) -> u64 {
    doorbell.express(RingIdx(0), u16::MAX) & !0xffff
}
