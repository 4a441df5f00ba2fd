//! The completion queue: a ring on each pipeline of the device, 32-byte CQEs with a color, and the credit that keeps
//! the device from running over it.
//!
//! The consumer doorbell is not rung for each poll. A ring has as much credit as it holds entries; every posted request
//! spends one, and completions give it back when the doorbell is rung. It is rung, before the doorbell of the queue
//! posted to or at the end of a poll, when the credit is used up, and to arm the queue.

use super::completion::{Credit, Slots};
use super::cqe::{CQE_LOG2, CqeType, IdxTimestamp, QTF_OFFSET, QidTypeFlags, RecvCqe, SendCqe, Status};
use super::doorbell::{DbRing, QueueDoorbell, QueueType, RingIdx};
use super::plan::CqPlan;
use super::qp::QueuePair;
use crate::queue::{DeviceMemory, Doorbell, RingMemory, Store};
use crate::verbs::{CqFault, CqId, Endpoints, FaultKind, MemoryError, Pollable, WorkCompletion};

/// Queue pair number of CQEs whose queue pair is gone.
pub const STALE_QID: u32 = 0xff_ffff;

/// State of one ring as plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqState {
    /// Next entry to read. The device's producer, hence the name.
    pub prod: u16,
    /// Entry that the device was last told of.
    pub cons: u16,
    /// Color of entries that are new.
    pub color: bool,
    /// Credit left. Negative if more requests were posted than the ring holds.
    pub reserve: i32,
    /// Credit that the next doorbell gives back.
    pub reserve_pending: i32,
    /// CQEs of forgotten queue pairs that give credit back when they are skipped.
    pub stale: u32,
    /// An event is asked for; `true` in it: for a solicited completion only.
    pub deferred_arm: Option<bool>,
    /// Arms for any completion so far, modulo the depth.
    pub arm_any: u16,
    /// Arms for solicited completions so far, modulo the depth.
    pub arm_solicited: u16,
    /// Queue pair that has completions left for want of room.
    pub left: Option<u32>,
}

/// The ring of one pipeline.
#[derive(Debug)]
pub struct CqRing<'m> {
    memory: RingMemory<'m>,
    doorbell: QueueDoorbell,
    id: CqId,
    mask: u16,
    state: CqState,
    credit: Credit,
    /// [`Endpoints::flush_seq`] up to which flushes are reported; `None` if that is not known.
    flush_seen: Option<u32>,
}

impl<'m> CqRing<'m> {
    fn build(id: CqId, qtype: QueueType, plan: &CqPlan, memory: RingMemory<'m>) -> Result<Self, MemoryError> {
        memory.check("completion ring", plan.ring.bytes(), 4096)?;
        let mask = plan.ring.mask();
        let state = CqState { color: true, reserve: mask.into(), ..CqState::default() };
        let doorbell = QueueDoorbell::completion_queue(qtype, id);
        Ok(Self { memory, doorbell, id, mask, state, credit: Credit(0), flush_seen: None })
    }

    /// An empty ring. Its memory is zeroed, or old bytes would be taken for completions.
    ///
    /// # Errors
    /// Memory that does not fit the plan.
    pub fn new(
        id: CqId,
        qtype: QueueType,
        plan: &CqPlan,
        memory: RingMemory<'m>,
    ) -> Result<Self, MemoryError> {
        let mut ring = Self::build(id, qtype, plan, memory)?;
        ring.memory.zero();
        Ok(ring)
    }

    /// A ring as [`CqRing::state`] told; the memory holds what it held.
    ///
    /// # Errors
    /// Memory or a state that does not fit the plan.
    pub fn restore(
        id: CqId,
        qtype: QueueType,
        plan: &CqPlan,
        memory: RingMemory<'m>,
        state: &CqState,
    ) -> Result<Self, MemoryError> {
        let mut ring = Self::build(id, qtype, plan, memory)?;
        let indices = [
            ("prod", state.prod),
            ("cons", state.cons),
            ("arm_any", state.arm_any),
            ("arm_solicited", state.arm_solicited),
        ];
        for (what, value) in indices {
            if value > ring.mask {
                let bits = plan.ring.depth_log2.into();
                return Err(MemoryError::OutOfRange { what, value: value.into(), bits });
            }
        }
        ring.state = *state;
        ring.credit = Credit(state.reserve_pending);
        Ok(ring)
    }

