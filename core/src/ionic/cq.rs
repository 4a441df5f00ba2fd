//! The completion queue: a ring on each pipeline of the device, 32-byte CQEs with a color, and the credit that keeps
//! the device from running over it.
//!
//! The consumer doorbell is not rung for each poll. A ring has as much credit as it holds entries; every posted request
//! spends one, and completions give it back when the doorbell is rung. It is rung, before the doorbell of the queue
//! posted to or at the end of a poll, when the credit is used up, and to arm the queue.

use super::completion::{Credit, Slots};
use super::cqe::{CqeType, IdxTimestamp, QTF_OFFSET, QidTypeFlags, RecvCqe, SendCqe, Status};
use super::doorbell::{DbRing, QueueDoorbell, QueueType, RingIdx};
use super::plan::{CqPlan, RingPlan};
use super::qp::QueuePair;
use crate::queue::{DeviceMemory, Doorbell, Entry, EntryRing, ReadRing, RingMemory, Store};
use crate::verbs::{CqFault, CqId, Endpoints, FaultKind, MemoryError, Pollable, QpId, WorkCompletion};

/// Word of a CQE whose high half holds the color.
const QTF_WORD: usize = QTF_OFFSET / 8;

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

/// A CQE as it was read.
#[derive(Clone, Copy)]
struct Cqe([u64; 4]);

impl Cqe {
    #[inline(always)]
    fn send(self) -> SendCqe {
        zerocopy::transmute!(self.0.map(u64::to_le))
    }

    #[inline(always)]
    fn recv(self) -> RecvCqe {
        zerocopy::transmute!(self.0.map(u64::to_le))
    }

    #[inline(always)]
    fn bytes(self) -> [u8; 32] {
        zerocopy::transmute!(self.0.map(u64::to_le))
    }
}

/// The ring of one pipeline. Positions count on without wrapping; a CQE is at its position modulo the depth.
#[derive(Debug)]
pub struct CqRing<'m> {
    cqes: ReadRing<'m, 4>,
    doorbell: QueueDoorbell,
    id: CqId,
    /// Index that the device was last told of.
    cons: u32,
    /// [`SUCCESS`], and [`COLOR`] if new entries have it.
    success: u32,
    reserve: i32,
    credit: Credit,
    /// Credit at which the doorbell is rung: none, or any if an arm is due.
    sync_at: i32,
    stale: u32,
    deferred_arm: Option<bool>,
    arm_any: u32,
    arm_solicited: u32,
    left: Option<u32>,
    /// [`Endpoints::flush_seq`] up to which flushes are reported, or [`UNKNOWN`].
    flush_seen: u64,
}

/// The color in the high half of a CQE's last word.
const COLOR: u32 = QidTypeFlags::new().with_color(true).into_bits().swap_bytes();

/// That half, but for the queue pair and the color, when messages have completed with success.
const SUCCESS: u32 = QidTypeFlags::new().with_cqe_type(CqeType::SEND_MSN.0).into_bits().swap_bytes();

/// What in it tells success of messages from the rest, besides the color.
const KIND: u32 =
    QidTypeFlags::new().with_cqe_type(7).with_error(true).with_color(true).into_bits().swap_bytes();

/// The high half of a CQE's last word, as it differs from a new one's that tells of success.
#[derive(Clone, Copy)]
struct Seen(u32);

impl Seen {
    /// Whether the CQE is new.
    #[inline(always)]
    const fn is_new(self) -> bool {
        self.0 & COLOR == 0
    }

    /// Whether it is new, and tells that messages have completed with success.
    #[inline(always)]
    const fn is_success(self) -> bool {
        self.0 & KIND == 0
    }

    /// The queue pair it names.
    #[inline(always)]
    const fn qid(self) -> u32 {
        QidTypeFlags::from_bits(self.0.swap_bytes()).qid()
    }
}

/// More than any [`Endpoints::flush_seq`].
const UNKNOWN: u64 = u64::MAX;

