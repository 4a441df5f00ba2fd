//! The RDMA admin queues, and the rings that the RDMA part begins with.

use std::collections::BTreeMap;

use directverbs::ionic::admin::{
    AdminOp, AdminWqe, EQE_LOG2, HEADER_BYTES, PAYLOAD_MAX, STRIDE_BYTES, strides,
};
use directverbs::ionic::cqe::{AdminCqe, CQE_BYTES, CQE_LOG2, CqeType, QidTypeFlags};
use directverbs::ionic::devcmd::{Opcode, RdmaQueueCmd, Status};
use directverbs::ionic::doorbell::{DbRing, DoorbellWord};
use zerocopy::{FromZeros, IntoBytes};

use super::events::EventRing;
use super::function::IonicFunction;
use super::identity::ControlConfig;
use super::objects::{Cq, Pds, Qp};
use super::refusal::Refusal;
use super::{DOORBELL_PAGES, INTERRUPTS, QueueKind, Wrong};
use crate::ionic::{CQ_QTYPE, RQ_QTYPE, SQ_QTYPE};
use crate::pci::CommandFault;

/// Most entries of a ring, base-two logarithm.
const RING_LOG2_MAX: u8 = 16;

/// An admin queue.
#[derive(Debug)]
pub(super) struct AdminQueue {
    base: u64,
    mask: u16,
    cq: u32,
    page: u32,
    /// Next stride to fetch.
    next: u16,
}

/// The completion queue of an admin queue.
#[derive(Debug)]
pub(super) struct AdminCq {
    base: u64,
    mask: u16,
    eq: u32,
    /// CQEs written.
    written: u64,
    /// CQEs consumed.
    consumed: u64,
    armed: bool,
}

/// The RDMA part of the LIF.
#[derive(Debug, Default)]
pub(super) struct Rdma {
    pub eqs: BTreeMap<u32, EventRing>,
    pub admin_cqs: BTreeMap<u32, AdminCq>,
    pub aqs: BTreeMap<u32, AdminQueue>,
    pub cqs: BTreeMap<u32, Cq>,
    pub qps: BTreeMap<u32, Qp>,
    pub pds: Pds,
}

impl Rdma {
    /// Creates an event queue, an admin queue or its completion queue.
    pub fn create(&mut self, config: &ControlConfig, cmd: &RdmaQueueCmd) -> Result<(), Refusal> {
        let (id, to, depth_log2) = (cmd.qid_ver.get(), cmd.cid.get(), cmd.depth_log2);
        let opcode = Opcode(cmd.opcode);
        let (count, stride) = match opcode {
            Opcode::RDMA_CREATE_EQ => (config.event_queues, EQE_LOG2),
            Opcode::RDMA_CREATE_CQ => (config.queues(), CQE_LOG2 as u8),
            _ => (config.admin_queues, STRIDE_BYTES.ilog2() as u8),
        };
        Wrong::if_over("queue number", id.into(), (count - 1).into())?;
        Wrong::unless_equal("stride", cmd.stride_log2.into(), stride.into())?;
        Wrong::if_over("doorbell page", cmd.dbid.get().into(), (DOORBELL_PAGES - 1).into())?;
        if !(2..=RING_LOG2_MAX - 1).contains(&depth_log2) {
            return Err(Refusal::blame(
                Status::ERANGE,
                "ring depth",
                depth_log2.into(),
                RING_LOG2_MAX.into(),
            ));
        }
        let base = cmd.dma_addr.get();
        Wrong::unless_equal("alignment of a ring", base & 0xfff, 0)?;
        let mask = ((1u32 << depth_log2) - 1) as u16;
        let taken = Refusal::blame(Status::EEXIST, "queue number in use", id.into(), 0);
        match opcode {
            Opcode::RDMA_CREATE_EQ => {
                Wrong::if_over("interrupt", to.into(), (INTERRUPTS - 1).into())?;
                let ring = EventRing { base, depth_log2, intr: to as u16, written: 0 };
                if self.eqs.contains_key(&id) {
                    return Err(taken);
                }
                self.eqs.insert(id, ring);
            }
            Opcode::RDMA_CREATE_CQ => {
                if self.admin_cqs.contains_key(&id) || self.cqs.contains_key(&id) {
                    return Err(taken);
                }
                self.event_queue(to)?;
                self.admin_cqs
                    .insert(id, AdminCq { base, mask, eq: to, written: 0, consumed: 0, armed: false });
            }
            _ => {
                if self.aqs.contains_key(&id) {
                    return Err(taken);
                }
                let cq = self.admin_cqs.get(&to);
                cq.ok_or(Refusal::blame(Status::ENOENT, "completion queue of an admin queue", to.into(), 0))?;
                let page = cmd.dbid.get().into();
                self.aqs.insert(id, AdminQueue { base, mask, cq: to, page, next: 0 });
            }
        }
        Ok(())
    }

