use directverbs::ionic::cqe::Status;
use directverbs::ionic::doorbell::ExpressWord;
use directverbs::ionic::wqe::EXPRESS_BYTES;
use directverbs::verbs::{CqId, QpId, QpState, SendFlags, WcStatus};

use super::cqe::{Cqe, vendor_status};
use super::ring::{Place, Shape, WorkQueue};
use super::wrong::{QueueKind, Violation, Wrong};
use super::{IonicConfig, options};
use crate::device::{DeviceError, Memory, QpConfig, RingConfig};
use crate::fault::Random;
use crate::nic::Hardware;
use crate::roce::{Completion, Payload, RecvWork, SendWork, Side};

/// Turns that a held completion waits, at most.
const HOLD_MAX: u64 = 4;
/// Message numbers have 24 bits.
const MSN_MASK: u32 = 0xff_ffff;

/// A completion that later ones may pass.
#[derive(Clone, Copy, Debug)]
struct Held {
    cqe: Cqe,
    turns: u64,
}

/// A queue pair, as the front end keeps it.
#[derive(Debug)]
pub(super) struct QueuePair {
    id: QpId,
    state: QpState,
    send_cq: CqId,
    recv_cq: CqId,
    sq: WorkQueue,
    rq: WorkQueue,
    /// Remote send requests completed, modulo 2^24.
    msn: u32,
    /// The `msn` that was last written, or is held.
    reported: u32,
    held: Vec<Held>,
}

impl QueuePair {
    pub fn new(id: QpId, device: &IonicConfig, config: &QpConfig) -> Result<Self, DeviceError> {
        let rq = config.rq.as_ref().ok_or(DeviceError::Invalid("a queue pair needs a receive queue"))?;
        let queue = |ring: &RingConfig, spec, express| {
            let shape = Shape {
                version: device.version,
                qp_type: config.qp_type,
                stride: ring.stride,
                spec: if config.options & spec != 0 { device.max_spec } else { 0 },
                express: config.options & express != 0,
            };
            WorkQueue::new(ring.clone(), shape)
        };
        Ok(Self {
            id,
            state: QpState::Reset,
            send_cq: config.send_cq,
            recv_cq: config.recv_cq,
            sq: queue(&config.sq, options::SQ_SPEC, options::SQ_EXPRESS),
            rq: queue(rq, options::RQ_SPEC, options::RQ_EXPRESS),
            msn: 0,
            reported: 0,
            held: Vec::new(),
        })
    }

    pub const fn id(&self) -> QpId {
        self.id
    }

    /// Whether completions wait for later turns.
    pub const fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    const fn queue(&self, side: Side) -> &WorkQueue {
        match side {
            Side::Send => &self.sq,
            Side::Recv => &self.rq,
        }
    }

    const fn queue_mut(&mut self, side: Side) -> &mut WorkQueue {
        match side {
            Side::Send => &mut self.sq,
            Side::Recv => &mut self.rq,
        }
    }

    fn check_state(&self, side: Side) -> Result<(), Wrong> {
        let least = match side {
            Side::Send => QpState::Rts,
            Side::Recv => QpState::Init,
        };
        if self.state >= least {
            return Ok(());
        }
        Err(Wrong { what: "state at a doorbell", got: self.state as u64, want: least as u64 })
    }

    /// A doorbell of one side. What is posted in error is the driver's to flush.
    pub fn tell(&mut self, side: Side, index: u16) -> Result<(), Wrong> {
        self.check_state(side)?;
        if self.state == QpState::Err { Ok(()) } else { self.queue_mut(side).tell(index) }
    }

    /// The express doorbell, and the entry it sits in, that a store to device memory has completed.
    pub fn express_word(&self, side: Side, offset: u64, bytes: &[u8]) -> Option<(u16, u64)> {
        let queue = self.queue(side);
        let (true, Memory::Device(base)) = (queue.shape.express, &queue.ring.memory) else { return None };
        let from = offset.checked_sub(*base).filter(|from| *from < queue.ring.bytes())?;
        let stride = u64::from(queue.ring.stride);
        let entry = (from + bytes.len() as u64).checked_sub(1)? / stride;
        let at = usize::try_from((entry * stride + stride - EXPRESS_BYTES as u64).checked_sub(from)?).ok()?;
        let word = bytes.get(at..)?.first_chunk::<EXPRESS_BYTES>()?;
        Some((entry as u16, u64::from_le_bytes(*word)))
    }

    /// Takes the express doorbell that was found in `entry`.
    pub fn express(&mut self, side: Side, entry: u16, word: ExpressWord, qtype: u8) -> Result<(), Wrong> {
        let index = entry.wrapping_add(1) & self.queue(side).mask();
        let want = ExpressWord::new()
            .with_index(index)
            .with_sched(3)
            .with_pici(2)
            .with_qid(self.id.get())
            .with_qtype(qtype);
        Wrong::unless_equal("express doorbell", word.into_bits(), want.into_bits())?;
        self.check_state(side)?;
        if self.state == QpState::Err { Ok(()) } else { self.queue_mut(side).tell_next(index) }
    }

