//! The provider's queues and ours side by side.

use std::collections::HashSet;
use std::rc::Rc;

use directverbs::bnxt_re::cqe::CQE_BYTES;
use directverbs::bnxt_re::doorbell::DbWord;
use directverbs::bnxt_re::recv::RecvState;
use directverbs::bnxt_re::send::SendState;
use directverbs::layout::Layout;
use directverbs::verbs::{Mtu, Psn, QpState};

use super::areas;
use super::bell::{DOORBELL, Fifo, NOTIFY, fifo_register};
use super::exceptions::RESET_KEEPS;
use super::forge::{Cqe, Device};
use super::mode::Mode;
use super::ours::Ours;
use super::theirs::Theirs;
use crate::case::{
    Access, Allowance, Allowed, Area, Event, Exception, Interface, Observed, Outcome, Pair, Played, Step,
};

/// Where the device writes the next CQE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Producer {
    index: u32,
    phase: bool,
}

/// A fresh ring.
pub(super) const FRESH: Producer = Producer { index: 0, phase: true };

/// The provider's queues and ours.
#[derive(Debug)]
pub struct BnxtRePair<'m> {
    /// The provider's.
    pub theirs: Theirs,
    /// Ours.
    pub ours: Ours,
    pub(super) mode: &'m Mode,
    pub(super) device: Device,
    pub(super) producers: Vec<Producer>,
    fifo: Option<Rc<Fifo>>,
    /// Requests that complete with an operation that the provider does not know.
    pub(super) nameless: HashSet<u64>,
    /// CQEs that the provider has counted for the next deferred doorbell.
    pub(super) counted: Vec<u32>,
    /// Limit of the shared receive queue that the provider has not armed yet.
    pub(super) limit: Option<u32>,
    /// The provider defers doorbells of the completion queue.
    pub(super) deferred: Vec<bool>,
    pub(super) toggles: u32,
    path_mtu: Mtu,
}

/// A difference that an exception explains.
pub(super) fn allow(exception: &'static Exception, allowed: Allowed) -> Allowance {
    Allowance { exception, allowed }
}
impl<'m> BnxtRePair<'m> {
    /// Puts both sides together; their queues exist, in state RESET.
    pub fn new(mode: &'m Mode, theirs: Theirs, ours: Ours, fifo: Option<Rc<Fifo>>, path_mtu: Mtu) -> Self {
        let (qps, cqs) = (ours.qps.len(), ours.cqs.len());
        let deferred = ours.cq_plans.iter().map(|plan| plan.deferred).collect();
        Self {
            theirs,
            ours,
            mode,
            device: Device::new(qps),
            producers: vec![FRESH; cqs],
            fifo,
            nameless: HashSet::new(),
            counted: vec![0; cqs],
            limit: None,
            deferred,
            toggles: 0,
            path_mtu,
        }
    }

    /// Makes a queue pair ready to send on both sides.
    pub fn connect(&mut self, qp: usize, psn: u32) -> Result<(), super::Error> {
        let psn = Psn::truncated(psn);
        for attributes in super::theirs::transitions(self.mode.qp_type, self.path_mtu, psn) {
            self.theirs.modify(qp, &attributes)?;
            self.ours.qps[qp].qp.modify(&attributes)?;
        }
        Ok(())
    }

    pub(super) fn cqs(&self) -> (usize, usize) {
        if self.mode.two_cqs { (0, 1) } else { (0, 0) }
    }

    /// Writes a CQE into both queues. One for which there is no room is not written.
    pub(super) fn write_cqe(&mut self, cqe: &Cqe) {
        let (cq, entries) = (cqe.cq, self.ours.cqs[cqe.cq].cq.entries());
        let Producer { index, phase } = self.producers[cq];
        let at = (index * CQE_BYTES) as usize;
        let bytes = |handle: u64| {
            let mut words = cqe.words;
            words[3] |= u64::from(phase);
            if let Some((word, _)) = cqe.handle {
                words[word] |= handle;
            }
            words.map(u64::to_le_bytes).concat()
        };
        let (theirs, ours) = match cqe.handle {
            Some((_, qp)) => (self.theirs.handle(qp), qp as u64 + 1),
            None => (0, 0),
        };
        self.theirs.write_cq(cq, at, &bytes(theirs));
        self.ours.cq_memory[cq].write(at, &bytes(ours));
        let next = index + 1;
        self.producers[cq] = match next == entries {
            true => Producer { index: 0, phase: !phase },
            false => Producer { index: next, phase },
        };
    }

    /// CQEs that the poller has not consumed.
    pub(super) fn waiting(&self, cq: usize) -> u32 {
        let queue = &self.ours.cqs[cq].cq;
        (self.producers[cq].index + queue.entries() - queue.state().head) % queue.entries()
    }

    /// There is room for another CQE, and for the cut-off of a resize.
    fn has_room(&self, cq: usize) -> bool {
        self.waiting(cq) + 2 < self.ours.cqs[cq].cq.entries()
    }

    pub(super) fn report(&mut self, events: &[Event]) {
        for event in events {
            let cqs = self.cqs();
            if !self.has_room(cqs.0) || !self.has_room(cqs.1) {
                return;
            }
            if let Some(cqe) = self.device.cqe(&self.ours, cqs, event) {
                self.write_cqe(&cqe);
            }
        }
    }

