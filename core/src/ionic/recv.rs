//! The receive queue.

use super::cmb::NoDeviceMemory;
use super::cq::CqRing;
use super::doorbell::QueueDoorbell;
use super::plan::WorkQueuePlan;
use super::work::{
    Flush, MAX_LENGTH, Payload, QueueMemory, WorkRing, head, header, long, sge_words, store_payload,
};
use super::wqe::WqeFlags;
use crate::queue::{DeviceMemory, Doorbell, Store};
use crate::verbs::{BatchError, CqId, MemoryError, PostError, QpId, QpType, RecvRequest};

/// What the driver remembers of a receive request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RqRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Bytes of the WQE in this place that may be other than zero, if they are more than 64; else 0.
    pub extent: u32,
    /// Posted and not completed.
    pub posted: bool,
}

const _: () = assert!(size_of::<RqRecord>() == 16);

/// State of a receive queue as plain data; its records go with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RqState {
    /// Producer.
    pub prod: u16,
    /// Consumer: the oldest request that has not completed.
    pub cons: u16,
    /// Requests are flushed.
    pub flush: bool,
}

/// What a receive queue is made for.
#[derive(Clone, Copy, Debug)]
pub struct RecvConfig {
    /// Queue pair.
    pub qp: QpId,
    /// Its kind.
    pub qp_type: QpType,
    /// Its doorbells.
    pub doorbell: QueueDoorbell,
    /// Completion queue ring that requests complete to.
    pub cq: CqId,
}

/// The receive queue of a queue pair.
#[derive(Debug)]
pub struct RecvQueue<'m, S: Store, M = NoDeviceMemory> {
    pub(super) ring: WorkRing<'m, RqRecord, S, M>,
    pub(super) datagram: bool,
    pub(super) cq: CqId,
    pub(super) qp: QpId,
}

impl<'m, S: Store, M: DeviceMemory> RecvQueue<'m, S, M> {
    fn build(
        config: &RecvConfig,
        plan: &WorkQueuePlan,
        memory: QueueMemory<'m, S::Slice<RqRecord>, M>,
    ) -> Result<Self, MemoryError> {
        Ok(Self {
            ring: WorkRing::new(["receive ring", "receive records"], plan, true, config.doorbell, memory)?,
            datagram: config.qp_type == QpType::Ud,
            cq: config.cq,
            qp: config.qp,
        })
    }

    /// An empty queue. The ring is zeroed.
    ///
    /// # Errors
    /// Memory that does not fit the plan.
    pub fn new(
        config: &RecvConfig,
        plan: &WorkQueuePlan,
        memory: QueueMemory<'m, S::Slice<RqRecord>, M>,
    ) -> Result<Self, MemoryError> {
        let mut queue = Self::build(config, plan, memory)?;
        queue.clear();
        Ok(queue)
    }

    /// A queue as [`RecvQueue::state`] and [`RecvQueue::records`] told; the ring holds what it held.
    ///
    /// # Errors
    /// Memory or a state that does not fit the plan.
    pub fn restore(
        config: &RecvConfig,
        plan: &WorkQueuePlan,
        memory: QueueMemory<'m, S::Slice<RqRecord>, M>,
        state: &RqState,
    ) -> Result<Self, MemoryError> {
        let mut queue = Self::build(config, plan, memory)?;
        for (what, value) in [("prod", state.prod), ("cons", state.cons)] {
            if u32::from(value) > queue.ring.wqes.mask() {
                let bits = plan.ring.depth_log2.into();
                return Err(MemoryError::OutOfRange { what, value: value.into(), bits });
            }
        }
        queue.ring.set_indices(state.prod, state.cons);
        queue.ring.set_flush(if state.flush { Flush::Yes } else { Flush::No });
        Ok(queue)
    }

    /// Makes it as if new.
    pub fn clear(&mut self) {
        self.ring.clear();
    }

