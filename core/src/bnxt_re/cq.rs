//! The completion queue: its ring, and its doorbells. Polling is in [`super::poll`].

use zerocopy::little_endian as le;

use super::complete::Cqe;
use super::cqe::{CQE_BYTES, CqeType};
use super::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use super::plan::CqPlan;
use super::recv::ring;
use super::resize::Resize;
use super::send::next;
use crate::queue::{Doorbell, PhaseRing, RingMemory};
use crate::verbs::{CqFault, CqId, MemoryError};

/// State of a completion queue as plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqState {
    /// Index of the next CQE.
    pub head: u32,
    /// Phase of a new CQE.
    pub phase: bool,
    /// Consumer epoch.
    pub epoch: bool,
    /// CQEs consumed since the last consumer doorbell.
    pub consumed: u32,
    /// Consumer index on the memory before a resize, until the first doorbell on the new one.
    pub old_head: Option<u32>,
}

impl CqState {
    /// Nothing was polled yet.
    pub const FRESH: Self = Self { head: 0, phase: true, epoch: false, consumed: 0, old_head: None };
}

/// The ring of CQEs.
pub(super) type CqeRing<'m> = PhaseRing<'m, { CQE_BYTES as usize / 8 }>;

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue<'m> {
    pub(super) ring: CqeRing<'m>,
    epoch: bool,
    old_head: Option<u32>,
    /// CQEs that may be consumed until a consumer doorbell is rung.
    pub(super) credit: u32,
    /// What a consumer doorbell sets `credit` to; [`EVERY_POLL`] rings at the end of every poll.
    full_credit: u32,
    pub(super) id: CqId,
    base: DbWord,
    /// [`crate::verbs::Endpoints::flush_seq`] up to which flushes are reported; [`LOOK_AGAIN`] is none that there is.
    pub(super) flush_seen: u64,
    pub(super) pending: Option<CqFault>,
    pub(super) resize: Resize<'m>,
}

/// More credit than a poll can use up.
const EVERY_POLL: u32 = u32::MAX;
const LOOK_AGAIN: u64 = u64::MAX;

impl<'m> CompletionQueue<'m> {
    /// A fresh completion queue in `memory`, which is filled with zeros: whatever was there is no CQE.
    ///
    /// # Errors
    /// Memory that does not fit the plan, or an id wider than a doorbell.
    pub fn new(memory: RingMemory<'m>, plan: &CqPlan, id: CqId) -> Result<Self, MemoryError> {
        memory.check(text!("completion queue"), plan.bytes as usize, 4096)?;
        let base = DbWord::ring(DbType::CQ, Xid::cq(id)?, DbIndex::ZERO, Epoch(false), Toggle::ZERO);
        let credit = Self::full_credit(plan);
        Ok(Self {
            ring: CqeRing::new(memory, plan.entries)?,
            epoch: false,
            old_head: None,
            credit,
            full_credit: credit,
            id,
            base,
            flush_seen: LOOK_AGAIN,
            pending: None,
            resize: Resize::default(),
        })
    }

    fn full_credit(plan: &CqPlan) -> u32 {
        if plan.deferred { (plan.entries / 2).max(1) } else { EVERY_POLL }
    }

    /// Number.
    #[inline]
    pub fn id(&self) -> CqId {
        self.id
    }

    /// Entries of the ring.
    pub fn entries(&self) -> u32 {
        self.ring.entries()
    }

