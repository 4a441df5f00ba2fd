//! What a side does in its own turn.

use directverbs::verbs::{
    AccessFlags, BindMw, Datagram, Device, Imm, MemoryRegion, MwType, QpId, QueuePair, RKey, RemoteAddress,
    SendFlags, SendOp, SendRequest, Sge, WcOpcode,
};
use heapless::{Deque, Vec};

use crate::side::{Awaited, REQUESTS, SGES, Side};
use crate::{DataError, Error, Job, Op, Pattern, Role, WrId, WrKind};

/// Where in its turn a side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The first binds are under way.
    Binding,
    /// It is not its turn, or its turn has not begun.
    Idle,
    /// The operations are under way.
    Operating,
    /// The hand-over is under way.
    HandingOver,
    /// All turns are taken.
    Done,
}

type Requests<'a> = Vec<SendRequest<'a>, REQUESTS>;

/// Position of the hand-over's immediate data among those of a turn.
const HAND_OVER: u64 = u64::MAX;

/// The key that a memory window has for turn `turn`.
fn window_key(base: RKey, turn: u64) -> RKey {
    let variant = (base.get() as u8).wrapping_add(turn as u8).wrapping_add(1);
    RKey::truncated(base.get() & !0xff | u32::from(variant))
}

impl<D: Device> Side<D> {
    /// Contents of message `message` of `source`'s turn `turn`.
    pub(crate) fn pattern(&self, source: Role, turn: u64, message: u32) -> Pattern {
        Pattern::new(self.job.seed, source as u64, turn, message.into())
    }

    /// Immediate data of message `message`, or of the hand-over if there is none, in `source`'s turn `turn`.
    pub(crate) fn immediate(&self, source: Role, turn: u64, message: Option<u32>) -> Imm {
        let message = message.map_or(HAND_OVER, u64::from);
        Imm::truncated((Pattern::new(!self.job.seed, source as u64, turn, message).word(0) >> 32) as u32)
    }

    /// The key that the peer invalidates with message `message` of its turn `turn`.
    pub(crate) fn own_window_key(&self, turn: u64, message: u32) -> RKey {
        window_key(self.windows.get(message as usize).copied().unwrap_or_default(), turn)
    }

    /// The 8 bytes of `owner`'s memory that atomics work on, before turn `turn` of the other side.
    pub(crate) fn atomic_value(&self, owner: Role, turn: u64, message: u32) -> u64 {
        // Every fourth compare and swap fails, so the value has changed three times in four turns.
        let version = if self.job.op == Op::CompareSwap { turn - turn / 4 } else { turn };
        self.pattern(owner, version, message).word(0)
    }

    /// Whether it is this side's turn.
    pub(crate) fn is_due(&self) -> bool {
        let ahead = u64::from(self.role == Role::First);
        self.sent_turns < self.job.iterations && self.received_turns + ahead > self.sent_turns
    }

    fn qp_id(&self) -> QpId {
        self.qps.first().map(D::QueuePair::id).unwrap_or_default()
    }

    pub(crate) fn data_error(&self, wr: WrId) -> impl FnOnce(DataError) -> Error<D::Error> + use<D> {
        let qp = self.qp_id();
        move |error| Error::Data { qp, wr, error }
    }

    /// Fills the memory that the peer reads in its next turn.
    pub(crate) fn fill_exposed(&mut self) -> Result<(), Error<D::Error>> {
        let turn = self.received_turns;
        let wanted = self.job.op == Op::Read || (self.job.op.is_atomic() && turn == 0);
        if !wanted || self.filled_turns > turn || turn >= self.job.iterations {
            return Ok(());
        }
        self.filled_turns = turn + 1;
        for message in 0..self.job.batch {
            let filled = if self.job.op.is_atomic() {
                let word = self.atomic_value(self.role, 0, message);
                self.exposed.set_word(message, word)
            } else {
                let pattern = self.pattern(self.role, turn, message);
                self.exposed.fill(message, pattern)
            };
            filled.map_err(self.data_error(WrId::new(WrKind::HandOver, self.sent_turns, 0)))?;
        }
        Ok(())
    }

