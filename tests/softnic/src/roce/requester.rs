//! The send side of a queue pair: packets out, acknowledgements and responses in.
//!
//! Source: InfiniBand Architecture Specification, volume 1, section 9.7.

use std::collections::VecDeque;

use directverbs::verbs::{Psn, QpState, QpType, SendFlags, SendOp, WcStatus};

use super::context::{Context, Parts};
use super::entry::{Entry, Kind, steps};
use super::event::{Event, Side};
use super::headers::{AtomicEth, Headers, Reth};
use super::memory::Denied;
use super::opcode::{self, Extensions, Opcode, Position, Service};
use super::qp::{Flags, Qp};
use super::sges::gather;
use super::timers::timeout_ns;
use super::work::{Payload, PsnRange, SendWork};

/// Packets of SENDs and WRITEs in flight without acknowledgement.
const WINDOW: u32 = 128;
/// An acknowledgement is asked for at least this often.
const ACK_EVERY: u32 = 32;
/// Longest message.
const MAX_MESSAGE: u64 = 1 << 31;

/// The send side.
///
/// All entries before `index` have been sent. `una <= next <= max` in the order of sequence numbers: what is before
/// `una` is acknowledged, what is before `next` is sent, and what is before `max` was sent at least once.
#[derive(Debug, Default)]
pub struct Requester {
    pub(super) entries: VecDeque<Entry>,
    /// First sequence number of the next request posted.
    pub(super) post: Psn,
    pub(super) una: Psn,
    pub(super) next: Psn,
    pub(super) max: Psn,
    /// Entry that is sent next.
    pub(super) index: usize,
    /// Packets of SENDs and WRITEs in flight.
    pub(super) in_flight: u32,
    /// READs and atomics in flight.
    pub(super) reads: u32,
    pub(super) retries: u8,
    pub(super) rnr_retries: u8,
    /// After an RNR NAK: nothing is sent before.
    pub(super) rnr_until: Option<u64>,
    /// An answer must come before.
    pub(super) deadline: Option<u64>,
    /// It has gone back to `una`, and there was no progress since.
    pub(super) went_back: bool,
    /// What follows has been sent before, and the front end was not told yet.
    pub(super) announce: bool,
    /// In SQD, the front end was told that the queue has drained.
    pub(super) drain_told: bool,
    /// The entry at `index` fails with this when all before it have ended.
    pub(super) blocked: Option<WcStatus>,
}

impl Requester {
    /// The queue pair becomes ready to send.
    pub fn start(&mut self, psn: Psn, retries: u8, rnr_retries: u8) {
        *self = Self { post: psn, una: psn, next: psn, max: psn, retries, rnr_retries, ..Self::default() };
    }

    /// All requests, oldest first; the queue is empty afterwards.
    pub fn drain(&mut self) -> VecDeque<Entry> {
        let entries = std::mem::take(&mut self.entries);
        *self = Self { post: self.post, una: self.post, next: self.post, max: self.post, ..Self::default() };
        entries
    }

    /// When an answer is missing, or the peer may be ready.
    pub fn timer(&self) -> Option<u64> {
        self.rnr_until.or(self.deadline)
    }

    /// Next sequence number to be given to a request.
    pub fn post_psn(&self) -> Psn {
        self.post
    }

    /// No request is under way.
    fn is_idle(&self) -> bool {
        self.index == 0 && self.una == self.next
    }

    /// The queue may drain anew.
    pub fn resume(&mut self) {
        self.drain_told = false;
    }
}

impl Qp {
    /// Reports that a send request has ended, unless it was reported before its turn.
    pub fn complete_send(&self, parts: &mut Parts, entry: &Entry, status: WcStatus) {
        if !entry.reported {
            parts.events.push_back(entry.completion(self.id, &self.config, status));
        }
    }

    /// Takes a send request and returns its sequence numbers.
    pub fn post_send(&mut self, parts: &mut Parts, work: SendWork) -> PsnRange {
        let length = work.payload.len();
        let kind = self.classify(parts, &work, length);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let packets = match kind {
            Kind::Message(_) | Kind::Read => self.mtu.packets(length),
            Kind::Atomic | Kind::Datagram => 1,
            Kind::Local | Kind::Refused(_) => 0,
        };
        let first = self.requester.post;
        let psns = PsnRange { first, next: first.add(packets) };
        let entry = Entry { work, kind, length, psns, executed: false, reported: false };
        if self.sends() {
            self.requester.post = psns.next;
            self.requester.entries.push_back(entry);
        } else {
            self.complete_send(parts, &entry, WcStatus::WrFlush);
        }
        psns
    }

