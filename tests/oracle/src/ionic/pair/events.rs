//! What the device reports, to both sides.

use directverbs::ionic::cqe::{CqeType, QidTypeFlags};
use directverbs::verbs::{QpId, WcStatus};

use super::Both;
use crate::case::{Dice, Event};
use crate::ionic::device::{CqProducer, Cqe, Queues, code};
use crate::ionic::exceptions::{self as known};
use crate::ionic::senseless::{Senseless, Told};

impl Both {
    /// Entry that our side reads next.
    pub(super) fn next_entry(&self, cq: usize, udma: u8) -> u16 {
        self.ours.cqs[cq].ring(udma).map_or(0, |ring| ring.state().prod)
    }

    /// Most CQEs of a ring that were not polled.
    pub(super) fn unread(&self) -> u16 {
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

    pub(super) fn event(&mut self, event: &Event) {
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
                let gone = Queues::new(QpId::MAX, 0, 0, 0);
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
}