    /// The binds of the windows that the peer invalidates in its next turn, if they are not done.
    fn binds(&mut self) -> Requests<'static> {
        let mut requests = Vec::new();
        let turn = self.received_turns;
        if self.job.op != Op::SendInv || self.bound_turns > turn || turn >= self.job.iterations {
            return requests;
        }
        self.bound_turns = turn + 1;
        let Some(region) = self.exposed.first() else { return requests };
        for (position, base) in self.windows.iter().enumerate() {
            let bind = BindMw {
                mw_type: MwType::Type2,
                mw: window_key(*base, turn.wrapping_sub(1)),
                new_key: window_key(*base, turn),
                region: region.lkey(),
                addr: region.addr(),
                length: region.len() as u64,
                access: AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ,
            };
            let wr = WrId::new(WrKind::Bind, turn, position as u32);
            let _ = requests.push(SendRequest::new(SendOp::BindMw(bind)).wr_id(wr.0));
        }
        requests
    }

    /// Binds the windows for the peer's first turn.
    pub(crate) fn bind_first(&mut self) -> Result<(), Error<D::Error>> {
        let mut requests = self.binds();
        if requests.is_empty() {
            return Ok(());
        }
        self.stage = Stage::Binding;
        post(&mut self.qps, &mut self.cqs, &mut self.awaited, &self.job, &mut requests)
    }

    /// Begins the turn: fills the messages and posts them under one doorbell.
    pub(crate) fn act(&mut self, dev: &mut D) -> Result<(), Error<D::Error>> {
        let (job, turn) = (self.job, self.sent_turns);
        if !job.op.fetches() {
            for message in 0..job.batch {
                let pattern = self.pattern(self.role, turn, message);
                match self.inline.get_mut(message as usize).and_then(|b| b.get_mut(..job.size as usize)) {
                    Some(bytes) if job.inline => pattern.fill(0, bytes),
                    _ => self.tx.fill(message, pattern).map_err(self.data_error(WrId::new(
                        WrKind::Operation,
                        turn,
                        message,
                    )))?,
                }
            }
        }
        let binds = self.binds();
        let ops: Vec<SendOp, { crate::side::BATCH }> =
            (0..job.batch).map(|message| self.operation(turn, message)).collect();

        let mut sges: Vec<Sge, SGES> = Vec::new();
        let local = if job.op.fetches() { &self.rx } else { &self.tx };
        (0..job.batch).for_each(|slot| sges.extend(local.sges(slot)));
        let mut bytes: Vec<&[u8], SGES> = Vec::new();
        for message in self.inline.iter().take(job.batch as usize) {
            let pieces = job.pieces(job.size) as usize;
            let at = |piece: usize| job.size as usize * piece / pieces;
            bytes.extend((0..pieces).filter_map(|p| message.get(at(p)..at(p + 1))));
        }

        let (sges_each, bytes_each) = (sges.len() / job.batch as usize, bytes.len() / job.batch as usize);
        let mut requests: Requests<'_> = binds.into_iter().collect();
        for (position, op) in ops.iter().enumerate() {
            let wr = WrId::new(WrKind::Operation, turn, position as u32);
            let request = SendRequest::new(*op).wr_id(wr.0);
            let _ = requests.push(if job.inline {
                request.inline(bytes.get(position * bytes_each..(position + 1) * bytes_each).unwrap_or(&[]))
            } else {
                request.sges(sges.get(position * sges_each..(position + 1) * sges_each).unwrap_or(&[]))
            });
        }
        if job.op == Op::Write {
            let _ = requests.push(self.hand_over(turn));
        }
        self.stage = Stage::Operating;
        self.turn_began_ns = dev.now_ns();
        post(&mut self.qps, &mut self.cqs, &mut self.awaited, &self.job, &mut requests)
    }

    fn hand_over(&self, turn: u64) -> SendRequest<'static> {
        let wr = WrId::new(WrKind::HandOver, turn, 0);
        SendRequest::new(SendOp::SendImm(self.immediate(self.role, turn, None)))
            .flags(SendFlags::SOLICITED)
            .wr_id(wr.0)
    }

    /// Hands over after the operations have fetched what they should.
    pub(crate) fn post_hand_over(&mut self) -> Result<(), Error<D::Error>> {
        self.fill_exposed()?;
        let mut requests: Requests<'_> = Vec::new();
        let _ = requests.push(self.hand_over(self.sent_turns));
        self.stage = Stage::HandingOver;
        post(&mut self.qps, &mut self.cqs, &mut self.awaited, &self.job, &mut requests)
    }

    fn operation(&self, turn: u64, message: u32) -> SendOp {
        let Some(peer) = &self.peer else { return SendOp::Send };
        let remote = RemoteAddress { addr: peer.addr + u64::from(message) * peer.stride, rkey: peer.rkey };
        let immediate = self.immediate(self.role, turn, Some(message));
        match self.job.op {
            Op::Send => SendOp::Send,
            Op::SendImm => SendOp::SendImm(immediate),
            Op::SendInv => {
                let base = peer.windows.get(message as usize).copied().unwrap_or_default();
                SendOp::SendInv(window_key(base, turn))
            }
            Op::Write => SendOp::Write(remote),
            Op::WriteImm => SendOp::WriteImm(remote, immediate),
            Op::Read => SendOp::Read(remote),
            Op::CompareSwap => {
                let now = self.atomic_value(self.role.other(), turn, message);
                let next = self.atomic_value(self.role.other(), turn + 1, message);
                // Where nothing may change, the compare value is wrong and the swap value must not appear.
                let (compare, swap) = if turn % 4 == 3 { (!now, now ^ 1) } else { (now, next) };
                SendOp::CompareSwap { remote, compare, swap }
            }
            Op::FetchAdd => {
                let now = self.atomic_value(self.role.other(), turn, message);
                let next = self.atomic_value(self.role.other(), turn + 1, message);
                SendOp::FetchAdd { remote, add: next.wrapping_sub(now) }
            }
            Op::SendTo => {
                SendOp::SendTo(Datagram { ah: self.ah.unwrap_or_default(), qp: peer.qp, qkey: peer.qkey })
            }
        }
    }
}

