//! The datapath front end of ionic: doorbells, WQEs and CQEs, as the device sees them.
//!
//! It is the judge of the driver: whatever breaks the contract between the two (a WQE that does not repeat its position,
//! a doorbell that goes back, a completion queue without room) is counted as a [`Violation`] with its reason.

pub mod control;
mod cqe;
mod queue_pair;
mod ring;
mod wqe;
mod wrong;

use std::collections::{BTreeMap, HashMap};

use directverbs::ionic::doorbell::{DbRing, DoorbellWord, ExpressWord};
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{CqId, QpId, QpState, SrqId};

use crate::device::{CqConfig, DeviceError, Memory, ModifyQp, Notification, QpConfig, RingConfig, SrqConfig};
use crate::fault::Random;
use crate::nic::{FrontEnd, Hardware};
use crate::roce::{Event, Side};
use cqe::Cqe;
use queue_pair::QueuePair;
use ring::{Armed, CompletionQueue};
pub use wrong::{QueueKind, Violation, Wrong};

/// Options of a queue pair, in [`QpConfig::options`].
pub mod options {
    /// The send queue has lists of SGE lengths.
    pub const SQ_SPEC: u32 = 1 << 8;
    /// The receive queue has lists of SGE lengths.
    pub const RQ_SPEC: u32 = 1 << 9;
    /// The send queue has express doorbells.
    pub const SQ_EXPRESS: u32 = 1 << 16;
    /// The receive queue has express doorbells.
    pub const RQ_EXPRESS: u32 = 1 << 17;
}

/// Doorbell register of send queues.
pub const SQ_QTYPE: u8 = 3;
/// Doorbell register of receive queues.
pub const RQ_QTYPE: u8 = 4;
/// Doorbell register of completion queues.
pub const CQ_QTYPE: u8 = 5;
/// Bit of a queue pair's or completion queue's number that names its pipeline, of a device with two.
pub const PIPELINE_SHIFT: u32 = 12;

/// Entries of a ring, at most.
const RING_MAX: u32 = 1 << 16;
/// Bytes of a WQE: a power of two from the first to the second.
const STRIDES: [u32; 2] = [64, 1024];
/// WQEs that one turn fetches from a queue, at most.
const FETCH_MAX: u64 = 8;

/// What the device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IonicConfig {
    /// Interface version.
    pub version: RdmaVersion,
    /// Pipelines, 1 or 2.
    pub pipelines: u8,
    /// SGEs that a list of lengths has room for: 8 or 16, or 0 if the device has no such lists.
    pub max_spec: u32,
    /// WQE sizes that express doorbells exist for, or'ed: each is its own bit (64, 128, 256, 512).
    pub express_strides: u32,
    /// How often, in parts per million, a send completion waits while later ones of the other kind pass it. Messages
    /// whose completion waits may share one.
    pub reorder: u32,
    /// Seed of everything random.
    pub seed: u64,
}

impl IonicConfig {
    /// A device of `version` with two pipelines and completions in post order.
    pub const fn new(version: RdmaVersion) -> Self {
        Self {
            version,
            pipelines: 2,
            max_spec: 8,
            express_strides: 64 | 128 | 256 | 512,
            reorder: 0,
            seed: 0,
        }
    }
}

/// The front end.
#[derive(Debug)]
pub struct Ionic {
    config: IonicConfig,
    qps: BTreeMap<u32, QueuePair>,
    cqs: HashMap<u32, CompletionQueue>,
    violations: Vec<Violation>,
    random: Random,
}

impl Ionic {
    /// A front end without queues.
    pub fn new(config: IonicConfig) -> Self {
        Self {
            config,
            qps: BTreeMap::new(),
            cqs: HashMap::new(),
            violations: Vec::new(),
            random: Random::new(config.seed),
        }
    }

    /// What the device is.
    pub const fn config(&self) -> &IonicConfig {
        &self.config
    }

