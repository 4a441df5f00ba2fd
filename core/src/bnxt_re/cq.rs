//! The completion queue: CQEs become work completions.
//!
//! A CQE is new when its phase bit is the ring's, which flips at every wrap. One requester CQE may complete many
//! requests; when `out` has no room for all, it stays and the next poll goes on with it.

use zerocopy::little_endian as le;

use super::complete::{self, Cqe, Step, Taken};
use super::cqe::{CQE_BYTES, CqeType, PHASE_OFFSET};
use super::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use super::plan::CqPlan;
use super::qp::{AsQueuePair, AsSharedReceiveQueue};
use super::recv::ring;
use super::resize::Resize;
use super::send::next;
use crate::queue::{Doorbell, PhaseRing, RingMemory};
use crate::verbs::{CqFault, CqId, Endpoints, FaultKind, MemoryError, Pollable, SrqId, WorkCompletion};

/// Word of a CQE that holds its phase.
const PHASE_WORD: usize = PHASE_OFFSET / 8;

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
    ring: CqeRing<'m>,
    epoch: bool,
    old_head: Option<u32>,
    /// CQEs that may be consumed until a consumer doorbell is rung.
    credit: u32,
    /// What a consumer doorbell sets `credit` to; [`EVERY_POLL`] rings at the end of every poll.
    full_credit: u32,
    id: CqId,
    base: DbWord,
    /// [`Endpoints::flush_seq`] up to which flushes are reported; [`LOOK_AGAIN`] is none that there is.
    flush_seen: u64,
    pub(super) pending: Option<CqFault>,
    pub(super) resize: Resize<'m>,
}

/// What a look at the next CQE has found.
enum Found {
    /// It is not new.
    Nothing,
    /// It completed one request, and was taken.
    One,
    /// Something else, which is still there.
    Other,
}

/// Bits of the word with the phase that differ from the ring's phase alone unless the CQE is new, and a requester's of
/// success: phase, type and status.
const NOT_PLAIN: u32 = 0xff1f;

/// More credit than a poll can use up.
const EVERY_POLL: u32 = u32::MAX;
const LOOK_AGAIN: u64 = u64::MAX;

