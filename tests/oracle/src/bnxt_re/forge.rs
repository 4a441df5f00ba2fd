//! The device's part: CQEs for what a step says the device reports.

use std::collections::BTreeSet;

use directverbs::bnxt_re::cqe::{CqeType, ReqStatus, ResStatus};
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::QpType;

use super::ours::Ours;
use crate::case::{Dice, Event, Message};

/// A CQE without handle and phase, and where both belong.
#[derive(Clone, Copy, Debug)]
pub struct Cqe {
    /// Four words.
    pub words: [u64; 4],
    /// Word of the handle, and the queue pair.
    pub handle: Option<(usize, usize)>,
    /// Place of the completion queue.
    pub cq: usize,
}

/// What the device knows of a queue pair.
#[derive(Clone, Debug, Default)]
pub struct DeviceQp {
    /// WQE index up to which send requests are reported.
    sent: u32,
    /// WQE index up to which receive requests are reported.
    received: u32,
    /// In error: it reports nothing more.
    dead: bool,
}

/// The device.
#[derive(Clone, Debug, Default)]
pub struct Device {
    qps: Vec<DeviceQp>,
    /// Tags of shared receive requests that are reported.
    taken: BTreeSet<u32>,
    /// An error CQE names another request than the oldest outstanding.
    pub later_failure: bool,
    /// A receive CQE names another request than the oldest outstanding.
    pub wrong_tag: bool,
    noises: u32,
}

const FLAG_SRQ: u64 = 1;
const FLAG_IMM: u64 = 2;
const FLAG_INV: u64 = 4;
const FLAG_RDMA: u64 = 8;

const fn last(cqe_type: CqeType, status: u8, flags: u64, tag: u32) -> u64 {
    (cqe_type.0 as u64) << 1 | (status as u64) << 8 | flags << 16 | (tag as u64) << 32
}

impl Device {
    /// A device with so many queue pairs.
    pub fn new(qps: usize) -> Self {
        Self { qps: vec![DeviceQp::default(); qps], ..Self::default() }
    }

    /// The queue pair was reset: it begins anew. Shared requests whose CQEs were forgotten stay lost.
    pub fn reset(&mut self, qp: usize) {
        self.qps[qp] = DeviceQp::default();
    }

    /// The queue pair was put into error.
    pub fn kill(&mut self, qp: usize) {
        self.qps[qp].dead = true;
    }

    /// The request with this tag is back in the driver's hands.
    pub fn returned(&mut self, posted: impl Fn(u32) -> bool) {
        self.taken.retain(|tag| posted(*tag));
    }

    /// The CQE of a terminal error.
    pub fn terminal(&self, qp: usize, cq: usize) -> Cqe {
        let state = &self.qps[qp];
        let index = u64::from(state.sent) | u64::from(state.received) << 16;
        Cqe { words: [0, index, 0, last(CqeType::TERMINAL, 0, 0, 0)], handle: Some((0, qp)), cq }
    }

    /// The cut-off of a resize.
    pub fn cut_off(toggle: u32, cq: usize) -> Cqe {
        let words = [0, 0, 0, last(CqeType::CUT_OFF, 0, 0, 0) | u64::from(toggle & 3) << 5];
        Cqe { words, handle: None, cq }
    }

    /// The CQE for an event; `None` if there is nothing to report.
    pub fn cqe(&mut self, ours: &Ours, cqs: (usize, usize), event: &Event) -> Option<Cqe> {
        match *event {
            Event::Sent { qp, count } => {
                let (outstanding, records) = self.outstanding(ours, qp)?;
                let index = (self.qps[qp].sent + 1 + count.below(outstanding)) % records;
                self.qps[qp].sent = index;
                Some(requester(qp, cqs.0, ReqStatus::OK, index))
            }
            Event::SendFailed { qp, which, status } => {
                let (outstanding, records) = self.outstanding(ours, qp)?;
                let position = which.below(outstanding);
                let failing = (self.qps[qp].sent + position) % records;
                // Static mode counts as success does; variable mode names the WQE's slot.
                let index = match ours.qp_plans[qp].send.mode {
                    WqeMode::Static => (failing + 1) % records,
                    WqeMode::Variable => ours.outstanding(qp).find(|wqe| wqe.0 == failing)?.1,
                };
                self.later_failure |= position != 0;
                self.qps[qp].dead = true;
                Some(requester(qp, cqs.0, ReqStatus::from_status(status)?, index))
            }
            Event::Received { qp, which, length, message, src_qp } => {
                let (tag, shared) = self.take(ours, qp, which)?;
                let (flags, key) = match message {
                    Message::Plain => (0, 0),
                    Message::Imm(imm) => (FLAG_IMM, imm),
                    Message::WriteImm(imm) => (FLAG_IMM | FLAG_RDMA, imm),
                    Message::Invalidated(key) => (FLAG_INV, key),
                };
                let mut cqe = responder(ours, qp, cqs.1, ResStatus::OK, flags | shared, tag);
                cqe.words[0] = u64::from(length) | u64::from(key) << 32;
                if ours.qps[qp].qp.qp_type() == QpType::Ud {
                    // The version of IP comes as service level.
                    cqe.words[3] |= u64::from(length & 3) << (16 + 4) | u64::from(src_qp >> 16) << 56;
                    cqe.words[2] = u64::from(src_qp & 0xffff) << 48 | 0x0200_5e00_0001;
                }
                Some(cqe)
            }
            Event::RecvFailed { qp, which, status } => {
                let (tag, shared) = self.take(ours, qp, which)?;
                self.qps[qp].dead = true;
                Some(responder(ours, qp, cqs.1, ResStatus::from_status(status)?, shared, tag))
            }
            Event::Fatal { qp } => {
                self.qps[qp].dead = true;
                Some(self.terminal(qp, cqs.0))
            }
            Event::Gone => Some(Cqe { handle: None, ..requester(0, cqs.0, ReqStatus::OK, 1) }),
            Event::Nothing => Some(self.nothing(ours, cqs)),
            Event::Senseless { qp, .. } => self.wrong_tag(ours, qp, cqs.1),
        }
    }

