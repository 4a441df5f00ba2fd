//! A queue pair: state, attributes, completions, errors and flush.

use std::collections::VecDeque;

use directverbs::verbs::{
    AccessFlags, Mtu, PdId, Psn, QKey, QpAttributes, QpId, QpState, QpType, SrqId, WcOpcode, WcStatus,
};

use super::context::{Context, Parts};
use super::event::{Completion, Event, Side};
use super::frame::Route;
use super::headers::{Bth, Headers};
use super::memory::{Denied, Scope};
use super::requester::Requester;
use super::responder::Responder;
use super::work::{PsnRange, RecvWork};
use crate::device::{DeviceError, QpConfig};

/// A queue pair.
#[derive(Debug)]
pub struct Qp {
    /// Number.
    pub id: QpId,
    /// What it was created from.
    pub config: QpConfig,
    /// State.
    pub state: QpState,
    /// Way to the peer.
    pub route: Option<Route>,
    /// Path MTU.
    pub mtu: Mtu,
    /// The peer.
    pub dest_qp: QpId,
    /// Queue key.
    pub qkey: QKey,
    /// What the peer may do.
    pub access: AccessFlags,
    /// RNR timer code for NAKs.
    pub min_rnr_timer: u8,
    /// Time-out code.
    pub timeout: u8,
    /// Retries without an answer.
    pub retry_count: u8,
    /// Retries after an RNR NAK.
    pub rnr_retry: u8,
    /// READs and atomics outstanding as requester.
    pub max_rd_atomic: u8,
    /// READs and atomics outstanding as responder.
    pub max_dest_rd_atomic: u8,
    /// Local operations are reported when they are carried out, also before earlier requests.
    pub early_local: bool,
    /// Send side.
    pub requester: Requester,
    /// Receive side.
    pub responder: Responder,
    /// Receive requests, oldest first.
    pub recvs: VecDeque<RecvWork>,
    /// It waits for its turn.
    pub queued: bool,
    /// When its timer runs out, as the engine knows it.
    pub armed: Option<u64>,
}

/// A receive request that a message has taken.
#[derive(Debug)]
pub struct Taken {
    /// The request.
    pub work: RecvWork,
    /// Where it came from.
    pub srq: Option<SrqId>,
}

impl Qp {
    /// A fresh queue pair.
    pub fn new(id: QpId, config: QpConfig) -> Self {
        Self {
            id,
            config,
            state: QpState::Reset,
            route: None,
            mtu: Mtu::default(),
            dest_qp: QpId::default(),
            qkey: QKey::default(),
            access: AccessFlags::empty(),
            min_rnr_timer: 0,
            timeout: 0,
            retry_count: 0,
            rnr_retry: 0,
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            early_local: false,
            requester: Requester::default(),
            responder: Responder::default(),
            recvs: VecDeque::new(),
            queued: false,
            armed: None,
        }
    }

    /// On whose behalf it accesses memory.
    pub fn scope(&self) -> Scope {
        Scope { pd: self.config.pd, qp: self.id }
    }

    /// Protection domain.
    pub fn pd(&self) -> PdId {
        self.config.pd
    }

    /// Whether packets from peers are taken.
    pub fn receives(&self) -> bool {
        matches!(self.state, QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe)
    }

    /// Whether packets are sent on its own account.
    pub fn sends(&self) -> bool {
        matches!(self.state, QpState::Rts | QpState::Sqd)
    }