    fn classify(&self, parts: &Parts, work: &SendWork, length: u64) -> Kind {
        let op = match work.op {
            Ok(op) => op,
            Err(status) => return Kind::Refused(status),
        };
        let inline = matches!(work.payload, Payload::Inline(_));
        let kind = match (self.config.qp_type, op) {
            (QpType::Rc, SendOp::Send | SendOp::SendImm(_) | SendOp::SendInv(_)) => {
                Kind::Message(Service::Send)
            }
            (QpType::Rc, SendOp::Write(_) | SendOp::WriteImm(..)) => Kind::Message(Service::Write),
            (QpType::Rc, SendOp::Read(_)) if !inline => Kind::Read,
            (QpType::Rc, SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. }) if !inline => Kind::Atomic,
            (QpType::Rc, SendOp::LocalInv(_) | SendOp::BindMw(_) | SendOp::FastRegister(_)) => Kind::Local,
            (QpType::Ud, SendOp::SendTo(_) | SendOp::SendToImm(..)) => Kind::Datagram,
            (QpType::RawPacket, SendOp::Send) => Kind::Datagram,
            _ => return Kind::Refused(WcStatus::LocQpOp),
        };
        let max = match kind {
            Kind::Datagram if self.config.qp_type == QpType::Ud => u64::from(parts.config.mtu.bytes()),
            Kind::Datagram => super::datagram::MAX_RAW as u64,
            _ => MAX_MESSAGE,
        };
        let no_reads = matches!(kind, Kind::Read | Kind::Atomic) && self.max_rd_atomic == 0;
        match kind {
            _ if no_reads => Kind::Refused(WcStatus::LocQpOp),
            _ if length > max => Kind::Refused(WcStatus::LocLen),
            Kind::Atomic if length != 8 => Kind::Refused(WcStatus::LocLen),
            kind => kind,
        }
    }

    /// Sends the next packet, or does the next local operation; `false` if there is nothing to do now.
    pub fn request(&mut self, context: &mut Context<'_>) -> bool {
        if self.requester.rnr_until.is_some() {
            return false;
        }
        if let Some(status) = self.requester.blocked {
            return self.fail_if_front(context, status);
        }
        let r = &self.requester;
        let Some(entry) = r.entries.get(r.index) else { return self.drained(context.parts) };
        let starts = r.next == entry.psns.first;
        if starts && self.state == QpState::Sqd && r.next == r.max {
            return self.drained(context.parts);
        }
        let flags = entry.work.flags;
        let waits_for_reads = flags.contains(SendFlags::FENCE) && r.reads > 0;
        // What a key covered may have to be sent again: it is closed when earlier requests have ended.
        let is_invalidate = matches!(entry.work.op, Ok(SendOp::LocalInv(_)));
        let waits_for_all = (flags.contains(SendFlags::LOCAL_FENCE) || is_invalidate) && r.index > 0;
        if starts && !entry.executed && (waits_for_reads || waits_for_all) {
            return false;
        }
        match entry.kind {
            Kind::Refused(status) => self.fail_if_front(context, status),
            Kind::Local => self.execute_local(context),
            Kind::Datagram => self.send_datagram(context),
            Kind::Read | Kind::Atomic if r.reads >= u32::from(self.max_rd_atomic) => false,
            Kind::Message(_) if r.in_flight >= WINDOW => false,
            Kind::Message(service) => self.send_packet(context, service),
            Kind::Read | Kind::Atomic => self.send_read(context),
        }
    }

    /// In SQD, with nothing under way any more: says so once.
    fn drained(&mut self, parts: &mut Parts) -> bool {
        if self.state == QpState::Sqd && self.requester.is_idle() && !self.requester.drain_told {
            self.requester.drain_told = true;
            parts.events.push_back(Event::SqDrained { qp: self.id });
        }
        false
    }

    /// Fails the entry at `index`, once all before it have ended.
    pub(super) fn fail_if_front(&mut self, context: &mut Context<'_>, status: WcStatus) -> bool {
        if self.requester.index > 0 {
            self.requester.blocked = Some(status);
            return false;
        }
        self.fail_front(context.parts, status);
        true
    }

    /// The oldest request ends with `status`, and the queue pair fails.
    pub(super) fn fail_front(&mut self, parts: &mut Parts, status: WcStatus) {
        if let Some(entry) = self.requester.entries.pop_front() {
            self.complete_send(parts, &entry, status);
        }
        self.fail(parts, Side::Send, status);
    }

    fn execute_local(&mut self, context: &mut Context<'_>) -> bool {
        let scope = self.scope();
        let r = &mut self.requester;
        let Some(entry) = r.entries.get_mut(r.index) else { return false };
        if !entry.executed {
            let memory = &mut context.parts.memory;
            let done = match &entry.work.op {
                Ok(SendOp::LocalInv(key)) => memory.invalidate(scope, key.get()),
                Ok(SendOp::BindMw(bind)) => memory.bind(scope, bind),
                Ok(SendOp::FastRegister(register)) => memory.fast_register(context.bus, scope, register),
                _ => Err(Denied),
            };
            if done.is_err() {
                return self.fail_if_front(context, WcStatus::MwBind);
            }
            entry.executed = true;
        }
        r.index += 1;
        if self.early_local && !std::mem::replace(&mut entry.reported, true) {
            let completion = entry.completion(self.id, &self.config, WcStatus::Success);
            context.parts.events.push_back(completion);
        }
        self.retire_local(context.parts);
        true
    }

    /// Sends the next packet of a SEND or WRITE.
    fn send_packet(&mut self, context: &mut Context<'_>, service: Service) -> bool {
        self.announce(context.parts);
        let scope = self.scope();
        let (mtu, r) = (self.mtu, &self.requester);
        let Some(entry) = r.entries.get(r.index) else { return false };
        let (packet, count) = (steps(entry.psns.first, r.next), entry.count());
        let position = Position::of(packet, count);
        let offset = u64::from(packet) << mtu.log2();
        let len = (u64::from(entry.length) - offset).min(u64::from(mtu.bytes())) as usize;
        let mut headers = Headers::default();
        let (mut tail, mut word) = (Extensions::empty(), 0);
        if position.begins()
            && let Ok(SendOp::Write(remote) | SendOp::WriteImm(remote, _)) = entry.work.op
        {
            let reth = Reth { addr: remote.addr, rkey: remote.rkey.get(), length: entry.length };
            headers = headers.reth(&reth);
        }
        if position.ends() {
            (tail, word) = match entry.work.op {
                Ok(SendOp::SendImm(imm) | SendOp::WriteImm(_, imm)) => (Extensions::IMM_DT, imm.get()),
                Ok(SendOp::SendInv(key)) => (Extensions::IETH, key.get()),
                _ => (tail, word),
            };
        }
        if !tail.is_empty() {
            headers = headers.word(word);
        }
        let Some(opcode) = Opcode::find(service, position, tail) else { return false };
        let ack_request =
            position.ends() || (packet + 1).is_multiple_of(ACK_EVERY) || r.in_flight + 1 >= WINDOW;
        let flags = Flags {
            solicited: position.ends() && entry.work.flags.contains(SendFlags::SOLICITED),
            ack_request,
        };
        let bus = context.bus;
        let payload = &entry.work.payload;
        let sent = self.emit(context.parts, opcode, r.next, flags, &headers, len, |parts, out| {
            gather(&parts.memory, bus, scope, payload, offset, out)
        });
        if sent.is_err() {
            return self.fail_if_front(context, WcStatus::LocProt);
        }
        let r = &mut self.requester;
        r.in_flight += 1;
        if position.ends() {
            r.index += 1;
        }
        self.sent(context.now, 1);
        true
    }

    /// Sends a READ request (what is still missing of it) or an atomic.
    fn send_read(&mut self, context: &mut Context<'_>) -> bool {
        self.announce(context.parts);
        let (mtu, r) = (self.mtu, &self.requester);
        let Some(entry) = r.entries.get(r.index) else { return false };
        let packet = steps(entry.psns.first, r.next);
        let (opcode, headers) = match entry.work.op {
            Ok(SendOp::Read(remote)) => {
                let offset = u64::from(packet) << mtu.log2();
                let reth = Reth {
                    addr: remote.addr.wrapping_add(offset),
                    rkey: remote.rkey.get(),
                    length: (u64::from(entry.length) - offset) as u32,
                };
                (opcode::READ_REQUEST, Headers::default().reth(&reth))
            }
            Ok(SendOp::CompareSwap { remote, compare, swap }) => {
                let atomic =
                    AtomicEth { addr: remote.addr, rkey: remote.rkey.get(), swap_or_add: swap, compare };
                (opcode::COMPARE_SWAP, Headers::default().atomic(&atomic))
            }
            Ok(SendOp::FetchAdd { remote, add }) => {
                let atomic =
                    AtomicEth { addr: remote.addr, rkey: remote.rkey.get(), swap_or_add: add, compare: 0 };
                (opcode::FETCH_ADD, Headers::default().atomic(&atomic))
            }
            _ => return false,
        };
        let answers = entry.count() - packet;
        let flags = Flags { solicited: false, ack_request: true };
        let sent = self.emit(context.parts, opcode, r.next, flags, &headers, 0, |_, _| Ok(()));
        debug_assert!(sent.is_ok(), "no payload, no access");
        let r = &mut self.requester;
        r.reads += 1;
        r.index += 1;
        self.sent(context.now, answers);
        true
    }

    /// Counts a packet that takes `psns` sequence numbers.
    pub(super) fn sent(&mut self, now: u64, psns: u32) {
        let r = &mut self.requester;
        let ahead = steps(r.next, r.max);
        r.next = r.next.add(psns);
        if psns > ahead {
            r.max = r.next;
        }
        if r.deadline.is_none() {
            r.deadline = timeout_ns(self.timeout).map(|t| now + t);
        }
    }
}