    /// Number of the ring.
    #[inline(always)]
    pub fn id(&self) -> CqId {
        self.id
    }

    /// Its state as plain data.
    pub fn state(&self) -> CqState {
        CqState { reserve_pending: self.credit.0, ..self.state }
    }

    /// Spends credit for `requests` about to be posted, and rings the doorbell if it is used up or an arm is due.
    #[inline(always)]
    pub(super) fn spend<D: Doorbell>(&mut self, requests: u32, doorbell: &D) {
        self.state.reserve = self.state.reserve.wrapping_sub(requests as i32);
        if self.state.reserve <= 0 || self.state.deferred_arm.is_some() {
            self.sync(doorbell);
        }
    }

    #[cold]
    #[inline(never)]
    fn sync<D: Doorbell>(&mut self, doorbell: &D) {
        let state = &mut self.state;
        if state.cons != state.prod {
            state.reserve = state.reserve.saturating_add(self.credit.0).min(self.mask.into());
            self.credit = Credit(0);
            state.cons = state.prod;
            doorbell.store(self.doorbell.register(), self.doorbell.index(RingIdx(state.prod)));
        }
        if let Some(solicited_only) = state.deferred_arm.take() {
            let (count, ring) = if solicited_only {
                (&mut state.arm_solicited, DbRing::ArmSolicited)
            } else {
                (&mut state.arm_any, DbRing::ArmAny)
            };
            *count = count.wrapping_add(1) & self.mask;
            doorbell.store(self.doorbell.register(), self.doorbell.word(ring, RingIdx(*count)));
        }
    }

    fn arm(&mut self, solicited_only: bool) {
        // An arm for any completion that is due stays one.
        let solicited_only = solicited_only && self.state.deferred_arm != Some(false);
        self.state.deferred_arm = Some(solicited_only);
    }

    /// Gives the CQEs of `qid` that were not polled a number that no queue pair has, and counts them.
    fn neutralise(&mut self, qid: u32) -> u32 {
        let (mut position, mut color, mut stale) = (self.state.prod, self.state.color, 0);
        for _ in 0..=self.mask {
            let offset = (usize::from(position) << CQE_LOG2) + QTF_OFFSET;
            let Some(word) = self.memory.load_valid(offset) else { break };
            let qtf = QidTypeFlags::from_bits(u32::from_be(word));
            if qtf.color() != color {
                break;
            }
            if qtf.qid() == qid {
                self.memory.store(offset, &qtf.with_qid(STALE_QID).into_bits().to_be());
                stale += 1;
            }
            position = position.wrapping_add(1) & self.mask;
            color ^= position == 0;
        }
        stale
    }

