use std::collections::BTreeMap;

use directverbs::bnxt_re::doorbell::{DbType, DbWord};
use directverbs::bnxt_re::psn::Retransmit;
use directverbs::bnxt_re::wqe::{SLOT_BYTES, STATIC_SLOTS};
use directverbs::verbs::{CqId, QpId, QpState, SrqId, WcStatus};

use super::cq::{Arm, CQE_BYTES, Cq, CqError};
use super::cqe::Cqe;
use super::position::Position;
use super::push::{BUFFER_BYTES, PAGE_BYTES, Push};
use super::qp::Qp;
use super::retransmit::Table;
use super::rq::RecvQueue;
use super::sq::{SendQueue, has_table};
use super::srq::{Srq, SrqArmError};
use super::violation::{Object, Violations};
use super::wqe::Limits;
use super::{RqError, SqError, nq};
use crate::device::{CqConfig, DeviceError, ModifyQp, Notification, QpConfig, RingConfig, SrqConfig};
use crate::fault::Random;
use crate::nic::{FrontEnd, Hardware};
use crate::roce::{Completion, Event, Side};

/// Slots of the longest WQE: the header and 13 SGEs, or the same in inline data.
const MAX_SLOTS: u32 = 15;

/// What a chip is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Retransmit table that it reads.
    pub retransmit: Retransmit,
    /// It counts arms and tells the toggle for the next one.
    pub toggles: bool,
    /// Number of its first push page, which begins the device memory.
    pub push_page: u32,
    /// How often a completion waits to be joined with later ones, in parts per million.
    pub coalesce: u32,
    /// Seed of what is random about it.
    pub seed: u64,
}

impl Config {
    /// BCM575xx. It has no toggles: drivers give processes no page of them, and arms carry zero.
    pub const P5: Self =
        Self { retransmit: Retransmit::PsnExt, toggles: false, push_page: 1, coalesce: 0, seed: 0 };
    /// BCM5760x.
    pub const P7: Self = Self { retransmit: Retransmit::Msn, toggles: true, ..Self::P5 };
}

/// What is in the doorbell FIFO, as a test says: doorbells are carried out at once.
#[derive(Clone, Copy, Debug, Default)]
struct Fifo {
    filled: u32,
    /// Doorbells that leave with each look.
    drain: u32,
}

/// The front end of a bnxt_re NIC.
#[derive(Debug)]
pub struct BnxtRe {
    config: Config,
    random: Random,
    // Ordered, so that the same seed gives the same run.
    qps: BTreeMap<u32, Qp>,
    cqs: BTreeMap<u32, (Cq, u64)>,
    srqs: BTreeMap<u32, Srq>,
    push: Push,
    pushed: u64,
    fifo: Fifo,
    violations: Violations,
    stale_arms: u64,
}