impl<'m> CqRing<'m> {
    fn build(id: CqId, qtype: QueueType, plan: &CqPlan, memory: RingMemory<'m>) -> Result<Self, MemoryError> {
        let RingPlan { depth_log2, stride_log2 } = plan.ring;
        let cqes = ReadRing::new(EntryRing::new("completion ring", memory, depth_log2, stride_log2)?)?;
        Ok(Self {
            reserve: cqes.ring().mask() as i32,
            cqes,
            doorbell: QueueDoorbell::completion_queue(qtype, id),
            id,
            cons: 0,
            success: SUCCESS | COLOR,
            credit: Credit(0),
            sync_at: 0,
            stale: 0,
            deferred_arm: None,
            arm_any: 0,
            arm_solicited: 0,
            left: None,
            flush_seen: UNKNOWN,
        })
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
        ring.cqes.ring_mut().bytes().zero();
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
        let mut prod = 0;
        let indices = [
            ("prod", state.prod, &mut prod),
            ("cons", state.cons, &mut ring.cons),
            ("arm_any", state.arm_any, &mut ring.arm_any),
            ("arm_solicited", state.arm_solicited, &mut ring.arm_solicited),
        ];
        for (what, value, field) in indices {
            if u32::from(value) > ring.cqes.ring().mask() {
                let bits = plan.ring.depth_log2.into();
                return Err(MemoryError::OutOfRange { what, value: value.into(), bits });
            }
            *field = value.into();
        }
        ring.cqes.set_index(prod);
        ring.success = if state.color { SUCCESS | COLOR } else { SUCCESS };
        (ring.reserve, ring.credit) = (state.reserve, Credit(state.reserve_pending));
        (ring.stale, ring.left) = (state.stale, state.left);
        ring.set_arm(state.deferred_arm);
        Ok(ring)
    }

    /// Number of the ring.
    #[inline(always)]
    pub fn id(&self) -> CqId {
        self.id
    }

    /// Its state as plain data.
    pub fn state(&self) -> CqState {
        let index = |position| self.cqes.ring().index(position) as u16;
        CqState {
            prod: self.cqes.index() as u16,
            cons: index(self.cons),
            color: self.success & COLOR != 0,
            reserve: self.reserve,
            reserve_pending: self.credit.0,
            stale: self.stale,
            deferred_arm: self.deferred_arm,
            arm_any: index(self.arm_any),
            arm_solicited: index(self.arm_solicited),
            left: self.left,
        }
    }

    /// Spends credit for `requests` about to be posted, and rings the doorbell if it is used up or an arm is due.
    #[inline(always)]
    pub(super) fn spend<D: Doorbell>(&mut self, requests: u32, doorbell: &D) {
        self.reserve = self.reserve.wrapping_sub(requests as i32);
        self.sync_if_due(doorbell);
    }

    /// Whether one request can be posted without ringing the doorbell.
    #[inline(always)]
    pub(super) const fn has_credit(&self) -> bool {
        self.reserve.wrapping_sub(1) > self.sync_at
    }

    /// Spends credit for one request, without looking whether the doorbell is to be rung.
    #[inline(always)]
    pub(super) const fn spend_one(&mut self) {
        self.reserve = self.reserve.wrapping_sub(1);
    }

    /// Whether the doorbell is to be rung.
    #[inline(always)]
    const fn sync_is_due(&self) -> bool {
        self.reserve <= self.sync_at
    }

    #[inline(always)]
    fn sync_if_due<D: Doorbell>(&mut self, doorbell: &D) {
        if self.sync_is_due() {
            self.sync(doorbell);
        }
    }

    #[cold]
    #[inline(never)]
    fn sync<D: Doorbell>(&mut self, doorbell: &D) {
        let prod = self.cqes.index();
        if self.cons != prod {
            self.reserve = self.reserve.saturating_add(self.credit.0).min(self.cqes.ring().mask() as i32);
            self.credit = Credit(0);
            self.cons = prod;
            self.ring(DbRing::Index, prod, doorbell);
        }
        if let Some(solicited_only) = self.deferred_arm {
            if solicited_only {
                self.arm_solicited = self.arm_solicited.wrapping_add(1);
                self.ring(DbRing::ArmSolicited, self.arm_solicited, doorbell);
            } else {
                self.arm_any = self.arm_any.wrapping_add(1);
                self.ring(DbRing::ArmAny, self.arm_any, doorbell);
            }
            self.set_arm(None);
        }
    }

    fn ring<D: Doorbell>(&self, ring: DbRing, position: u32, doorbell: &D) {
        let index = RingIdx(self.cqes.ring().index(position) as u16);
        doorbell.store(self.doorbell.register(), self.doorbell.word(ring, index));
    }

