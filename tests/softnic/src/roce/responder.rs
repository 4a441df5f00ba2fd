//! The receive side of a connected queue pair: requests in.
//!
//! Source: InfiniBand Architecture Specification, volume 1, section 9.7.

use std::collections::VecDeque;

use directverbs::verbs::{AccessFlags, Imm, Psn, RKey, WcOpcode, WcStatus};

use super::answers::{Reply, Response};
use super::context::{Context, Parts};
use super::entry::steps;
use super::event::{Event, Side};
use super::frame::Packet;
use super::headers::Reth;
use super::opcode::{Position, Service};
use super::qp::{Qp, Taken};
use super::sges::scatter;
use super::syndrome::{Answer, Nak};

/// Longest message.
const MAX_MESSAGE: u32 = 1 << 31;
/// Half of the sequence numbers: what is further ahead is taken for late.
const HALF: u32 = 1 << 23;

/// A message of which packets are still to come.
#[derive(Debug)]
pub(super) enum Current {
    Send { taken: Taken, offset: u64 },
    Write { addr: u64, rkey: u32, left: u32, length: u32 },
}

/// A READ or atomic that can be answered again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Saved {
    Read { first: Psn, count: u32, reth: Reth },
    Atomic { psn: Psn, original: u64, msn: u32 },
}

/// The receive side.
#[derive(Debug, Default)]
pub struct Responder {
    /// Next sequence number.
    pub(super) expected: Psn,
    /// Messages completed, modulo 2^24.
    pub(super) msn: u32,
    /// The requester was told to go back; it is not told again until it has.
    told: bool,
    current: Option<Current>,
    /// The last READs and atomics, oldest first.
    saved: VecDeque<Saved>,
    /// What is to be sent, in order of sequence numbers.
    pub(super) responses: VecDeque<Response>,
}

impl Responder {
    /// The queue pair becomes ready to receive.
    pub fn start(&mut self, psn: Psn) {
        *self = Self { expected: psn, ..Self::default() };
    }

    /// Next sequence number expected.
    pub fn expected(&self) -> Psn {
        self.expected
    }

    /// Drops what was still to be sent.
    pub fn silence(&mut self) {
        self.responses.clear();
    }

    /// The receive request that a message has begun to fill.
    pub fn take_current(&mut self) -> Option<Taken> {
        match self.current.take() {
            Some(Current::Send { taken, .. }) => Some(taken),
            _ => None,
        }
    }
}

/// A request that is not carried out.
enum Refusal {
    /// No receive request is ready.
    NotReady,
    /// It fails, here with this status.
    Failed(Nak, WcStatus),
}

impl Refusal {
    const INVALID: Self = Self::Failed(Nak::InvalidRequest, WcStatus::RemInvReq);
    const ACCESS: Self = Self::Failed(Nak::RemoteAccess, WcStatus::LocAccess);
}

impl Qp {
    /// Takes a request of the peer.
    pub fn on_request(&mut self, context: &mut Context<'_>, packet: &Packet<'_>) {
        let psn = packet.bth.psn;
        let expected = self.responder.expected;
        match steps(expected, psn) {
            0 => self.on_expected(context, packet),
            1..HALF if !self.responder.told => {
                context.parts.counters.sequence_naks += 1;
                self.responder.told = true;
                self.answer(expected, Answer::Nak(Nak::Sequence));
            }
            1..HALF => {}
            _ => self.on_duplicate(context.parts, packet),
        }
    }

    fn on_expected(&mut self, context: &mut Context<'_>, packet: &Packet<'_>) {
        let psn = packet.bth.psn;
        let done = match packet.opcode.service {
            Service::Send => self.on_send(context, packet),
            Service::Write => self.on_write(context, packet),
            Service::ReadRequest => self.on_read(context.parts, packet),
            _ => self.on_atomic(context, packet),
        };
        match done {
            Ok(psns) => {
                self.responder.told = false;
                self.responder.expected = psn.add(psns);
                let is_message = matches!(packet.opcode.service, Service::Send | Service::Write);
                if is_message && packet.bth.ack_request {
                    self.answer(psn, Answer::Ack);
                }
            }
            Err(Refusal::NotReady) => {
                context.parts.counters.rnr_naks += 1;
                self.responder.told = true;
                self.answer(psn, Answer::Rnr(self.min_rnr_timer));
            }
            Err(Refusal::Failed(nak, status)) => {
                self.answer(psn, Answer::Nak(nak));
                if let Some(taken) = self.responder.take_current() {
                    let completion = self.recv_completion(&taken, status);
                    context.parts.events.push_back(Event::Completion(completion));
                }
                self.fail(context.parts, Side::Recv, status);
            }
        }
    }