    /// A CQE that names another receive request than the oldest.
    fn wrong_tag(&mut self, ours: &Ours, qp: usize, cq: usize) -> Option<Cqe> {
        let (tag, _) = self.take(ours, qp, Dice(0))?;
        let wqes = ours.qp_plans[qp].recv.as_ref()?.wqes;
        self.wrong_tag = true;
        Some(responder(ours, qp, cq, ResStatus::OK, 0, (tag + 1) % wqes))
    }

    /// A CQE that completes nothing: one without meaning, or a flush inside the device.
    fn nothing(&mut self, ours: &Ours, cqs: (usize, usize)) -> Cqe {
        self.noises += 1;
        let own = ours.qps[0].qp.recv.is_some();
        if own && self.noises.is_multiple_of(2) {
            return responder(ours, 0, cqs.1, ResStatus::HW_FLUSH_ERR, 0, 0);
        }
        Cqe { words: [0, 0, 0, last(CqeType::NO_OP, 0, 0, 0)], handle: None, cq: cqs.0 }
    }

    /// Send requests that the device has not reported yet, and the modulus of their indices.
    fn outstanding(&self, ours: &Ours, qp: usize) -> Option<(u32, u32)> {
        let state = &self.qps[qp];
        let records = ours.qp_plans[qp].send.records;
        let next = ours.qps[qp].qp.send.state().next;
        let outstanding = (next + records - state.sent) % records;
        (outstanding != 0 && !state.dead).then_some((outstanding, records))
    }

    /// A receive request that the device has not reported yet: its number, and the flag of shared ones.
    fn take(&mut self, ours: &Ours, qp: usize, which: Dice) -> Option<(u32, u64)> {
        if self.qps[qp].dead {
            return None;
        }
        if let Some(recv) = &ours.qps[qp].qp.recv {
            let tag = self.qps[qp].received;
            if tag == recv.state().next {
                return None;
            }
            let wqes = ours.qp_plans[qp].recv.as_ref()?.wqes;
            self.qps[qp].received = (tag + 1) % wqes;
            return Some((tag, 0));
        }
        ours.qps[qp].qp.srq()?;
        let records = ours.srqs.first()?.srq.records();
        let posted = |tag: &u32| records[*tag as usize].posted && !self.taken.contains(tag);
        let tags: Vec<u32> = (0..records.len() as u32).filter(posted).collect();
        let tag = *tags.get(which.below(tags.len() as u32) as usize)?;
        self.taken.insert(tag);
        Some((tag, FLAG_SRQ))
    }
}

fn requester(qp: usize, cq: usize, status: ReqStatus, index: u32) -> Cqe {
    let words = [0, u64::from(index & 0xffff), 0, last(CqeType::REQ, status.0, 0, 0)];
    Cqe { words, handle: Some((0, qp)), cq }
}

fn responder(ours: &Ours, qp: usize, cq: usize, status: ResStatus, flags: u64, tag: u32) -> Cqe {
    let cqe_type = match ours.qps[qp].qp.qp_type() {
        QpType::Rc => CqeType::RES_RC,
        QpType::Ud => CqeType::RES_UD,
        QpType::RawPacket => CqeType::RES_RAWETH_QP1,
    };
    Cqe { words: [0, 0, 0, last(cqe_type, status.0, flags, tag)], handle: Some((1, qp)), cq }
}
