//! The same queues at libionic and at the core, and what becomes of a step at both.

use directverbs::ionic::cqe::{CqeType, QidTypeFlags};
use directverbs::ionic::doorbell::{DbRing, DoorbellWord};
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::layout::Layout;
use directverbs::verbs::{FaultKind, PostError, QpType, SendOp, WcStatus, WorkCompletion};

use super::device::{CqProducer, Cqe, Noise, Queues, code};
use super::exceptions::{self as known};
use super::memory::DOORBELL;
use super::ours::{Ours, QPS, RECV_CMB, SEND_CMB, Setup};
use super::quirks::Quirks;
use super::senseless::{Senseless, Told};
use super::theirs::{Error, Theirs};
use crate::case::{
    Access, Allowance, Allowed, Area, Completion, Dice, Event, Exception, Interface, Observed, Outcome, Pair,
    Played, Recv, Send, Step,
};
use crate::ibv::Pieces;

/// Names of the send rings.
pub(super) const SEND: [&str; QPS] = ["send ring 0", "send ring 1", "send ring 2", "send ring 3"];
/// Names of the receive rings.
pub(super) const RECV: [&str; QPS] = ["receive ring 0", "receive ring 1", "receive ring 2", "receive ring 3"];
/// Names of the completion rings, by completion queue and pipeline.
pub(super) const CQ: [[&str; 2]; 2] = [
    ["completion ring 0", "completion ring 1"],
    ["receives' completion ring 0", "receives' completion ring 1"],
];

/// Byte of a WQE in which the color is.
const COLOR_BYTE: usize = 11;

/// How completions are polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Poll {
    /// `ibv_poll_cq`.
    Array,
    /// `ibv_start_poll`, `ibv_next_poll`: one at a time, with timestamps.
    Extended,
}

/// How a case goes about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nature {
    /// Nothing is done on purpose that the provider is known to do wrong.
    pub careful: bool,
    /// How completions are polled.
    pub poll: Poll,
    /// What CQEs carry besides what they tell.
    pub noise: u64,
}

/// Both sides, and the device between them.
pub(super) struct Both {
    setup: Setup,
    nature: Nature,
    theirs: Theirs,
    ours: Ours,
    queues: Vec<Queues>,
    quirks: Vec<Quirks>,
    cqs: Vec<CqProducer>,
    noise: Noise,
    /// Credit that the provider will never get back.
    lost_credit: u32,
    /// A poll has filled its array while there was something to flush.
    flush_may_be_lost: bool,
    /// The CQE that makes no sense, and where it was written: completion queue, pipeline, entry.
    senseless: Option<(Senseless, (usize, u8, u16))>,
}

impl Both {
    /// Both sides of new queues.
    pub fn new(setup: Setup, theirs: Theirs, ours: Ours, nature: Nature) -> Self {
        let (sq_mask, rq_mask) = (setup.plan.sq.ring.mask(), setup.plan.rq.ring.mask());
        let queue = |id| Queues::new(id, sq_mask, rq_mask, setup.first_message);
        Self {
            nature,
            theirs,
            ours,
            queues: setup.qps.iter().copied().map(queue).collect(),
            quirks: setup.qps.iter().map(|_| Quirks::new(sq_mask, rq_mask)).collect(),
            cqs: vec![CqProducer { mask: setup.cq_plan.ring.mask(), prod: 0, color: true }; setup.cqs.len()],
            noise: Noise(nature.noise),
            lost_credit: 0,
            flush_may_be_lost: false,
            senseless: None,
            setup,
        }
    }

    fn datagram(&self) -> bool {
        self.setup.qp_type == QpType::Ud
    }

    fn send_stride(&self) -> usize {
        self.setup.plan.sq.ring.stride() as usize
    }

    /// Requests that both sides have taken.
    fn took(&mut self, qp: usize, requests: &[Send]) {
        let datagram = self.datagram();
        for request in requests {
            let local = matches!(request.op, SendOp::LocalInv(_) | SendOp::BindMw(_));
            self.quirks[qp].sent(self.queues[qp].sq_prod, request);
            self.queues[qp].send(!local && !datagram);
        }
    }