    /// Its state as plain data.
    pub fn state(&self) -> RqState {
        RqState {
            prod: self.ring.wqes.index(self.ring.prod) as u16,
            cons: self.ring.wqes.index(self.ring.cons) as u16,
            flush: self.ring.flush() == Flush::Yes,
        }
    }

    /// Its records, to save them.
    pub fn records(&self) -> &[RqRecord] {
        self.ring.wqes.records()
    }

    /// Record of the request at `position`.
    #[inline(always)]
    pub(super) fn record_mut(&mut self, position: u32) -> &mut RqRecord {
        self.ring.wqes.record_mut(position)
    }

    /// Requests posted and not completed.
    pub fn outstanding(&self) -> u32 {
        let mut count = 0;
        let mut position = self.ring.cons;
        while position != self.ring.prod {
            count += u32::from(self.ring.wqes.record(position).posted);
            position = position.wrapping_add(1);
        }
        count
    }

    /// The doorbell that tells the producer.
    pub fn doorbell(&self) -> u64 {
        self.ring.index_doorbell()
    }

    /// Begins a batch; `cq` is the ring that [`RecvConfig::cq`] names.
    ///
    /// # Errors
    /// Another ring.
    #[inline(always)]
    pub fn batch<'q, 'c>(
        &'q mut self,
        cq: &'q mut CqRing<'c>,
    ) -> Result<RecvBatch<'q, 'm, 'c, S, M>, PostError> {
        self.check_cq(cq)?;
        Ok(RecvBatch { start: self.ring.prod, queue: self, cq })
    }

    #[inline(always)]
    fn check_cq(&self, cq: &CqRing<'_>) -> Result<(), PostError> {
        if cq.id() == self.cq {
            return Ok(());
        }
        Err(PostError::WrongCq { given: cq.id(), attached: self.cq })
    }

    /// Posts all of `requests` under one doorbell, or none. `cq` is the ring that [`RecvConfig::cq`] names.
    ///
    /// # Errors
    /// Another ring, or the first request that cannot be posted.
    #[inline(always)]
    pub fn post<D: Doorbell>(
        &mut self,
        cq: &mut CqRing<'_>,
        requests: &[RecvRequest<'_>],
        doorbell: &D,
    ) -> Result<(), BatchError> {
        self.check_cq(cq).map_err(|error| BatchError { index: 0, error })?;
        if requests.is_empty() {
            return Ok(());
        }
        let start = self.ring.prod;
        for request in requests {
            if !self.put_one_sge(request) {
                return self.post_rest(start, cq, requests, doorbell);
            }
        }
        self.tell(requests.len() as u32, cq, doorbell);
        Ok(())
    }

    /// Goes on with a batch from `start` on that has met something else than the plainest request.
    #[inline(never)]
    fn post_rest<D: Doorbell>(
        &mut self,
        start: u32,
        cq: &mut CqRing<'_>,
        requests: &[RecvRequest<'_>],
        doorbell: &D,
    ) -> Result<(), BatchError> {
        let written = self.ring.prod.wrapping_sub(start) as usize;
        for request in requests.get(written..).unwrap_or_default() {
            if let Err(error) = self.put(request) {
                let index = self.ring.prod.wrapping_sub(start) as usize;
                self.take_back(start);
                return Err(BatchError { index, error });
            }
        }
        self.tell(requests.len() as u32, cq, doorbell);
        Ok(())
    }

    /// Writes the WQE of a request.
    #[inline(always)]
    fn put(&mut self, request: &RecvRequest<'_>) -> Result<(), PostError> {
        if self.put_one_sge(request) { Ok(()) } else { self.put_any(request) }
    }

    /// Writes the WQE of what most requests are: one SGE. `false`, and nothing was done, if it is something else, or wrong.
    #[inline(always)]
    fn put_one_sge(&mut self, request: &RecvRequest<'_>) -> bool {
        let prod = self.ring.prod;
        let [sge] = request.sges else { return false };
        if sge.length >= MAX_LENGTH || !self.ring.is_plain() || self.record_mut(prod).extent != 0 {
            return false;
        }
        let [a, b] = sge_words(sge);
        let words = Some([a, b, 0, 0]);
        let payload = Payload { words, sges: 1, length: sge.length, ..Payload::EMPTY };
        self.store(request.wr_id, &payload);
        true
    }

    /// Writes the WQE of a request of any form, or says why it cannot be posted.
    #[inline(never)]
    fn put_any(&mut self, request: &RecvRequest<'_>) -> Result<(), PostError> {
        if !self.ring.is_plain() {
            self.ring.look_ahead();
        }
        let position = self.ring.prod;
        self.ring.room(position)?;
        let payload = self.ring.sges(position, request.sges)?;
        self.store(request.wr_id, &payload);
        let left = core::mem::replace(&mut self.record_mut(position).extent, long(payload.extent));
        self.ring.zero_tail(position, payload.extent, left);
        Ok(())
    }

    /// Stores a WQE and its record, but for what lies behind 64 bytes, and goes on to the next.
    #[inline(always)]
    fn store(&mut self, wr_id: u64, payload: &Payload) {
        let prod = self.ring.prod;
        let index = self.ring.wqes.index(prod);
        let record = self.ring.wqes.record_mut(prod);
        (record.wr_id, record.posted) = (wr_id, true);
        let mut slot = self.ring.wqes.slot(prod);
        slot.store::<0>(index.into());
        slot.store::<2>(0);
        slot.store::<3>(0);
        if let Some(words) = payload.words {
            store_payload(&mut slot, words);
        }
        let flags = WqeFlags::new().with_format(payload.spec);
        slot.store_release::<1>(header(head(0, payload.sges, flags), payload.length));
        self.ring.go_on();
    }

    /// Tells the device of the last `count` requests: first the completion queue's doorbell if its credit is spent, then
    /// this queue's.
    #[inline(always)]
    fn tell<D: Doorbell>(&mut self, count: u32, cq: &mut CqRing<'_>, doorbell: &D) {
        cq.spend(count, doorbell);
        self.ring.publish(count, doorbell);
    }

    /// Takes back the requests from `start` on.
    #[cold]
    fn take_back(&mut self, start: u32) {
        while self.ring.prod != start {
            self.ring.go_to(self.ring.prod.wrapping_sub(1));
            self.record_mut(self.ring.prod).posted = false;
        }
    }
}

/// Receive requests that are posted under one doorbell. Dropping it instead of [`RecvBatch::commit`] undoes them.
#[derive(Debug)]
#[must_use = "a batch that is dropped undoes its posts"]
pub struct RecvBatch<'q, 'm, 'c, S: Store, M: DeviceMemory = NoDeviceMemory> {
    queue: &'q mut RecvQueue<'m, S, M>,
    cq: &'q mut CqRing<'c>,
    /// Producer before the batch.
    start: u32,
}

impl<S: Store, M: DeviceMemory> RecvBatch<'_, '_, '_, S, M> {
    /// Posts a request.
    ///
    /// # Errors
    /// Why it cannot be posted; nothing was written, and the batch may go on.
    #[inline(always)]
    pub fn post(&mut self, request: &RecvRequest<'_>) -> Result<(), PostError> {
        self.queue.put(request)
    }

    /// Requests in the batch.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.queue.ring.prod.wrapping_sub(self.start)
    }

    /// The doorbell that [`RecvBatch::commit`] stores.
    pub fn doorbell(&self) -> u64 {
        self.queue.doorbell()
    }

    /// Tells the device: first the completion queue's doorbell if its credit is spent, then this queue's.
    #[inline(always)]
    pub fn commit<D: Doorbell>(self, doorbell: &D) {
        let mut this = core::mem::ManuallyDrop::new(self);
        let this = &mut *this;
        let count = this.len();
        if count != 0 {
            this.queue.tell(count, this.cq, doorbell);
        }
    }
}

impl<S: Store, M: DeviceMemory> Drop for RecvBatch<'_, '_, '_, S, M> {
    #[inline]
    fn drop(&mut self) {
        self.queue.take_back(self.start);
    }
}