    fn arm(&mut self, solicited_only: bool) {
        // An arm for any completion that is due stays one.
        self.set_arm(Some(solicited_only && self.deferred_arm != Some(false)));
    }

    fn set_arm(&mut self, arm: Option<bool>) {
        self.deferred_arm = arm;
        self.sync_at = if arm.is_some() { i32::MAX } else { 0 };
    }

    /// Gives the CQEs of `qid` that were not polled a number that no queue pair has, and counts them.
    fn neutralise(&mut self, qid: u32) -> u32 {
        let prod = self.cqes.index();
        let ring = self.cqes.ring_mut();
        let (mut position, mut color, mut stale) = (prod, self.success & COLOR, 0);
        for _ in 0..=ring.mask() {
            let word = ring.entry(position).load_valid_high::<QTF_WORD>();
            if word & COLOR != color {
                break;
            }
            let qtf = QidTypeFlags::from_bits(word.swap_bytes());
            if qtf.qid() == qid {
                let word = qtf.with_qid(STALE_QID).into_bits().swap_bytes();
                ring.slot(position).store_high::<QTF_WORD>(word);
                stale += 1;
            }
            position = position.wrapping_add(1);
            if ring.index(position) == 0 {
                color ^= COLOR;
            }
        }
        stale
    }

    /// Looks at a CQE.
    #[inline(always)]
    fn look(&self, cqe: Entry<'_, 4>) -> Seen {
        Seen(cqe.load_valid_high::<QTF_WORD>() ^ self.success)
    }

    /// Goes on to the next CQE.
    #[inline(always)]
    fn advance(&mut self) {
        if self.cqes.advance() {
            core::hint::cold_path();
            self.success ^= COLOR;
        }
    }

    /// Takes what most CQEs are: success of the oldest request, which was signaled. Nothing was done if it is something
    /// else.
    ///
    /// # Errors
    /// What was seen instead.
    #[inline(always)]
    fn take_one<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        wc: &mut WorkCompletion,
    ) -> Result<(), Seen>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        let entry = self.cqes.entry();
        let seen = self.look(entry);
        if !seen.is_success() {
            return Err(seen);
        }
        doorbell.from_device();
        let (cqe, id, qid) = (Cqe(entry.load()).send(), self.id, seen.qid());
        let msn = cqe.msg_msn.get();
        let done = endpoints.qp_at_hand(qid).map(|qp| qp.sq.complete_one(id, msn));
        let Some(done) = done.filter(|done| done.plain) else { return Err(seen) };
        let time = IdxTimestamp::from_bits(cqe.npg_wqe_idx_timestamp.get());
        *wc = WorkCompletion {
            wr_id: done.wr_id,
            timestamp: time.timestamp(),
            byte_len: done.length,
            qp: QpId::truncated(qid),
            opcode: done.opcode,
            ..WorkCompletion::default()
        };
        self.credit.add(1);
        self.advance();
        Ok(())
    }

    /// Whether a poll that has seen this has nothing left to do but to ring: it is old, and there is nothing new to flush.
    #[inline(always)]
    fn is_done(&self, seen: Seen, flush_seq: u32) -> bool {
        !seen.is_new() && !self.flushes(flush_seq)
    }

    /// Fills `slots` with what this ring has.
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
        if let Some(key) = self.left {
            let credit = &mut self.credit;
            let left = endpoints.with_qp(key, |qp| qp.sq.drain(slots, credit));
            if left != Some(true) {
                self.left = None;
            }
        }
        let mut result = Ok(());
        // A device that goes on writing cannot keep the poller for more than one pass.
        for _ in 0..=self.cqes.ring().mask() {
            if slots.len() == 0 {
                break;
            }
            let mut wc = WorkCompletion::default();
            let Err(seen) = self.take_one(endpoints, doorbell, &mut wc) else {
                if let Some(slot) = slots.next() {
                    *slot = wc;
                }
                continue;
            };
            if !seen.is_new() {
                self.flush(endpoints, slots);
                break;
            }
            doorbell.from_device();
            let (cqe, entry) = (Cqe(self.cqes.entry().load()), self.cqes.index());
            self.advance();
            if let Err(kind) = self.take(cqe, endpoints, slots) {
                result = Err(CqFault { cq: self.id, entry, kind, cqe: cqe.bytes() });
                break;
            }
        }
        self.sync_if_due(doorbell);
        result
    }

    /// Carries out one CQE.
    #[inline(always)]
    fn take<'q, S, M, E, X>(
        &mut self,
        words: Cqe,
        endpoints: &mut E,
        slots: &mut Slots<'_>,
    ) -> Result<(), FaultKind>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
    {
        let cqe = words.send();
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
                    qp.rq.complete(&words.recv(), error, slots, credit)?;
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
                self.left = Some(key);
                Ok(())
            }
            Some(Err(kind)) => Err(kind),
            None if key == STALE_QID => {
                if let Some(left) = self.stale.checked_sub(1) {
                    self.stale = left;
                    self.credit.add(1);
                }
                Ok(())
            }
            None => Err(FaultKind::UnknownQp(key.into())),
        }
    }

    /// Whether there may be something new to flush.
    #[inline(always)]
    fn flushes(&self, seq: u32) -> bool {
        self.flush_seen != u64::from(seq)
    }

    /// Reports what is flushed, if there may be something new.
    fn flush<'q, S, M, E, X>(&mut self, endpoints: &mut E, slots: &mut Slots<'_>)
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
    {
        let seq = endpoints.flush_seq();
        if !self.flushes(seq) {
            return;
        }
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
            self.flush_seen = seq.into();
        }
    }
}

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue<'m> {
    /// The ring on the first pipeline that it has one on.
    front: CqRing<'m>,
    /// The ring on the second pipeline, if it has two.
    back: Option<CqRing<'m>>,
    /// Pipeline of the front ring.
    front_udma: u8,
    /// The back ring is polled first the next time.
    back_first: bool,
    /// There is more to poll than new CQEs of the front ring: the back ring, completions left, or a fault.
    busy: bool,
    fault: Option<CqFault>,
}

