//! What comes back to the requester: acknowledgements, READ responses, results of atomics; and what does not.

use directverbs::verbs::{Psn, WcStatus};

use super::context::{Context, Parts};
use super::entry::{Kind, steps};
use super::event::Event;
use super::frame::Packet;
use super::opcode::Service;
use super::qp::Qp;
use super::sges::scatter;
use super::syndrome::{Answer, Nak};
use super::timers::{rnr_ns, timeout_ns};
use super::work::Payload;

/// Retry count that means for ever.
const FOREVER: u8 = 7;

impl Qp {
    /// Takes an acknowledgement or response.
    pub fn on_response(&mut self, context: &mut Context<'_>, packet: &Packet<'_>) {
        let psn = packet.bth.psn;
        let r = &self.requester;
        if !self.sends() || steps(r.una, psn) >= steps(r.una, r.max) {
            return; // late or made up: nothing waits for it
        }
        match packet.opcode.service {
            Service::Acknowledge => {
                let Some(answer) = packet.aeth().and_then(|a| Answer::from_syndrome(a.syndrome)) else {
                    context.parts.counters.malformed += 1;
                    return;
                };
                self.on_answer(context, psn, answer);
            }
            service => self.on_data(context, psn, service, packet),
        }
    }

    fn on_answer(&mut self, context: &mut Context<'_>, psn: Psn, answer: Answer) {
        let acked = if answer == Answer::Ack { psn.add(1) } else { psn };
        let complete = self.advance(context, acked);
        match answer {
            // A READ that was answered before this acknowledgement: the answer was lost.
            _ if !complete => self.go_back(context),
            Answer::Ack => {}
            Answer::Rnr(code) => self.wait_ready(context, code),
            Answer::Nak(Nak::Sequence) => self.go_back(context),
            Answer::Nak(nak) => self.fail_front(context.parts, nak.status()),
        }
    }

    /// Everything before `target` is acknowledged. `false` if that leaves out a READ or atomic whose response is
    /// missing.
    fn advance(&mut self, context: &mut Context<'_>, target: Psn) -> bool {
        loop {
            self.retire_local(context.parts);
            let r = &mut self.requester;
            let todo = steps(r.una, target);
            let Some(front) = r.entries.front().filter(|_| todo != 0) else { return true };
            if front.is_read() {
                return false;
            }
            if todo >= steps(r.una, front.psns.next) {
                self.retire(context);
            } else {
                r.in_flight = r.in_flight.saturating_sub(todo);
                self.progress(context.now, todo);
            }
        }
    }

    /// The oldest request has ended well.
    fn retire(&mut self, context: &mut Context<'_>) {
        let r = &mut self.requester;
        let Some(entry) = r.entries.pop_front() else { return };
        let left = steps(r.una, entry.psns.next);
        if r.index > 0 {
            r.index -= 1;
            if entry.is_read() {
                r.reads = r.reads.saturating_sub(1);
            }
        }
        if !entry.is_read() {
            r.in_flight = r.in_flight.saturating_sub(left);
        }
        self.progress(context.now, left);
        self.complete_send(context.parts, &entry, WcStatus::Success);
        self.retire_local(context.parts);
    }

    /// Ends the local operations that were carried out and only waited for earlier requests.
    pub fn retire_local(&mut self, parts: &mut Parts) {
        while self.requester.index > 0
            && self.requester.entries.front().is_some_and(|e| e.kind == Kind::Local && e.executed)
        {
            self.requester.index -= 1;
            if let Some(entry) = self.requester.entries.pop_front() {
                self.complete_send(parts, &entry, WcStatus::Success);
            }
        }
    }

    /// `psns` more sequence numbers are answered.
    fn progress(&mut self, now: u64, psns: u32) {
        let r = &mut self.requester;
        let sent = steps(r.una, r.next);
        r.una = r.una.add(psns);
        if psns > sent {
            // The answer is to packets from before it went back: they need not be sent again.
            r.next = r.una;
        }
        r.retries = self.retry_count;
        r.rnr_retries = self.rnr_retry;
        r.rnr_until = None;
        r.went_back = false;
        r.deadline = if r.una == r.next { None } else { timeout_ns(self.timeout).map(|t| now + t) };
    }

