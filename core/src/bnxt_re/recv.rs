//! The receive queue. All its WQEs take the same slots, so everything counts in WQEs.

use zerocopy::little_endian as le;

use super::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use super::payload::{HEADER_WORDS, put_sge};
use super::plan::RecvPlan;
use super::send::{distance, next};
use super::wqe::{HEADER_SLOTS, RqWqeHdr, SLOT_BYTES, SqSge, WqeType};
use crate::queue::{Doorbell, RingMemory, Shadow, Store};
use crate::verbs::{MemoryError, PostError, QpId, RecvRequest, Sge};

/// First word of a receive header: type and slots in use.
pub(super) const fn first_word(slots: u32) -> le::U32 {
    le::U32::new(WqeType::RECV.0 as u32 | (slots & 0xff) << 16)
}

/// State of a receive queue as plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecvState {
    /// Index of the next WQE.
    pub next: u32,
    /// Index of the oldest outstanding WQE.
    pub oldest: u32,
    /// Producer epoch.
    pub epoch: bool,
}

/// The receive queue of a queue pair.
#[derive(Debug)]
pub struct RecvQueue<'m, S: Store> {
    memory: RingMemory<'m>,
    wr_ids: Shadow<u64, S>,
    state: RecvState,
    wqes: u32,
    wqe_slots: u32,
    max_sge: u32,
    base: DbWord,
}

impl<'m, S: Store> RecvQueue<'m, S> {
    /// A fresh receive queue in `memory`, with `records` for bookkeeping: at least [`RecvPlan::wqes`] of them, a power
    /// of two.
    ///
    /// # Errors
    /// Memory or records that do not fit the plan, or an id wider than a doorbell.
    pub fn new(
        memory: RingMemory<'m>,
        records: S::Slice<u64>,
        plan: &RecvPlan,
        qp: QpId,
    ) -> Result<Self, MemoryError> {
        memory.check(text!("receive queue"), plan.bytes as usize, 4096)?;
        let (given, needed) = (records.len(), plan.wqes as usize);
        let too_short = MemoryError::too_short(text!("receive records"), given, needed.next_power_of_two());
        let wr_ids = Shadow::new(records, needed).ok_or(too_short)?;
        Ok(Self {
            memory,
            wr_ids,
            state: RecvState::default(),
            wqes: plan.wqes,
            wqe_slots: plan.wqe_slots,
            max_sge: plan.max_sge,
            base: DbWord::ring(DbType::RQ, Xid::qp(qp)?, DbIndex::ZERO, Epoch(false), Toggle::ZERO),
        })
    }

    /// Makes the queue what it was when it was created.
    pub fn reset(&mut self) {
        self.state = RecvState::default();
    }

    /// Whether nothing is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.state.next == self.state.oldest
    }

    /// Requests outstanding.
    pub fn outstanding(&self) -> u32 {
        distance(self.state.oldest, self.state.next, self.wqes)
    }

    /// Begins a batch: requests that are posted under one doorbell, or not at all.
    #[inline(always)]
    pub fn batch(&mut self) -> RecvBatch<'_, 'm, S> {
        let room = self.wqes.wrapping_sub(1).saturating_sub(self.outstanding());
        RecvBatch { state: self.state, room, posted: 0, queue: self }
    }

    /// The doorbell for the requests committed so far.
    pub fn doorbell(&self) -> DbWord {
        self.base.at(self.state.next, self.state.epoch)
    }

    /// Index and `wr_id` of the oldest outstanding request.
    #[inline(always)]
    pub(super) fn oldest(&self) -> Option<(u32, u64)> {
        let at = self.state.oldest;
        (!self.is_empty()).then(|| (at, *self.wr_ids.get(at as usize)))
    }

    /// Frees the oldest outstanding request.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.state.oldest = next(self.state.oldest, self.wqes);
    }

    /// The `wr_id`s by index, to save them.
    pub fn records(&self) -> &[u64] {
        self.wr_ids.records()
    }

    /// The `wr_id`s by index, to restore them.
    pub fn records_mut(&mut self) -> &mut [u64] {
        self.wr_ids.records_mut()
    }

    /// The state, to save it.
    pub fn state(&self) -> RecvState {
        self.state
    }

    /// Restores a saved state; the records are restored separately.
    ///
    /// # Errors
    /// A state that this queue cannot be in. Nothing was changed.
    pub fn restore(&mut self, state: &RecvState) -> Result<(), MemoryError> {
        if state.next >= self.wqes || state.oldest >= self.wqes {
            return Err(MemoryError::Mismatch(text!("saved state does not fit this receive queue")));
        }
        self.state = *state;
        Ok(())
    }

    /// Ring memory, for those who look at it.
    pub fn memory(&self) -> &RingMemory<'m> {
        &self.memory
    }

    #[inline(always)]
    fn put(&mut self, index: u32, sges: &[Sge]) {
        let at = index as usize * (self.wqe_slots * SLOT_BYTES) as usize;
        if let [sge] = sges
            && let Some(mut wqe) = self.memory.slot::<ONE_SGE_WORDS>(at)
        {
            wqe.store_low::<0>(first_word(HEADER_SLOTS + 1).get());
            wqe.store_low::<1>(index);
            put_sge::<HEADER_WORDS, ONE_SGE_WORDS>(&mut wqe, sge);
        } else {
            self.put_any(at, index, sges);
        }
    }

    #[inline(never)]
    fn put_any(&mut self, at: usize, index: u32, sges: &[Sge]) {
        let mut at = at;
        let slots = HEADER_SLOTS + (sges.len() as u32).max(1);
        self.memory.store(at, &first_word(slots));
        self.memory.store(at + core::mem::offset_of!(RqWqeHdr, wr_id), &le::U32::new(index));
        at += size_of::<RqWqeHdr>();
        if sges.is_empty() {
            // The device wants an SGE; the vendor's provider sets only its length.
            self.memory.store(at + core::mem::offset_of!(SqSge, size), &le::U32::ZERO);
        }
        for sge in sges {
            self.memory.store(at, &SqSge::new(sge));
            at += size_of::<SqSge>();
        }
    }
}