    fn post_list(&mut self, qp: usize, requests: &[Send]) -> Result<Played, Error> {
        let mut played = Played::default();
        let first = usize::from(self.queues[qp].sq_prod);
        let stride = self.send_stride();
        let depth = usize::from(self.queues[qp].sq_mask) + 1;
        let at = |place: usize| (first + place) % depth * stride;
        played.theirs.outcome = self.theirs.post_send(qp, requests)?;
        let ours = self.ours.post_send(qp, requests);
        played.ours.outcome = ours.map_or_else(|(index, _)| Outcome::Refused(index), |()| Outcome::Done);
        let taken = ours.map_or_else(|(index, _)| index, |()| requests.len());
        if let Err((index, error)) = ours {
            let express = self.setup.grants[0].express() && stride == 64;
            let over = express
                && self.setup.caps.version == RdmaVersion::V1
                && self.setup.qp_type == QpType::Rc
                && matches!(error, PostError::NotSupported { .. })
                && matches!(requests[index].op, SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. });
            if over {
                self.anything(&mut played, &known::ATOMIC_OVER_EXPRESS_DOORBELL);
                return Ok(played);
            }
            if !matches!(error, PostError::QueueFull { .. } | PostError::BadState(_)) {
                let range = at(index)..at(index) + stride;
                played.allow(&known::REFUSED_REQUEST_IS_WRITTEN, Allowed::Bytes { area: SEND[qp], range });
            }
        }
        self.color(&mut played, qp, taken);
        self.took(qp, &requests[..taken]);
        Ok(played)
    }

    /// Where the provider's color is that of another pass, the color of `count` requests just posted may differ.
    fn color(&self, played: &mut Played, qp: usize, count: usize) {
        if !self.quirks[qp].color_off {
            return;
        }
        let (first, stride) = (usize::from(self.queues[qp].sq_prod), self.send_stride());
        let depth = usize::from(self.queues[qp].sq_mask) + 1;
        for place in 0..count {
            let at = (first + place) % depth * stride + COLOR_BYTE;
            for area in [SEND[qp], SEND_CMB[qp]] {
                played.allow(&known::COLOR_IS_KEPT, Allowed::Bytes { area, range: at..at + 1 });
            }
        }
        if self.setup.grants[0] != directverbs::ionic::cmb::CmbGrant::Host {
            played.allow(&known::COLOR_IS_KEPT, Allowed::Accesses);
        }
    }

    fn build(&mut self, qp: usize, interface: Interface, requests: &[Send]) -> Result<Played, Error> {
        let mut played = Played::default();
        let give_up = interface == Interface::Abort;
        let queue = self.ours.qps[qp].send_queue();
        let room = usize::from(self.queues[qp].sq_mask) - queue.outstanding() as usize;
        let requests = match requests.get(..room) {
            // The provider does not look whether there is room.
            Some(fitting) if self.nature.careful => fitting,
            _ => requests,
        };
        let first = usize::from(self.queues[qp].sq_prod);
        let stride = self.send_stride();
        let depth = usize::from(self.queues[qp].sq_mask) + 1;
        let pieces = if self.noise.next() & 1 == 0 { Pieces::Single } else { Pieces::Lists };
        let theirs_done = self.theirs.build(qp, requests, interface, pieces)?;
        let ours = self.ours.post_all(qp, requests, give_up);
        let outcome = |done| if done { Outcome::Done } else { Outcome::Failed };
        played.theirs.outcome = outcome(theirs_done);
        // What is given up has not failed.
        played.ours.outcome = outcome(give_up || ours.is_ok());
        if matches!(ours, Err((_, PostError::QueueFull { .. }))) {
            self.anything(&mut played, &known::BUILDER_OVERRUNS);
            return Ok(played);
        }
        if ours.is_ok() && !give_up {
            self.color(&mut played, qp, requests.len());
            self.took(qp, requests);
            return Ok(played);
        }
        let written = ours.map_or_else(|(index, _)| index, |()| requests.len());
        for place in 0..=written.min(depth - 1) {
            let at = (first + place) % depth * stride;
            let allowed = Allowed::Bytes { area: SEND[qp], range: at..at + stride };
            played.allow(&known::ABORT_LEAVES_ENTRIES, allowed);
        }
        let quirks = &mut self.quirks[qp];
        quirks.color_off ^= first + written >= depth;
        let remote = |r: &&Send| !matches!(r.op, SendOp::LocalInv(_) | SendOp::BindMw(_));
        quirks.messages_off += requests[..written].iter().filter(remote).count() as u32;
        Ok(played)
    }

    /// From here on the two go apart.
    fn anything(&self, played: &mut Played, exception: &'static Exception) {
        let (theirs, ours) = (played.theirs.outcome, played.ours.outcome);
        played.allow(exception, Allowed::Outcome { theirs, ours });
        played.allow(exception, Allowed::Accesses);
        played.allow(exception, Allowed::Completions);
        for area in self.areas() {
            let range = 0..area.theirs.len();
            played.allow(exception, Allowed::Bytes { area: area.name, range });
        }
        played.parted = true;
    }

    fn post_recv(&mut self, qp: usize, requests: &[Recv]) -> Played {
        let mut played = Played::default();
        played.theirs.outcome = self.theirs.post_recv(qp, requests);
        let ours = self.ours.post_recv(qp, requests);
        played.ours.outcome = ours.map_or_else(|(index, _)| Outcome::Refused(index), |()| Outcome::Done);
        let taken = ours.map_or_else(|(index, _)| index, |()| requests.len());
        for request in &requests[..taken] {
            self.quirks[qp].posted(self.queues[qp].rq_prod, request.wr_id);
            self.queues[qp].recv();
        }
        if let Err((_, error)) = ours
            && !matches!(error, PostError::QueueFull { .. } | PostError::BadState(_))
        {
            let stride = self.setup.plan.rq.ring.stride() as usize;
            let at = usize::from(self.queues[qp].rq_prod) * stride;
            let allowed = Allowed::Bytes { area: RECV[qp], range: at..at + stride };
            played.allow(&known::REFUSED_REQUEST_IS_WRITTEN, allowed);
        }
        played
    }

    /// Entry that our side reads next.
    fn next_entry(&self, cq: usize, udma: u8) -> u16 {
        self.ours.cqs[cq].ring(udma).map_or(0, |ring| ring.state().prod)
    }

    /// Most CQEs of a ring that were not polled.
    fn unread(&self) -> u16 {
        let unread = |(cq, ring): (usize, &CqProducer)| {
            ring.prod.wrapping_sub(self.next_entry(cq, self.setup.udma)) & ring.mask
        };
        self.cqs.iter().enumerate().map(unread).max().unwrap_or(0)
    }

    /// Writes a CQE at both sides, and tells into which completion queue.
    fn write(&mut self, cqe: &Cqe) -> usize {
        let kind = CqeType(QidTypeFlags::from_bits(u32::from_be_bytes([0, 0, 0, cqe[31]])).cqe_type());
        let receive = matches!(kind, CqeType::RECV | CqeType::RECV_INDIR);
        let cq = if receive { self.cqs.len() - 1 } else { 0 };
        self.write_to(cq, cqe);
        cq
    }

    fn write_to(&mut self, cq: usize, cqe: &Cqe) {
        let (offset, cqe) = self.cqs[cq].next(cqe);
        self.store(cq, self.setup.udma, offset, &cqe);
    }

    fn store(&self, cq: usize, udma: u8, offset: usize, cqe: &Cqe) {
        self.theirs.write_cqe(cq, udma, offset, cqe);
        if let Some(ring) = &self.ours.cq_rings[cq][usize::from(udma)] {
            ring.write(offset, cqe);
        }
    }

    fn event(&mut self, event: &Event) {
        // A device does not overrun its completion queue; so many CQEs no event has.
        let most = self.setup.plan.sq.ring.mask().max(2) * 2;
        // After a CQE that makes no sense nothing happens until it was taken.
        let waits = self.senseless.is_some_and(|(senseless, _)| senseless.told == Told::No);
        if waits || self.unread().saturating_add(most) >= self.cqs[0].mask {
            return;
        }
        let queues = |qp: usize| &self.queues[qp];
        let cqes = match *event {
            Event::Sent { qp, .. }
            | Event::SendFailed { qp, .. }
            | Event::Received { qp, .. }
            | Event::RecvFailed { qp, .. }
            | Event::Fatal { qp }
                if queues(qp).failed =>
            {
                return;
            }
            Event::Sent { qp, count } => {
                let count = count.below(self.queues[qp].sent.len() as u32 + 1);
                self.queues[qp].complete(count as usize, &mut self.noise)
            }
            Event::SendFailed { qp, which, status } => self.fail(qp, which, status),
            Event::Received { qp, length, message, src_qp, .. } => {
                let cqe = self.queues[qp].receive(length, message, src_qp, &mut self.noise);
                cqe.into_iter().collect()
            }
            Event::RecvFailed { qp, which, status } => {
                let cqe = self.queues[qp].fail_receive(code(status, which), &mut self.noise);
                cqe.into_iter().collect()
            }
            Event::Fatal { qp } => self.queues[qp].flush(&mut self.noise).to_vec(),
            Event::Gone => {
                let gone = Queues::new(directverbs::verbs::QpId::MAX, 0, 0, 0);
                vec![gone.send_cqe(CqeType::SEND_MSN, 1, 0, None, &mut self.noise)]
            }
            Event::Nothing => return,
            Event::Senseless { qp, which } => return self.senseless(qp, which),
        };
        for cqe in &cqes {
            self.write(cqe);
        }
    }

    fn fail(&mut self, qp: usize, which: Dice, status: WcStatus) -> Vec<Cqe> {
        let queues = &mut self.queues[qp];
        let before = which.below(queues.sent.len() as u32) as usize;
        // Only a message can tell of those before it.
        let messages = queues.sent.iter().take(before + 1).all(|sent| sent.remote);
        let coalesced = messages && which.0 & 1 == 0 && queues.complete_silently(before);
        let mut cqes = if coalesced { Vec::new() } else { queues.complete(before, &mut self.noise) };
        let status = code(status, which);
        if let Some((cqe, index)) = queues.fail(status, coalesced, &mut self.noise) {
            cqes.push(cqe);
            self.quirks[qp].failed(index, status.0);
        }
        cqes
    }

    fn senseless(&mut self, qp: usize, which: Dice) {
        // What becomes of it is told apart only if there is nothing else to tell.
        let rings = self.ours.cqs.iter().filter_map(|cq| cq.ring(self.setup.udma));
        let left = rings.into_iter().any(|ring| ring.state().left.is_some());
        if left || self.unread() != 0 || self.queues[qp].failed || self.senseless.is_some() {
            return;
        }
        let (udma, two) = (self.setup.udma, self.cqs.len() == 2);
        let other = two || self.setup.udma_mask == 3;
        let made = Senseless::new(&self.queues[qp], &self.quirks[qp], other, which, &mut self.noise);
        let Some((senseless, cqe)) = made else { return };
        let at = if senseless.exception != &known::WRONG_RING {
            let cq = self.write(&cqe);
            (cq, udma, self.next_entry(cq, udma))
        } else if two {
            self.write_to(1, &cqe);
            (1, udma, self.next_entry(1, udma))
        } else {
            // The first entry of the ring that no queue pair completes to: nothing else is ever written there.
            let (offset, cqe) = CqProducer { mask: self.cqs[0].mask, prod: 0, color: true }.next(&cqe);
            self.store(0, udma ^ 1, offset, &cqe);
            (0, udma ^ 1, 0)
        };
        self.senseless = Some((senseless, at));
    }

    fn poll(&mut self, budget: u32) -> Played {
        let mut played = Played::default();
        let extended = self.nature.poll == Poll::Extended;
        let budget = if extended { budget.min(64) } else { budget };
        let (mut ours, mut full) = (Vec::new(), false);
        for cq in 0..self.cqs.len() {
            let (outcome, theirs) = match self.nature.poll {
                Poll::Array => self.theirs.poll(cq, budget as usize),
                Poll::Extended => self.theirs.poll_each(cq, budget as usize),
            };
            full |= theirs.len() >= budget as usize;
            if outcome != Outcome::Done {
                played.theirs.outcome = outcome;
            }
            played.theirs.completions.extend(theirs);
            self.poll_ours(&mut played.ours, &mut ours, cq, budget);
        }
        let datagram = self.datagram();
        played.ours.completions = ours.iter().map(|wc| Completion::ours(wc, datagram)).collect();
        if extended {
            self.timestamps(&mut played, &ours);
        }
        if let Some((senseless, (cq, udma, entry))) = self.senseless
            && self.next_entry(cq, udma) != entry
        {
            self.senseless = Some((Senseless { told: Told::Yes, ..senseless }, (cq, udma, entry)));
        }
        self.reported(&mut played, &ours);
        self.flushed(&mut played, &ours, full);
        if self.quirks.iter().any(|quirks| quirks.messages_off != 0) {
            self.anything(&mut played, &known::ABORT_KEEPS_MESSAGE_NUMBERS);
        }
        played
    }

    /// Polls one of our completion queues.
    fn poll_ours(
        &mut self,
        seen: &mut Observed,
        completions: &mut Vec<WorkCompletion>,
        cq: usize,
        budget: u32,
    ) {
        // The extended interface polls for one completion at a time.
        let extended = self.nature.poll == Poll::Extended;
        let (rounds, room) = if extended { (budget, 1) } else { (1, budget) };
        let before = completions.len();
        for _ in 0..rounds {
            match self.ours.poll(cq, room as usize) {
                Ok(found) if found.is_empty() => break,
                Ok(found) => completions.extend(found),
                Err(fault) => {
                    if completions.len() == before {
                        seen.outcome = Outcome::Failed;
                    }
                    self.fault(seen, fault.kind);
                    break;
                }
            }
        }
    }

    /// Compares timestamps, but not those of flushed requests, which have none.
    fn timestamps(&self, played: &mut Played, ours: &[WorkCompletion]) {
        for (wc, completion) in ours.iter().zip(&mut played.ours.completions) {
            if wc.status != WcStatus::WrFlush {
                completion.timestamp = Some(wc.timestamp);
                completion.wallclock = self.setup.clock.map(|clock| clock.ns(wc.timestamp));
            }
        }
        for completion in &mut played.theirs.completions {
            if completion.status == WcStatus::WrFlush as u32 {
                (completion.timestamp, completion.wallclock) = (None, None);
            }
        }
        if self.quirks.iter().any(|quirks| quirks.local) {
            for (index, completion) in played.theirs.completions.iter().enumerate() {
                let times = [("timestamp", completion.timestamp), ("wallclock", completion.wallclock)];
                played.allowances.extend(times.map(|(field, theirs)| Allowance {
                    exception: &known::TIMESTAMP_BY_MESSAGE_NUMBER,
                    allowed: Allowed::Field { index, field, theirs },
                }));
            }
        }
    }

    /// A fault that the core has told of is that of the senseless CQE, or a difference.
    fn fault(&self, ours: &mut Observed, kind: FaultKind) {
        match &self.senseless {
            Some((senseless, _)) if senseless.fault == kind => {}
            _ => ours.values.push(("fault", 1)),
        }
    }

    /// Notes what completed, and where lengths of atomics may differ.
    fn reported(&mut self, played: &mut Played, ours: &[WorkCompletion]) {
        for (index, wc) in ours.iter().enumerate() {
            let Some(qp) = self.queues.iter().position(|queues| queues.id == wc.qp) else { continue };
            if let Some(length) = self.quirks[qp].atomic_length(wc.wr_id, wc.opcode)
                && wc.status == WcStatus::Success
            {
                let allowed = Allowed::Field { index, field: "byte_len", theirs: Some(length.into()) };
                played.allow(&known::ATOMIC_LENGTH_IS_STALE, allowed);
            }
            if wc.status != WcStatus::WrFlush {
                self.quirks[qp].received(wc.wr_id);
            } else {
                self.lost_credit += 1;
            }
        }
    }

    /// Where flushes may differ.
    fn flushed(&mut self, played: &mut Played, ours: &[WorkCompletion], full: bool) {
        let flush = |wc: &Completion| wc.status == WcStatus::WrFlush as u32;
        let rest = |list: &[Completion]| -> Vec<u64> {
            list.iter().filter(|wc| !flush(wc)).map(|wc| wc.wr_id).collect()
        };
        let numbers = |list: &[Completion]| -> Vec<u64> {
            list.iter().filter(|wc| flush(wc)).map(|wc| wc.wr_id).collect()
        };
        let extended = self.nature.poll == Poll::Extended;
        self.flush_may_be_lost |= extended && self.failing();
        let (theirs, mine) = (&played.theirs.completions, &played.ours.completions);
        let (their_flush, our_flush) = (numbers(theirs), numbers(mine));
        if their_flush != our_flush && rest(theirs) == rest(mine) {
            let of = |wc: &WorkCompletion| self.queues.iter().position(|queues| queues.id == wc.qp);
            let missing = ours.iter().filter(|wc| !their_flush.contains(&wc.wr_id));
            let receive = |wc: &WorkCompletion| of(wc).is_some_and(|qp| self.quirks[qp].is_receive(wc.wr_id));
            let wrong = |qp: usize| self.quirks[qp].flush_is_wrong();
            let missing: Vec<&WorkCompletion> = missing.filter(|wc| wc.status == WcStatus::WrFlush).collect();
            let receives = missing.iter().all(|wc| receive(wc));
            if (0..self.queues.len()).any(wrong) && receives {
                self.anything(played, &known::RECV_FLUSH_BY_RING_INDEX);
            } else if self.flush_may_be_lost {
                self.anything(played, &known::FLUSH_IS_LOST);
            }
        }
        for wc in ours.iter().filter(|wc| wc.status == WcStatus::WrFlush) {
            if let Some(qp) = self.queues.iter().position(|queues| queues.id == wc.qp) {
                self.quirks[qp].received(wc.wr_id);
            }
        }
        self.flush_may_be_lost |= full && self.failing();
    }

    /// There is a queue that flushes.
    fn failing(&self) -> bool {
        self.ours.qps.iter().any(|qp| qp.send_queue().state().flush || qp.recv_queue().state().flush)
    }

    fn reset(&mut self, qp: usize, psn: u32) -> Result<Played, Error> {
        let mut played = Played::default();
        let color = self.ours.qps[qp].send_queue().state().color;
        let queue_pair = &self.ours.qps[qp];
        self.lost_credit += queue_pair.send_queue().outstanding() + queue_pair.recv_queue().outstanding();
        self.theirs.reset(qp, psn)?;
        self.ours.reset(qp);
        let messages_off = self.quirks[qp].messages_off != 0;
        self.queues[qp].reset();
        self.quirks[qp].reset(color);
        let plan = &self.setup.plan;
        for (area, ring) in [(SEND[qp], plan.sq.ring), (RECV[qp], plan.rq.ring)] {
            let allowed = Allowed::Bytes { area, range: 0..ring.bytes() };
            played.allow(&known::RESET_LEAVES_ENTRIES, allowed);
        }
        if messages_off {
            // It may have read fewer CQEs so far.
            self.anything(&mut played, &known::ABORT_KEEPS_MESSAGE_NUMBERS);
        }
        Ok(played)
    }

    /// Where credit is lost, the consumer doorbell comes earlier.
    fn credit(&self, played: &mut Played) {
        if self.lost_credit == 0 || played.theirs.accesses == played.ours.accesses {
            return;
        }
        let register = self.setup.caps.cq_qtype.register() * 8;
        let consumer = |access: &&Access| match access {
            Access::Store { page, offset, value } => {
                *page == DOORBELL
                    && *offset == register
                    && DoorbellWord::from_bits(*value).ring() == DbRing::Index as u8
            }
            _ => false,
        };
        let extra: Vec<Access> = played
            .theirs
            .accesses
            .iter()
            .filter(consumer)
            .filter(|access| !played.ours.accesses.contains(access))
            .copied()
            .collect();
        if !extra.is_empty() {
            played.parted = true;
        }
        for access in extra {
            played.allow(&known::FLUSH_KEEPS_CREDIT, Allowed::OnlyTheirs(access));
        }
    }
}