    /// Sends again from the first unanswered packet on, unless it does already.
    fn go_back(&mut self, context: &mut Context<'_>) {
        if self.requester.went_back {
            return;
        }
        if self.requester.retries == 0 {
            self.fail_front(context.parts, WcStatus::RetryExceeded);
            return;
        }
        self.requester.retries -= 1;
        self.rewind(context);
    }

    fn rewind(&mut self, context: &mut Context<'_>) {
        context.parts.counters.rewinds += 1;
        let r = &mut self.requester;
        r.next = r.una;
        r.index = 0;
        r.in_flight = 0;
        r.reads = 0;
        r.blocked = None;
        r.went_back = true;
        r.announce = true;
        r.deadline = timeout_ns(self.timeout).map(|t| context.now + t);
    }

    /// The peer had no receive request ready: waits as long as it asks for.
    fn wait_ready(&mut self, context: &mut Context<'_>, code: u8) {
        if self.requester.rnr_until.is_some() {
            return;
        }
        if self.requester.rnr_retries == 0 {
            self.fail_front(context.parts, WcStatus::RnrRetryExceeded);
            return;
        }
        if self.rnr_retry != FOREVER {
            self.requester.rnr_retries -= 1;
        }
        self.rewind(context);
        self.requester.deadline = None;
        self.requester.rnr_until = Some(context.now + rnr_ns(code));
    }

    /// The time of the requester has come: the peer may be ready, or has not answered.
    pub fn requester_timer(&mut self, context: &mut Context<'_>) {
        let r = &mut self.requester;
        if let Some(until) = r.rnr_until {
            if until <= context.now {
                r.rnr_until = None;
                r.went_back = false;
            }
        } else if r.deadline.is_some_and(|deadline| deadline <= context.now) {
            r.deadline = None;
            r.went_back = false;
            context.parts.counters.timeouts += 1;
            self.go_back(context);
        }
    }

    /// Tells the front end that the request at hand is sent again, once each time it is.
    pub fn announce(&mut self, parts: &mut Parts) {
        let r = &mut self.requester;
        let Some(entry) = r.entries.get(r.index).filter(|_| r.next != r.max) else { return };
        if r.announce || r.next == entry.psns.first {
            r.announce = false;
            let (token, psn, psns) = (entry.work.token, r.next, entry.psns);
            parts.events.push_back(Event::Retransmit { qp: self.id, token, psn, psns });
        }
    }

    /// A READ response, or the result of an atomic. It acknowledges all that was sent before.
    fn on_data(&mut self, context: &mut Context<'_>, psn: Psn, service: Service, packet: &Packet<'_>) {
        loop {
            self.retire_local(context.parts);
            let Some(front) = self.requester.entries.front() else { return };
            if steps(front.psns.first, psn) < front.count() {
                break;
            }
            if front.is_read() {
                return self.go_back(context);
            }
            self.retire(context);
        }
        let r = &self.requester;
        let Some(front) = r.entries.front() else { return };
        let (Payload::Sges(sges), kind) = (&front.work.payload, front.kind) else { return };
        if !matches!(
            (kind, service),
            (Kind::Read, Service::ReadResponse) | (Kind::Atomic, Service::AtomicAcknowledge)
        ) {
            return;
        }
        if psn != r.una {
            return self.go_back(context);
        }
        let offset = u64::from(steps(front.psns.first, psn)) << self.mtu.log2();
        let original = packet.original().map(u64::to_ne_bytes);
        let (bytes, offset, expected) = match &original {
            Some(value) => (&value[..], 0, 8),
            None => {
                let left = u64::from(front.length).saturating_sub(offset);
                (packet.payload, offset, left.min(u64::from(self.mtu.bytes())))
            }
        };
        if bytes.len() as u64 != expected {
            return self.fail_front(context.parts, WcStatus::BadResp);
        }
        let stored = scatter(&context.parts.memory, context.bus, self.scope(), sges, offset, bytes);
        if stored.is_err() {
            return self.fail_front(context.parts, WcStatus::LocProt);
        }
        if steps(psn, front.psns.next) == 1 {
            self.retire(context);
        } else {
            self.progress(context.now, 1);
        }
    }
}