impl BnxtRe {
    /// The front end of a chip.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            random: Random::new(config.seed),
            qps: BTreeMap::new(),
            cqs: BTreeMap::new(),
            srqs: BTreeMap::new(),
            push: Push::default(),
            pushed: 0,
            fifo: Fifo::default(),
            violations: Violations::default(),
            stale_arms: 0,
        }
    }

    /// What the driver did wrong so far.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// Counts what a driver did wrong on a control channel.
    pub(super) fn report(&mut self, reason: impl core::fmt::Display) {
        self.violations.add(Object::Device, reason);
    }

    /// WQEs that came by push so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// From now on the doorbell FIFO seems to hold so many, of which `drain` leave with each look at it.
    pub fn set_fifo(&mut self, filled: u32, drain: u32) {
        self.fifo = Fifo { filled, drain };
    }

    /// Looks at the doorbell FIFO: what is in it, before some leave.
    pub(super) fn take_from_fifo(&mut self) -> u32 {
        let filled = self.fifo.filled;
        self.fifo.filled = filled.saturating_sub(self.fifo.drain);
        filled
    }

    /// Arms that were dropped because their toggle was not the current one. That is what toggles are for: an arm that is
    /// stored twice, or answers an event that is not the last, does no harm.
    pub fn stale_arms(&self) -> u64 {
        self.stale_arms
    }

    /// How often a completion waits to be joined with later ones, in parts per million.
    pub fn set_coalesce(&mut self, ppm: u32) {
        self.config.coalesce = ppm;
    }

    /// Toggle for the next arm of a completion queue.
    pub fn cq_toggle(&self, cq: CqId) -> Option<u8> {
        self.cqs.get(&cq.get()).map(|(cq, _)| cq.toggle())
    }

    /// Toggle for the next arm of a shared receive queue.
    pub fn srq_toggle(&self, srq: SrqId) -> Option<u8> {
        self.srqs.get(&srq.get()).map(|srq| srq.toggle)
    }

    /// The notification queue entry for what the host is told, if it goes through that queue.
    pub fn nqe(&self, notification: &Notification, phase: bool) -> Option<[u8; nq::NQE_BYTES]> {
        match notification {
            Notification::Cq(id) => {
                let (cq, handle) = self.cqs.get(&id.get())?;
                Some(nq::completion(*handle, cq.toggle(), phase))
            }
            Notification::SrqLimit(id) => {
                let srq = self.srqs.get(&id.get())?;
                Some(nq::srq_limit(srq.handle, srq.toggle, phase))
            }
            _ => None,
        }
    }

    fn ring(&mut self, hardware: &mut Hardware, page: u32, register: usize, word: DbWord) {
        let xid = word.xid().get();
        let at = Position { index: word.index().get(), epoch: word.epoch().0 };
        let toggle = word.toggle().get();
        match word.db_type() {
            DbType::PUSH_START | DbType::PUSH_END => self.push_doorbell(hardware, page, register, word),
            DbType::NULL => {}
            _ if register != 0 => {
                self.violations.add(Object::Device, format_args!("doorbell at register {register}"));
            }
            DbType::SQ => self.send_doorbell(hardware, QpId::truncated(xid), at),
            DbType::RQ => self.recv_doorbell(hardware, QpId::truncated(xid), at),
            DbType::SRQ => self.srq_doorbell(hardware, SrqId::truncated(xid), at),
            DbType::SRQ_ARM => self.srq_arm(hardware, SrqId::truncated(xid), at.index, toggle),
            DbType::SRQ_ARMENA => match self.srqs.get_mut(&xid) {
                Some(srq) => srq.arm_enabled = true,
                None => self.violations.add(Object::Srq(SrqId::truncated(xid)), "no such queue"),
            },
            DbType::CQ | DbType::CQ_ARMSE | DbType::CQ_ARMALL | DbType::CQ_ARMENA | DbType::CQ_CUTOFF_ACK => {
                self.cq_doorbell(hardware, word.db_type(), CqId::truncated(xid), at, toggle);
            }
            other => {
                self.violations.add(Object::Device, format_args!("doorbell of type {:#x}", other.code()));
            }
        }
    }

    fn send_doorbell(&mut self, hardware: &mut Hardware, id: QpId, to: Position) {
        let Some(qp) = self.qps.get_mut(&id.get()) else {
            return self.violations.add(Object::Qp(id), "SQ doorbell, no such queue pair");
        };
        match qp.state {
            QpState::Rts | QpState::Sqd => {}
            // In error the device fetches nothing: the driver flushes what it has posted.
            QpState::Err | QpState::Sqe => return,
            state => return self.violations.add(Object::Qp(id), format_args!("SQ doorbell in {state:?}")),
        }
        if let Err(error) = qp.sq.produce(hardware, id, to) {
            self.send_error(hardware, id, &error);
        }
    }

    fn send_error(&mut self, hardware: &mut Hardware, id: QpId, error: &SqError) {
        self.violations.add(Object::Qp(id), error);
        if error.is_fatal()
            && let Err(error) = hardware.fail_qp(id, Side::Send, WcStatus::Fatal)
        {
            self.violations.add(Object::Qp(id), error);
        }
    }

    fn recv_doorbell(&mut self, hardware: &mut Hardware, id: QpId, to: Position) {
        let Some(qp) = self.qps.get_mut(&id.get()) else {
            return self.violations.add(Object::Qp(id), "RQ doorbell, no such queue pair");
        };
        match (qp.state, &mut qp.rq) {
            (QpState::Err, _) => {}
            (QpState::Reset, _) => self.violations.add(Object::Qp(id), "RQ doorbell in Reset"),
            (_, None) => self.violations.add(Object::Qp(id), "RQ doorbell, but it has no receive queue"),
            (_, Some(rq)) => {
                let result = rq.produce(hardware, to, |hardware, work| hardware.post_recv(id, work));
                self.recv_result(Object::Qp(id), result);
            }
        }
    }

    fn srq_doorbell(&mut self, hardware: &mut Hardware, id: SrqId, to: Position) {
        let Some(srq) = self.srqs.get_mut(&id.get()) else {
            return self.violations.add(Object::Srq(id), "SRQ doorbell, no such queue");
        };
        let result = srq.queue.produce(hardware, to, |hardware, work| hardware.post_srq(id, work));
        self.recv_result(Object::Srq(id), result);
    }

    fn recv_result(&mut self, object: Object, result: Result<(), RqError>) {
        if let Err(error) = result {
            self.violations.add(object, error);
        }
    }

    fn srq_arm(&mut self, hardware: &mut Hardware, id: SrqId, limit: u32, toggle: u8) {
        let Some(srq) = self.srqs.get(&id.get()) else {
            return self.violations.add(Object::Srq(id), "SRQ_ARM, no such queue");
        };
        match srq.arm(toggle, self.config.toggles) {
            Ok(()) => {}
            Err(SrqArmError::StaleToggle { .. }) => return self.stale_arms += 1,
            Err(error) => return self.violations.add(Object::Srq(id), error),
        }
        if let Err(error) = hardware.arm_srq(id, limit) {
            self.violations.add(Object::Srq(id), error);
        }
    }

    fn cq_doorbell(&mut self, hardware: &mut Hardware, kind: DbType, id: CqId, at: Position, toggle: u8) {
        let Some((cq, _)) = self.cqs.get_mut(&id.get()) else {
            return self.violations.add(Object::Cq(id), "CQ doorbell, no such queue");
        };
        let result = match kind {
            DbType::CQ_ARMENA => {
                cq.enable();
                Ok(())
            }
            DbType::CQ_ARMSE => cq.arm(hardware, at, toggle, Arm::Solicited),
            DbType::CQ_ARMALL => cq.arm(hardware, at, toggle, Arm::Any),
            DbType::CQ_CUTOFF_ACK => cq.acknowledge(hardware, at, toggle),
            _ => cq.consume(hardware, at),
        };
        cq.cut_off(hardware, cut_off);
        match result {
            Ok(()) => {}
            Err(CqError::StaleToggle { .. }) => self.stale_arms += 1,
            Err(error) => self.violations.add(Object::Cq(id), error),
        }
    }

    fn push_doorbell(&mut self, hardware: &mut Hardware, page: u32, register: usize, word: DbWord) {
        let id = QpId::truncated(word.xid().get());
        let Some(qp) = self.qps.get(&id.get()) else {
            return self.violations.add(Object::Qp(id), "push, no such queue pair");
        };
        if !(1..=16).contains(&register) {
            return self.violations.add(Object::Qp(id), format_args!("push at register {register}"));
        }
        if word.db_type() == DbType::PUSH_START {
            let push_page = u64::from(word.push_page().get().wrapping_sub(self.config.push_page));
            let buffer = push_page * PAGE_BYTES + (register as u64 - 1) * BUFFER_BYTES;
            if let Err(error) = self.push.start(hardware, page, register, word, id, &qp.sq, buffer) {
                self.violations.add(Object::Qp(id), error);
            }
            return;
        }
        match self.push.end(hardware, page, register, word, id, &qp.sq) {
            Ok(to) => {
                self.pushed += 1;
                self.send_doorbell(hardware, id, to);
            }
            Err(error) => self.violations.add(Object::Qp(id), error),
        }
    }

    fn complete_send(&mut self, hardware: &mut Hardware, completion: &Completion) {
        let Some(qp) = self.qps.get_mut(&completion.qp.get()) else { return };
        let Some(done) = qp.sq.complete() else { return };
        match completion.status {
            // The driver flushes by itself.
            WcStatus::WrFlush => {}
            WcStatus::Success => {
                qp.cons_idx = done.cons_idx;
                if completion.signaled {
                    qp.held = true;
                    if !self.random.happens(self.config.coalesce) {
                        self.release(hardware, completion.qp);
                    }
                }
            }
            status => {
                // The CQE of an error also completes all before it, so a held one may be left to it.
                if qp.held && self.random.happens(500_000) {
                    self.release(hardware, completion.qp);
                }
                let Some(qp) = self.qps.get_mut(&completion.qp.get()) else { return };
                qp.held = false;
                qp.cons_idx = done.cons_idx;
                let index = if qp.sq.is_variable() { done.at } else { done.cons_idx };
                let (cq, cqe) = (qp.send_cq, Cqe::requester(qp.handle, index as u16, status));
                self.write(hardware, cq, true, cqe);
            }
        }
    }

    fn complete_recv(&mut self, hardware: &mut Hardware, completion: &Completion) {
        let Some(qp) = self.qps.get_mut(&completion.qp.get()) else { return };
        if let Some(srq) = completion.srq.and_then(|id| self.srqs.get_mut(&id.get())) {
            srq.queue.complete();
        } else if completion.status == WcStatus::WrFlush {
            // The driver flushes its own receive queue by itself.
            return;
        } else if let Some(rq) = &mut qp.rq {
            rq.complete();
        }
        let (cq, solicited) = (qp.recv_cq, completion.solicited || completion.status != WcStatus::Success);
        let cqe = Cqe::responder(qp.qp_type, completion.token as u32, completion);
        self.write(hardware, cq, solicited, cqe);
    }

    /// Writes the completion that a queue pair holds, if any.
    fn release(&mut self, hardware: &mut Hardware, id: QpId) {
        let Some(qp) = self.qps.get_mut(&id.get()) else { return };
        if std::mem::take(&mut qp.held) {
            let (cq, handle, index) = (qp.send_cq, qp.handle, qp.cons_idx as u16);
            self.write(hardware, cq, false, Cqe::requester(handle, index, WcStatus::Success));
        }
    }

    /// A queue pair has gone into error: tells both of its completion queues.
    fn terminate(&mut self, hardware: &mut Hardware, id: QpId) {
        self.release(hardware, id);
        let Some(qp) = self.qps.get_mut(&id.get()) else { return };
        qp.state = QpState::Err;
        let (handle, send_cq, recv_cq) = (qp.handle, qp.send_cq, qp.recv_cq);
        let sq = Some(qp.cons_idx as u16);
        let rq = qp.rq.as_ref().map(|rq| rq.done() as u16);
        if send_cq == recv_cq {
            self.write(hardware, send_cq, true, Cqe::terminal(handle, sq, rq));
        } else {
            self.write(hardware, send_cq, true, Cqe::terminal(handle, sq, None));
            self.write(hardware, recv_cq, true, Cqe::terminal(handle, None, rq));
        }
    }

    fn write(&mut self, hardware: &mut Hardware, id: CqId, solicited: bool, cqe: Cqe) {
        let Some((cq, _)) = self.cqs.get_mut(&id.get()) else { return };
        let Err(error) = cq.push(hardware, solicited, |phase| cqe.bytes(phase)) else { return };
        if cq.fail() {
            self.violations.add(Object::Cq(id), error);
            hardware.notify(Notification::CqError(id));
            let attached = self.qps.iter().filter(|(_, qp)| qp.send_cq == id || qp.recv_cq == id);
            for (qp, _) in attached {
                let id = QpId::truncated(*qp);
                if let Err(error) = hardware.fail_qp(id, Side::Send, WcStatus::Fatal) {
                    self.violations.add(Object::Qp(id), error);
                }
            }
        }
    }

    fn retransmit(&mut self, hardware: &mut Hardware, id: QpId, token: u64) {
        let Some(qp) = self.qps.get(&id.get()) else { return };
        if let Err(error) = qp.sq.refetch(hardware, token) {
            self.send_error(hardware, id, &error);
        }
    }
}