    /// Changes attributes; returns the state before and after.
    ///
    /// # Errors
    /// What is missing, out of range, or a transition that is not there. Nothing was changed.
    pub fn modify(
        &mut self,
        parts: &mut Parts,
        attributes: &QpAttributes,
    ) -> Result<(QpState, QpState), DeviceError> {
        let from = self.state;
        let to = attributes.check(self.config.qp_type, from)?;
        if attributes.mtu.is_some_and(|mtu| mtu > parts.config.mtu) {
            return Err(DeviceError::Invalid("path MTU over the port's"));
        }
        let route = match &attributes.path {
            Some(path) => {
                let sgid = parts.config.gid(usize::from(path.sgid_index));
                let sgid = sgid.ok_or(DeviceError::Invalid("no GID with the path's sgid_index"))?;
                let entropy = self.id.get().wrapping_mul(0x9e37_79b9) >> 12;
                let route = Route::new(parts.config.mac, sgid, path, entropy);
                Some(route.ok_or(DeviceError::Invalid("one GID is an IPv4 address, the other is not"))?)
            }
            None => None,
        };
        if to == QpState::Reset {
            let (id, early_local, armed) = (self.id, self.early_local, self.armed);
            *self = Self { early_local, armed, queued: self.queued, ..Self::new(id, self.config.clone()) };
            return Ok((from, to));
        }
        let a = attributes;
        fn set<T>(to: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *to = value;
            }
        }
        self.route = route.or(self.route);
        set(&mut self.access, a.access);
        set(&mut self.qkey, a.qkey);
        set(&mut self.mtu, a.mtu);
        set(&mut self.dest_qp, a.dest_qp);
        set(&mut self.min_rnr_timer, a.min_rnr_timer);
        set(&mut self.timeout, a.timeout);
        set(&mut self.retry_count, a.retry_count);
        set(&mut self.rnr_retry, a.rnr_retry);
        set(&mut self.max_rd_atomic, a.max_rd_atomic);
        set(&mut self.max_dest_rd_atomic, a.max_dest_rd_atomic);
        if let Some(psn) = a.rq_psn.filter(|_| from == QpState::Init && to == QpState::Rtr) {
            self.responder.start(psn);
        }
        if let Some(psn) = a.sq_psn.filter(|_| from == QpState::Rtr && to == QpState::Rts) {
            self.requester.start(psn, self.retry_count, self.rnr_retry);
        }
        self.state = to;
        if to == QpState::Rts {
            self.requester.resume();
        }
        if to == QpState::Err && from != QpState::Err {
            self.responder.silence();
            self.flush(parts);
        }
        Ok((from, to))
    }

    /// The next receive request, own or shared.
    pub fn take_recv(&mut self, parts: &mut Parts) -> Option<Taken> {
        match self.config.srq {
            Some(srq) => parts.take_shared(srq).map(|work| Taken { work, srq: Some(srq) }),
            None => self.recvs.pop_front().map(|work| Taken { work, srq: None }),
        }
    }

    /// Whether there is a receive request, own or shared.
    pub fn has_recv(&self, parts: &Parts) -> bool {
        match self.config.srq {
            Some(srq) => parts.srqs.find(srq.get()).is_some_and(|q| !q.recvs.is_empty()),
            None => !self.recvs.is_empty(),
        }
    }

    /// A completion of a receive request, to be filled in.
    pub fn recv_completion(&self, taken: &Taken, status: WcStatus) -> Completion {
        Completion {
            cq: self.config.recv_cq,
            qp: self.id,
            handle: self.config.handle,
            side: Side::Recv,
            srq: taken.srq,
            token: taken.work.token,
            signaled: true,
            status,
            opcode: WcOpcode::Recv,
            byte_len: 0,
            imm: None,
            invalidated: None,
            solicited: false,
            source: None,
            psns: PsnRange::default(),
            local: false,
        }
    }

    /// One side has failed: a connected queue pair goes into error, and what is left is flushed; the send queue of
    /// others stops alone.
    pub fn fail(&mut self, parts: &mut Parts, side: Side, status: WcStatus) {
        if matches!(self.state, QpState::Err | QpState::Reset) {
            return;
        }
        parts.events.push_back(Event::QpError { qp: self.id, side, status });
        if side == Side::Send && self.config.qp_type != QpType::Rc {
            self.state = QpState::Sqe;
            self.flush_sends(parts);
        } else {
            self.state = QpState::Err;
            self.flush(parts);
        }
    }

    /// Ends all requests as flushed.
    pub fn flush(&mut self, parts: &mut Parts) {
        self.flush_sends(parts);
        if let Some(taken) = self.responder.take_current() {
            let completion = self.recv_completion(&taken, WcStatus::WrFlush);
            parts.events.push_back(Event::Completion(completion));
        }
        while let Some(work) = self.recvs.pop_front() {
            self.flush_recv(parts, work);
        }
    }

    /// Reports a receive request of its own as flushed.
    pub fn flush_recv(&self, parts: &mut Parts, work: RecvWork) {
        let completion = self.recv_completion(&Taken { work, srq: None }, WcStatus::WrFlush);
        parts.events.push_back(Event::Completion(completion));
    }

    fn flush_sends(&mut self, parts: &mut Parts) {
        for entry in self.requester.drain() {
            self.complete_send(parts, &entry, WcStatus::WrFlush);
        }
    }

    /// Puts a packet of this queue pair on the wire.
    pub fn emit(
        &self,
        parts: &mut Parts,
        opcode: u8,
        psn: Psn,
        flags: Flags,
        headers: &Headers,
        len: usize,
        fill: impl FnOnce(&Parts, &mut [u8]) -> Result<(), Denied>,
    ) -> Result<(), Denied> {
        let Some(route) = &self.route else { return Ok(()) };
        let bth = Bth {
            opcode,
            solicited: flags.solicited,
            dest_qp: self.dest_qp,
            ack_request: flags.ack_request,
            psn,
        };
        let frame = route.frame(&bth, headers, len, |out| fill(parts, out))?;
        parts.send(frame);
        Ok(())
    }

    /// When time alone gives it something to do.
    pub fn timer(&self) -> Option<u64> {
        self.requester.timer()
    }

    /// Its time has come.
    pub fn on_timer(&mut self, context: &mut Context<'_>) {
        self.requester_timer(context);
    }

    /// Sends up to about `budget` packets; `true` if there may be more.
    pub fn turn(&mut self, context: &mut Context<'_>, budget: usize) -> bool {
        for _ in 0..budget {
            let answered = self.respond(context);
            let requested = self.sends() && self.request(context);
            if !answered && !requested {
                return false;
            }
        }
        true
    }
}

/// Flags of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    /// Solicited event.
    pub solicited: bool,
    /// Acknowledgement wanted.
    pub ack_request: bool,
}