/// Words of a WQE with one SGE.
const ONE_SGE_WORDS: usize = (HEADER_SLOTS as usize + 1) * SLOT_BYTES as usize / 8;

/// Requests that are posted under one doorbell. Dropped without [`RecvBatch::commit`], it leaves no trace but the
/// bytes of free slots.
#[derive(Debug)]
#[must_use = "a batch that is not committed is undone"]
pub struct RecvBatch<'b, 'm, S: Store> {
    queue: &'b mut RecvQueue<'m, S>,
    state: RecvState,
    room: u32,
    posted: u32,
}

impl<S: Store> RecvBatch<'_, '_, S> {
    /// Adds a request.
    ///
    /// # Errors
    /// Why it cannot be posted. Nothing was written, and the batch stays as it was.
    #[inline(always)]
    pub fn post(&mut self, request: &RecvRequest<'_>) -> Result<(), PostError> {
        let queue = &mut *self.queue;
        if request.sges.len() > queue.max_sge as usize {
            return Err(PostError::TooManySges { given: request.sges.len(), max: queue.max_sge });
        }
        if self.room == 0 {
            return Err(PostError::QueueFull { needed: queue.wqe_slots, free: 0 });
        }
        let index = self.state.next;
        queue.put(index, request.sges);
        *queue.wr_ids.get_mut(index as usize) = request.wr_id;
        self.state.next = next(index, queue.wqes);
        self.state.epoch ^= self.state.next == 0;
        self.room -= 1;
        self.posted += 1;
        Ok(())
    }

    /// Requests in the batch.
    pub fn len(&self) -> u32 {
        self.posted
    }

    /// The doorbell that [`RecvBatch::commit`] will store.
    pub fn doorbell(&self) -> DbWord {
        self.queue.base.at(self.state.next, self.state.epoch)
    }

    /// Makes the requests visible to the device: the only place of barriers and doorbell. An empty batch rings nothing.
    #[inline]
    pub fn commit(self, doorbell: &impl Doorbell) {
        if self.posted == 0 {
            return;
        }
        let word = self.doorbell();
        self.queue.state = self.state;
        ring(doorbell, word);
    }
}

/// One doorbell store with its barriers.
#[inline(always)]
pub(super) fn ring(doorbell: &impl Doorbell, word: DbWord) {
    doorbell.wc_start();
    doorbell.store(0, word.to_u64());
    doorbell.wc_flush();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Fixed;
    use crate::verbs::LKey;

    #[repr(C, align(4096))]
    struct Page([u8; 4096]);

    const PLAN: RecvPlan = RecvPlan { max_wr: 3, max_sge: 2, wqes: 4, wqe_slots: 4, slots: 16, bytes: 4096 };

    fn records() -> heapless::Vec<u64, 4> {
        heapless::Vec::from_array([0; 4])
    }

    #[test]
    fn a_wqe_has_the_bytes_of_the_vendor() {
        let mut page = Page([0xee; 4096]);
        let memory = RingMemory::new(&mut page.0);
        let mut queue = RecvQueue::<Fixed<4>>::new(memory, records(), &PLAN, QpId::truncated(9)).unwrap();
        let mut batch = queue.batch();
        batch.post(&RecvRequest::new(1, &[])).unwrap();
        let sges = [Sge::new(0x1122, 0x33, LKey::truncated(0x44)); 2];
        batch.post(&RecvRequest::new(2, &sges)).unwrap();
        assert_eq!(batch.doorbell().to_u64(), 0x1400_0009_0000_0002);
        let _ = batch;
        let wqe: [u8; 128] = queue.memory().load(0).unwrap();
        assert_eq!(wqe[..12], [0x80, 0, 3, 0, 0xee, 0xee, 0xee, 0xee, 0, 0, 0, 0]);
        assert!(wqe[12..44].iter().all(|b| *b == 0xee));
        assert_eq!(wqe[44..48], [0; 4]);
        assert_eq!(wqe[64..76], [0x80, 0, 4, 0, 0xee, 0xee, 0xee, 0xee, 1, 0, 0, 0]);
        assert_eq!(wqe[96..112], [0x22, 0x11, 0, 0, 0, 0, 0, 0, 0x44, 0, 0, 0, 0x33, 0, 0, 0]);
    }

    #[test]
    fn one_wqe_stays_free_and_the_epoch_flips_at_the_wrap() {
        let mut page = Page([0; 4096]);
        let memory = RingMemory::new(&mut page.0);
        let mut queue = RecvQueue::<Fixed<4>>::new(memory, records(), &PLAN, QpId::truncated(9)).unwrap();
        for lap in 0..6 {
            let mut batch = queue.batch();
            for i in 0..3 {
                batch.post(&RecvRequest::new(i, &[])).unwrap();
            }
            let full = batch.post(&RecvRequest::new(9, &[]));
            assert_eq!(full, Err(PostError::QueueFull { needed: 4, free: 0 }));
            let total = (lap + 1) * 3;
            assert_eq!(batch.doorbell().index().get(), total % 4);
            assert_eq!(batch.doorbell().epoch(), Epoch(total / 4 % 2 == 1));
            batch.queue.state = batch.state;
            for _ in 0..3 {
                queue.pop();
            }
        }
    }
}