impl Played {
    /// A difference that `exception` explains.
    fn allow(&mut self, exception: &'static Exception, allowed: Allowed) {
        self.allowances.push(Allowance { exception, allowed });
    }
}

impl Pair for Both {
    type Error = Error;

    fn play(&mut self, step: &Step) -> Result<Played, Error> {
        let mut played = match step {
            Step::PostSend { qp, interface: Interface::List, requests } => self.post_list(*qp, requests)?,
            Step::PostSend { qp, interface, requests } => self.build(*qp, *interface, requests)?,
            Step::PostRecv { qp, requests } => self.post_recv(*qp, requests),
            Step::Device(events) => {
                for event in events {
                    self.event(event);
                }
                Played::default()
            }
            Step::Poll { budget } => self.poll(*budget),
            Step::Arm { solicited } => {
                self.theirs.arm(*solicited)?;
                for cq in &mut self.ours.cqs {
                    cq.arm(*solicited);
                }
                Played::default()
            }
            Step::Fail { qp } => {
                self.theirs.fail(*qp)?;
                self.ours.qps[*qp].set_error();
                self.queues[*qp].failed = true;
                Played::default()
            }
            Step::Reset { qp, psn } => self.reset(*qp, *psn)?,
            Step::PostShared(_) | Step::ArmShared { .. } | Step::Resize { .. } => Played::default(),
        };
        played.theirs.accesses = self.theirs.accesses();
        played.ours.accesses = self.ours.accesses();
        self.credit(&mut played);
        if let Some((senseless, _)) = self.senseless
            && (senseless.told == Told::Yes || matches!(step, Step::Reset { .. }))
        {
            self.anything(&mut played, senseless.exception);
        }
        Ok(played)
    }