    /// Fetches and posts the next WQE of which the host has told. What cannot be decoded fails when its turn comes.
    pub fn fetch(&mut self, hardware: &mut Hardware, side: Side) -> Option<Result<(), Violation>> {
        if self.state == QpState::Err || self.check_state(side).is_err() {
            return None;
        }
        let id = self.id;
        let queue = self.queue_mut(side);
        let place = queue.pending()?;
        let mut wqe = vec![0; queue.ring.stride as usize];
        let offset = u64::from(place.index) * u64::from(queue.ring.stride);
        if hardware.read_ring(&queue.ring, offset, &mut wqe).is_err() {
            queue.fetched();
            let failed = hardware.fail_qp(id, side, WcStatus::LocQpOp);
            debug_assert!(failed.is_ok(), "it exists");
            return Some(Ok(()));
        }
        queue.fetched();
        let (kind, wrong) = match side {
            Side::Send => (QueueKind::Send, post_send(hardware, id, &queue.shape, place, &wqe).err()),
            Side::Recv => (QueueKind::Recv, post_recv(hardware, id, &queue.shape, place, &wqe).err()),
        };
        let violation = wrong.map(|wrong| Violation { queue: kind, id: id.get(), entry: place.index, wrong });
        Some(violation.map_or(Ok(()), Err))
    }

    /// The state changes to `to`. On the way into error, the flush of both queues is announced, once.
    pub fn enter(&mut self, to: QpState) -> Vec<(CqId, Cqe)> {
        let from = std::mem::replace(&mut self.state, to);
        match to {
            QpState::Reset => {
                self.sq.reset();
                self.rq.reset();
                (self.msn, self.reported) = (0, 0);
                self.held.clear();
                Vec::new()
            }
            QpState::Err if from != QpState::Err => {
                let mut cqes = self.release_all();
                cqes.push((self.send_cq, Cqe::SendFlushed));
                cqes.push((self.recv_cq, Cqe::RecvFlushed));
                cqes
            }
            _ => Vec::new(),
        }
    }

    /// The completions that have waited long enough.
    pub fn release(&mut self) -> Vec<(CqId, Cqe)> {
        let mut cqes = Vec::new();
        self.held.retain_mut(|held| {
            held.turns = held.turns.saturating_sub(1);
            if held.turns == 0 {
                cqes.push((self.send_cq, held.cqe));
            }
            held.turns != 0
        });
        cqes
    }

    fn release_all(&mut self) -> Vec<(CqId, Cqe)> {
        self.held.drain(..).map(|held| (self.send_cq, held.cqe)).collect()
    }

    /// A request has ended: what is to be written now. Flushed requests have no entry of their own.
    pub fn completed(&mut self, done: &Completion, random: &mut Random, reorder: u32) -> Vec<(CqId, Cqe)> {
        let index = done.token as u16;
        if done.status == WcStatus::WrFlush {
            return Vec::new();
        }
        if done.side == Side::Recv {
            self.rq.completed(index);
            return vec![(self.recv_cq, Cqe::Recv(*done))];
        }
        self.sq.completed(index);
        if done.status == WcStatus::Success {
            self.succeeded(done, index, random, reorder)
        } else {
            self.failed(done, index)
        }
    }

    fn succeeded(
        &mut self,
        done: &Completion,
        index: u16,
        random: &mut Random,
        reorder: u32,
    ) -> Vec<(CqId, Cqe)> {
        if !done.local {
            self.msn = (self.msn + 1) & MSN_MASK;
        }
        let mut said = Vec::new();
        // A message's completion also speaks for all messages before it. One that waits to be asked for is told before a
        // local request that the host waits for, which is behind it.
        if done.signaled && self.reported != self.msn {
            self.reported = self.msn;
            self.held.retain(|held| !matches!(held.cqe, Cqe::Msn { .. }));
            said.push(Cqe::Msn { msn: self.msn, status: Status::OK });
        }
        if done.local {
            said.push(Cqe::Npg { index, status: Status::OK });
        }
        let mut cqes = Vec::new();
        for cqe in said {
            if random.happens(reorder) {
                self.held.push(Held { cqe, turns: 1 + random.below(HOLD_MAX) });
            } else {
                cqes.push((self.send_cq, cqe));
            }
        }
        cqes
    }

    /// Errors that the device finds before anything leaves are told by position, the others by message.
    fn failed(&mut self, done: &Completion, index: u16) -> Vec<(CqId, Cqe)> {
        use WcStatus::{LocLen, LocProt, LocQpOp, MwBind};
        let mut cqes = self.release_all();
        let status = vendor_status(done.status);
        if done.local || matches!(done.status, LocLen | LocProt | LocQpOp | MwBind) {
            if self.reported != self.msn {
                cqes.push((self.send_cq, Cqe::Msn { msn: self.msn, status: Status::OK }));
            }
            cqes.push((self.send_cq, Cqe::Npg { index, status }));
        } else {
            self.msn = (self.msn + 1) & MSN_MASK;
            cqes.push((self.send_cq, Cqe::Msn { msn: self.msn, status }));
        }
        self.reported = self.msn;
        cqes
    }
}

fn post_send(
    hardware: &mut Hardware,
    qp: QpId,
    shape: &Shape,
    place: Place,
    wqe: &[u8],
) -> Result<(), Wrong> {
    let decoded = shape.send(place, wqe);
    let wrong = decoded.as_ref().err().copied();
    let work = decoded.unwrap_or_else(|_| SendWork {
        token: place.index.into(),
        op: Err(WcStatus::LocQpOp),
        flags: SendFlags::SIGNALED,
        payload: Payload::Sges(Vec::new()),
    });
    // A refusal means that the queue pair went into error meanwhile: its requests are flushed.
    let _ = hardware.post_send(qp, work);
    wrong.map_or(Ok(()), Err)
}

fn post_recv(
    hardware: &mut Hardware,
    qp: QpId,
    shape: &Shape,
    place: Place,
    wqe: &[u8],
) -> Result<(), Wrong> {
    let decoded = shape.recv(place.index, wqe);
    let wrong = decoded.as_ref().err().copied();
    let failing = RecvWork { token: place.index.into(), sges: Err(WcStatus::LocQpOp) };
    let _ = hardware.post_recv(qp, decoded.unwrap_or(failing));
    wrong.map_or(Ok(()), Err)
}