    /// What the driver did wrong so far, in order.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn blame(&mut self, queue: QueueKind, id: u32, entry: u16, wrong: Wrong) {
        self.violations.push(Violation { queue, id, entry, wrong });
    }

    /// Writes a CQE, unless it would overwrite one that the host has not consumed.
    fn complete(&mut self, hardware: &mut Hardware, cq: CqId, qp: QpId, cqe: &Cqe) {
        let Some(queue) = self.cqs.get_mut(&cq.get()) else { return };
        let written = hardware.cq_position(cq).unwrap_or(0);
        if let Err(wrong) = queue.room(written) {
            if !std::mem::replace(&mut queue.failed, true) {
                hardware.notify(Notification::CqError(cq));
            }
            return self.blame(QueueKind::Completion, cq.get(), written as u16, wrong);
        }
        let now = hardware.now_ns();
        hardware.push_cqe(cq, |at| cqe.encode(qp, queue.color(at), now));
        let wanted = match queue.armed {
            Some(Armed::Any) => true,
            Some(Armed::Solicited) => cqe.wakes_solicited(),
            None => false,
        };
        if wanted {
            queue.armed = None;
            hardware.notify_cq(cq);
        }
    }

    /// Writes what a queue pair has to say.
    fn complete_all(&mut self, hardware: &mut Hardware, qp: QpId, cqes: Vec<(CqId, Cqe)>) {
        for (cq, cqe) in cqes {
            self.complete(hardware, cq, qp, &cqe);
        }
    }

    fn cq_doorbell(&mut self, hardware: &Hardware, word: DoorbellWord) -> Result<(), Wrong> {
        let unknown = Wrong { what: "completion queue number", got: word.qid().into(), want: 0 };
        let cq = self.cqs.get_mut(&word.qid()).ok_or(unknown)?;
        match word.ring() {
            ring if ring == DbRing::Index as u8 => {
                let written = hardware.cq_position(cq.id).unwrap_or(0);
                cq.consume(word.index(), written)
            }
            ring if ring == DbRing::ArmAny as u8 => cq.arm(word.index(), Armed::Any),
            ring if ring == DbRing::ArmSolicited as u8 => cq.arm(word.index(), Armed::Solicited),
            ring => Err(Wrong { what: "ring of a completion queue", got: ring.into(), want: 0 }),
        }
    }

    fn qp_doorbell(&mut self, side: Side, word: DoorbellWord) -> Result<(), Wrong> {
        Wrong::unless_equal("ring of a work queue", word.ring().into(), 0)?;
        let unknown = Wrong { what: "queue pair number", got: word.qid().into(), want: 0 };
        let qp = self.qps.get_mut(&word.qid()).ok_or(unknown)?;
        qp.tell(side, word.index())
    }

    /// The pipeline that a number names.
    fn pipeline(&self, id: u32) -> u8 {
        (id >> PIPELINE_SHIFT) as u8 & self.config.pipelines.saturating_sub(1)
    }

    fn check_ring(ring: &RingConfig, strides: [u32; 2]) -> Result<(), DeviceError> {
        if !ring.entries.is_power_of_two() || !(2..=RING_MAX).contains(&ring.entries) {
            return Err(DeviceError::Invalid("a ring has 2^1 to 2^16 entries"));
        }
        if !ring.stride.is_power_of_two() || !(strides[0]..=strides[1]).contains(&ring.stride) {
            return Err(DeviceError::Invalid("entries of a size that the device does not have"));
        }
        Ok(())
    }

    fn check_work_ring(&self, ring: &RingConfig, express: bool) -> Result<(), DeviceError> {
        Self::check_ring(ring, STRIDES)?;
        let device = matches!(ring.memory, Memory::Device(_));
        if express && !(device && self.config.express_strides & ring.stride != 0) {
            return Err(DeviceError::Invalid("no express doorbells for this memory or WQE size"));
        }
        Ok(())
    }
}

impl FrontEnd for Ionic {
    fn create_cq(&mut self, _: &mut Hardware, cq: CqId, config: &CqConfig) -> Result<(), DeviceError> {
        Self::check_ring(&config.ring, [32, 32])?;
        self.cqs.insert(cq.get(), CompletionQueue::new(cq, config.ring.entries));
        Ok(())
    }

