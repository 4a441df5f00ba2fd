//! The same queues at libionic and at the core, and what becomes of a step at both.

mod events;
mod poll;
mod post;

use directverbs::ionic::doorbell::{DbRing, DoorbellWord};
use directverbs::layout::Layout;
use directverbs::verbs::QpType;

use super::device::{CqProducer, Noise, Queues};
use super::exceptions::{self as known};
use super::memory::DOORBELL;
use super::ours::{Ours, QPS, RECV_CMB, SEND_CMB, Setup};
use super::quirks::Quirks;
use super::senseless::{Senseless, Told};
use super::theirs::{Error, Theirs};
use crate::case::{Access, Allowance, Allowed, Area, Exception, Interface, Pair, Played, Step};

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
