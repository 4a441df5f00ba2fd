//! The ring of a completion queue on one pipeline: 32-byte CQEs with a color, and the credit that keeps the device from
//! running over it.
//!
//! The consumer doorbell is not rung for each poll. A ring has as much credit as it holds entries; every posted request
//! spends one, and completions give it back when the doorbell is rung. It is rung, before the doorbell of the queue
//! posted to or at the end of a poll, when the credit is used up, and to arm the queue.

use super::completion::Credit;
use super::cqe::{CqeType, QTF_OFFSET, QidTypeFlags};
use super::doorbell::{DbRing, QueueDoorbell, QueueType, RingIdx};
use super::plan::{CqPlan, RingPlan};
use crate::queue::{Doorbell, EntryRing, ReadRing, RingMemory};
use crate::verbs::{CqId, MemoryError};

/// Word of a CQE whose high half holds the color.
pub(super) const QTF_WORD: usize = QTF_OFFSET / 8;

/// Queue pair number of CQEs whose queue pair is gone.
pub const STALE_QID: u32 = 0xff_ffff;

/// The color in the high half of a CQE's last word.
pub(super) const COLOR: u32 = QidTypeFlags::new().with_color(true).into_bits().swap_bytes();

/// That half, but for the queue pair and the color, when messages have completed with success.
const SUCCESS: u32 = QidTypeFlags::new().with_cqe_type(CqeType::SEND_MSN.0).into_bits().swap_bytes();

/// More than any [`crate::verbs::Endpoints::flush_seq`].
pub(super) const UNKNOWN: u64 = u64::MAX;

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

/// The ring of one pipeline. Positions count on without wrapping; a CQE is at its position modulo the depth.
#[derive(Debug)]
pub struct CqRing<'m> {
    pub(super) cqes: ReadRing<'m, 4>,
    doorbell: QueueDoorbell,
    pub(super) id: CqId,
    /// Index that the device was last told of.
    cons: u32,
    /// [`SUCCESS`], and [`COLOR`] if new entries have it.
    pub(super) success: u32,
    pub(super) reserve: i32,
    pub(super) credit: Credit,
    /// Credit at which the doorbell is rung: none, or any if an arm is due.
    sync_at: i32,
    pub(super) stale: u32,
    deferred_arm: Option<bool>,
    arm_any: u32,
    arm_solicited: u32,
    pub(super) left: Option<u32>,
    /// [`crate::verbs::Endpoints::flush_seq`] up to which flushes are reported, or [`UNKNOWN`].
    pub(super) flush_seen: u64,
}

impl<'m> CqRing<'m> {
    fn build(id: CqId, qtype: QueueType, plan: &CqPlan, memory: RingMemory<'m>) -> Result<Self, MemoryError> {
        let RingPlan { depth_log2, stride_log2 } = plan.ring;
        let cqes = ReadRing::new(EntryRing::new(text!("completion ring"), memory, depth_log2, stride_log2)?)?;
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
            (text!("prod"), state.prod, &mut prod),
            (text!("cons"), state.cons, &mut ring.cons),
            (text!("arm_any"), state.arm_any, &mut ring.arm_any),
            (text!("arm_solicited"), state.arm_solicited, &mut ring.arm_solicited),
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
    pub(super) const fn sync_is_due(&self) -> bool {
        self.reserve <= self.sync_at
    }

    #[inline(always)]
    pub(super) fn sync_if_due<D: Doorbell>(&mut self, doorbell: &D) {
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

    pub(super) fn arm(&mut self, solicited_only: bool) {
        // An arm for any completion that is due stays one.
        self.set_arm(Some(solicited_only && self.deferred_arm != Some(false)));
    }

    fn set_arm(&mut self, arm: Option<bool>) {
        self.deferred_arm = arm;
        self.sync_at = if arm.is_some() { i32::MAX } else { 0 };
    }

    /// Gives the CQEs of `qid` that were not polled a number that no queue pair has, and counts them.
    pub(super) fn neutralise(&mut self, qid: u32) -> u32 {
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
}