impl<'m> CompletionQueue<'m> {
    /// A completion queue with a ring on some of the device's `udma_count` pipelines.
    ///
    /// # Errors
    /// No ring, one on a pipeline that is not there, two with one number, or in the same memory.
    pub fn new(udma_count: u8, rings: [Option<CqRing<'m>>; 2]) -> Result<Self, MemoryError> {
        if rings[1].is_some() && udma_count < 2 {
            return Err(MemoryError::Mismatch("a ring on a pipeline that the device does not have"));
        }
        let (front_udma, front, back) = match rings {
            [None, None] => return Err(MemoryError::Mismatch("a completion queue has at least one ring")),
            [Some(a), Some(b)] if a.cqes.ring().memory().overlaps(b.cqes.ring().memory()) => {
                return Err(MemoryError::Overlap("completion ring 0", "completion ring 1"));
            }
            [Some(a), Some(b)] if a.id == b.id => {
                return Err(MemoryError::Mismatch("two completion rings with one number"));
            }
            [Some(front), back] => (0, front, back),
            [None, Some(front)] => (1, front, None),
        };
        let busy = back.is_some() || front.left.is_some();
        Ok(Self { front, back, front_udma, back_first: false, busy, fault: None })
    }

    /// Number of its first ring.
    pub fn id(&self) -> CqId {
        self.front.id
    }

    /// Bits of the pipelines it has a ring on.
    pub fn udma_mask(&self) -> u8 {
        1 << self.front_udma | u8::from(self.back.is_some()) << 1
    }

    /// The ring on pipeline `udma`.
    pub fn ring(&self, udma: u8) -> Option<&CqRing<'m>> {
        match udma {
            _ if udma == self.front_udma => Some(&self.front),
            1 => self.back.as_ref(),
            _ => None,
        }
    }

