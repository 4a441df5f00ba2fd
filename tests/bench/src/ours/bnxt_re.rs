//! bnxt_re.

use directverbs::bnxt_re::attached::{self, AttachedSrq};
use directverbs::bnxt_re::cq::CompletionQueue;
use directverbs::bnxt_re::plan::{CqPlan, QpPlan};
use directverbs::bnxt_re::qp::{QueuePair, QueuePairInit};
use directverbs::bnxt_re::recv::RecvQueue;
use directverbs::bnxt_re::send::{SendInit, SendQueue, SendRecord};
use directverbs::queue::Boxed;
use directverbs::verbs::{
    AccessFlags, AddressVector, CqId, Gid, Mac, Mtu, Psn, QpAttributes, QpCapabilities, QpId, QpState,
    QpType, RecvRequest, SendRequest, WorkCompletion,
};

use super::{FIRST_CQ, FIRST_QP, Queues, Table};
use crate::cqe::Producer;
use crate::device;
use crate::memory::{Page, ring};
use crate::work::Family;

impl attached::Page for Page {}

/// bnxt_re.
#[derive(Debug)]
pub struct BnxtRe;

impl Queues for BnxtRe {
    const FAMILY: Family = Family::BnxtRe;
    type Qp = QueuePair<'static, Boxed>;
    type Cq = CompletionQueue<'static>;
    type Srq = AttachedSrq<'static, Boxed, Page>;

    fn make(index: u32, asked: &QpCapabilities, cqes: u32) -> (Self::Qp, Self::Cq, Producer) {
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
        let init =
            SendInit { plan: plan.send, qp: id, qp_type: QpType::Rc, signal_all: false, atomics: true };
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
        let mut qp = QueuePair::new(&init, send, Some(recv.expect("a receive queue"))).expect("a queue pair");
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            qp.modify(&QpAttributes { state: Some(state), ..connection() }).expect("a transition");
        }
        (qp, cq, device)
    }

    #[inline(never)]
    fn post_send(qp: &mut Self::Qp, _: &mut Self::Cq, page: &Page, requests: &[SendRequest<'_>]) -> bool {
        qp.post_send(page, requests).is_ok()
    }

    #[inline(never)]
    fn post_recv(qp: &mut Self::Qp, _: &mut Self::Cq, page: &Page, requests: &[RecvRequest<'_>]) -> bool {
        qp.post_recv(page, requests).is_ok()
    }

    #[inline(never)]
    fn poll(cq: &mut Self::Cq, qps: &mut Table<Self>, page: &Page, out: &mut [WorkCompletion]) -> usize {
        cq.poll(qps, page, out).unwrap_or(usize::MAX)
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