    fn areas(&self) -> Vec<Area> {
        let mut areas = Vec::new();
        let plan = &self.setup.plan;
        let (sq, rq) = (plan.sq.ring.bytes(), plan.rq.ring.bytes());
        for (qp, rings) in self.ours.rings.iter().enumerate() {
            let theirs = &self.theirs;
            areas.push(Area { name: SEND[qp], theirs: theirs.send_ring(qp), ours: rings.sq.read(0, sq) });
            areas.push(Area { name: RECV[qp], theirs: theirs.recv_ring(qp), ours: rings.rq.read(0, rq) });
            if let Some(cmb) = &rings.sq_cmb {
                areas.push(Area {
                    name: SEND_CMB[qp],
                    theirs: theirs.send_cmb(qp, sq),
                    ours: cmb.read(0, sq),
                });
            }
            if let Some(cmb) = &rings.rq_cmb {
                areas.push(Area {
                    name: RECV_CMB[qp],
                    theirs: theirs.recv_cmb(qp, rq),
                    ours: cmb.read(0, rq),
                });
            }
        }
        let len = self.setup.cq_plan.ring.bytes();
        for (cq, rings) in self.ours.cq_rings.iter().enumerate() {
            for (udma, ring) in rings.iter().enumerate() {
                if let Some(ring) = ring {
                    let theirs = self.theirs.completion_ring(cq, udma);
                    areas.push(Area { name: CQ[cq][udma], theirs, ours: ring.read(0, len) });
                }
            }
        }
        areas
    }

    /// The fault is in theirs, and our bookkeeping knows what our entries hold: theirs get our bytes.
    fn reconcile(&mut self, area: &'static str, offset: usize, bytes: &[u8]) {
        let place = |names: &[&str]| names.iter().position(|name| *name == area);
        if let Some(qp) = place(&SEND) {
            self.theirs.mend_send(qp, offset, &self.ours.rings[qp].sq.read(offset, bytes.len()));
        } else if let Some(qp) = place(&RECV) {
            self.theirs.mend_recv(qp, offset, &self.ours.rings[qp].rq.read(offset, bytes.len()));
        } else if let Some(qp) = place(&SEND_CMB)
            && let Some(cmb) = &self.ours.rings[qp].sq_cmb
        {
            self.theirs.mend_send_cmb(qp, offset, &cmb.read(offset, bytes.len()));
        }
    }

    fn layout_at(&self, area: &Area, offset: usize) -> Option<(&'static Layout, usize)> {
        super::describe::layout_at(&self.setup, area, offset)
    }

    fn describe(&self, access: &Access) -> String {
        super::describe::access(&self.setup, access)
    }
}
