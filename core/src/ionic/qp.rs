//! The queue pair: a send queue and a receive queue with one number, on one pipeline of the device.

use super::batch::post_plain;
use super::caps::Caps;
use super::cmb::{CmbGrant, NoDeviceMemory};
use super::cq::{CompletionQueue, CqRing, STALE_QID};
use super::doorbell::QueueDoorbell;
use super::plan::QpPlan;
use super::recv::{RecvBatch, RecvConfig, RecvQueue, RqRecord, RqState};
use super::send::{SendBatch, SendConfig, SendQueue, SqRecord, SqState};
use super::work::QueueMemory;
use crate::queue::{DeviceMemory, Doorbell, Store};
use crate::verbs::{
    BatchError, CqId, MemoryError, Pollable, PostError, QpCapabilities, QpId, QpState, QpType, RecvRequest,
    SendRequest, SharedReceiveQueue, SrqId, Wrapper,
};

/// What a queue pair is made for: what the device answered to its creation, and the caller's wishes.
#[derive(Debug)]
pub struct QpConfig<'a, 'c> {
    /// Number.
    pub id: QpId,
    /// Kind: RC or UD.
    pub qp_type: QpType,
    /// Pipeline that the device put it on.
    pub udma: u8,
    /// Every send request produces a completion.
    pub signal_all: bool,
    /// Where send requests complete.
    pub send_cq: &'a CompletionQueue<'c>,
    /// Where receive requests complete.
    pub recv_cq: &'a CompletionQueue<'c>,
}

/// State of a queue pair as plain data; the records of both queues go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedQp {
    /// State that the driver knows.
    pub state: QpState,
    /// Send queue.
    pub sq: SqState,
    /// Receive queue.
    pub rq: RqState,
}

/// First state in which send requests may be posted.
const SENDS: QpState = QpState::Rts;

/// First state in which receive requests may be posted.
const RECEIVES: QpState = QpState::Init;

/// A queue pair.
#[derive(Debug)]
pub struct QueuePair<'m, S: Store, M = NoDeviceMemory> {
    id: QpId,
    qp_type: QpType,
    udma: u8,
    state: QpState,
    capabilities: QpCapabilities,
    pub(super) sq: SendQueue<'m, S, M>,
    pub(super) rq: RecvQueue<'m, S, M>,
}

