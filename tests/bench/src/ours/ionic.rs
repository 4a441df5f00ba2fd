//! ionic.

use std::hint::black_box;

use directverbs::ionic::QueueMemory;
use directverbs::ionic::cq::{CompletionQueue, CqRing};
use directverbs::ionic::plan::{CqPlan, Placement, QpPlan};
use directverbs::ionic::qp::{NoSharedReceiveQueue, QpConfig, QueuePair};
use directverbs::ionic::recv::RqRecord;
use directverbs::ionic::send::SqRecord;
use directverbs::queue::{Boxed, QpTable};
use directverbs::verbs::{
    CqId, Endpoints, Pollable, QpCapabilities, QpId, QpState, QpType, RecvRequest, SendRequest,
    WorkCompletion,
};

use super::{Completions, FIRST_CQ, FIRST_QP, TABLE, check};
use crate::cqe::Producer;
use crate::device::{self, Rings};
use crate::memory::{Page, ring};
use crate::meter::Meter;
use crate::requests::{recv_requests, send_requests};
use crate::side::{ASKED, CQES, LANES, Side};
use crate::work::{Family, Sends};

/// A queue pair with its bookkeeping in boxes.
pub type Qp = QueuePair<'static, Boxed>;
type Table = QpTable<'static, Qp, NoSharedReceiveQueue>;
/// A completion queue.
pub type Cq = CompletionQueue<'static>;

/// Posts as a program does: the batch is inlined into the function that posts.
#[inline(never)]
fn post_send(qp: &mut Qp, cq: &mut Cq, page: &Page, requests: &[SendRequest<'_>]) -> bool {
    qp.post_send(cq, requests, page).is_ok()
}

/// Posts receive requests.
#[inline(never)]
fn post_recv(qp: &mut Qp, cq: &mut Cq, page: &Page, requests: &[RecvRequest<'_>]) -> bool {
    qp.post_recv(cq, requests, page).is_ok()
}

/// Polls as a program does.
#[inline(never)]
fn poll(cq: &mut Cq, qps: &mut Table, page: &Page, out: &mut [WorkCompletion]) -> usize {
    cq.poll(qps, page, out).unwrap_or(usize::MAX)
}

#[derive(Debug)]
struct Lane {
    /// What CQEs name the queue pair by.
    key: u32,
    cq: Cq,
    device: Producer,
    /// Send requests so far.
    sent: u32,
    /// Receive requests completed so far.
    received: u32,
}

/// The lanes.
#[derive(Debug)]
pub struct Ours {
    page: Page,
    qps: Table,
    lanes: Vec<Lane>,
    sends: [&'static [SendRequest<'static>]; Sends::ALL.len()],
    recvs: &'static [RecvRequest<'static>],
    rings: Rings,
    done: Completions,
}

/// A queue pair in state RTS and its completion queue, with numbers that count from `index`, and where CQEs go.
pub fn queues(index: u32, asked: &QpCapabilities, cqes: u32) -> (Qp, Cq, Producer) {
    let caps = device::ionic();
    let plan = QpPlan::new(&caps, asked, Placement::default()).expect("a plan of a queue pair");
    let cq_plan = CqPlan::new(&caps, cqes).expect("a plan of a completion queue");
    let (memory, at) = ring(cq_plan.ring.bytes());
    // SAFETY: the ring has so many entries and is never given back.
    let device = unsafe { Producer::new(at, cq_plan.ring.depth() as usize) };
    let cq_id = CqId::truncated(FIRST_CQ + index);
    let cq_ring = CqRing::new(cq_id, caps.cq_qtype, &cq_plan, memory).expect("a completion ring");
    let cq = Cq::new(caps.udma_count, [Some(cq_ring), None]).expect("a completion queue");

    let sq = QueueMemory {
        ring: ring(plan.sq.ring.bytes()).0,
        records: vec![SqRecord::default(); plan.sq.records()].into(),
        cmb: None,
    };
    let rq = QueueMemory {
        ring: ring(plan.rq.ring.bytes()).0,
        records: vec![RqRecord::default(); plan.rq.records()].into(),
        cmb: None,
    };
    let config = QpConfig {
        id: QpId::truncated(FIRST_QP + index),
        qp_type: QpType::Rc,
        udma: 0,
        signal_all: false,
        send_cq: &cq,
        recv_cq: &cq,
    };
    let mut qp = Qp::new(&caps, &config, &plan, sq, rq).expect("a queue pair");
    qp.set_state(QpState::Rts);
    (qp, cq, device)
}

impl Ours {
    /// Makes the queues.
    pub fn new() -> Self {
        let slots = Vec::leak((0..TABLE).map(|_| None).collect());
        let mut qps = Table::new(slots, Vec::leak(Vec::new()));
        let lane = |index| {
            let (qp, cq, device) = queues(index, &ASKED, CQES);
            let key = qp.key();
            qps.insert(qp).expect("a slot of the table");
            Lane { key, cq, device, sent: 0, received: 0 }
        };
        let lanes = (0..LANES as u32).map(lane).collect();
        Self {
            page: Page::new(),
            qps,
            lanes,
            sends: send_requests(),
            recvs: recv_requests(),
            rings: Rings::new(Family::Ionic, &ASKED, CQES),
            done: Completions::default(),
        }
    }
}

impl Side for Ours {
    #[inline(always)]
    fn post_send<M: Meter>(&mut self, lane: usize, index: usize, meter: &M) {
        let (requests, page) = (black_box(self.sends[index]), black_box(&self.page));
        let lane = &mut self.lanes[lane];
        let cq = &mut lane.cq;
        let posted = self.qps.with_qp(lane.key, |qp| {
            let (qp, cq) = (black_box(qp), black_box(cq));
            meter.call(|| post_send(qp, cq, page, requests))
        });
        assert_eq!(posted, Some(true), "post");
    }

    #[inline(always)]
    fn post_recv<M: Meter>(&mut self, lane: usize, count: usize, meter: &M) {
        let (requests, page) = (black_box(&self.recvs[..count]), black_box(&self.page));
        let lane = &mut self.lanes[lane];
        let cq = &mut lane.cq;
        let posted = self.qps.with_qp(lane.key, |qp| {
            let (qp, cq) = (black_box(qp), black_box(cq));
            meter.call(|| post_recv(qp, cq, page, requests))
        });
        assert_eq!(posted, Some(true), "post");
    }

    fn complete_sends(&mut self, lane: usize, index: usize) {
        let lane = &mut self.lanes[lane];
        let sends = Sends::ALL[index];
        lane.device.sends(Family::Ionic, lane.key.into(), &mut lane.sent, self.rings.send_wqes, sends);
    }

    fn complete_recvs(&mut self, lane: usize, count: usize) {
        let lane = &mut self.lanes[lane];
        let (key, received) = (lane.key.into(), &mut lane.received);
        lane.device.recvs(Family::Ionic, key, received, self.rings.recv_wqes, count);
    }

    #[inline(always)]
    fn poll<M: Meter>(&mut self, lane: usize, meter: &M) -> usize {
        let (cq, qps) = (black_box(&mut self.lanes[lane].cq), black_box(&mut self.qps));
        let (page, out) = (black_box(&self.page), black_box(&mut self.done[..]));
        meter.call(|| poll(cq, qps, page, out))
    }

    fn check(&self, completions: usize) {
        check(&self.done, completions);
    }
}