fn cut_off(phase: bool, toggle: u8) -> [u8; CQE_BYTES as usize] {
    Cqe::cut_off(toggle).bytes(phase)
}

fn check_entries(ring: &RingConfig, stride: u32, bits: u32) -> Result<(), DeviceError> {
    if ring.stride != stride {
        return Err(DeviceError::Invalid("entries of a size that the device does not have"));
    }
    if ring.entries == 0 || ring.entries > 1 << bits {
        return Err(DeviceError::Invalid("a ring without entries, or with more than the device counts"));
    }
    Ok(())
}

/// Checks the ring of a receive queue, and returns the slots of an entry.
fn check_recv(ring: &RingConfig, max_sge: u32) -> Result<u32, DeviceError> {
    let slots = ring.stride / SLOT_BYTES;
    let enough = !ring.stride.is_multiple_of(SLOT_BYTES) || slots < 2 + max_sge.max(1) || slots > MAX_SLOTS;
    if enough {
        return Err(DeviceError::Invalid("receive entries that do not hold their SGEs"));
    }
    check_entries(ring, ring.stride, 20)?;
    Ok(slots)
}

impl FrontEnd for BnxtRe {
    fn create_cq(&mut self, _: &mut Hardware, cq: CqId, config: &CqConfig) -> Result<(), DeviceError> {
        check_entries(&config.ring, CQE_BYTES, 24)?;
        let queue = Cq::new(cq, config.ring.entries, self.config.toggles);
        self.cqs.insert(cq.get(), (queue, config.handle));
        Ok(())
    }