impl<'m> CompletionQueue<'m> {
    /// A fresh completion queue in `memory`, which is filled with zeros: whatever was there is no CQE.
    ///
    /// # Errors
    /// Memory that does not fit the plan, or an id wider than a doorbell.
    pub fn new(memory: RingMemory<'m>, plan: &CqPlan, id: CqId) -> Result<Self, MemoryError> {
        memory.check("completion queue", plan.bytes as usize, 4096)?;
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

    /// Fills `out` with completions and returns how many.
    ///
    /// # Errors
    /// The first CQE that makes no sense; it was skipped, and the queue goes on. Completions found before it are
    /// returned first: the fault follows with the next call.
    #[inline]
    pub fn poll<'q, Q, R, E>(
        &mut self,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut [WorkCompletion],
    ) -> Result<usize, CqFault>
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let mut found = 0;
        if self.pending.is_none()
            && let Some(first) = out.first_mut()
        {
            // Most polls find one completion, or none.
            let one = self.poll_one::<false, _, _, _>(endpoints, doorbell, first);
            found = matches!(one, Found::One) as usize;
            let more = match one {
                Found::Nothing => false,
                Found::One => self.credit == 0 || self.is_new(),
                Found::Other => true,
            };
            if !more && u64::from(endpoints.flush_seq()) == self.flush_seen {
                return Ok(self.end_of_poll(doorbell, found));
            }
        }
        // The rest, or so many, that the way there may be longer.
        core::hint::cold_path();
        let found = self.poll_rest(endpoints, doorbell, out, found);
        if found == 0
            && let Some(fault) = self.pending.take()
        {
            return Err(fault);
        }
        Ok(found)
    }

    /// Goes on with a poll that has `filled` completions, and finds more, or something else than success of one request. If
    /// there is a fault, it is left pending.
    #[inline(never)]
    fn poll_rest<'q, Q, R, E>(
        &mut self,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut [WorkCompletion],
        filled: usize,
    ) -> usize
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let mut filled = filled;
        self.announce_due(doorbell);
        // A device that keeps writing CQEs that complete nothing does not keep the caller here.
        let mut idle = self.ring.entries();
        while self.pending.is_none() && idle != 0 {
            while let Some(wc) = out.get_mut(filled)
                && let Found::One = self.poll_one::<true, _, _, _>(endpoints, doorbell, wc)
            {
                filled += 1;
                self.announce_due(doorbell);
            }
            if filled >= out.len() {
                break;
            }
            let Some(cqe) = self.look(doorbell) else {
                self.flush(endpoints, out, &mut filled);
                break;
            };
            let before = filled;
            match self.take(&cqe, endpoints, doorbell, out, &mut filled) {
                Step::Kept => break,
                Step::Switched => continue,
                Step::Consumed => {}
            }
            idle -= (filled == before) as u32;
            self.advance();
            self.announce_due(doorbell);
        }
        self.end_of_poll(doorbell, filled)
    }

    /// Takes the next CQE if it is what most are: success of one request, see [`complete::one`]. The doorbell may be due
    /// after it. Without `SEARCH` it calls nothing, so that few registers have to be saved for a poll.
    #[inline(always)]
    fn poll_one<'q, const SEARCH: bool, Q, R, E>(
        &mut self,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut WorkCompletion,
    ) -> Found
    where
        Q: AsQueuePair<'q> + Pollable,
        E: Endpoints<Q, R>,
    {
        let entry = self.ring.entry();
        // One load tells phase, type and status.
        let other = (entry.load_valid::<PHASE_WORD>() ^ self.ring.phase()) & NOT_PLAIN;
        if other != 0 {
            return if other & 1 != 0 { Found::Nothing } else { Found::Other };
        }
        doorbell.from_device();
        if entry.high::<0>() != 0 {
            return Found::Other;
        }
        let (cq, key, index) = (self.id, entry.low::<0>(), entry.low::<1>() as u16);
        // The completion is put together outside, where it is seen that it does not touch the queue pair.
        let done = match endpoints.qp_at_hand(key) {
            Some(qp) => complete::one(qp.as_queue_pair(), cq, index),
            None if SEARCH => {
                core::hint::cold_path();
                endpoints.with_qp(key, |qp| complete::one(qp.as_queue_pair(), cq, index)).flatten()
            }
            None => None,
        };
        let Some((record, qp)) = done else { return Found::Other };
        *out = record.success(qp);
        self.advance();
        Found::One
    }

    /// Goes on to the next CQE.
    #[inline(always)]
    fn advance(&mut self) {
        if self.ring.advance() {
            self.epoch = !self.epoch;
        }
        self.credit = self.credit.wrapping_sub(1);
    }

    /// Announces what was consumed, if no credit is left.
    #[inline(always)]
    fn announce_due(&mut self, doorbell: &impl Doorbell) {
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
    fn end_of_poll(&mut self, doorbell: &impl Doorbell, filled: usize) -> usize {
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

    /// Whether the next CQE is new.
    #[inline(always)]
    fn is_new(&self) -> bool {
        (self.ring.entry().load_valid::<PHASE_WORD>() ^ self.ring.phase()) & 1 == 0
    }

    /// The next CQE, if it is new.
    #[inline(always)]
    fn look(&self, doorbell: &impl Doorbell) -> Option<Cqe> {
        let entry = self.ring.entry();
        if !self.is_new() {
            return None;
        }
        doorbell.from_device();
        Some(Cqe(entry.load()))
    }

    /// Takes a CQE of any kind.
    #[inline(never)]
    fn take<'q, Q, R, E>(
        &mut self,
        cqe: &Cqe,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut [WorkCompletion],
        filled: &mut usize,
    ) -> Step
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let cq = self.id;
        let step = match cqe.cqe_type() {
            CqeType::REQ => with_qp(endpoints, cqe.word(0), |qp| {
                complete::requester(qp.as_queue_pair(), cq, cqe, out, filled)
            }),
            CqeType::RES_RC | CqeType::RES_UD | CqeType::RES_RAWETH_QP1 => {
                let mut tagged = None;
                let step = with_qp(endpoints, cqe.word(1), |qp| {
                    complete::responder(qp.as_queue_pair(), cq, cqe, out, filled, &mut tagged)
                });
                match tagged {
                    Some((srq, tag)) => Self::untag(endpoints, doorbell, srq, tag, out, filled, cqe),
                    None => step,
                }
            }
            CqeType::NO_OP => Ok(Step::Consumed),
            CqeType::TERMINAL => with_qp(endpoints, cqe.word(0), |qp| {
                qp.as_queue_pair().set_error();
                Ok(Step::Consumed)
            }),
            CqeType::CUT_OFF => match self.resize.take_new() {
                Some((new, plan)) => {
                    self.switch(new, &plan, cqe.resize_toggle(), doorbell);
                    Ok(Step::Switched)
                }
                None => Err(FaultKind::Unexpected(CqeType::CUT_OFF.0)),
            },
            CqeType(other) => Err(FaultKind::UnknownType(other)),
        };
        step.unwrap_or_else(|kind| {
            self.pending = Some(CqFault { cq, entry: self.ring.head(), kind, cqe: cqe.bytes() });
            Step::Consumed
        })
    }

    /// Finishes a completion whose request came from a shared receive queue.
    fn untag<'q, Q, R, E>(
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        srq: SrqId,
        tag: u32,
        out: &mut [WorkCompletion],
        filled: &mut usize,
        cqe: &Cqe,
    ) -> Taken
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let wr_id = endpoints.with_srq(srq, |srq| {
            let srq = srq.as_srq();
            let wr_id = srq.release(tag);
            if srq.starves() {
                srq.flush(doorbell);
            }
            wr_id
        });
        match (wr_id.flatten(), out.get_mut(*filled)) {
            (Some(wr_id), Some(wc)) => {
                wc.wr_id = wr_id;
                *filled += 1;
                Ok(Step::Consumed)
            }
            _ => Err(FaultKind::BadIndex { qp: cqe.word(1) as u32, index: tag }),
        }
    }

    /// Goes on with the new memory of a resize and acknowledges the cut-off.
    fn switch(&mut self, new: CqeRing<'m>, plan: &CqPlan, toggle: Toggle, doorbell: &impl Doorbell) {
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

    #[inline]
    fn flush<'q, Q, R, E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion], filled: &mut usize)
    where
        Q: AsQueuePair<'q> + Pollable,
        E: Endpoints<Q, R>,
    {
        let seq = endpoints.flush_seq().into();
        if seq == self.flush_seen {
            return;
        }
        let cq = self.id;
        let mut done = true;
        endpoints.each_qp(|qp| {
            done = complete::flush(qp.as_queue_pair(), cq, out, filled);
            done
        });
        if done {
            self.flush_seen = seq;
        }
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
            return Err(MemoryError::Mismatch("saved state does not fit this completion queue"));
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

/// Looks a queue pair up by the handle of a CQE. Zero is a CQE of a queue pair that is gone.
fn with_qp<Q, R, E: Endpoints<Q, R>>(
    endpoints: &mut E,
    handle: u64,
    f: impl FnOnce(&mut Q) -> Taken,
) -> Taken {
    if handle == 0 {
        return Ok(Step::Consumed);
    }
    let found = if handle >> 32 == 0 { endpoints.with_qp(handle as u32, f) } else { None };
    found.unwrap_or(Err(FaultKind::UnknownQp(handle)))
}