    fn resize_cq(&mut self, _: &mut Hardware, _: CqId, _: &RingConfig) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("the device does not resize completion queues"))
    }

    fn destroy_cq(&mut self, _: &mut Hardware, cq: CqId) {
        self.cqs.remove(&cq.get());
    }

    fn create_srq(&mut self, _: &mut Hardware, _: SrqId, _: &SrqConfig) -> Result<(), DeviceError> {
        Err(DeviceError::Invalid("the device has no shared receive queues"))
    }

    fn destroy_srq(&mut self, _: &mut Hardware, _: SrqId) {}

    fn create_qp(&mut self, _: &mut Hardware, qp: QpId, config: &QpConfig) -> Result<(), DeviceError> {
        self.check_work_ring(&config.sq, config.options & options::SQ_EXPRESS != 0)?;
        if let Some(rq) = &config.rq {
            self.check_work_ring(rq, config.options & options::RQ_EXPRESS != 0)?;
        }
        let numbers = [qp.get(), config.send_cq.get(), config.recv_cq.get()];
        if numbers.iter().any(|id| self.pipeline(*id) != config.pipeline) {
            return Err(DeviceError::Invalid("queue pair and completion queues of different pipelines"));
        }
        self.qps.insert(qp.get(), QueuePair::new(qp, &self.config, config)?);
        Ok(())
    }

    fn modify_qp(&mut self, hardware: &mut Hardware, qp: QpId, _: QpState, to: QpState, _: &ModifyQp) {
        let Some(queue) = self.qps.get_mut(&qp.get()) else { return };
        let cqes = queue.enter(to);
        self.complete_all(hardware, qp, cqes);
    }

    fn destroy_qp(&mut self, _: &mut Hardware, qp: QpId) {
        self.qps.remove(&qp.get());
    }

    fn doorbell(&mut self, hardware: &mut Hardware, _: u32, register: usize, value: u64) {
        let word = DoorbellWord::from_bits(value);
        let known = DoorbellWord::new().with_index(word.index()).with_ring(word.ring()).with_qid(word.qid());
        let (kind, done) = match u8::try_from(register).unwrap_or(u8::MAX) {
            SQ_QTYPE => (QueueKind::Send, self.qp_doorbell(Side::Send, word)),
            RQ_QTYPE => (QueueKind::Recv, self.qp_doorbell(Side::Recv, word)),
            CQ_QTYPE => (QueueKind::Completion, self.cq_doorbell(hardware, word)),
            _ => {
                let wrong = Wrong { what: "doorbell register", got: register as u64, want: SQ_QTYPE.into() };
                (QueueKind::Send, Err(wrong))
            }
        };
        let reserved = Wrong::unless_equal("reserved doorbell bits", value, known.into_bits());
        if let Err(wrong) = done.and(reserved) {
            self.blame(kind, word.qid(), word.index(), wrong);
        }
    }

    fn device_store(&mut self, _: &mut Hardware, offset: u64, bytes: &[u8]) {
        let mut blamed = None;
        for qp in self.qps.values_mut() {
            for (side, qtype, kind) in
                [(Side::Send, SQ_QTYPE, QueueKind::Send), (Side::Recv, RQ_QTYPE, QueueKind::Recv)]
            {
                let Some((entry, word)) = qp.express_word(side, offset, bytes) else { continue };
                if let Err(wrong) = qp.express(side, entry, ExpressWord::from_bits(word), qtype) {
                    blamed = Some((kind, qp.id().get(), entry, wrong));
                }
            }
        }
        if let Some((kind, id, entry, wrong)) = blamed {
            self.blame(kind, id, entry, wrong);
        }
    }

    fn reset(&mut self) {
        self.qps.clear();
        self.cqs.clear();
    }

    fn event(&mut self, hardware: &mut Hardware, event: &Event) {
        let (id, cqes) = match event {
            Event::Completion(done) => {
                let Some(qp) = self.qps.get_mut(&done.qp.get()) else { return };
                (done.qp, qp.completed(done, &mut self.random, self.config.reorder))
            }
            Event::QpError { qp: id, .. } => {
                let Some(qp) = self.qps.get_mut(&id.get()) else { return };
                hardware.notify(Notification::QpError(*id));
                (*id, qp.enter(QpState::Err))
            }
            Event::SqDrained { qp } => return hardware.notify(Notification::SqDrained(*qp)),
            // The device keeps what it needs to send again, and has no shared receive queues.
            Event::Retransmit { .. } | Event::SrqLimit { .. } => return,
        };
        self.complete_all(hardware, id, cqes);
    }

    fn work(&mut self, hardware: &mut Hardware) -> bool {
        let mut any = false;
        let mut said = Vec::new();
        let mut wrongs = Vec::new();
        for qp in self.qps.values_mut() {
            let burst = 1 + self.random.below(FETCH_MAX);
            for side in [Side::Send, Side::Recv] {
                for _ in 0..burst {
                    let Some(fetched) = qp.fetch(hardware, side) else { break };
                    any = true;
                    wrongs.extend(fetched.err());
                }
            }
            any |= qp.is_holding();
            said.push((qp.id(), qp.release()));
        }
        self.violations.extend(wrongs);
        for (qp, cqes) in said {
            self.complete_all(hardware, qp, cqes);
        }
        any
    }
}
