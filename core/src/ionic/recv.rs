//! The receive queue.

use super::cmb::NoDeviceMemory;
use super::cq::CqRing;
use super::doorbell::{QueueDoorbell, RingIdx};
use super::plan::WorkQueuePlan;
use super::work::{QueueMemory, WorkRing, header};
use super::wqe::WqeFlags;
use crate::queue::{DeviceMemory, Doorbell, Shadow, Store};
use crate::verbs::{CqId, MemoryError, PostError, QpId, QpType, RecvRequest};

/// What the driver remembers of a receive request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RqRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Bytes of the WQE in this place that may be other than zero.
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
    pub(super) ring: WorkRing<'m, M>,
    pub(super) records: Shadow<RqRecord, S>,
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
        let given = memory.records.len();
        let needed = plan.records();
        let records = Shadow::new(memory.records, needed).ok_or(MemoryError::TooShort {
            what: "receive records",
            given,
            needed,
        })?;
        Ok(Self {
            ring: WorkRing::new("receive ring", plan, config.doorbell, memory.ring, memory.cmb)?,
            records,
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
        let mask = queue.ring.mask;
        for (what, value) in [("prod", state.prod), ("cons", state.cons)] {
            if value > mask {
                let bits = plan.ring.depth_log2.into();
                return Err(MemoryError::OutOfRange { what, value: value.into(), bits });
            }
        }
        (queue.ring.prod, queue.ring.cons, queue.ring.flush) = (state.prod, state.cons, state.flush);
        Ok(queue)
    }

    /// Makes it as if new.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.records.records_mut().fill(RqRecord::default());
    }

    /// Its state as plain data.
    pub fn state(&self) -> RqState {
        RqState { prod: self.ring.prod, cons: self.ring.cons, flush: self.ring.flush }
    }

    /// Its records, to save them.
    pub fn records(&self) -> &[RqRecord] {
        self.records.records()
    }

    /// Requests posted and not completed.
    pub fn outstanding(&self) -> u32 {
        let mut count = 0;
        let mut position = self.ring.cons;
        while position != self.ring.prod {
            count += u32::from(self.records.get(position.into()).posted);
            position = self.ring.next(position);
        }
        count
    }

    /// The doorbell that tells the producer.
    pub fn doorbell(&self) -> u64 {
        self.ring.doorbell.index(RingIdx(self.ring.prod))
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
        if cq.id() != self.cq {
            return Err(PostError::WrongCq { given: cq.id(), attached: self.cq });
        }
        let prod = self.ring.prod;
        Ok(RecvBatch { queue: self, cq, prod })
    }
}

/// Receive requests that are posted under one doorbell. Dropping it instead of [`RecvBatch::commit`] undoes them.
#[derive(Debug)]
#[must_use = "a batch that is dropped undoes its posts"]
pub struct RecvBatch<'q, 'm, 'c, S: Store, M: DeviceMemory = NoDeviceMemory> {
    queue: &'q mut RecvQueue<'m, S, M>,
    cq: &'q mut CqRing<'c>,
    prod: u16,
}

impl<S: Store, M: DeviceMemory> RecvBatch<'_, '_, '_, S, M> {
    /// Posts a request.
    ///
    /// # Errors
    /// Why it cannot be posted; nothing was written, and the batch may go on.
    #[inline(always)]
    pub fn post(&mut self, request: &RecvRequest<'_>) -> Result<(), PostError> {
        let (queue, prod) = (&mut *self.queue, self.prod);
        if queue.ring.used(prod) == queue.ring.mask {
            return Err(PostError::QueueFull { needed: 1, free: 0 });
        }
        let payload = queue.ring.sges(prod, request.sges)?;
        let express = queue.ring.express_word(prod);
        let flags = WqeFlags::new().with_format(payload.spec);
        if let Some(mut slot) = queue.ring.slot(prod) {
            slot.store::<0>(prod.into());
            slot.store::<2>(0);
            slot.store::<3>(0);
            WorkRing::<M>::store_payload(&mut slot, &payload, express);
            slot.store_release::<1>(header(0, payload.sges, flags.into_bits(), payload.length));
        }
        let record = queue.records.get_mut(prod.into());
        let before = record.extent;
        *record = RqRecord { wr_id: request.wr_id, extent: payload.extent, posted: true };
        queue.ring.zero_tail(prod, payload.extent, before);
        self.prod = queue.ring.next(prod);
        Ok(())
    }

    /// Requests in the batch.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        let ring = &self.queue.ring;
        (self.prod.wrapping_sub(ring.prod) & ring.mask).into()
    }

    /// The doorbell that [`RecvBatch::commit`] stores.
    pub fn doorbell(&self) -> u64 {
        self.queue.ring.doorbell.index(RingIdx(self.prod))
    }

    /// Tells the device: first the completion queue's doorbell if its credit is spent, then this queue's.
    #[inline(always)]
    pub fn commit<D: Doorbell>(self, doorbell: &D) {
        let mut this = core::mem::ManuallyDrop::new(self);
        let spent = this.len();
        if spent == 0 {
            return;
        }
        let prod = this.prod;
        this.cq.spend(spent, doorbell);
        let queue = &mut *this.queue;
        let start = queue.ring.prod;
        queue.ring.prod = prod;
        queue.ring.publish(start, prod, doorbell);
        if queue.ring.flush {
            queue.ring.flush_seq = queue.ring.flush_seq.wrapping_add(1);
        }
    }
}

impl<S: Store, M: DeviceMemory> Drop for RecvBatch<'_, '_, '_, S, M> {
    /// Takes back that the requests not committed are posted.
    #[inline]
    fn drop(&mut self) {
        let mut position = self.queue.ring.prod;
        while position != self.prod {
            self.queue.records.get_mut(position.into()).posted = false;
            position = self.queue.ring.next(position);
        }
    }
}