    /// Fills `slots` with what this ring has.
    #[inline(always)]
    fn poll<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        slots: &mut Slots<'_>,
    ) -> Result<(), CqFault>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        if let Some(key) = self.state.left {
            let credit = &mut self.credit;
            let left = endpoints.with_qp(key, |qp| qp.sq.drain(slots, credit));
            if left != Some(true) {
                self.state.left = None;
            }
        }
        let mut result = Ok(());
        // A device that goes on writing cannot keep the poller for more than one pass.
        for _ in 0..=self.mask {
            if slots.len() == 0 {
                break;
            }
            let offset = usize::from(self.state.prod) << CQE_LOG2;
            let Some(word) = self.memory.load_valid(offset + QTF_OFFSET) else { break };
            if QidTypeFlags::from_bits(u32::from_be(word)).color() != self.state.color {
                self.flush(endpoints, slots);
                break;
            }
            doorbell.from_device();
            let Some(bytes) = self.memory.load::<[u8; 32]>(offset) else { break };
            let entry = self.state.prod;
            self.state.prod = entry.wrapping_add(1) & self.mask;
            self.state.color ^= self.state.prod == 0;
            if let Err(kind) = self.take(&bytes, endpoints, slots) {
                result = Err(CqFault { cq: self.id, entry: entry.into(), kind, cqe: bytes });
                break;
            }
        }
        self.spend(0, doorbell);
        result
    }

    /// Carries out one CQE.
    #[inline(always)]
    fn take<'q, S, M, E, X>(
        &mut self,
        bytes: &[u8; 32],
        endpoints: &mut E,
        slots: &mut Slots<'_>,
    ) -> Result<(), FaultKind>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
    {
        let cqe: SendCqe = zerocopy::transmute!(*bytes);
        let qtf = QidTypeFlags::from_bits(cqe.qid_type_flags.get());
        let error = qtf.error().then(|| Status(cqe.status_length.get()));
        let (key, kind, id, credit) = (qtf.qid(), CqeType(qtf.cqe_type()), self.id, &mut self.credit);
        let done = endpoints.with_qp(key, |qp| {
            let time = IdxTimestamp::from_bits(cqe.npg_wqe_idx_timestamp.get());
            match kind {
                CqeType::SEND_MSN if qp.sq.cq == id => {
                    qp.sq.complete_message(cqe.msg_msn.get(), error, time.timestamp())?;
                }
                CqeType::SEND_NPG if qp.sq.cq == id => {
                    qp.sq.complete_position(time.wqe_idx(), error, time.timestamp())?;
                }
                CqeType::RECV if qp.rq.cq == id => {
                    let cqe: RecvCqe = zerocopy::transmute!(*bytes);
                    qp.rq.complete(&cqe, error, slots, credit)?;
                    return Ok(false);
                }
                CqeType(0..=4) => return Err(FaultKind::Unexpected(kind.0)),
                CqeType(other) => return Err(FaultKind::UnknownType(other)),
            }
            Ok(qp.sq.drain(slots, credit))
        });
        match done {
            Some(Ok(false)) => Ok(()),
            Some(Ok(true)) => {
                self.state.left = Some(key);
                Ok(())
            }
            Some(Err(kind)) => Err(kind),
            None if key == STALE_QID => {
                if let Some(left) = self.state.stale.checked_sub(1) {
                    self.state.stale = left;
                    self.credit.add(1);
                }
                Ok(())
            }
            None => Err(FaultKind::UnknownQp(key.into())),
        }
    }

    /// Reports what is flushed, if there may be something new.
    #[inline(always)]
    fn flush<'q, S, M, E, X>(&mut self, endpoints: &mut E, slots: &mut Slots<'_>)
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
    {
        let seq = endpoints.flush_seq();
        if self.flush_seen != Some(seq) {
            self.flush_all(endpoints, slots, seq);
        }
    }

    #[cold]
    #[inline(never)]
    fn flush_all<'q, S, M, E, X>(&mut self, endpoints: &mut E, slots: &mut Slots<'_>, seq: u32)
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
    {
        let (id, credit) = (self.id, &mut self.credit);
        let mut all = true;
        endpoints.each_qp(|qp| {
            all &= qp.sq.cq != id || qp.sq.flush_out(slots, credit);
            all
        });
        endpoints.each_qp(|qp| {
            all &= qp.rq.cq != id || qp.rq.flush_out(slots, credit);
            all
        });
        if all {
            self.flush_seen = Some(seq);
        }
    }
}

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue<'m> {
    rings: [Option<CqRing<'m>>; 2],
    udma_count: u8,
    first: u8,
    fault: Option<CqFault>,
}