    fn resize_cq(&mut self, hardware: &mut Hardware, cq: CqId, ring: &RingConfig) -> Result<(), DeviceError> {
        check_entries(ring, CQE_BYTES, 24)?;
        let (queue, _) =
            self.cqs.get_mut(&cq.get()).ok_or(DeviceError::NoSuch { object: "CQ", id: cq.get() })?;
        queue.resize(hardware, ring, cut_off).map_err(DeviceError::Invalid)
    }

    fn destroy_cq(&mut self, _: &mut Hardware, cq: CqId) {
        self.cqs.remove(&cq.get());
    }

    fn create_srq(&mut self, _: &mut Hardware, srq: SrqId, config: &SrqConfig) -> Result<(), DeviceError> {
        let max_slots = check_recv(&config.ring, config.max_sge)?;
        let limits = Limits {
            qp_type: directverbs::verbs::QpType::Rc,
            max_sge: config.max_sge,
            max_inline: 0,
            max_slots,
        };
        let queue = RecvQueue::new(config.ring.clone(), limits);
        self.srqs.insert(srq.get(), Srq::new(queue, config.handle));
        Ok(())
    }

    fn destroy_srq(&mut self, _: &mut Hardware, srq: SrqId) {
        self.srqs.remove(&srq.get());
    }

