//! The library of this workspace, used as a program uses it: queues whose bookkeeping is in boxes, in a table, with a
//! doorbell page of plain memory.

mod bnxt_re;
mod ionic;

pub use bnxt_re::BnxtRe;
pub use ionic::Ionic;

use std::hint::black_box;

use directverbs::queue::QpTable;
use directverbs::verbs::{
    Endpoints, Pollable, QpCapabilities, RecvRequest, SendRequest, SharedReceiveQueue, WcStatus,
    WorkCompletion,
};

use crate::cqe::Producer;
use crate::device::Rings;
use crate::memory::Page;
use crate::meter::Meter;
use crate::requests::{recv_requests, send_requests};
use crate::side::{ASKED, CQES, LANES, Side};
use crate::work::{Family, MANY, Sends};

/// Slots of the table of queue pairs.
const TABLE: usize = 64;

/// Number of the first queue pair.
const FIRST_QP: u32 = 9;

/// Number of the first completion queue.
const FIRST_CQ: u32 = 30;

const _: () = assert!(LANES <= TABLE);

/// Room for the completions of a poll.
type Completions = [WorkCompletion; MANY];

/// Checks completions: successes, in the order of the posts.
fn check(completions: &Completions, count: usize) {
    for (i, wc) in completions.iter().take(count).enumerate() {
        assert_eq!(wc.status, WcStatus::Success, "status of completion {i} of {count}");
        if count > 1 {
            assert_eq!(wc.wr_id, i as u64, "completion {i} of {count}");
        }
    }
}

/// The queues of a family, and the functions of a program that uses them. None of these is inlined where it is measured.
pub trait Queues {
    /// The family.
    const FAMILY: Family;
    /// A queue pair with its bookkeeping in boxes.
    type Qp: Pollable + 'static;
    /// A completion queue.
    type Cq;
    /// A shared receive queue, of which there is none.
    type Srq: SharedReceiveQueue + 'static;

    /// A queue pair in state RTS and its completion queue, with numbers that count from `index`, and where CQEs go.
    fn make(index: u32, asked: &QpCapabilities, cqes: u32) -> (Self::Qp, Self::Cq, Producer);

    /// Posts send requests.
    fn post_send(qp: &mut Self::Qp, cq: &mut Self::Cq, page: &Page, requests: &[SendRequest<'_>]) -> bool;

    /// Posts receive requests.
    fn post_recv(qp: &mut Self::Qp, cq: &mut Self::Cq, page: &Page, requests: &[RecvRequest<'_>]) -> bool;

    /// Polls.
    fn poll(cq: &mut Self::Cq, qps: &mut Table<Self>, page: &Page, out: &mut [WorkCompletion]) -> usize;
}

/// Where a completion queue finds the queue pairs of a family.
pub type Table<Q> = QpTable<'static, <Q as Queues>::Qp, <Q as Queues>::Srq>;

#[derive(Debug)]
struct Lane<Cq> {
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
pub struct Ours<Q: Queues> {
    page: Page,
    qps: Table<Q>,
    lanes: Vec<Lane<Q::Cq>>,
    sends: [&'static [SendRequest<'static>]; Sends::ALL.len()],
    recvs: &'static [RecvRequest<'static>],
    rings: Rings,
    done: Completions,
}

impl<Q: Queues> Ours<Q> {
    /// Makes the queues.
    pub fn new() -> Self {
        let slots = Vec::leak((0..TABLE).map(|_| None).collect());
        let mut qps = Table::<Q>::new(slots, Vec::leak(Vec::new()));
        let lane = |index| {
            let (qp, cq, device) = Q::make(index, &ASKED, CQES);
            let key = qp.key();
            assert!(qps.insert(qp).is_ok(), "a slot of the table");
            Lane { key, cq, device, sent: 0, received: 0 }
        };
        let lanes = (0..LANES as u32).map(lane).collect();
        Self {
            page: Page::new(),
            qps,
            lanes,
            sends: send_requests(),
            recvs: recv_requests(),
            rings: Rings::new(Q::FAMILY, &ASKED, CQES),
            done: Completions::default(),
        }
    }
}

impl<Q: Queues> Side for Ours<Q> {
    #[inline(always)]
    fn post_send<M: Meter>(&mut self, lane: usize, index: usize, meter: &M) {
        let (requests, page) = (black_box(self.sends[index]), black_box(&self.page));
        let lane = &mut self.lanes[lane];
        let cq = &mut lane.cq;
        let posted = self.qps.with_qp(lane.key, |qp| {
            let (qp, cq) = (black_box(qp), black_box(cq));
            meter.call(|| Q::post_send(qp, cq, page, requests))
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
            meter.call(|| Q::post_recv(qp, cq, page, requests))
        });
        assert_eq!(posted, Some(true), "post");
    }

    fn complete_sends(&mut self, lane: usize, index: usize) {
        let lane = &mut self.lanes[lane];
        let sends = Sends::ALL[index];
        lane.device.sends(Q::FAMILY, lane.key.into(), &mut lane.sent, self.rings.send_wqes, sends);
    }

    fn complete_recvs(&mut self, lane: usize, count: usize) {
        let lane = &mut self.lanes[lane];
        let (key, received) = (lane.key.into(), &mut lane.received);
        lane.device.recvs(Q::FAMILY, key, received, self.rings.recv_wqes, count);
    }

    #[inline(always)]
    fn poll<M: Meter>(&mut self, lane: usize, meter: &M) -> usize {
        let (cq, qps) = (black_box(&mut self.lanes[lane].cq), black_box(&mut self.qps));
        let (page, out) = (black_box(&self.page), black_box(&mut self.done[..]));
        meter.call(|| Q::poll(cq, qps, page, out))
    }

    fn check(&self, completions: usize) {
        check(&self.done, completions);
    }
}
