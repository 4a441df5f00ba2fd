//! The shared receive queue. Requests complete in any order, so each has a tag of 20 bits that the CQE brings back; free
//! tags form a list.

use zerocopy::{little_endian as le, transmute};

use super::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use super::plan::{SRQ_ENTRY_BYTES, SrqPlan};
use super::recv::{first_word, ring};
use super::send::next;
use super::wqe::{HEADER_SLOTS, RqWqeHdr, SqSge};
use crate::queue::{Doorbell, RingMemory, Shadow, Store};
use crate::verbs::{MemoryError, PostError, RecvRequest, SrqId};

/// What the driver remembers of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SrqRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Next free tag.
    pub next: u32,
    /// The device has the request.
    pub posted: bool,
}

/// State of a shared receive queue as plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SrqState {
    /// Ring index of the next request.
    pub tail: u32,
    /// Producer epoch.
    pub epoch: bool,
    /// First free tag.
    pub first_free: u32,
    /// Last free tag; it is never given out.
    pub last_free: u32,
    /// Requests outstanding.
    pub outstanding: u32,
    /// Requests that no doorbell has announced.
    pub unrung: u32,
    /// Requests that a doorbell may wait for.
    pub moderation: u32,
}

/// A shared receive queue.
#[derive(Debug)]
pub struct SharedReceiveQueue<'m, S: Store> {
    memory: RingMemory<'m>,
    tags: Shadow<SrqRecord, S>,
    state: SrqState,
    entries: u32,
    max_sge: u32,
    base: DbWord,
}

impl<'m, S: Store> SharedReceiveQueue<'m, S> {
    /// A fresh shared receive queue in `memory`, with `records` for bookkeeping: at least [`SrqPlan::entries`] of them,
    /// a power of two. After the device has created the queue, ring [`SharedReceiveQueue::enable`] once.
    ///
    /// # Errors
    /// Memory or records that do not fit the plan, or an id wider than a doorbell.
    pub fn new(
        memory: RingMemory<'m>,
        records: S::Slice<SrqRecord>,
        plan: &SrqPlan,
        id: SrqId,
    ) -> Result<Self, MemoryError> {
        memory.check(text!("shared receive queue"), plan.bytes as usize, 4096)?;
        let (given, needed) = (records.len(), plan.entries as usize);
        let too_short =
            MemoryError::too_short(text!("shared receive records"), given, needed.next_power_of_two());
        let mut tags = Shadow::new(records, needed).ok_or(too_short)?;
        for (tag, record) in tags.records_mut().iter_mut().enumerate() {
            *record = SrqRecord { wr_id: 0, next: tag as u32 + 1, posted: false };
        }
        Ok(Self {
            memory,
            tags,
            state: SrqState { last_free: plan.entries.saturating_sub(1), ..SrqState::default() },
            entries: plan.entries,
            max_sge: plan.max_sge,
            base: DbWord::ring(DbType::SRQ, Xid::srq(id)?, DbIndex::ZERO, Epoch(false), Toggle::ZERO),
        })
    }

    /// Number.
    pub fn id(&self) -> SrqId {
        SrqId::truncated(self.base.xid().get())
    }

    /// Requests outstanding.
    pub fn outstanding(&self) -> u32 {
        self.state.outstanding
    }

    /// Lets a doorbell wait until `requests` are unannounced, as long as the device still has as many: 0 or 1 rings
    /// with every batch. Whoever polls completions rings when the device runs low, so nothing waits for ever.
    pub fn moderate(&mut self, requests: u32) {
        self.state.moderation = requests;
    }

    /// Begins a batch: requests that are posted under one doorbell, or not at all.
    #[inline(always)]
    pub fn batch(&mut self) -> SrqBatch<'_, 'm, S> {
        SrqBatch { state: self.state, posted: 0, queue: self }
    }

    /// The doorbell for the requests committed so far.
    pub fn doorbell(&self) -> DbWord {
        self.base.at(self.state.tail, self.state.epoch)
    }

    /// Announces what no doorbell has announced yet.
    pub fn flush(&mut self, doorbell: &impl Doorbell) {
        if self.state.unrung != 0 {
            self.state.unrung = 0;
            ring(doorbell, self.doorbell());
        }
    }

    /// Lets the limit event be armed later: once, after the queue was created.
    pub fn enable(&self, doorbell: &impl Doorbell, toggle: Toggle) {
        self.arm_doorbell(doorbell, DbType::SRQ_ARMENA, DbIndex::ZERO, toggle);
    }

    /// Asks for an event when fewer than `limit` requests are left. It is rung at once, also when fewer are left
    /// already: the device decides. A limit above the queue's depth means its depth. `toggle` is what the queue's
    /// toggle page holds now.
    pub fn arm_limit(&mut self, limit: u32, toggle: Toggle, doorbell: &impl Doorbell) {
        self.flush(doorbell);
        let limit = DbIndex::limit(limit.min(self.entries)).unwrap_or(DbIndex::ZERO);
        self.arm_doorbell(doorbell, DbType::SRQ_ARM, limit, toggle);
    }

