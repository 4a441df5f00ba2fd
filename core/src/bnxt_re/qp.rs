//! A queue pair: its queues, its state, and when what is posted to it has to be flushed.

use super::batch::SendBatch;
use super::plan::QpPlan;
use super::push::PushBuffer;
use super::recv::{RecvBatch, RecvQueue, RecvState};
use super::send::{SendInit, SendQueue, SendRecord, SendState};
use super::srq::SharedReceiveQueue;
use crate::queue::{DeviceMemory, Doorbell, RingMemory, Store};
use crate::verbs::{
    BatchError, CqId, MemoryError, Mtu, Pollable, PostError, Psn, QpAttributes, QpCapabilities, QpId,
    QpState, QpType, RecvRequest, SendRequest, SrqId, StateError,
};

/// What a queue pair is put together from.
#[derive(Clone, Copy, Debug)]
pub struct QueuePairInit {
    /// Number.
    pub id: QpId,
    /// Handle that was given to the device at creation, not zero: its CQEs name the queue pair by it.
    pub handle: u32,
    /// Kind.
    pub qp_type: QpType,
    /// Where send requests complete.
    pub send_cq: CqId,
    /// Where receive requests complete.
    pub recv_cq: CqId,
    /// Shared receive queue.
    pub srq: Option<SrqId>,
    /// Capabilities granted.
    pub capabilities: QpCapabilities,
}

/// State of a queue pair as plain data; the state of its queues comes beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePairState {
    /// State of the connection.
    pub state: QpState,
    /// What is in the send queue is flushed.
    pub send_flush: bool,
    /// What is in the receive queue is flushed.
    pub recv_flush: bool,
    /// Send queue.
    pub send: SendState,
    /// Receive queue.
    pub recv: RecvState,
}

impl QueuePairState {
    /// A queue pair that was brought to `state`, and that nothing was posted to yet: the first packet has `psn`, and the path
    /// `mtu`.
    pub const fn fresh(state: QpState, psn: Psn, mtu: Mtu) -> Self {
        let send = SendState {
            tail: 0,
            head: 0,
            next: 0,
            oldest: 0,
            msn: 0,
            psn: psn.get(),
            epoch: false,
            failed: false,
            mtu_log2: mtu.log2(),
        };
        let recv = RecvState { next: 0, oldest: 0, epoch: false };
        Self { state, send_flush: false, recv_flush: false, send, recv }
    }
}

/// A queue pair.
#[derive(Debug)]
pub struct QueuePair<'m, S: Store> {
    init: QueuePairInit,
    state: QpState,
    send_flush: bool,
    recv_flush: bool,
    flush_seq: u32,
    /// Send requests are accepted, and carried out.
    sends: bool,
    /// Send queue.
    pub send: SendQueue<'m, S>,
    /// Receive queue; `None` if requests come from a shared one, or there are none.
    pub recv: Option<RecvQueue<'m, S>>,
}

