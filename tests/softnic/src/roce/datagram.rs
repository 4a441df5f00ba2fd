//! Datagrams and raw frames.

use directverbs::verbs::{Datagram, Imm, SendFlags, SendOp, WcStatus};

use super::context::Context;
use super::event::{DatagramSource, Event, Side};
use super::frame::{Packet, Route};
use super::headers::{Bth, Deth, Headers};
use super::memory::Denied;
use super::opcode::{Extensions, Opcode, Position, Service};
use super::qp::{Qp, Taken};
use super::sges::{gather, scatter};

/// Bytes that a datagram's buffer begins with: a GRH, or an IPv4 header in the last 20.
const GRH: usize = 40;
/// Longest raw frame, without its check sequence.
pub const MAX_RAW: usize = 9216;
/// Shortest raw frame: an Ethernet header.
const MIN_RAW: usize = 14;
/// Datagrams whose queue key has this bit take the sender's own instead.
const OWN_QKEY: u32 = 1 << 31;

impl Qp {
    /// Sends the datagram or raw frame whose turn it is. It is done once it is on the wire.
    pub(super) fn send_datagram(&mut self, context: &mut Context<'_>) -> bool {
        let r = &self.requester;
        let Some(entry) = r.entries.front() else { return false };
        let frame = match entry.work.op {
            Ok(SendOp::SendTo(to)) => self.datagram(context, &to, None),
            Ok(SendOp::SendToImm(to, imm)) => self.datagram(context, &to, Some(imm)),
            _ => self.raw(context),
        };
        match frame {
            Ok(frame) => context.parts.send(frame),
            Err(status) => return self.fail_if_front(context, status),
        }
        if let Some(entry) = self.requester.entries.pop_front() {
            let next = entry.psns.next;
            let r = &mut self.requester;
            (r.una, r.next, r.max) = (next, next, next);
            self.complete_send(context.parts, &entry, WcStatus::Success);
        }
        true
    }

    fn datagram(&self, context: &Context<'_>, to: &Datagram, imm: Option<Imm>) -> Result<Vec<u8>, WcStatus> {
        let Some(entry) = self.requester.entries.front() else { return Err(WcStatus::LocQpOp) };
        let parts = &*context.parts;
        let handle = parts.ahs.find(to.ah.get()).filter(|ah| ah.pd == self.pd());
        let path = handle.ok_or(WcStatus::LocQpOp)?.path;
        let sgid = parts.config.gid(usize::from(path.sgid_index));
        let sgid = sgid.ok_or(WcStatus::LocQpOp)?;
        let route = Route::new(parts.config.mac, sgid, &path, self.id.get()).ok_or(WcStatus::LocQpOp)?;
        let qkey = if to.qkey.get() & OWN_QKEY != 0 { self.qkey } else { to.qkey };
        let mut headers = Headers::default().deth(&Deth { qkey: qkey.get(), src_qp: self.id });
        let mut tail = Extensions::empty();
        if let Some(imm) = imm {
            tail = Extensions::IMM_DT;
            headers = headers.word(imm.get());
        }
        let opcode = Opcode::find(Service::Datagram, Position::Only, tail).ok_or(WcStatus::LocQpOp)?;
        let bth = Bth {
            opcode,
            solicited: entry.work.flags.contains(SendFlags::SOLICITED),
            dest_qp: to.qp,
            ack_request: false,
            psn: entry.psns.first,
        };
        let (scope, bus) = (self.scope(), context.bus);
        route
            .frame(&bth, &headers, entry.length as usize, |out| {
                gather(&parts.memory, bus, scope, &entry.work.payload, 0, out)
            })
            .map_err(|Denied| WcStatus::LocProt)
    }

    fn raw(&self, context: &Context<'_>) -> Result<Vec<u8>, WcStatus> {
        let Some(entry) = self.requester.entries.front() else { return Err(WcStatus::LocQpOp) };
        let length = entry.length as usize;
        if length < MIN_RAW {
            return Err(WcStatus::LocLen);
        }
        let mut frame = vec![0; length.max(super::frame::MIN_FRAME)];
        let out = frame.get_mut(..length).unwrap_or_default();
        gather(&context.parts.memory, context.bus, self.scope(), &entry.work.payload, 0, out)
            .map_err(|Denied| WcStatus::LocProt)?;
        Ok(frame)
    }

    /// Takes a datagram from a peer. What does not fit the queue pair is dropped without a word.
    pub(super) fn on_datagram(&mut self, context: &mut Context<'_>, packet: &Packet<'_>) {
        let Some(deth) = packet.deth() else { return };
        if deth.qkey != self.qkey.get() {
            context.parts.counters.bad_qkey += 1;
            return;
        }
        let mut grh = [0; GRH];
        let at = GRH.saturating_sub(packet.ip.len());
        if let Some(to) = grh.get_mut(at..) {
            to.copy_from_slice(packet.ip);
        }
        let source = DatagramSource {
            qp: deth.src_qp,
            mac: packet.smac,
            vlan: packet.vlan,
            ipv6: packet.ip.len() == GRH,
        };
        let imm = packet.imm().map(Imm::truncated);
        self.place(context, [&grh, packet.payload], Some(source), imm, packet.bth.solicited);
    }

    /// Takes a frame that is no RoCEv2 packet.
    pub(super) fn on_raw(&mut self, context: &mut Context<'_>, frame: &[u8]) {
        self.place(context, [frame, &[]], None, None, false);
    }

    /// Puts a whole message into the next receive request.
    fn place(
        &mut self,
        context: &mut Context<'_>,
        pieces: [&[u8]; 2],
        source: Option<DatagramSource>,
        imm: Option<Imm>,
        solicited: bool,
    ) {
        let Some(taken) = self.take_recv(context.parts) else {
            context.parts.counters.no_recv += 1;
            return;
        };
        let status = self.fill(context, &taken, pieces);
        let mut completion = self.recv_completion(&taken, status);
        completion.byte_len = pieces.iter().map(|p| p.len() as u32).sum();
        completion.imm = imm;
        completion.solicited = solicited;
        completion.source = source;
        context.parts.events.push_back(Event::Completion(completion));
        if status != WcStatus::Success {
            self.fail(context.parts, Side::Recv, status);
        }
    }

    fn fill(&self, context: &Context<'_>, taken: &Taken, pieces: [&[u8]; 2]) -> WcStatus {
        let sges = match &taken.work.sges {
            Ok(sges) => sges,
            Err(status) => return *status,
        };
        let room: u64 = sges.iter().map(|sge| u64::from(sge.length)).sum();
        let length: u64 = pieces.iter().map(|p| p.len() as u64).sum();
        if length > room {
            return WcStatus::LocLen;
        }
        let mut offset = 0;
        for piece in pieces {
            if scatter(&context.parts.memory, context.bus, self.scope(), sges, offset, piece).is_err() {
                return WcStatus::LocProt;
            }
            offset += piece.len() as u64;
        }
        WcStatus::Success
    }
}
