//! Polling both sides.

use directverbs::verbs::{FaultKind, WcStatus, WorkCompletion};

use super::{Both, Poll};
use crate::case::{Allowance, Allowed, Completion, Observed, Outcome, Played};
use crate::ionic::exceptions::{self as known};
use crate::ionic::senseless::{Senseless, Told};

impl Both {
    pub(super) fn poll(&mut self, budget: u32) -> Played {
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
}