impl<'m, S: Store> QueuePair<'m, S> {
    /// A queue pair of `plan` over its rings and the bookkeeping of each. What is given for receives is not used without a
    /// receive queue.
    ///
    /// # Errors
    /// Those of [`QueuePair::new`] and of its queues, or a receive queue without a ring.
    pub fn assemble(
        plan: &QpPlan,
        send: &SendInit,
        init: &QueuePairInit,
        (sq, sends): (RingMemory<'m>, S::Slice<SendRecord>),
        receives: Option<(RingMemory<'m>, S::Slice<u64>)>,
    ) -> Result<Self, MemoryError> {
        let send = SendQueue::new(sq, sends, send)?;
        let recv = match &plan.recv {
            None => None,
            Some(recv) => {
                let (rq, records) =
                    receives.ok_or(MemoryError::Mismatch(text!("a receive queue needs a ring")))?;
                Some(RecvQueue::new(rq, records, recv, init.id)?)
            }
        };
        Self::new(init, send, recv)
    }

    /// Puts a queue pair together, in state RESET.
    ///
    /// # Errors
    /// Queues that share memory, a receive queue beside a shared one, or the handle 0.
    pub fn new(
        init: &QueuePairInit,
        send: SendQueue<'m, S>,
        recv: Option<RecvQueue<'m, S>>,
    ) -> Result<Self, MemoryError> {
        if init.handle == 0 {
            return Err(MemoryError::Mismatch(text!("a queue pair needs a handle other than 0")));
        }
        if let Some(recv) = &recv {
            if init.srq.is_some() {
                return Err(MemoryError::Mismatch(text!("a queue pair has a receive queue or shares one")));
            }
            if send.overlaps(recv.memory()) {
                return Err(MemoryError::Overlap(text!("send queue"), text!("receive queue")));
            }
        }
        let mut qp = Self {
            init: *init,
            state: QpState::Reset,
            send_flush: false,
            recv_flush: false,
            flush_seq: 0,
            sends: false,
            send,
            recv,
        };
        qp.enter(QpState::Reset, false, false);
        Ok(qp)
    }

    /// Number.
    #[inline]
    pub fn id(&self) -> QpId {
        self.init.id
    }

    /// Kind.
    #[inline]
    pub fn qp_type(&self) -> QpType {
        self.init.qp_type
    }

    /// State, as the driver knows it.
    #[inline]
    pub fn state(&self) -> QpState {
        self.state
    }

    /// Capabilities granted.
    pub fn capabilities(&self) -> QpCapabilities {
        self.init.capabilities
    }

    /// Where send requests complete.
    #[inline]
    pub fn send_cq(&self) -> CqId {
        self.init.send_cq
    }

    /// Where receive requests complete.
    #[inline]
    pub fn recv_cq(&self) -> CqId {
        self.init.recv_cq
    }

    /// Shared receive queue.
    #[inline]
    pub fn srq(&self) -> Option<SrqId> {
        self.init.srq
    }

    /// Follows a transition that the device has made. On the way to RESET its completion queues must forget it too
    /// ([`super::cq::CompletionQueue::forget`]).
    ///
    /// # Errors
    /// What [`QpAttributes::check`] refuses; nothing was changed.
    pub fn modify(&mut self, attributes: &QpAttributes) -> Result<QpState, StateError> {
        let to = attributes.check(self.init.qp_type, self.state)?;
        if attributes.state.is_some() {
            match to {
                QpState::Reset => self.reset(),
                QpState::Err => self.set_error(),
                _ => {
                    self.enter(to, self.send_flush, self.recv_flush);
                    self.send.refreshed();
                }
            }
        }
        if let Some(psn) = attributes.sq_psn {
            self.send.set_psn(psn);
        }
        if let Some(mtu) = attributes.mtu {
            self.send.set_mtu(mtu);
        }
        Ok(to)
    }

    /// Makes the queue pair what it was when it was created.
    pub fn reset(&mut self) {
        self.enter(QpState::Reset, false, false);
        self.send.reset();
        if let Some(recv) = &mut self.recv {
            recv.reset();
        }
    }

    /// Puts the queue pair into error, after an asynchronous event or a terminal CQE: everything outstanding is
    /// flushed. A queue pair in RESET stays there.
    pub fn set_error(&mut self) {
        if self.state != QpState::Reset {
            self.enter(QpState::Err, true, true);
            self.flush_seq = self.flush_seq.wrapping_add(1);
        }
    }

    /// A send request has failed: the rest of the send queue is flushed.
    #[cold]
    pub(super) fn send_failed(&mut self) {
        self.enter(QpState::Err, true, self.recv_flush);
        self.send.fail();
        self.flush_seq = self.flush_seq.wrapping_add(1);
    }

    /// A receive request has failed: the rest of the receive queue is flushed.
    #[cold]
    pub(super) fn recv_failed(&mut self) {
        self.recv_flush = true;
        self.flush_seq = self.flush_seq.wrapping_add(1);
    }

    #[inline(always)]
    pub(super) fn flushes_send(&self) -> bool {
        self.send_flush
    }

    #[inline(always)]
    pub(super) fn flushes_recv(&self) -> bool {
        self.recv_flush
    }

    /// Begins a batch of send requests. In state ERR they are accepted, and flushed.
    ///
    /// # Errors
    /// A state that nothing may be sent in.
    #[inline]
    pub fn send_batch(&mut self) -> Result<SendBatch<'_, 'm, S>, PostError> {
        if !self.sends {
            self.no_plain_send()?;
        }
        Ok(self.send.batch())
    }

    #[cold]
    fn no_plain_send(&mut self) -> Result<(), PostError> {
        if self.state < QpState::Rts {
            return Err(PostError::BadState(self.state));
        }
        self.flush_seq = self.flush_seq.wrapping_add(1);
        Ok(())
    }

    /// Takes over a state, and what follows from it.
    fn enter(&mut self, state: QpState, send_flush: bool, recv_flush: bool) {
        self.state = state;
        self.send_flush = send_flush;
        self.recv_flush = recv_flush;
        self.sends = state >= QpState::Rts && !send_flush;
        self.send.open(self.sends);
    }

    /// Posts one request by push, see [`super::push`]. In state ERR it is accepted, and flushed.
    ///
    /// # Errors
    /// A state that nothing may be sent in, or what [`super::send::SendQueue::push`] refuses.
    pub fn push<M: DeviceMemory>(
        &mut self,
        request: &SendRequest<'_>,
        buffer: &PushBuffer<M>,
        doorbell: &impl Doorbell,
    ) -> Result<(), PostError> {
        if !self.sends {
            self.no_plain_send()?;
        }
        self.send.push(request, buffer, doorbell)
    }

    /// Begins a batch of receive requests. In state ERR they are accepted, and flushed.
    ///
    /// # Errors
    /// State RESET, or no receive queue.
    #[inline]
    pub fn recv_batch(&mut self) -> Result<RecvBatch<'_, 'm, S>, PostError> {
        let Some(recv) = &mut self.recv else { return Err(PostError::NoQueue) };
        if self.state == QpState::Reset {
            return Err(PostError::BadState(self.state));
        }
        if self.recv_flush {
            self.flush_seq = self.flush_seq.wrapping_add(1);
        }
        Ok(recv.batch())
    }

    /// Posts all of `requests` under one doorbell, or none.
    ///
    /// # Errors
    /// The first request that cannot be posted.
    #[inline]
    pub fn post_send(
        &mut self,
        doorbell: &impl Doorbell,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        if let [request] = requests
            && self.send.post_one(doorbell, request)
        {
            return Ok(());
        }
        // Seldom enough, or for so many, that the way there may be longer.
        core::hint::cold_path();
        Self::post_sends(doorbell, requests, self)
    }

    /// [`QueuePair::post_send`] of requests of any number and form. The queue pair comes last: the first place is that of
    /// the result, and the others stay where the caller has them.
    #[inline(never)]
    fn post_sends(
        doorbell: &impl Doorbell,
        requests: &[SendRequest<'_>],
        qp: &mut Self,
    ) -> Result<(), BatchError> {
        let mut batch = qp.send_batch().map_err(|error| BatchError { index: 0, error })?;
        match requests {
            // It was seen that it is none of the usual ones.
            [request] => batch.post_rest(request).map_err(|error| BatchError { index: 0, error })?,
            _ => batch.post_all(requests)?,
        }
        batch.commit(doorbell);
        Ok(())
    }

    /// Posts all of `requests` under one doorbell, or none.
    ///
    /// # Errors
    /// The first request that cannot be posted.
    #[inline]
    pub fn post_recv(
        &mut self,
        doorbell: &impl Doorbell,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        let mut batch = self.recv_batch().map_err(|error| BatchError { index: 0, error })?;
        for (index, request) in requests.iter().enumerate() {
            batch.post(request).map_err(|error| BatchError { index, error })?;
        }
        batch.commit(doorbell);
        Ok(())
    }

    /// The state, to save it.
    pub fn save(&self) -> QueuePairState {
        QueuePairState {
            state: self.state,
            send_flush: self.send_flush,
            recv_flush: self.recv_flush,
            send: self.send.state(),
            recv: self.recv.as_ref().map(RecvQueue::state).unwrap_or_default(),
        }
    }

    /// Restores a saved state; the records of the queues are restored separately.
    ///
    /// # Errors
    /// A state that this queue pair cannot be in.
    pub fn restore(&mut self, state: &QueuePairState) -> Result<(), MemoryError> {
        if let Some(recv) = &mut self.recv {
            recv.restore(&state.recv)?;
        }
        self.send.restore(&state.send)?;
        self.enter(state.state, state.send_flush, state.recv_flush);
        self.flush_seq = self.flush_seq.wrapping_add(1);
        Ok(())
    }
}

impl<S: Store> Pollable for QueuePair<'_, S> {
    #[inline(always)]
    fn key(&self) -> u32 {
        self.init.handle
    }

    #[inline(always)]
    fn flush_seq(&self) -> u32 {
        self.flush_seq
    }
}

/// What holds a queue pair: itself, or a platform's object around it. A completion queue polls any of them.
pub trait AsQueuePair<'m> {
    /// Who holds the bookkeeping.
    type Store: Store;
    /// The queue pair.
    fn as_queue_pair(&mut self) -> &mut QueuePair<'m, Self::Store>;
}

impl<'m, S: Store> AsQueuePair<'m> for QueuePair<'m, S> {
    type Store = S;
    #[inline(always)]
    fn as_queue_pair(&mut self) -> &mut Self {
        self
    }
}

/// What holds a shared receive queue.
pub trait AsSharedReceiveQueue<'m> {
    /// Who holds the bookkeeping.
    type Store: Store;
    /// The queue.
    fn as_srq(&mut self) -> &mut SharedReceiveQueue<'m, Self::Store>;
}

impl<'m, S: Store> AsSharedReceiveQueue<'m> for SharedReceiveQueue<'m, S> {
    type Store = S;
    #[inline(always)]
    fn as_srq(&mut self) -> &mut Self {
        self
    }
}