    fn create_qp(&mut self, _: &mut Hardware, qp: QpId, config: &QpConfig) -> Result<(), DeviceError> {
        let variable = config.variable_entries;
        let stride = if variable { SLOT_BYTES } else { STATIC_SLOTS * SLOT_BYTES };
        check_entries(&config.sq, stride, 16)?;
        let limits = Limits {
            qp_type: config.qp_type,
            max_sge: config.capabilities.max_send_sge,
            max_inline: config.capabilities.max_inline_data,
            max_slots: if variable { MAX_SLOTS } else { STATIC_SLOTS },
        };
        let table = match (has_table(config.qp_type), &config.retransmit) {
            (false, _) => None,
            (true, None) => {
                return Err(DeviceError::Invalid("a connected queue pair needs a retransmit table"));
            }
            (true, Some(ring)) => {
                check_entries(ring, self.config.retransmit.entry_bytes(), 16)?;
                if self.config.retransmit != Retransmit::Msn && ring.entries < config.sq.entries {
                    return Err(DeviceError::Invalid("a retransmit table shorter than its queue"));
                }
                Some(Table::new(ring.clone(), self.config.retransmit))
            }
        };
        let rq = match &config.rq {
            None => None,
            Some(ring) => {
                let max_sge = config.capabilities.max_recv_sge;
                let max_slots = check_recv(ring, max_sge)?;
                Some(RecvQueue::new(ring.clone(), Limits { max_sge, max_slots, ..limits }))
            }
        };
        let made = Qp {
            qp_type: config.qp_type,
            state: QpState::Reset,
            handle: config.handle,
            send_cq: config.send_cq,
            recv_cq: config.recv_cq,
            sq: SendQueue::new(config.sq.clone(), variable, limits, table),
            rq,
            cons_idx: 0,
            held: false,
        };
        self.qps.insert(qp.get(), made);
        Ok(())
    }