/// Posts `requests` under one doorbell; the last asks for a completion.
fn post<Q: QueuePair, E: core::error::Error>(
    qps: &mut [Q],
    cqs: &mut [Q::CompletionQueue],
    awaited: &mut Deque<Awaited, { REQUESTS + 1 }>,
    job: &Job,
    requests: &mut [SendRequest<'_>],
) -> Result<(), Error<E>> {
    let last = requests.len().wrapping_sub(1);
    for (i, request) in requests.iter_mut().enumerate() {
        if i == last || job.signal_all {
            *request = request.signaled();
            let wr = WrId(request.wr_id);
            let (opcode, fetched) = match wr.kind() {
                Some(WrKind::Operation) => (job.op.opcode(), job.op.fetches().then_some(job.size)),
                Some(WrKind::Bind) => (WcOpcode::BindMw, None),
                _ => (WcOpcode::Send, None),
            };
            let _ = awaited.push_back(Awaited { wr, opcode, fetched });
        }
    }
    let (Some(qp), Some(cq)) = (qps.first_mut(), cqs.first_mut()) else { return Ok(()) };
    qp.post_send(cq, requests).map_err(|error| Error::Post {
        qp: qp.id(),
        wr: WrId(requests.get(error.index).map_or(0, |r| r.wr_id)),
        error,
    })
}
