//! ionic.

use directverbs::ionic::QueueMemory;
use directverbs::ionic::cq::{CompletionQueue, CqRing};
use directverbs::ionic::plan::{CqPlan, Placement, QpPlan};
use directverbs::ionic::qp::{NoSharedReceiveQueue, QpConfig, QueuePair};
use directverbs::ionic::recv::RqRecord;
use directverbs::ionic::send::SqRecord;
use directverbs::queue::Boxed;
use directverbs::verbs::{
    CqId, QpCapabilities, QpId, QpState, QpType, RecvRequest, SendRequest, WorkCompletion,
};

use super::{FIRST_CQ, FIRST_QP, Queues, Table};
use crate::cqe::Producer;
use crate::device;
use crate::memory::{Page, ring};
use crate::work::Family;

/// ionic.
#[derive(Debug)]
pub struct Ionic;

impl Queues for Ionic {
    const FAMILY: Family = Family::Ionic;
    type Qp = QueuePair<'static, Boxed>;
    type Cq = CompletionQueue<'static>;
    type Srq = NoSharedReceiveQueue;

    fn make(index: u32, asked: &QpCapabilities, cqes: u32) -> (Self::Qp, Self::Cq, Producer) {
        let caps = device::ionic();
        let plan = QpPlan::new(&caps, asked, Placement::default()).expect("a plan of a queue pair");
        let cq_plan = CqPlan::new(&caps, cqes).expect("a plan of a completion queue");
        let (memory, at) = ring(cq_plan.ring.bytes());
        // SAFETY: the ring has so many entries and is never given back.
        let device = unsafe { Producer::new(at, cq_plan.ring.depth() as usize) };
        let cq_id = CqId::truncated(FIRST_CQ + index);
        let cq_ring = CqRing::new(cq_id, caps.cq_qtype, &cq_plan, memory).expect("a completion ring");
        let cq = CompletionQueue::new(caps.udma_count, [Some(cq_ring), None]).expect("a completion queue");

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
        let mut qp = QueuePair::new(&caps, &config, &plan, sq, rq).expect("a queue pair");
        qp.set_state(QpState::Rts);
        (qp, cq, device)
    }

    #[inline(never)]
    fn post_send(qp: &mut Self::Qp, cq: &mut Self::Cq, page: &Page, requests: &[SendRequest<'_>]) -> bool {
        qp.post_send(cq, requests, page).is_ok()
    }

    #[inline(never)]
    fn post_recv(qp: &mut Self::Qp, cq: &mut Self::Cq, page: &Page, requests: &[RecvRequest<'_>]) -> bool {
        qp.post_recv(cq, requests, page).is_ok()
    }

    #[inline(never)]
    fn poll(cq: &mut Self::Cq, qps: &mut Table<Self>, page: &Page, out: &mut [WorkCompletion]) -> usize {
        cq.poll(qps, page, out).unwrap_or(usize::MAX)
    }
}