    /// Checks that a packet fits the message that it continues or begins, and its length its place there.
    fn check_place(&self, packet: &Packet<'_>) -> Result<(), Refusal> {
        let position = packet.opcode.position;
        let continues = match (&self.responder.current, packet.opcode.service) {
            (None, _) => false,
            (Some(Current::Send { .. }), Service::Send) => true,
            (Some(Current::Write { .. }), Service::Write) => true,
            _ => return Err(Refusal::INVALID),
        };
        let (len, mtu) = (packet.payload.len(), self.mtu.bytes() as usize);
        let fits = match position {
            Position::First | Position::Middle => len == mtu,
            Position::Last => (1..=mtu).contains(&len),
            Position::Only => len <= mtu,
        };
        if continues == position.begins() || !fits { Err(Refusal::INVALID) } else { Ok(()) }
    }

    fn on_send(&mut self, context: &mut Context<'_>, packet: &Packet<'_>) -> Result<u32, Refusal> {
        self.check_place(packet)?;
        if packet.opcode.position.begins() {
            let taken = self.take_recv(context.parts).ok_or(Refusal::NotReady)?;
            self.responder.current = Some(Current::Send { taken, offset: 0 });
        }
        let scope = self.scope();
        let Some(Current::Send { taken, offset }) = &mut self.responder.current else {
            return Err(Refusal::INVALID);
        };
        let sges =
            taken.work.sges.as_ref().map_err(|status| Refusal::Failed(Nak::RemoteOperation, *status))?;
        let room: u64 = sges.iter().map(|sge| u64::from(sge.length)).sum();
        let length = *offset + packet.payload.len() as u64;
        if length > room || length > u64::from(MAX_MESSAGE) {
            return Err(Refusal::Failed(Nak::InvalidRequest, WcStatus::LocLen));
        }
        scatter(&context.parts.memory, context.bus, scope, sges, *offset, packet.payload)
            .map_err(|_| Refusal::Failed(Nak::RemoteOperation, WcStatus::LocProt))?;
        *offset = length;
        if packet.opcode.position.ends() {
            let invalidated = packet.invalidate();
            if let Some(key) = invalidated {
                let closed = context.parts.memory.invalidate(scope, key);
                closed.map_err(|_| Refusal::Failed(Nak::RemoteAccess, WcStatus::RemInvReq))?;
            }
            let Some(taken) = self.responder.take_current() else { return Err(Refusal::INVALID) };
            let mut completion = self.recv_completion(&taken, WcStatus::Success);
            completion.byte_len = length as u32;
            completion.imm = packet.imm().map(Imm::truncated);
            completion.invalidated = invalidated.map(RKey::truncated);
            completion.solicited = packet.bth.solicited;
            context.parts.events.push_back(Event::Completion(completion));
            self.count_message();
        }
        Ok(1)
    }

    fn on_write(&mut self, context: &mut Context<'_>, packet: &Packet<'_>) -> Result<u32, Refusal> {
        self.check_place(packet)?;
        let scope = self.scope();
        let (addr, rkey, left, length) = match (packet.reth(), &self.responder.current) {
            (Some(reth), _) => {
                self.check_remote(context.parts, &reth, AccessFlags::REMOTE_WRITE)?;
                (reth.addr, reth.rkey, reth.length, reth.length)
            }
            (None, Some(Current::Write { addr, rkey, left, length })) => (*addr, *rkey, *left, *length),
            (None, _) => return Err(Refusal::INVALID),
        };
        let len = packet.payload.len() as u32;
        let ends = packet.opcode.position.ends();
        if (ends && len != left) || (!ends && len >= left) {
            return Err(Refusal::INVALID);
        }
        let imm = packet.imm();
        if imm.is_some() && !self.has_recv(context.parts) {
            return Err(Refusal::NotReady);
        }
        if len > 0 {
            let access = AccessFlags::REMOTE_WRITE;
            let memory = &context.parts.memory;
            memory
                .write(context.bus, scope, rkey, addr, packet.payload, access)
                .map_err(|_| Refusal::ACCESS)?;
        }
        let (addr, left) = (addr.wrapping_add(len.into()), left - len);
        self.responder.current = (!ends).then_some(Current::Write { addr, rkey, left, length });
        if let Some(imm) = imm
            && let Some(taken) = self.take_recv(context.parts)
        {
            if let Err(status) = taken.work.sges {
                self.responder.current = Some(Current::Send { taken, offset: 0 });
                return Err(Refusal::Failed(Nak::RemoteOperation, status));
            }
            let mut completion = self.recv_completion(&taken, WcStatus::Success);
            completion.opcode = WcOpcode::RecvRdmaWithImm;
            completion.byte_len = length;
            completion.imm = Some(Imm::truncated(imm));
            completion.solicited = packet.bth.solicited;
            context.parts.events.push_back(Event::Completion(completion));
        }
        if ends {
            self.count_message();
        }
        Ok(1)
    }