impl<'m, S: Store, M: DeviceMemory> QueuePair<'m, S, M> {
    fn configs(caps: &Caps, config: &QpConfig<'_, '_>) -> Result<(SendConfig, RecvConfig), MemoryError> {
        let QpConfig { id, qp_type, udma, signal_all, .. } = *config;
        if id.get() == STALE_QID {
            return Err(MemoryError::OutOfRange {
                what: text!("queue pair number"),
                value: id.get(),
                bits: 24,
            });
        }
        if qp_type == QpType::RawPacket {
            return Err(MemoryError::Mismatch(text!("the device has no raw packet queue pairs")));
        }
        let ring = |cq: &CompletionQueue<'_>| {
            cq.ring(udma).map(CqRing::id).ok_or(MemoryError::Mismatch(text!(
                "a completion queue has no ring on the queue pair's pipeline"
            )))
        };
        let sq_doorbell = QueueDoorbell::queue_pair(caps.sq_qtype, id);
        let rq_doorbell = QueueDoorbell::queue_pair(caps.rq_qtype, id);
        let (version, send_cq, recv_cq) = (caps.version, ring(config.send_cq)?, ring(config.recv_cq)?);
        Ok((
            SendConfig { qp: id, qp_type, version, signal_all, doorbell: sq_doorbell, cq: send_cq },
            RecvConfig { qp: id, qp_type, doorbell: rq_doorbell, cq: recv_cq },
        ))
    }

    fn join(
        config: &QpConfig<'_, '_>,
        plan: &QpPlan,
        state: QpState,
        sq: SendQueue<'m, S, M>,
        rq: RecvQueue<'m, S, M>,
    ) -> Self {
        let capabilities = plan.granted(sq.ring.grant().express(), rq.ring.grant().express());
        let (id, qp_type, udma) = (config.id, config.qp_type, config.udma);
        let mut qp = Self { id, qp_type, udma, state, capabilities, sq, rq };
        qp.open(state);
        qp
    }

    /// A queue pair in state RESET.
    ///
    /// # Errors
    /// Memory that does not fit the plan, or a completion queue without a ring on the pipeline.
    pub fn new(
        caps: &Caps,
        config: &QpConfig<'_, '_>,
        plan: &QpPlan,
        sq: QueueMemory<'m, S::Slice<SqRecord>, M>,
        rq: QueueMemory<'m, S::Slice<RqRecord>, M>,
    ) -> Result<Self, MemoryError> {
        let (send, recv) = Self::configs(caps, config)?;
        check_overlap(&sq, &rq)?;
        let sq = SendQueue::new(&send, &plan.sq, sq)?;
        let rq = RecvQueue::new(&recv, &plan.rq, rq)?;
        Ok(Self::join(config, plan, QpState::Reset, sq, rq))
    }

    /// A queue pair as [`QueuePair::save`] told; rings and records hold what they held.
    ///
    /// # Errors
    /// Memory or a state that does not fit the plan.
    pub fn restore(
        caps: &Caps,
        config: &QpConfig<'_, '_>,
        plan: &QpPlan,
        sq: QueueMemory<'m, S::Slice<SqRecord>, M>,
        rq: QueueMemory<'m, S::Slice<RqRecord>, M>,
        saved: &SavedQp,
    ) -> Result<Self, MemoryError> {
        let (send, recv) = Self::configs(caps, config)?;
        check_overlap(&sq, &rq)?;
        let sq = SendQueue::restore(&send, &plan.sq, sq, &saved.sq)?;
        let rq = RecvQueue::restore(&recv, &plan.rq, rq, &saved.rq)?;
        Ok(Self::join(config, plan, saved.state, sq, rq))
    }

    /// Its state as plain data. The records are [`SendQueue::records`] and [`RecvQueue::records`].
    pub fn save(&self) -> SavedQp {
        SavedQp { state: self.state, sq: self.sq.state(), rq: self.rq.state() }
    }

    /// Number.
    pub fn id(&self) -> QpId {
        self.id
    }

    /// Kind.
    pub fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// Pipeline it is on.
    pub fn udma(&self) -> u8 {
        self.udma
    }

    /// State that the driver knows.
    pub fn state(&self) -> QpState {
        self.state
    }

    /// What was granted.
    pub fn capabilities(&self) -> QpCapabilities {
        self.capabilities
    }

    /// Where send and receive queue are.
    pub fn placement(&self) -> (CmbGrant, CmbGrant) {
        (self.sq.ring.grant(), self.rq.ring.grant())
    }

    /// The send queue.
    pub fn send_queue(&self) -> &SendQueue<'m, S, M> {
        &self.sq
    }

    /// The receive queue.
    pub fn recv_queue(&self) -> &RecvQueue<'m, S, M> {
        &self.rq
    }

    fn open(&mut self, state: QpState) {
        self.sq.ring.set_open(state >= SENDS);
        self.rq.ring.set_open(state >= RECEIVES);
    }

    /// Follows a transition that the device has made. On the way to ERR everything outstanding is flushed; RESET makes
    /// it as if new. Let its completion queues [`CompletionQueue::forget`] it before it goes to RESET.
    pub fn set_state(&mut self, state: QpState) {
        self.state = state;
        self.open(state);
        match state {
            QpState::Err => {
                self.sq.begin_flush();
                self.rq.begin_flush();
            }
            QpState::Reset => {
                self.sq.clear();
                self.rq.clear();
            }
            _ => {}
        }
    }

    /// Flushes everything outstanding, and what is posted from now on.
    pub fn set_error(&mut self) {
        self.set_state(QpState::Err);
    }

    /// Makes it as if new.
    pub fn reset(&mut self) {
        self.set_state(QpState::Reset);
    }

    /// Begins a batch of send requests. `cq` is the send completion queue.
    ///
    /// # Errors
    /// A state that does not allow it, or another completion queue.
    #[inline(always)]
    pub fn send_batch<'q, 'c>(
        &'q mut self,
        cq: &'q mut CompletionQueue<'c>,
    ) -> Result<SendBatch<'q, 'm, 'c, S, M>, PostError> {
        let ring = self.send_ring(cq)?;
        self.sq.batch(ring)
    }

    /// The ring that send requests complete to, if they may be posted.
    #[inline(always)]
    fn send_ring<'q, 'c>(&self, cq: &'q mut CompletionQueue<'c>) -> Result<&'q mut CqRing<'c>, PostError> {
        if self.state < SENDS {
            return Err(PostError::BadState(self.state));
        }
        let given = cq.id();
        cq.ring_mut(self.udma).ok_or(PostError::WrongCq { given, attached: self.sq.cq })
    }

    /// Begins a batch of receive requests. `cq` is the receive completion queue.
    ///
    /// # Errors
    /// A state that does not allow it, or another completion queue.
    #[inline(always)]
    pub fn recv_batch<'q, 'c>(
        &'q mut self,
        cq: &'q mut CompletionQueue<'c>,
    ) -> Result<RecvBatch<'q, 'm, 'c, S, M>, PostError> {
        let ring = self.recv_ring(cq)?;
        self.rq.batch(ring)
    }

    /// The ring that receive requests complete to, if they may be posted.
    #[inline(always)]
    fn recv_ring<'q, 'c>(&self, cq: &'q mut CompletionQueue<'c>) -> Result<&'q mut CqRing<'c>, PostError> {
        if self.state < RECEIVES {
            return Err(PostError::BadState(self.state));
        }
        let given = cq.id();
        cq.ring_mut(self.udma).ok_or(PostError::WrongCq { given, attached: self.rq.cq })
    }

    /// Posts all of `requests` under one doorbell, or none.
    ///
    /// # Errors
    /// The first request that cannot be posted.
    #[inline]
    pub fn post_send<D: Doorbell>(
        &mut self,
        cq: &mut CompletionQueue<'_>,
        requests: &[SendRequest<'_>],
        doorbell: &D,
    ) -> Result<(), BatchError> {
        // One plain request needs few registers and no frame; all else is posted by a function that is not inlined.
        if let [request] = requests
            && post_plain(&mut self.sq, cq.front_mut(), request, doorbell)
        {
            return Ok(());
        }
        self.post_sends(cq, requests, doorbell)
    }

    #[inline(never)]
    fn post_sends<D: Doorbell>(
        &mut self,
        cq: &mut CompletionQueue<'_>,
        requests: &[SendRequest<'_>],
        doorbell: &D,
    ) -> Result<(), BatchError> {
        let ring = self.send_ring(cq).map_err(|error| BatchError { index: 0, error })?;
        self.sq.post(ring, requests, doorbell)
    }

    /// Posts all of `requests` under one doorbell, or none.
    ///
    /// # Errors
    /// The first request that cannot be posted.
    #[inline]
    pub fn post_recv<D: Doorbell>(
        &mut self,
        cq: &mut CompletionQueue<'_>,
        requests: &[RecvRequest<'_>],
        doorbell: &D,
    ) -> Result<(), BatchError> {
        if let [request] = requests
            && post_plain(&mut self.rq, cq.front_mut(), request, doorbell)
        {
            return Ok(());
        }
        self.post_recvs(cq, requests, doorbell)
    }

    #[inline(never)]
    fn post_recvs<D: Doorbell>(
        &mut self,
        cq: &mut CompletionQueue<'_>,
        requests: &[RecvRequest<'_>],
        doorbell: &D,
    ) -> Result<(), BatchError> {
        let ring = self.recv_ring(cq).map_err(|error| BatchError { index: 0, error })?;
        self.rq.post(ring, requests, doorbell)
    }
}

impl<S: Store, M: DeviceMemory> Pollable for QueuePair<'_, S, M> {
    #[inline(always)]
    fn key(&self) -> u32 {
        self.id.get()
    }

    #[inline(always)]
    fn flush_seq(&self) -> u32 {
        self.sq.ring.flush_seq.wrapping_add(self.rq.ring.flush_seq)
    }
}

fn check_overlap<A, B, M>(sq: &QueueMemory<'_, A, M>, rq: &QueueMemory<'_, B, M>) -> Result<(), MemoryError> {
    if sq.ring.overlaps(&rq.ring) {
        return Err(MemoryError::Overlap(text!("send ring"), text!("receive ring")));
    }
    Ok(())
}

/// The device has no shared receive queues: there is no value of this type.
#[derive(Clone, Copy, Debug)]
pub enum NoSharedReceiveQueue {}

impl SharedReceiveQueue for NoSharedReceiveQueue {
    fn id(&self) -> SrqId {
        match *self {}
    }

    fn post_recv(&mut self, _: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        match *self {}
    }

    fn arm_limit(&mut self, _: u32) {
        match *self {}
    }
}

impl Wrapper<Self> for NoSharedReceiveQueue {
    fn queue(&mut self) -> Option<&mut Self> {
        match *self {}
    }
}

/// Number of the completion ring that the queues of a queue pair complete to.
impl<S: Store, M> QueuePair<'_, S, M> {
    /// Ring that send requests complete to.
    pub fn send_cq(&self) -> CqId {
        self.sq.cq
    }

    /// Ring that receive requests complete to.
    pub fn recv_cq(&self) -> CqId {
        self.rq.cq
    }
}