    /// Goes on to the next CQE.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        if self.ring.advance() {
            self.epoch = !self.epoch;
        }
        self.credit = self.credit.wrapping_sub(1);
    }

    /// Announces what was consumed, if no credit is left.
    #[inline(always)]
    pub(super) fn announce_due(&mut self, doorbell: &impl Doorbell) {
        if self.credit == 0 {
            core::hint::cold_path();
            self.ring_consumed(doorbell);
        }
    }

    /// CQEs consumed since the last consumer doorbell.
    #[inline(always)]
    const fn consumed(&self) -> u32 {
        self.full_credit.wrapping_sub(self.credit)
    }

    /// Announces what was consumed, if that does not wait, at the end of a poll that has found `filled`.
    #[inline(always)]
    pub(super) fn end_of_poll(&mut self, doorbell: &impl Doorbell, filled: usize) -> usize {
        if self.full_credit != EVERY_POLL { filled } else { self.announce_rest(doorbell, filled) }
    }

    #[cold]
    #[inline(never)]
    fn announce_rest(&mut self, doorbell: &impl Doorbell, filled: usize) -> usize {
        if self.consumed() != 0 {
            self.ring_consumed(doorbell);
        }
        filled
    }

    /// Goes on with the new memory of a resize and acknowledges the cut-off.
    pub(super) fn switch(
        &mut self,
        new: CqeRing<'m>,
        plan: &CqPlan,
        toggle: Toggle,
        doorbell: &impl Doorbell,
    ) {
        // The epoch of the acknowledgement is chosen against `head`, so a wrap that no doorbell has announced is announced
        // now: the device would take the acknowledgement for a step back, and drop it. Own finding: the vendor's provider
        // does not, and loses the acknowledgement when it defers doorbells.
        if self.consumed() > self.ring.head() {
            self.ring_consumed(doorbell);
        }
        let old = core::mem::replace(&mut self.ring, new);
        self.old_head = Some(old.head());
        self.resize.put_old(old.into_memory());
        self.full_credit = Self::full_credit(plan);
        self.credit = self.full_credit;
        let word = self.word(DbType::CQ_CUTOFF_ACK, toggle);
        ring(doorbell, word);
    }

    /// Announces the consumer index.
    #[inline(never)]
    fn ring_consumed(&mut self, doorbell: &impl Doorbell) {
        self.credit = self.full_credit;
        let word = self.word(DbType::CQ, Toggle::ZERO);
        ring(doorbell, word);
    }

    /// A doorbell at the consumer index. The first one after a resize flips the epoch if the index went back: the
    /// device, which does not know of the resize when it compares doorbells, would drop it.
    #[inline(always)]
    fn word(&mut self, db_type: DbType, toggle: Toggle) -> DbWord {
        let head = self.ring.head();
        if let Some(old) = self.old_head.take() {
            self.epoch ^= head < old;
        }
        DbWord::ring(db_type, self.base.xid(), DbIndex::ZERO, Epoch(false), toggle).at(head, self.epoch)
    }

    /// Lets the queue be armed: for who receives its events, once after creation and after each event.
    pub fn enable(&self, toggle: Toggle, doorbell: &impl Doorbell) {
        let word = DbWord::ring(DbType::CQ_ARMENA, self.base.xid(), DbIndex::ZERO, Epoch(false), toggle);
        ring(doorbell, word);
    }

    /// Asks for an event at the next completion, or the next solicited one. The doorbell goes at once; poll once more
    /// after it. `toggle` is what the queue's toggle page holds now. A pure poller never arms.
    pub fn arm(&mut self, solicited_only: bool, toggle: Toggle, doorbell: &impl Doorbell) {
        let db_type = if solicited_only { DbType::CQ_ARMSE } else { DbType::CQ_ARMALL };
        let word = self.word(db_type, toggle);
        ring(doorbell, word);
    }

    /// Makes the CQEs of a queue pair that was reset or destroyed complete nothing: their handle becomes zero. Call it
    /// for both completion queues, once if they are one.
    pub fn forget(&mut self, key: u32) {
        // With the queue pair goes its part of a count that is a sum.
        self.flush_seen = LOOK_AGAIN;
        let (mut at, mut phase) = (self.ring.head(), self.ring.phase());
        for _ in 0..self.ring.entries() {
            let offset = at as usize * CQE_BYTES as usize;
            let Some(cqe) = self.memory().entry(offset).map(|e| Cqe(e.load())) else { return };
            if u32::from(cqe.phase()) != phase {
                return;
            }
            let handle = match cqe.cqe_type() {
                CqeType::REQ | CqeType::TERMINAL => Some(0),
                CqeType::RES_RC | CqeType::RES_UD | CqeType::RES_RAWETH_QP1 => Some(1),
                _ => None,
            };
            if let Some(word) = handle
                && cqe.word(word) == u64::from(key)
            {
                self.ring.memory_mut().store(offset + word * 8, &le::U64::ZERO);
            }
            at = next(at, self.ring.entries());
            phase ^= u32::from(at == 0);
        }
    }

    /// The state, to save it.
    pub fn state(&self) -> CqState {
        CqState {
            head: self.ring.head(),
            phase: self.ring.phase() != 0,
            epoch: self.epoch,
            consumed: self.consumed(),
            old_head: self.old_head,
        }
    }

    /// Restores a saved state.
    ///
    /// # Errors
    /// A state that this queue cannot be in. Nothing was changed.
    pub fn restore(&mut self, state: &CqState) -> Result<(), MemoryError> {
        if state.consumed >= self.full_credit || !self.ring.restore(state.head, state.phase) {
            return Err(MemoryError::Mismatch(text!("saved state does not fit this completion queue")));
        }
        self.epoch = state.epoch;
        self.old_head = state.old_head;
        self.credit = self.full_credit - state.consumed;
        Ok(())
    }

    /// Ring memory, for those who look at it.
    pub fn memory(&self) -> &RingMemory<'m> {
        self.ring.memory()
    }
}