    fn fail(&mut self, qp: usize) -> Result<Played, super::Error> {
        let (send_cq, recv_cq) = self.cqs();
        if !self.has_room(send_cq) || !self.has_room(recv_cq) {
            return Ok(Played::default());
        }
        let attributes = super::theirs::to_state(QpState::Err);
        self.theirs.modify(qp, &attributes)?;
        self.ours.qps[qp].qp.modify(&attributes)?;
        self.device.kill(qp);
        // The device's answer.
        for cq in [send_cq, recv_cq] {
            let terminal = self.device.terminal(qp, cq);
            self.write_cqe(&terminal);
            if send_cq == recv_cq {
                break;
            }
        }
        Ok(self.played(Outcome::Done, Outcome::Done, Vec::new(), false))
    }

    fn reset(&mut self, qp: usize, psn: u32) -> Result<Played, super::Error> {
        let attributes = super::theirs::to_state(QpState::Reset);
        self.theirs.modify(qp, &attributes)?;
        let queue = &mut self.ours.qps[qp].qp;
        let send = queue.send.state();
        let recv_epoch = queue.recv.as_ref().is_some_and(|recv| recv.state().epoch);
        queue.modify(&attributes)?;
        let fresh = queue.send.state();
        let mut assumed: Vec<&'static Exception> = Vec::new();
        if send.epoch || send.msn != 0 {
            queue.send.restore(&SendState { epoch: send.epoch, msn: send.msn, ..fresh })?;
            assumed.push(&RESET_KEEPS);
        }
        if let Some(recv) = queue.recv.as_mut().filter(|_| recv_epoch) {
            recv.restore(&RecvState { epoch: true, ..RecvState::default() })?;
            assumed.push(&RESET_KEEPS);
        }
        for cq in &mut self.ours.cqs {
            cq.cq.forget(qp as u32 + 1);
        }
        self.device.reset(qp);
        self.connect(qp, psn)?;
        Ok(Played { assumed, ..self.played(Outcome::Done, Outcome::Done, Vec::new(), false) })
    }

    pub(super) fn played(
        &mut self,
        theirs: Outcome,
        ours: Outcome,
        allowances: Vec<Allowance>,
        parted: bool,
    ) -> Played {
        let mut observed = [self.theirs.take(), self.ours.log.take()].map(|accesses| {
            let notified = accesses.iter().filter(|access| **access == Access::Call(NOTIFY)).count();
            let accesses = accesses.into_iter().filter(|access| *access != Access::Call(NOTIFY)).collect();
            let notified = if parted { 0 } else { notified as u64 };
            Observed { accesses, values: vec![("notified", notified)], ..Observed::default() }
        });
        observed[0].outcome = theirs;
        observed[1].outcome = ours;
        let [theirs, ours] = observed;
        Played { theirs, ours, allowances, assumed: Vec::new(), parted }
    }

    /// Fills the doorbell FIFO, on both sides.
    fn fill_fifo(&mut self) {
        const NOTIFICATIONS: u32 = 3;
        if let (Some(fifo), Some(pacing)) = (&self.fifo, &self.mode.config.pacing) {
            fifo.left.set(NOTIFICATIONS);
            let parameters = super::theirs::pacing(pacing);
            let [full, empty] = [true, false].map(|full| fifo_register(&parameters, full));
            self.theirs.fill_fifo(&parameters, full, NOTIFICATIONS, empty);
        }
    }
}

impl Pair for BnxtRePair<'_> {
    type Error = super::Error;

    fn play(&mut self, step: &Step) -> Result<Played, super::Error> {
        self.fill_fifo();
        Ok(match step {
            Step::PostSend { qp, interface: Interface::List, requests } => self.post_send(*qp, requests),
            Step::PostSend { qp, interface, requests } => {
                self.build(*qp, requests, *interface == Interface::Abort)
            }
            Step::PostRecv { qp, requests } => {
                let theirs = self.theirs.post_recv(*qp, requests);
                let ours = self.ours.post_recv(*qp, requests);
                self.played(theirs, ours, Vec::new(), false)
            }
            Step::PostShared(requests) => self.post_shared(requests),
            Step::Device(events) => {
                self.report(events);
                Played::default()
            }
            Step::Poll { budget } => self.poll(*budget),
            Step::Arm { solicited } => self.arm(*solicited)?,
            Step::ArmShared { limit } => self.arm_shared(*limit)?,
            Step::Resize { cqe } => self.resize(*cqe)?,
            Step::Fail { qp } => self.fail(*qp)?,
            Step::Reset { qp, psn } => self.reset(*qp, *psn)?,
        })
    }

    fn areas(&self) -> Vec<Area> {
        areas::all(&self.theirs, &self.ours)
    }

    fn reconcile(&mut self, area: &'static str, offset: usize, bytes: &[u8]) {
        areas::write(&self.ours, area, offset, bytes);
    }

    fn layout_at(&self, area: &Area, offset: usize) -> Option<(&'static Layout, usize)> {
        areas::layout_at(&self.ours, area, offset)
    }

    fn describe(&self, access: &Access) -> String {
        match access {
            Access::Store { page: DOORBELL, offset, value } => {
                let word = DbWord::from_u64(*value);
                format!(
                    "doorbell[{offset}]: type {:#x} id {} index {} epoch {} toggle {}",
                    word.db_type().code(),
                    word.xid().get(),
                    word.index().get(),
                    u8::from(word.epoch().0),
                    word.toggle().get()
                )
            }
            other => format!("{other:x?}"),
        }
    }
}