impl<'m> CompletionQueue<'m> {
    /// A completion queue with a ring on some of the device's `udma_count` pipelines.
    ///
    /// # Errors
    /// No ring, one on a pipeline that is not there, two with one number, or in the same memory.
    pub fn new(udma_count: u8, rings: [Option<CqRing<'m>>; 2]) -> Result<Self, MemoryError> {
        match &rings {
            [None, None] => return Err(MemoryError::Mismatch("a completion queue has at least one ring")),
            [_, Some(_)] if udma_count < 2 => {
                return Err(MemoryError::Mismatch("a ring on a pipeline that the device does not have"));
            }
            [Some(a), Some(b)] if a.memory.overlaps(&b.memory) => {
                return Err(MemoryError::Overlap("completion ring 0", "completion ring 1"));
            }
            [Some(a), Some(b)] if a.id == b.id => {
                return Err(MemoryError::Mismatch("two completion rings with one number"));
            }
            _ => {}
        }
        Ok(Self { rings, udma_count: udma_count.clamp(1, 2), first: 0, fault: None })
    }

    /// Number of its first ring.
    pub fn id(&self) -> CqId {
        self.rings.iter().flatten().next().map_or(CqId::default(), CqRing::id)
    }

    /// Bits of the pipelines it has a ring on.
    pub fn udma_mask(&self) -> u8 {
        self.rings.iter().enumerate().fold(0, |mask, (i, ring)| mask | u8::from(ring.is_some()) << i)
    }

    /// The ring on pipeline `udma`.
    pub fn ring(&self, udma: u8) -> Option<&CqRing<'m>> {
        self.rings.get(usize::from(udma))?.as_ref()
    }

    /// The ring on pipeline `udma`.
    #[inline(always)]
    pub fn ring_mut(&mut self, udma: u8) -> Option<&mut CqRing<'m>> {
        self.rings.get_mut(usize::from(udma))?.as_mut()
    }

    /// Fills `out` with completions and returns how many. The rings take turns in being first.
    ///
    /// # Errors
    /// The first CQE that makes no sense; it was skipped. Completions found before it are returned first, and the
    /// fault comes with the next call.
    #[inline]
    pub fn poll<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        out: &mut [WorkCompletion],
    ) -> Result<usize, CqFault>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        let first = self.first;
        self.first ^= self.udma_count.wrapping_sub(1);
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let mut slots = out.iter_mut();
        let room = slots.len();
        for turn in 0..self.udma_count {
            if slots.len() == 0 {
                break;
            }
            let Some(ring) = self.ring_mut(turn ^ first) else { continue };
            if let Err(fault) = ring.poll(endpoints, doorbell, &mut slots) {
                if slots.len() == room {
                    return Err(fault);
                }
                self.fault = Some(fault);
                break;
            }
        }
        Ok(room.wrapping_sub(slots.len()))
    }

    /// Asks for an event at the next completion, or the next solicited one. The doorbell is rung at the end of the
    /// next poll, or with the next post.
    pub fn arm(&mut self, solicited_only: bool) {
        for ring in self.rings.iter_mut().flatten() {
            ring.arm(solicited_only);
        }
    }

    /// Forgets a queue pair that is about to be reset or destroyed: its CQEs that were not polled report nothing, and
    /// the credit of its outstanding requests comes back. Returns how many CQEs there were. A second time does nothing.
    pub fn forget<S: Store, M: DeviceMemory>(&mut self, qp: &mut QueuePair<'_, S, M>) -> u32 {
        let mut total = 0;
        for ring in self.rings.iter_mut().flatten() {
            let sends = if qp.sq.cq == ring.id { qp.sq.abandon() } else { 0 };
            let receives = if qp.rq.cq == ring.id { qp.rq.abandon() } else { 0 };
            let stale = ring.neutralise(qp.key());
            ring.flush_seen = None;
            if ring.state.left == Some(qp.key()) {
                ring.state.left = None;
            }
            // The credit of a CQE that is in the ring comes back when it is skipped.
            let outstanding = sends.wrapping_add(receives);
            let in_ring = stale.min(outstanding);
            ring.state.stale = ring.state.stale.saturating_add(in_ring);
            ring.credit.add(outstanding.wrapping_sub(in_ring));
            total += stale;
        }
        total
    }
}