    /// Checks that there is an event queue.
    pub fn event_queue(&self, id: u32) -> Result<(), Refusal> {
        match self.eqs.get(&id) {
            Some(_) => Ok(()),
            None => Err(Refusal::blame(Status::ENOENT, "event queue", id.into(), 0)),
        }
    }
}

impl IonicFunction {
    /// Whether the number is an admin queue's completion queue.
    pub(super) fn is_admin_cq(&self, id: u32) -> bool {
        self.state.rdma.as_ref().is_some_and(|rdma| rdma.admin_cqs.contains_key(&id))
    }

    /// Queues are rung on the page that they were created for.
    pub(super) fn check_page(&self, register: u8, page: u32, id: u32) {
        let rdma = self.state.rdma.as_ref();
        let want = rdma.and_then(|rdma| match register {
            SQ_QTYPE | RQ_QTYPE => rdma.qps.get(&id).map(|qp| qp.page),
            CQ_QTYPE => rdma.cqs.get(&id).map(|cq| cq.page),
            _ => None,
        });
        if let Some(want) = want.filter(|want| *want != page) {
            let wrong = Wrong { what: "doorbell page", got: page.into(), want: want.into() };
            self.blame(QueueKind::Registers, id, 0, wrong);
        }
    }

    pub(super) fn admin_cq_doorbell(&mut self, word: DoorbellWord) {
        let Some(cq) = self.state.rdma.as_mut().and_then(|rdma| rdma.admin_cqs.get_mut(&word.qid())) else {
            return;
        };
        let done = match word.ring() {
            ring if ring == DbRing::Index as u8 => {
                let ahead = word.index().wrapping_sub(cq.consumed as u16) & cq.mask;
                let checked = Wrong::if_over("entries consumed", ahead.into(), cq.written - cq.consumed);
                cq.consumed += u64::from(ahead);
                checked
            }
            ring if ring == DbRing::ArmAny as u8 || ring == DbRing::ArmSolicited as u8 => {
                cq.armed = true;
                Ok(())
            }
            ring => Err(Wrong { what: "ring of a completion queue", got: ring.into(), want: 0 }),
        };
        if let Err(wrong) = done {
            self.blame(QueueKind::Completion, word.qid(), word.index(), wrong);
        }
    }

    pub(super) fn rdma_doorbell(&mut self, page: u32, word: DoorbellWord) {
        let id = word.qid();
        let aq = self.state.rdma.as_ref().and_then(|rdma| rdma.aqs.get(&id));
        let plain = DoorbellWord::new().with_index(word.index()).with_qid(id);
        let checked = match aq {
            None => Err(Wrong { what: "admin queue number", got: id.into(), want: 0 }),
            Some(aq) => Wrong::unless_equal("doorbell", word.into_bits(), plain.into_bits())
                .and(Wrong::unless_equal("doorbell page", page.into(), aq.page.into()))
                .and(Wrong::if_over("doorbell index", word.index().into(), aq.mask.into())),
        };
        if let Err(wrong) = checked {
            return self.blame(QueueKind::RdmaAdmin, id, word.index(), wrong);
        }
        // A command may reset the device, and with it the queue.
        while self.rdma_next(id, word.index()) {}
    }

