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
    CqId, Endpoints, QpCapabilities, QpId, QpState, QpType, RecvRequest, SendRequest, WorkCompletion,
};

use super::{Completions, FIRST_CQ, FIRST_QP, TABLE, check, send_requests, sges};
use crate::cqe::Producer;
use crate::device;
use crate::memory::{Page, ring};
use crate::meter::Meter;
use crate::side::{CQES, INLINE, LANES, RECV_WRS, SEND_WRS, SGES, Side};
use crate::work::{MANY, Sends};

type Qp = QueuePair<'static, Boxed>;
type Table = QpTable<'static, Qp, NoSharedReceiveQueue>;
type Cq = CompletionQueue<'static>;

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
    qid: u32,
    cq: Cq,
    device: Producer,
    /// Messages sent.
    sent: u32,
    /// Index of the next receive WQE that completes.
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
    /// Entries of a receive ring.
    recv_wqes: u32,
    done: Completions,
}

const ASKED: QpCapabilities = QpCapabilities {
    max_send_wr: SEND_WRS,
    max_recv_wr: RECV_WRS,
    max_send_sge: SGES,
    max_recv_sge: SGES,
    max_inline_data: INLINE,
};

impl Ours {
    /// Makes the queues.
    pub fn new() -> Self {
        let caps = device::ionic();
        let plan = QpPlan::new(&caps, &ASKED, Placement::default()).expect("a plan of a queue pair");
        let cq_plan = CqPlan::new(&caps, CQES).expect("a plan of a completion queue");
        let slots = Vec::leak((0..TABLE).map(|_| None).collect());
        let mut qps = Table::new(slots, Vec::leak(Vec::new()));
        let lane = |i: u32| {
            let id = QpId::truncated(FIRST_QP + i);
            let (memory, cqes) = ring(cq_plan.ring.bytes());
            let cq_ring = CqRing::new(CqId::truncated(FIRST_CQ + i), caps.cq_qtype, &cq_plan, memory);
            let cq = Cq::new(caps.udma_count, [Some(cq_ring.expect("a completion ring")), None]);
            let cq = cq.expect("a completion queue");
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
            let config =
                QpConfig { id, qp_type: QpType::Rc, udma: 0, signal_all: false, send_cq: &cq, recv_cq: &cq };
            let mut qp = Qp::new(&caps, &config, &plan, sq, rq).expect("a queue pair");
            qp.set_state(QpState::Rts);
            qps.insert(qp).expect("a slot of the table");
            // SAFETY: the ring has so many entries and is never given back.
            let device = unsafe { Producer::new(cqes, cq_plan.ring.depth() as usize) };
            Lane { qid: id.get(), cq, device, sent: 0, received: 0 }
        };
        let lanes = (0..LANES as u32).map(lane).collect();
        let recv = |i| RecvRequest::new(i as u64, &sges()[..1]);
        Self {
            page: Page::new(),
            qps,
            lanes,
            sends: send_requests(),
            recvs: Vec::leak((0..MANY).map(recv).collect()),
            recv_wqes: plan.rq.ring.depth(),
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
        let posted = self.qps.with_qp(lane.qid, |qp| {
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
        let posted = self.qps.with_qp(lane.qid, |qp| {
            let (qp, cq) = (black_box(qp), black_box(cq));
            meter.call(|| post_recv(qp, cq, page, requests))
        });
        assert_eq!(posted, Some(true), "post");
    }

    fn complete_sends(&mut self, lane: usize, index: usize) {
        let lane = &mut self.lanes[lane];
        let sends = Sends::ALL[index];
        for i in 0..sends.count {
            lane.sent = lane.sent.wrapping_add(1);
            if sends.signals(i) {
                lane.device.ionic_send(lane.qid, lane.sent);
            }
        }
    }

    fn complete_recvs(&mut self, lane: usize, count: usize) {
        let lane = &mut self.lanes[lane];
        for _ in 0..count {
            lane.device.ionic_recv(lane.qid, lane.received);
            lane.received = (lane.received + 1) % self.recv_wqes;
        }
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
