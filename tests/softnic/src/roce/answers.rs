//! What the responder sends: acknowledgements, READ responses, results of atomics.

use directverbs::verbs::{AccessFlags, Psn, WcStatus};

use super::context::Context;
use super::entry::steps;
use super::event::Side;
use super::headers::{Aeth, Headers, Reth};
use super::opcode::{self, Extensions, Opcode, Position, Service};
use super::qp::{Flags, Qp};
use super::syndrome::{Answer, Nak};

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// An acknowledgement, positive or negative.
    Answer(Answer),
    /// The memory that a READ asked for; packets sent, and packets there are.
    Read { reth: Reth, sent: u32, count: u32 },
    /// The result of an atomic, and the message count after it.
    Atomic { original: u64, msn: u32 },
}

/// Something to be sent for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    /// Sequence number of the request.
    psn: Psn,
    reply: Reply,
}

impl Response {
    pub(super) const fn new(psn: Psn, reply: Reply) -> Self {
        Self { psn, reply }
    }

    /// It takes resources of the responder.
    pub(super) const fn is_data(&self) -> bool {
        !matches!(self.reply, Reply::Answer(_))
    }
}

impl Qp {
    /// Acknowledges `psn` and all before. One acknowledgement stands for several in a row.
    pub(super) fn answer(&mut self, psn: Psn, answer: Answer) {
        let responses = &mut self.responder.responses;
        if let Some(Response { reply: Reply::Answer(Answer::Ack), .. }) = responses.back() {
            responses.pop_back();
        }
        responses.push_back(Response::new(psn, Reply::Answer(answer)));
    }

    /// Sends something after all that waits.
    pub(super) fn reply(&mut self, response: Response) {
        self.responder.responses.push_back(response);
    }

    /// Sends something again, in its place among what waits. What waits of the same READ is sent from there on only.
    pub(super) fn reply_again(&mut self, response: Response) {
        // Distance back from what is expected: the larger, the earlier.
        let expected = self.responder.expected;
        let age = |psn: Psn| steps(psn, expected);
        let at = response.psn;
        let responses = &mut self.responder.responses;
        responses.retain_mut(|r| {
            let ahead = steps(r.psn, at);
            match &mut r.reply {
                Reply::Read { count, sent, .. } if ahead < *count => {
                    *count = ahead;
                    *sent < *count
                }
                Reply::Atomic { .. } => r.psn != at,
                _ => true,
            }
        });
        let is_later = |r: &Response| age(r.psn) < age(at);
        let place = responses.iter().position(is_later).unwrap_or(responses.len());
        responses.insert(place, response);
    }

    /// Sends the next packet that is due to the peer; `false` if there is none.
    pub(super) fn respond(&mut self, context: &mut Context<'_>) -> bool {
        let Some(response) = self.responder.responses.front().copied() else { return false };
        let msn = self.responder.msn;
        let flags = Flags::default();
        let psn = response.psn;
        let sent = match response.reply {
            Reply::Answer(answer) => {
                let headers = Headers::default().aeth(&Aeth { syndrome: answer.syndrome(), msn });
                self.emit(context.parts, opcode::ACKNOWLEDGE, psn, flags, &headers, 0, |_, _| Ok(()))
            }
            Reply::Atomic { original, msn } => {
                let aeth = Aeth { syndrome: Answer::Ack.syndrome(), msn };
                let headers = Headers::default().aeth(&aeth).original(original);
                self.emit(context.parts, opcode::ATOMIC_ACKNOWLEDGE, psn, flags, &headers, 0, |_, _| Ok(()))
            }
            Reply::Read { reth, sent, count } => {
                // The place is that in the whole answer, also when its end was cut off to be sent anew.
                let position = Position::of(sent, self.mtu.packets(reth.length));
                let offset = u64::from(sent) << self.mtu.log2();
                let len = (u64::from(reth.length) - offset).min(u64::from(self.mtu.bytes())) as usize;
                let mut headers = Headers::default();
                if position != Position::Middle {
                    headers = headers.aeth(&Aeth { syndrome: Answer::Ack.syndrome(), msn });
                }
                let found = Opcode::find(Service::ReadResponse, position, Extensions::empty());
                let Some(code) = found else { return false };
                let (scope, bus) = (self.scope(), context.bus);
                let read =
                    self.emit(context.parts, code, psn.add(sent), flags, &headers, len, |parts, out| {
                        if out.is_empty() {
                            return Ok(());
                        }
                        let addr = reth.addr.wrapping_add(offset);
                        parts.memory.read(bus, scope, reth.rkey, addr, out, AccessFlags::REMOTE_READ)
                    });
                if read.is_ok()
                    && sent + 1 < count
                    && let Some(front) = self.responder.responses.front_mut()
                {
                    front.reply = Reply::Read { reth, sent: sent + 1, count };
                    return true;
                }
                if read.is_err() {
                    // The key was closed meanwhile.
                    self.responder.responses.clear();
                    self.answer(psn.add(sent), Answer::Nak(Nak::RemoteAccess));
                    self.fail(context.parts, Side::Recv, WcStatus::LocAccess);
                    return true;
                }
                read
            }
        };
        debug_assert!(sent.is_ok(), "answers read no memory");
        self.responder.responses.pop_front();
        true
    }
}
