//! The receive queue.

use super::batch::{self, Batch, WorkQueue};
use super::cmb::NoDeviceMemory;
use super::cq::CqRing;
use super::doorbell::QueueDoorbell;
use super::payload::{store_payload, store_sges};
use super::plan::WorkQueuePlan;
pub use super::record::RqRecord;
use super::record::long;
use super::work::{Flush, MAX_LENGTH, QueueMemory, WORDS, WorkRing, head, header};
use super::wqe::WqeFlags;
use crate::queue::{DeviceMemory, Doorbell, Slot, Store};
use crate::verbs::{BatchError, CqId, MemoryError, PostError, QpId, QpType, RecvRequest};

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
            ring: WorkRing::new(
                [text!("receive ring"), text!("receive records")],
                plan,
                true,
                config.doorbell,
                memory,
            )?,
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
        for (what, value) in [(text!("prod"), state.prod), (text!("cons"), state.cons)] {
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
        Batch::new(self, cq)
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
        batch::post(self, cq, requests, doorbell)
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
        let flags = WqeFlags::new().with_format(payload.spec);
        self.store(request.wr_id, head(0, payload.sges, flags), payload.length, |slot| {
            if let Some(words) = payload.words {
                store_payload(slot, words);
            }
        });
        let left = core::mem::replace(&mut self.record_mut(position).extent, long(payload.extent));
        self.ring.zero_tail(position, payload.extent, left);
        self.ring.go_on();
        Ok(())
    }

    /// Stores the WQE at the producer and its record, but for what lies behind 64 bytes.
    #[inline(always)]
    fn store(&mut self, wr_id: u64, head: u32, length: u32, payload: impl FnOnce(&mut Slot<'_, WORDS>)) {
        let position = self.ring.prod;
        let index = self.ring.wqes.index(position);
        let record = self.ring.wqes.record_mut(position);
        (record.wr_id, record.posted) = (wr_id, true);
        let mut slot = self.ring.wqes.slot(position);
        slot.store::<0>(index.into());
        slot.store::<2>(0);
        slot.store::<3>(0);
        payload(&mut slot);
        slot.store_release::<1>(header(head, length));
    }
}

impl<S: Store, M: DeviceMemory> WorkQueue for RecvQueue<'_, S, M> {
    type Request<'r> = RecvRequest<'r>;

    #[inline(always)]
    fn cq(&self) -> CqId {
        self.cq
    }

    #[inline(always)]
    fn position(&self) -> u32 {
        self.ring.prod
    }

    /// One SGE.
    #[inline(always)]
    fn put_plain(&mut self, request: &RecvRequest<'_>) -> bool {
        let [sge] = request.sges else { return false };
        let (position, length) = (self.ring.prod, sge.length);
        if length >= MAX_LENGTH || !self.ring.is_plain() || self.record_mut(position).extent != 0 {
            return false;
        }
        const ONE: u32 = head(0, 1, WqeFlags::new());
        self.store(request.wr_id, ONE, length, |slot| store_sges(slot, (sge, length), None));
        self.ring.prod = position.wrapping_add(1);
        true
    }

    #[inline(always)]
    fn put(&mut self, request: &RecvRequest<'_>) -> Result<(), PostError> {
        if self.put_plain(request) { Ok(()) } else { self.put_any(request) }
    }

    fn take_back(&mut self) {
        self.ring.go_to(self.ring.prod.wrapping_sub(1));
        self.record_mut(self.ring.prod).posted = false;
    }

    #[inline(always)]
    fn publish<D: Doorbell>(&self, count: u32, doorbell: &D) {
        self.ring.publish(count, doorbell);
    }

    fn doorbell(&self) -> u64 {
        self.ring.index_doorbell()
    }
}

/// Receive requests that are posted under one doorbell.
pub type RecvBatch<'q, 'm, 'c, S, M = NoDeviceMemory> = Batch<'q, 'c, RecvQueue<'m, S, M>>;