    /// Carries out the next command of an admin queue; `false` if there is none before stride `told`.
    fn rdma_next(&mut self, id: u32, told: u16) -> bool {
        let Some(aq) = self.state.rdma.as_mut().and_then(|rdma| rdma.aqs.get_mut(&id)) else { return false };
        let (index, mask, base) = (aq.next, aq.mask, aq.base);
        let waiting = told.wrapping_sub(index) & mask;
        if waiting == 0 {
            return false;
        }
        let mut wqe = AdminWqe::new_zeroed();
        let stride_at = |nth: u16| base + u64::from(index.wrapping_add(nth) & mask) * STRIDE_BYTES as u64;
        let (first, second) = wqe.as_mut_bytes().split_at_mut(STRIDE_BYTES);
        let mut fetched = self.port.bus.read(stride_at(0), first);
        let length = usize::from(u16::from_le_bytes([first[2], first[3]]));
        let taken = strides(length.min(PAYLOAD_MAX)) as u16;
        if taken > 1 && fetched.is_ok() {
            fetched = self.port.bus.read(stride_at(1), second);
        }
        aq.next = index.wrapping_add(taken) & mask;
        if let Err(error) = fetched {
            self.refused(QueueKind::RdmaAdmin, 0, index, error.into());
            return false;
        }
        let checked = Wrong::if_over("payload", length as u64, PAYLOAD_MAX as u64).and(Wrong::if_over(
            "strides of a command",
            taken.into(),
            waiting.into(),
        ));
        if let Err(wrong) = checked {
            self.blame(QueueKind::RdmaAdmin, wqe.op.into(), index, wrong);
            return false;
        }
        self.rdma_command(id, index, &wqe, length);
        true
    }

    fn rdma_command(&mut self, id: u32, index: u16, wqe: &AdminWqe, length: usize) {
        let fault = self.port.faults.next();
        if fault == Some(CommandFault::HotReset) {
            return self.hot_reset();
        }
        if fault == Some(CommandFault::Event) {
            self.unexpected_event();
        }
        let op = AdminOp(wqe.op);
        let payload = &wqe.as_bytes()[HEADER_BYTES..HEADER_BYTES + length];
        let result = match fault {
            Some(CommandFault::Refused) => Err(Refusal::fate(Status::EPERM)),
            // A queue of commands has no status that asks for the same again.
            _ => self.object(op, payload, fault == Some(CommandFault::Garbage)),
        };
        self.port.trace.say(|| match result {
            Ok(()) => format!("rdma admin queue {op}"),
            Err(refusal) => format!("rdma admin queue {op}: {}", refusal.status),
        });
        if let Err(refusal) = result {
            self.refused(QueueKind::RdmaAdmin, op.0, index, refusal);
        }
        if fault == Some(CommandFault::Silent) {
            return;
        }
        let mut cqe = AdminCqe { cmd_idx: index.into(), cmd_op: op.0, ..AdminCqe::ZERO };
        match fault {
            Some(CommandFault::WrongSequence) => cqe.cmd_idx = index.wrapping_add(1).into(),
            Some(CommandFault::Garbage) => cqe.as_mut_bytes()[2..28].fill(0xff),
            _ => {}
        }
        let error = result.err();
        if let Some(refusal) = error {
            cqe.status_length = refusal.rdma_status().into();
        }
        let mut qtf =
            QidTypeFlags::new().with_cqe_type(CqeType::ADMIN.0).with_qid(id).with_error(error.is_some());
        let Some(rdma) = &mut self.state.rdma else { return };
        let Some(cq_id) = rdma.aqs.get(&id).map(|aq| aq.cq) else { return };
        let Some(cq) = rdma.admin_cqs.get_mut(&cq_id) else { return };
        let unconsumed = cq.written - cq.consumed;
        if unconsumed > u64::from(cq.mask) {
            let wrong = Wrong { what: "unconsumed entries", got: unconsumed, want: cq.mask.into() };
            return self.blame(QueueKind::Completion, cq_id, 0, wrong);
        }
        let color = cq.written / (u64::from(cq.mask) + 1) & 1 == 0;
        qtf = qtf.with_color(color ^ (fault == Some(CommandFault::NotValid)));
        cqe.qid_type_flags = qtf.into_bits().into();
        let at = cq.base + (cq.written & u64::from(cq.mask)) * CQE_BYTES as u64;
        cq.written += 1;
        let event = std::mem::take(&mut cq.armed).then_some(cq.eq);
        if let Err(error) = self.port.bus.publish(at, cqe.as_bytes()) {
            return self.refused(QueueKind::RdmaAdmin, op.0, index, error.into());
        }
        if let Some(eq) = event {
            use directverbs::ionic::admin::{EventCode, EventType};
            self.event(eq, (EventType::CQ, EventCode::CQ_NOTIFY), cq_id);
        }
    }
}
