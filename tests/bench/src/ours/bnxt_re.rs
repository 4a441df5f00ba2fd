//! bnxt_re.

use std::hint::black_box;

use directverbs::bnxt_re::attached::{self, AttachedSrq};
use directverbs::bnxt_re::cq::CompletionQueue;
use directverbs::bnxt_re::plan::{CqPlan, QpPlan};
use directverbs::bnxt_re::qp::{QueuePair, QueuePairInit};
use directverbs::bnxt_re::recv::RecvQueue;
use directverbs::bnxt_re::send::{SendInit, SendQueue, SendRecord};
use directverbs::queue::{Boxed, QpTable};
use directverbs::verbs::{
    AccessFlags, AddressVector, CqId, Endpoints, Gid, Mac, Mtu, Pollable, Psn, QpAttributes, QpCapabilities,
    QpId, QpState, QpType, RecvRequest, SendRequest, WorkCompletion,
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
type Table = QpTable<'static, Qp, AttachedSrq<'static, Boxed, Page>>;

impl attached::Page for Page {}

/// Posts as a program does: the batch is inlined into the function that posts.
#[inline(never)]
fn post_send(qp: &mut Qp, page: &Page, requests: &[SendRequest<'_>]) -> bool {
    qp.post_send(page, requests).is_ok()
}

/// Posts receive requests.
#[inline(never)]
fn post_recv(qp: &mut Qp, page: &Page, requests: &[RecvRequest<'_>]) -> bool {
    qp.post_recv(page, requests).is_ok()
}

/// Polls as a program does.
#[inline(never)]
fn poll(
    cq: &mut CompletionQueue<'static>,
    qps: &mut Table,
    page: &Page,
    out: &mut [WorkCompletion],
) -> usize {
    cq.poll(qps, page, out).unwrap_or(usize::MAX)
}

#[derive(Debug)]
struct Lane {
    /// What CQEs name the queue pair by.
    key: u32,
    cq: CompletionQueue<'static>,
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
pub fn queues(index: u32, asked: &QpCapabilities, cqes: u32) -> (Qp, CompletionQueue<'static>, Producer) {
    let caps = device::bnxt_re();
    let plan = QpPlan::new(&caps, asked, false).expect("a plan of a queue pair");
    let recv_plan = plan.recv.expect("a receive queue");
    let cq_plan = CqPlan::new(&caps, cqes).expect("a plan of a completion queue");
    let (id, cq_id) = (QpId::truncated(FIRST_QP + index), CqId::truncated(FIRST_CQ + index));
    let (memory, at) = ring(cq_plan.bytes as usize);
    // SAFETY: the ring has so many entries and is never given back.
    let device = unsafe { Producer::new(at, cq_plan.entries as usize) };
    let cq = CompletionQueue::new(memory, &cq_plan, cq_id).expect("a completion queue");

    // Queues use a power of two of their records.
    let records = vec![SendRecord::default(); plan.send.records.next_power_of_two() as usize].into();
    let init = SendInit { plan: plan.send, qp: id, qp_type: QpType::Rc, signal_all: false, atomics: true };
    let send = SendQueue::new(ring(plan.send.bytes as usize).0, records, &init).expect("a send queue");
    let records = vec![0; recv_plan.wqes.next_power_of_two() as usize].into();
    let recv = RecvQueue::new(ring(recv_plan.bytes as usize).0, records, &recv_plan, id);
    let init = QueuePairInit {
        id,
        handle: id.get(),
        qp_type: QpType::Rc,
        send_cq: cq_id,
        recv_cq: cq_id,
        srq: None,
        capabilities: plan.granted(),
    };
    let mut qp = Qp::new(&init, send, Some(recv.expect("a receive queue"))).expect("a queue pair");
    for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
        qp.modify(&QpAttributes { state: Some(state), ..connection() }).expect("a transition");
    }
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
            rings: Rings::new(Family::BnxtRe, &ASKED, CQES),
            done: Completions::default(),
        }
    }
}

impl Side for Ours {
    #[inline(always)]
    fn post_send<M: Meter>(&mut self, lane: usize, index: usize, meter: &M) {
        let (requests, page) = (black_box(self.sends[index]), black_box(&self.page));
        let posted = self.qps.with_qp(self.lanes[lane].key, |qp| {
            let qp = black_box(qp);
            meter.call(|| post_send(qp, page, requests))
        });
        assert_eq!(posted, Some(true), "post");
    }

    #[inline(always)]
    fn post_recv<M: Meter>(&mut self, lane: usize, count: usize, meter: &M) {
        let (requests, page) = (black_box(&self.recvs[..count]), black_box(&self.page));
        let posted = self.qps.with_qp(self.lanes[lane].key, |qp| {
            let qp = black_box(qp);
            meter.call(|| post_recv(qp, page, requests))
        });
        assert_eq!(posted, Some(true), "post");
    }

    fn complete_sends(&mut self, lane: usize, index: usize) {
        let lane = &mut self.lanes[lane];
        let sends = Sends::ALL[index];
        lane.device.sends(Family::BnxtRe, lane.key.into(), &mut lane.sent, self.rings.send_wqes, sends);
    }

    fn complete_recvs(&mut self, lane: usize, count: usize) {
        let lane = &mut self.lanes[lane];
        let (key, received) = (lane.key.into(), &mut lane.received);
        lane.device.recvs(Family::BnxtRe, key, received, self.rings.recv_wqes, count);
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

/// All that a transition of a connection may want.
fn connection() -> QpAttributes {
    QpAttributes {
        access: Some(AccessFlags::empty()),
        path: Some(AddressVector::new(Gid::default(), Mac::default())),
        mtu: Some(Mtu::B1024),
        dest_qp: Some(QpId::default()),
        rq_psn: Some(Psn::default()),
        sq_psn: Some(Psn::default()),
        max_rd_atomic: Some(1),
        max_dest_rd_atomic: Some(1),
        min_rnr_timer: Some(1),
        timeout: Some(14),
        retry_count: Some(7),
        rnr_retry: Some(7),
        ..QpAttributes::default()
    }
}