    /// The ring on pipeline `udma`.
    #[inline(always)]
    pub fn ring_mut(&mut self, udma: u8) -> Option<&mut CqRing<'m>> {
        match udma {
            _ if udma == self.front_udma => Some(&mut self.front),
            1 => self.back.as_mut(),
            _ => None,
        }
    }

    /// The ring on the first pipeline that it has one on.
    #[inline(always)]
    pub(super) const fn front_mut(&mut self) -> &mut CqRing<'m> {
        &mut self.front
    }

    fn rings_mut(&mut self) -> impl Iterator<Item = &mut CqRing<'m>> {
        core::iter::once(&mut self.front).chain(&mut self.back)
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
        // What most polls find, nothing or one completion, needs few registers and no frame: it is handled here, and all
        // else in a function that is not inlined.
        let mut filled = 0;
        if !self.busy
            && let Some(wc) = out.first_mut()
        {
            let seen = match self.front.take_one(endpoints, doorbell, wc) {
                Err(seen) => seen,
                Ok(()) => {
                    filled = 1;
                    self.front.look(self.front.cqes.entry())
                }
            };
            if self.front.is_done(seen, endpoints.flush_seq()) && !self.front.sync_is_due() {
                return Ok(filled);
            }
        }
        match self.poll_more(endpoints, doorbell, out, filled) {
            Some(filled) => Ok(filled),
            None => self.take_fault(),
        }
    }

    /// Goes on with a poll that has found `filled` completions. `None` if there is a fault to be returned.
    #[inline(never)]
    fn poll_more<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        out: &mut [WorkCompletion],
        filled: usize,
    ) -> Option<usize>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        let mut filled = filled;
        if self.busy {
            return self.poll_rest(endpoints, doorbell, out, filled);
        }
        while let Some(wc) = out.get_mut(filled) {
            if let Err(seen) = self.front.take_one(endpoints, doorbell, wc) {
                if self.front.is_done(seen, endpoints.flush_seq()) {
                    break;
                }
                return self.poll_rest(endpoints, doorbell, out, filled);
            }
            filled += 1;
        }
        self.front.sync_if_due(doorbell);
        Some(filled)
    }

    /// Goes on with a poll of which there is more than success of one request after another. `None` if there is a fault
    /// to be returned.
    #[inline(never)]
    fn poll_rest<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        out: &mut [WorkCompletion],
        filled: usize,
    ) -> Option<usize>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        let back_first = self.back_first;
        self.back_first = self.back.is_some() && !back_first;
        if self.fault.is_none() {
            let room = out.len();
            let mut slots = out.iter_mut();
            if let Some(last) = filled.checked_sub(1) {
                slots.nth(last);
            }
            let (front, back) = (Some(&mut self.front), self.back.as_mut());
            let turns = if back_first { [back, front] } else { [front, back] };
            for ring in turns.into_iter().flatten() {
                if slots.len() == 0 {
                    break;
                }
                if let Err(fault) = ring.poll(endpoints, doorbell, &mut slots) {
                    self.fault = Some(fault);
                    break;
                }
            }
            let filled = room.wrapping_sub(slots.len());
            if filled != 0 || self.fault.is_none() {
                self.set_busy();
                return Some(filled);
            }
        }
        None
    }

    #[cold]
    fn take_fault(&mut self) -> Result<usize, CqFault> {
        let fault = self.fault.take();
        self.set_busy();
        fault.map_or(Ok(0), Err)
    }

    fn set_busy(&mut self) {
        self.busy = self.back.is_some() || self.front.left.is_some() || self.fault.is_some();
    }

    /// Asks for an event at the next completion, or the next solicited one. The doorbell is rung at the end of the
    /// next poll, or with the next post.
    pub fn arm(&mut self, solicited_only: bool) {
        for ring in self.rings_mut() {
            ring.arm(solicited_only);
        }
    }

    /// Forgets a queue pair that is about to be reset or destroyed: its CQEs that were not polled report nothing, and
    /// the credit of its outstanding requests comes back. Returns how many CQEs there were. A second time does nothing.
    pub fn forget<S: Store, M: DeviceMemory>(&mut self, qp: &mut QueuePair<'_, S, M>) -> u32 {
        let mut total = 0;
        for ring in self.rings_mut() {
            let sends = if qp.sq.cq == ring.id { qp.sq.abandon() } else { 0 };
            let receives = if qp.rq.cq == ring.id { qp.rq.abandon() } else { 0 };
            let stale = ring.neutralise(qp.key());
            ring.flush_seen = UNKNOWN;
            if ring.left == Some(qp.key()) {
                ring.left = None;
            }
            // The credit of a CQE that is in the ring comes back when it is skipped.
            let outstanding = sends.wrapping_add(receives);
            let in_ring = stale.min(outstanding);
            ring.stale = ring.stale.saturating_add(in_ring);
            ring.credit.add(outstanding.wrapping_sub(in_ring));
            total += stale;
        }
        self.set_busy();
        total
    }
}