    fn modify_qp(&mut self, hardware: &mut Hardware, qp: QpId, from: QpState, to: QpState, _: &ModifyQp) {
        match to {
            QpState::Err if from != QpState::Err => self.terminate(hardware, qp),
            QpState::Reset => {
                if let Some(qp) = self.qps.get_mut(&qp.get()) {
                    qp.reset();
                }
            }
            _ => {}
        }
        if let Some(qp) = self.qps.get_mut(&qp.get()) {
            qp.state = to;
        }
    }

    fn destroy_qp(&mut self, _: &mut Hardware, qp: QpId) {
        self.qps.remove(&qp.get());
    }

    fn doorbell(&mut self, hardware: &mut Hardware, page: u32, register: usize, value: u64) {
        let word = DbWord::from_u64(value);
        let kind = word.type_word();
        if !kind.valid() {
            self.violations.add(Object::Device, format_args!("doorbell {value:#018x} is not valid"));
        } else if kind.path() != 0 {
            self.violations.add(Object::Device, format_args!("doorbell {value:#018x} is not for RoCE"));
        } else {
            self.ring(hardware, page, register, word);
        }
    }

    fn device_store(&mut self, _: &mut Hardware, offset: u64, bytes: &[u8]) {
        if !self.push.takes(offset) {
            let what = format_args!("{} bytes at {offset:#x} of the push buffers, and no push", bytes.len());
            self.violations.add(Object::Device, what);
        }
    }

    fn reset(&mut self) {
        self.qps.clear();
        self.cqs.clear();
        self.srqs.clear();
        self.push = Push::default();
    }

    fn event(&mut self, hardware: &mut Hardware, event: &Event) {
        match event {
            Event::Completion(completion) => match completion.side {
                Side::Send => self.complete_send(hardware, completion),
                Side::Recv => self.complete_recv(hardware, completion),
            },
            Event::QpError { qp, .. } => {
                self.terminate(hardware, *qp);
                hardware.notify(Notification::QpError(*qp));
            }
            Event::Retransmit { qp, token, .. } => self.retransmit(hardware, *qp, *token),
            Event::SrqLimit { srq } => {
                if let Some(queue) = self.srqs.get_mut(&srq.get()) {
                    queue.fired();
                }
                hardware.notify(Notification::SrqLimit(*srq));
            }
            Event::SqDrained { qp } => hardware.notify(Notification::SqDrained(*qp)),
        }
    }

    fn work(&mut self, hardware: &mut Hardware) -> bool {
        let held = |qp: &Qp| qp.held;
        let ids: Vec<u32> = self.qps.iter().filter(|(_, qp)| held(qp)).map(|(id, _)| *id).collect();
        for id in &ids {
            self.release(hardware, QpId::truncated(*id));
        }
        !ids.is_empty()
    }
}
