//! Cases F4 and F5 for ionic: what is loaded when, and what is stored in which order.

use std::cell::{Cell, RefCell};

use directverbs::ionic::cmb::{CmbGrant, Mapping};
use directverbs::ionic::cqe::{CqeType, QidTypeFlags, SendCqe};
use directverbs::ionic::qp::NoSharedReceiveQueue;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::queue::Doorbell;
use directverbs::verbs::{LKey, RKey, RecvRequest, SendRequest, Sge, Slices, WcStatus, WorkCompletion};
use directverbs_suites::ionic::{Arena, Event, RQ, Rig, SQ, Setup, View};
use zerocopy::IntoBytes;

/// A device whose CQE arrives in an adversarial order: the byte with the color first, the rest when the barrier comes.
struct Late<'m> {
    cq: View<'m>,
    rest: RefCell<Vec<(usize, Vec<u8>)>>,
    barriers: Cell<u32>,
}

impl Doorbell for Late<'_> {
    fn store(&self, _: usize, _: u64) {}

    fn from_device(&self) {
        self.barriers.set(self.barriers.get() + 1);
        for (offset, bytes) in self.rest.take() {
            self.cq.write(offset, &bytes);
        }
    }
}

#[test]
fn f04_nothing_but_the_color_is_read_before_the_barrier() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(RdmaVersion::V2));
    let sges = [Sge::new(1, 10, LKey::MAX)];
    let request = SendRequest::write(0, RKey::MAX).sges(&sges).signaled();
    rig.qp
        .post_send(&mut rig.cq, &[request.wr_id(1), request.wr_id(2), request.wr_id(3)], &rig.bell)
        .unwrap();

    // Old bytes of the entry name another queue pair, type and number.
    let view = rig.device().view;
    view.write(0, &[0x77; 31]);
    let cqe = SendCqe {
        msg_msn: 2.into(),
        qid_type_flags: QidTypeFlags::new()
            .with_qid(5)
            .with_cqe_type(CqeType::SEND_MSN.0)
            .with_color(true)
            .into_bits()
            .into(),
        ..SendCqe::ZERO
    };
    view.write(31, &[0x77 | 1]);
    let late =
        Late { cq: view, rest: RefCell::new(vec![(0, cqe.as_bytes().to_vec())]), barriers: Cell::new(0) };
    let mut out = [WorkCompletion::default(); 8];
    let qps = std::slice::from_mut(&mut rig.qp);
    let mut endpoints = Slices::<_, NoSharedReceiveQueue> { qps, srqs: &mut [] };
    assert_eq!(rig.cq.poll(&mut endpoints, &late, &mut out), Ok(2));
    assert_eq!(
        out[..2].iter().map(|wc| (wc.wr_id, wc.status)).collect::<Vec<_>>(),
        [(1, WcStatus::Success), (2, WcStatus::Success)]
    );
    assert_ne!(late.barriers.get(), 0);
}

/// Posts two sends and two receives and returns what the device saw of each.
fn trace(
    sq: CmbGrant,
    rq: CmbGrant,
    sges: u32,
) -> (Vec<Event>, Vec<Event>, impl Fn(bool, usize) -> [Event; 2]) {
    let arena = Box::leak(Box::new(Arena::default()));
    let mut setup = Setup { sq, rq, ..Setup::new(RdmaVersion::V2) };
    setup.capabilities.max_send_sge = sges;
    setup.capabilities.max_recv_sge = 1;
    setup.capabilities.max_inline_data = 0;
    let mut rig = Rig::new(arena, setup);
    assert_eq!(rig.qp.placement(), (sq, rq));
    let sges = [Sge::new(1, 10, LKey::MAX)];
    let request = SendRequest::write(0, RKey::MAX).sges(&sges);
    rig.qp.post_send(&mut rig.cq, &[request, request], &rig.bell).unwrap();
    let sends = rig.bell.take();
    let recv = RecvRequest::new(0, &sges);
    rig.qp.post_recv(&mut rig.cq, &[recv, recv], &rig.bell).unwrap();
    let receives = rig.bell.take();
    let (sq, rq) = (rig.sq, rig.rq);
    let plan = setup.plan();
    let blocks = move |send: bool, index: usize| {
        let (view, plan) = if send { (sq, plan.sq) } else { (rq, plan.rq) };
        let stride = plan.ring.stride() as usize;
        [0, stride - 64].map(|within| {
            let offset = index * stride + within;
            Event::Copy { offset, block: Box::new(view.read(offset, 64).try_into().unwrap()) }
        })
    };
    (sends, receives, blocks)
}

const SQ_DOORBELL: Event = Event::Store { register: SQ, value: 5 << 24 | 2 };
const RQ_DOORBELL: Event = Event::Store { register: RQ, value: 5 << 24 | 2 };

#[test]
fn f05_host_ring() {
    let (sends, receives, _) = trace(CmbGrant::Host, CmbGrant::Host, 2);
    assert_eq!(sends, [Event::ToDevice, SQ_DOORBELL]);
    assert_eq!(receives, [Event::ToDevice, RQ_DOORBELL]);
}

#[test]
fn f05_controller_memory_write_combined_in_bulk() {
    let cmb = CmbGrant::Cmb { express: false, mapping: Mapping::WriteCombined };
    let (sends, receives, blocks) = trace(cmb, cmb, 2);
    let [[a, _], [b, _]] = [blocks(true, 0), blocks(true, 1)];
    assert_eq!(sends, [a, b, Event::WcFlush, Event::ToDevice, SQ_DOORBELL]);
    let [[a, _], [b, _]] = [blocks(false, 0), blocks(false, 1)];
    assert_eq!(receives, [a, b, Event::WcFlush, Event::ToDevice, RQ_DOORBELL]);
}

#[test]
fn f05_controller_memory_write_combined_with_express_doorbells() {
    let cmb = CmbGrant::Cmb { express: true, mapping: Mapping::WriteCombined };
    // Two SGEs and the doorbell take a stride of 128: the last block of each WQE comes after a flush.
    let (sends, receives, blocks) = trace(cmb, cmb, 2);
    let [[a, b], [c, d]] = [blocks(true, 0), blocks(true, 1)];
    let flush = || [Event::ToDevice, Event::WcFlush];
    let [f1, f2] = flush();
    let [f3, f4] = flush();
    assert_eq!(sends, [a, f1, f2, b, c, f3, f4, d, Event::WcFlush]);
    let [[_, a], [_, b]] = [blocks(false, 0), blocks(false, 1)];
    let [f1, f2] = flush();
    let [f3, f4] = flush();
    assert_eq!(receives, [f1, f2, a, f3, f4, b, Event::WcFlush]);
}

#[test]
fn f05_controller_memory_uncached() {
    let bulk = CmbGrant::Cmb { express: false, mapping: Mapping::Uncached };
    let express = CmbGrant::Cmb { express: true, mapping: Mapping::Uncached };
    let (sends, receives, blocks) = trace(bulk, express, 2);
    let [[a, _], [b, _]] = [blocks(true, 0), blocks(true, 1)];
    assert_eq!(sends, [a, b, Event::ToDevice, SQ_DOORBELL]);
    let [[_, a], [_, b]] = [blocks(false, 0), blocks(false, 1)];
    assert_eq!(receives, [Event::ToDevice, a, Event::ToDevice, b]);
}