    fn on_read(&mut self, parts: &mut Parts, packet: &Packet<'_>) -> Result<u32, Refusal> {
        let reth = packet.reth().filter(|_| self.responder.current.is_none()).ok_or(Refusal::INVALID)?;
        self.check_remote(parts, &reth, AccessFlags::REMOTE_READ)?;
        self.check_outstanding()?;
        let (first, count) = (packet.bth.psn, self.mtu.packets(reth.length));
        self.save(Saved::Read { first, count, reth });
        self.count_message();
        self.reply(Response::new(first, Reply::Read { reth, sent: 0, count }));
        Ok(count)
    }

    fn on_atomic(&mut self, context: &mut Context<'_>, packet: &Packet<'_>) -> Result<u32, Refusal> {
        let eth = packet.atomic().filter(|_| self.responder.current.is_none()).ok_or(Refusal::INVALID)?;
        if !eth.addr.is_multiple_of(8) {
            return Err(Refusal::INVALID);
        }
        let access = AccessFlags::REMOTE_ATOMIC;
        if !self.access.contains(access) {
            return Err(Refusal::ACCESS);
        }
        self.check_outstanding()?;
        let (scope, memory) = (self.scope(), &context.parts.memory);
        let mut bytes = [0; 8];
        memory
            .read(context.bus, scope, eth.rkey, eth.addr, &mut bytes, access)
            .map_err(|_| Refusal::ACCESS)?;
        let original = u64::from_ne_bytes(bytes);
        let value = match packet.opcode.service {
            Service::FetchAdd => original.wrapping_add(eth.swap_or_add),
            _ if original == eth.compare => eth.swap_or_add,
            _ => original,
        };
        memory
            .write(context.bus, scope, eth.rkey, eth.addr, &value.to_ne_bytes(), access)
            .map_err(|_| Refusal::ACCESS)?;
        context.parts.counters.atomics += 1;
        self.count_message();
        let (psn, msn) = (packet.bth.psn, self.responder.msn);
        self.save(Saved::Atomic { psn, original, msn });
        self.reply(Response::new(psn, Reply::Atomic { original, msn }));
        Ok(1)
    }

    /// The peer may have this access to all that it asks for.
    fn check_remote(&self, parts: &Parts, reth: &Reth, access: AccessFlags) -> Result<(), Refusal> {
        if reth.length > MAX_MESSAGE {
            return Err(Refusal::INVALID);
        }
        if !self.access.contains(access) {
            return Err(Refusal::ACCESS);
        }
        // A key is not looked at when there is nothing behind it.
        if reth.length == 0 {
            return Ok(());
        }
        parts
            .memory
            .check(self.scope(), reth.rkey, reth.addr, reth.length.into(), access)
            .map_err(|_| Refusal::ACCESS)
    }

    /// The peer has not more READs and atomics outstanding than agreed on.
    fn check_outstanding(&self) -> Result<(), Refusal> {
        let waiting = self.responder.responses.iter().filter(|r| r.is_data()).count();
        if waiting < usize::from(self.max_dest_rd_atomic) { Ok(()) } else { Err(Refusal::INVALID) }
    }

    fn save(&mut self, saved: Saved) {
        let r = &mut self.responder;
        while r.saved.len() >= usize::from(self.max_dest_rd_atomic.max(1)) {
            r.saved.pop_front();
        }
        r.saved.push_back(saved);
    }

    fn count_message(&mut self) {
        self.responder.msn = self.responder.msn.wrapping_add(1) & 0xff_ffff;
    }

    /// A request that was carried out before: answered again, but not carried out again, except for READs.
    fn on_duplicate(&mut self, parts: &mut Parts, packet: &Packet<'_>) {
        parts.counters.duplicates += 1;
        let psn = packet.bth.psn;
        match packet.opcode.service {
            Service::Send | Service::Write => {
                let last = Psn::truncated(self.responder.expected.get().wrapping_sub(1));
                self.answer(last, Answer::Ack);
            }
            Service::ReadRequest => {
                let Some(again) = packet.reth() else { return };
                let mtu = self.mtu;
                let is_same = |saved: &&Saved| match **saved {
                    Saved::Read { first, count, reth } => {
                        let done = u64::from(steps(first, psn)) << mtu.log2();
                        steps(first, psn) < count
                            && again.rkey == reth.rkey
                            && again.addr == reth.addr.wrapping_add(done)
                            && u64::from(again.length) + done == u64::from(reth.length)
                    }
                    Saved::Atomic { .. } => false,
                };
                if self.responder.saved.iter().any(|saved| is_same(&saved)) {
                    let count = mtu.packets(again.length);
                    self.reply_again(Response::new(psn, Reply::Read { reth: again, sent: 0, count }));
                }
            }
            _ => {
                let result = self.responder.saved.iter().find_map(|saved| match *saved {
                    Saved::Atomic { psn: at, original, msn } if at == psn => Some((original, msn)),
                    _ => None,
                });
                if let Some((original, msn)) = result {
                    self.reply_again(Response::new(psn, Reply::Atomic { original, msn }));
                }
            }
        }
    }
}