    fn arm_doorbell(&self, doorbell: &impl Doorbell, db_type: DbType, index: DbIndex, toggle: Toggle) {
        ring(doorbell, DbWord::ring(db_type, self.base.xid(), index, Epoch(false), toggle));
    }

    /// Takes the request with `tag` out of the device's hands; `None` if the device does not have it.
    #[inline]
    pub(super) fn release(&mut self, tag: u32) -> Option<u64> {
        if tag >= self.entries {
            return None;
        }
        let record = self.tags.get_mut(tag as usize);
        if !record.posted {
            return None;
        }
        record.posted = false;
        let wr_id = record.wr_id;
        self.tags.get_mut(self.state.last_free as usize).next = tag;
        self.state.last_free = tag;
        self.state.outstanding = self.state.outstanding.wrapping_sub(1);
        Some(wr_id)
    }

    /// Whether requests wait for a doorbell while the device runs low.
    #[inline]
    pub(super) fn starves(&self) -> bool {
        let s = &self.state;
        s.unrung != 0 && (s.unrung >= s.moderation || s.outstanding.wrapping_sub(s.unrung) < s.moderation)
    }

    /// The tags, to save them.
    pub fn records(&self) -> &[SrqRecord] {
        self.tags.records()
    }

    /// The tags, to restore them.
    pub fn records_mut(&mut self) -> &mut [SrqRecord] {
        self.tags.records_mut()
    }

    /// The state, to save it.
    pub fn state(&self) -> SrqState {
        self.state
    }

    /// Restores a saved state; the records are restored before it.
    ///
    /// # Errors
    /// A state that this queue cannot be in. Nothing was changed.
    pub fn restore(&mut self, state: &SrqState) -> Result<(), MemoryError> {
        let indices = [state.tail, state.first_free, state.last_free, state.outstanding];
        if indices.iter().any(|i| *i >= self.entries) || state.unrung > state.outstanding {
            return Err(MemoryError::Mismatch(text!("saved state does not fit this shared receive queue")));
        }
        self.state = *state;
        Ok(())
    }

    /// Ring memory, for those who look at it.
    pub fn memory(&self) -> &RingMemory<'m> {
        &self.memory
    }
}

/// Requests that are posted under one doorbell. Dropped without [`SrqBatch::commit`], it leaves no trace but the bytes
/// of free entries.
#[derive(Debug)]
#[must_use = "a batch that is not committed is undone"]
pub struct SrqBatch<'b, 'm, S: Store> {
    queue: &'b mut SharedReceiveQueue<'m, S>,
    state: SrqState,
    posted: u32,
}

impl<S: Store> SrqBatch<'_, '_, S> {
    /// Adds a request.
    ///
    /// # Errors
    /// Why it cannot be posted. Nothing was written, and the batch stays as it was.
    #[inline]
    pub fn post(&mut self, request: &RecvRequest<'_>) -> Result<(), PostError> {
        let queue = &mut *self.queue;
        let sges = request.sges.len();
        if sges > queue.max_sge as usize {
            return Err(PostError::TooManySges { given: sges, max: queue.max_sge });
        }
        let tag = self.state.first_free;
        if tag == self.state.last_free {
            return Err(PostError::QueueFull { needed: SRQ_ENTRY_BYTES / 16, free: 0 });
        }
        let mut at = (self.state.tail * SRQ_ENTRY_BYTES) as usize;
        let mut header: [le::U32; 8] = transmute!(RqWqeHdr::ZERO);
        header[0] = first_word(HEADER_SLOTS + sges as u32);
        header[2] = le::U32::new(tag);
        queue.memory.store(at, &header);
        at += size_of::<RqWqeHdr>();
        let end = (self.state.tail * SRQ_ENTRY_BYTES + SRQ_ENTRY_BYTES) as usize;
        for sge in request.sges {
            queue.memory.store(at, &SqSge::new(sge));
            at += size_of::<SqSge>();
        }
        while at < end {
            queue.memory.store(at, &SqSge::ZERO);
            at += size_of::<SqSge>();
        }
        let record = queue.tags.get_mut(tag as usize);
        record.wr_id = request.wr_id;
        self.state.first_free = record.next;
        self.state.tail = next(self.state.tail, queue.entries);
        self.state.epoch ^= self.state.tail == 0;
        self.posted += 1;
        Ok(())
    }

    /// Requests in the batch.
    pub fn len(&self) -> u32 {
        self.posted
    }

    /// The doorbell that [`SrqBatch::commit`] will store, unless it may wait.
    pub fn doorbell(&self) -> DbWord {
        self.queue.base.at(self.state.tail, self.state.epoch)
    }

    /// Makes the requests visible to the device, now or with a later doorbell (see [`SharedReceiveQueue::moderate`]).
    #[inline]
    pub fn commit(self, doorbell: &impl Doorbell) {
        let Self { queue, mut state, posted } = self;
        let mut tag = queue.state.first_free;
        for _ in 0..posted {
            let record = queue.tags.get_mut(tag as usize);
            record.posted = true;
            tag = record.next;
        }
        state.outstanding += posted;
        state.unrung += posted;
        queue.state = state;
        if queue.starves() {
            queue.flush(doorbell);
        }
    }
}
