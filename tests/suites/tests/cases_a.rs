//! Cases of group A: bnxt_re doorbells, epoch, toggle, pacing.

use std::cell::RefCell;

use directverbs::bnxt_re::attached::Page;
use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, PushPage, Toggle, Xid};
use directverbs::bnxt_re::pacing::{Pace, Pacing, PacingParameters};
use directverbs::bnxt_re::plan::{CqPlan, SrqPlan};
use directverbs::bnxt_re::push::PushBuffer;
use directverbs::bnxt_re::srq::{SharedReceiveQueue, SrqRecord};
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::queue::{Boxed, DeviceMemory, SlotIdx, WqeIdx};
use directverbs::verbs::{
    CqId, LKey, PostError, QpAttributes, QpId, QpState, QpType, RKey, RecvRequest, SendRequest, Sge, SrqId,
    SrqInit, WcStatus, WorkCompletion,
};
use directverbs_suites::bnxt_re::{CQ, Event, Flavor, Pages, QP, Rig, SMALL, Spy, cqe, req};

fn qp_xid() -> Xid {
    Xid::qp(QpId::truncated(QP)).unwrap()
}

fn write(wr_id: u64, sges: &[Sge]) -> SendRequest<'_> {
    SendRequest::write(0x1000, RKey::truncated(5)).wr_id(wr_id).sges(sges).signaled()
}

fn one_sge() -> [Sge; 1] {
    [Sge::new(0x2000, 64, LKey::truncated(3))]
}

/// Posts one write, and completes it.
fn round(rig: &mut Rig) -> DbWord {
    rig.qp.post_send(&rig.spy, &[write(1, &one_sge())]).unwrap();
    let word = rig.spy.take()[0];
    let index = rig.qp.send.state().next;
    rig.device.push(req(index, 0));
    assert_eq!(rig.poll(1).unwrap().len(), 1);
    rig.spy.take();
    word
}

#[test]
fn a1_doorbell_word() {
    let xid = Xid::qp(QpId::truncated(0x5_4321)).unwrap();
    let index = DbIndex::wqe(WqeIdx(0x123)).unwrap();
    let word = DbWord::ring(DbType::SQ, xid, index, Epoch(true), Toggle::truncated(2)).to_u64();
    assert_eq!((word as u32, (word >> 32) as u32), (0x0500_0123, 0x0405_4321));
}

#[test]
fn a2_wide_values_are_refused() {
    assert!(Xid::qp(QpId::truncated(0x10_0000)).is_err());
    assert!(Xid::cq(CqId::truncated(0x10_0000)).is_err());
    assert!(DbIndex::slot(SlotIdx(0x100_0000)).is_err());
    let word = DbWord::ring(
        DbType::CQ,
        Xid::qp(QpId::truncated(0xf_ffff)).unwrap(),
        DbIndex::slot(SlotIdx(0xff_ffff)).unwrap(),
        Epoch(false),
        Toggle::truncated(0xff),
    );
    assert_eq!(word.to_u64(), 0x440f_ffff_06ff_ffff);
}

#[test]
fn a3_epoch_flips_once_per_wrap() {
    for flavor in Flavor::all() {
        let mut rig = Rig::new(flavor, QpType::Rc, &SMALL, 64);
        let (slots, per_wqe) = (rig.plan.send.slots, if flavor.mode == WqeMode::Static { 8 } else { 3 });
        for posted in 1..=3 * slots / per_wqe {
            let word = round(&mut rig);
            let total = posted * per_wqe;
            assert_eq!(word.epoch(), Epoch(total / slots % 2 == 1), "{flavor:?} after {posted}");
        }
    }
}

#[test]
fn a4_index_field_counts_slots_only_in_a_variable_sq() {
    let recv = [RecvRequest::new(1, &[]); 3];
    for flavor in Flavor::all() {
        let mut rig = Rig::new(flavor, QpType::Rc, &SMALL, 64);
        let sges = one_sge();
        rig.qp.post_send(&rig.spy, &[write(1, &sges), write(2, &sges)]).unwrap();
        let expected = if flavor.mode == WqeMode::Static { 2 } else { 6 };
        assert_eq!(rig.spy.take()[0].index().get(), expected);
        rig.qp.post_recv(&rig.spy, &recv).unwrap();
        let word = rig.spy.take()[0];
        assert_eq!((word.db_type(), word.index().get()), (DbType::RQ, 3));
    }
}

/// A rig whose completion queue is resized when its consumer index is `head`, and the doorbells that follow.
fn resized_at(head: u32, toggle: u8) -> (Rig, Vec<DbWord>) {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 1000);
    for _ in 0..head {
        rig.device.push(cqe([0; 3], 0xd, 0, 0, 0));
    }
    assert_eq!(rig.poll(1).unwrap(), []);
    let plan = CqPlan::resized(&rig.caps, 3000, &CqPlan::new(&rig.caps, 1000).unwrap()).unwrap();
    let memory = Pages::new(plan.bytes as usize, 0xff);
    rig.cq.begin_resize(memory.ring(), &plan).unwrap();
    let mut cut_off = cqe([0; 3], 0xf, 0, 0, 0);
    cut_off[24] |= toggle << 5;
    rig.device.push(cut_off);
    rig.device = directverbs_suites::bnxt_re::Producer::new(memory, plan.entries);
    rig.spy.take();
    assert_eq!(rig.poll(1).unwrap(), []);
    let words = rig.spy.take();
    (rig, words)
}

#[test]
fn a5_resize_carries_the_epoch() {
    let (mut rig, ack) = resized_at(900, 0);
    assert_eq!((ack[0].index().get(), ack[0].epoch()), (0, Epoch(true)));
    for _ in 0..10 {
        rig.device.push(cqe([0; 3], 0xd, 0, 0, 0));
    }
    rig.poll(1).unwrap();
    rig.cq.arm(false, Toggle::ZERO, &rig.spy);
    let arm = rig.spy.take()[0];
    assert_eq!((arm.index().get(), arm.epoch()), (10, Epoch(true)));
    let (_, ack) = resized_at(0, 0);
    assert_eq!((ack[0].index().get(), ack[0].epoch()), (0, Epoch(false)));
}

#[test]
fn a6_cut_off_ack_carries_the_toggle_of_the_cqe() {
    for toggle in 0..4 {
        let (rig, words) = resized_at(5, toggle);
        rig.spy.toggle.set(3 - u32::from(toggle));
        assert_eq!(words.len(), 1);
        assert_eq!(words[0].db_type(), DbType::CQ_CUTOFF_ACK);
        assert_eq!(words[0].xid(), Xid::cq(CqId::truncated(CQ)).unwrap());
        assert_eq!(words[0].toggle().get(), toggle);
    }
}

#[test]
fn a7_resize_without_cut_off_ends() {
    use directverbs::verbs::Slices;
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 100);
    let plan = CqPlan::resized(&rig.caps, 300, &CqPlan::new(&rig.caps, 100).unwrap()).unwrap();
    rig.cq.begin_resize(Pages::new(plan.bytes as usize, 0).ring(), &plan).unwrap();
    for i in 0..3 {
        rig.qp.post_send(&rig.spy, &[write(i, &one_sge())]).unwrap();
    }
    rig.device.push(req(3, 0));
    let mut out = [WorkCompletion::default(); 8];
    let mut pauses = 0;
    let mut endpoints = Slices { qps: std::slice::from_mut(&mut rig.qp), srqs: rig.srqs.as_mut_slice() };
    let end = rig.cq.finish_resize(&mut endpoints, &rig.spy, &mut out, 20, || pauses += 1);
    assert_eq!((end.unwrap_err().completions, pauses), (3, 20));
    assert_eq!([0, 1, 2].map(|i: usize| out[i].wr_id), [0, 1, 2]);
    assert!(rig.cq.cancel_resize().is_some());
    rig.qp.post_send(&rig.spy, &[write(9, &one_sge())]).unwrap();
    rig.device.push(req(4, 0));
    assert_eq!(rig.poll(4).unwrap()[0].wr_id, 9);
}

fn srq(max_wr: u32) -> (SharedReceiveQueue<'static, Boxed>, Pages) {
    let plan = SrqPlan::new(&Flavor::P7.caps(), &SrqInit { max_wr, max_sge: 2 }).unwrap();
    let memory = Pages::new(plan.bytes as usize, 0);
    let records = vec![SrqRecord::default(); plan.entries.next_power_of_two() as usize];
    (SharedReceiveQueue::new(memory.ring(), records.into(), &plan, SrqId::truncated(4)).unwrap(), memory)
}

#[test]
fn a9_arms_carry_the_toggle_page() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    let (mut srq, _) = srq(4);
    for toggle in 0..4u32 {
        rig.spy.toggle.set(toggle);
        rig.cq.arm(true, rig.spy.toggle(), &rig.spy);
        srq.arm_limit(2, rig.spy.toggle(), &rig.spy);
        let words = rig.spy.take();
        assert_eq!(words.iter().map(|w| u32::from(w.toggle().get())).collect::<Vec<_>>(), [toggle; 2]);
        assert_eq!([words[0].db_type(), words[1].db_type()], [DbType::CQ_ARMSE, DbType::SRQ_ARM]);
    }
    struct NoToggle;
    impl directverbs::queue::Doorbell for NoToggle {
        fn store(&self, _: usize, _: u64) {}
    }
    impl Page for NoToggle {}
    assert_eq!(NoToggle.toggle(), Toggle::ZERO);
}

const PACING: [u32; 7] = [0xffff, 0x100, 0x200, 0x2c00, 0x3fff_8000, 15, 0x1b4];

#[test]
fn a14_fifo_occupancy_from_a_32_bit_register() {
    let parameters = PacingParameters::from_page(&PACING);
    assert_eq!(parameters.occupancy(0x2b00 << 15 | 0x4000_7fff), 0x100);
    assert_eq!(parameters.occupancy(0), 0x2c00);
}

#[test]
fn a16_parameters_come_from_the_page() {
    let p5 = PacingParameters::from_page(&[0xffff, 10, 20, 0x2c00, 0x1fff_8000, 15, 0]);
    let p7 = PacingParameters::from_page(&[0xffff, 10, 20, 0x8000, 0x7fff_0000, 16, 0]);
    let register = 0x1234_5678;
    assert_eq!(p5.occupancy(register), 0x2c00 - ((register & 0x1fff_8000) >> 15));
    assert_eq!(p7.occupancy(register), 0x8000 - ((register & 0x7fff_0000) >> 16));
    let wide = PacingParameters { fifo_room_shift: 40, ..p7 };
    assert_eq!(wide.occupancy(register), 0x8000);
}

#[test]
fn a17_without_a_pacing_page_nothing_is_paced() {
    let mut caps = Flavor::P7.caps();
    caps.pacing = false;
    let mut rig = Rig::with_caps(caps, QpType::Rc, &SMALL, 64);
    rig.qp.post_send(&rig.spy, &[write(1, &one_sge())]).unwrap();
    // The post itself reads no register: three events, and the one store is the doorbell.
    assert_eq!(rig.spy.events.borrow().len(), 3);
    let mut off = Pacing::new(PacingParameters::default(), 9);
    assert!((0..1000).all(|_| !off.wants_pacing()));
}

#[test]
fn a18_waits_are_random_doubled_and_capped() {
    let mut pacing = Pacing::new(PacingParameters::from_page(&PACING), QP);
    assert!((0..100).any(|_| pacing.wants_pacing()));
    let mut wait = pacing.wait();
    let full = 0;
    let mut longest = 0;
    for i in 0..200u32 {
        let Pace::Wait { micros, notify } = wait.step(full) else { panic!("the FIFO is full") };
        assert!(notify);
        assert!(micros < 1 << i.min(7), "wait {i}: {micros}");
        longest = longest.max(micros);
    }
    assert!((64..128).contains(&longest));
    let below_alarm = (0x2c00 - 0x180) << 15;
    assert!(matches!(wait.step(below_alarm), Pace::Wait { notify: false, .. }));
    let below_threshold = (0x2c00 - 0x100) << 15;
    assert_eq!(wait.step(below_threshold), Pace::Ring);
}

#[test]
fn a19_deferred_consumer_doorbell_rings_at_half() {
    let plan = CqPlan::new(&Flavor::P7.caps(), 15).unwrap();
    assert!(plan.deferred);
    assert_eq!(plan.entries, 31);
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 15);
    let mut rung = Vec::new();
    for i in 1..=45 {
        rig.device.push(cqe([0; 3], 0xd, 0, 0, 0));
        rig.poll(1).unwrap();
        let words = rig.spy.take();
        if let [word] = words[..] {
            assert_eq!((word.db_type(), word.index().get()), (DbType::CQ, i % 31));
            rung.push(i);
        }
    }
    assert_eq!(rung, [15, 30, 45]);
    let most = Flavor::P7.caps().max_cqe;
    assert!(!CqPlan::new(&Flavor::P7.caps(), most / 2).unwrap().deferred);
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, most / 2);
    rig.device.push(cqe([0; 3], 0xd, 0, 0, 0));
    rig.poll(1).unwrap();
    assert_eq!(rig.spy.take().len(), 1);
}

#[test]
fn a20_moderated_srq_doorbell_is_not_forgotten() {
    let (mut srq, _) = srq(64);
    let spy = Spy::default();
    srq.moderate(4);
    let post = |srq: &mut SharedReceiveQueue<'static, Boxed>, n| {
        for _ in 0..n {
            let mut batch = srq.batch();
            batch.post(&RecvRequest::new(0, &[])).unwrap();
            batch.commit(&spy);
        }
        spy.take().iter().map(|w| w.index().get()).collect::<Vec<_>>()
    };
    // The device has fewer than four: each rings. Then every fourth does.
    assert_eq!(post(&mut srq, 4), [1, 2, 3, 4]);
    assert_eq!(post(&mut srq, 9), [8, 12]);
    srq.flush(&spy);
    assert_eq!(spy.take()[0].index().get(), 13);
    srq.flush(&spy);
    assert_eq!(spy.take(), []);
}

#[test]
fn a20_poller_rings_when_the_device_runs_low() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    let (mut queue, _) = srq(64);
    let page: &'static Spy = Box::leak(Box::default());
    queue.moderate(4);
    for i in 0..6 {
        let mut batch = queue.batch();
        batch.post(&RecvRequest::new(i, &[])).unwrap();
        batch.commit(page);
    }
    assert_eq!(page.take().last().unwrap().index().get(), 4);
    rig.srqs.push(directverbs_suites::bnxt_re::Srq { srq: queue, page });
    rig.share_srq();
    rig.device.push(directverbs_suites::bnxt_re::res_rc(0, 0, 0, 1, 0));
    assert_eq!(rig.poll(1).unwrap().len(), 1);
    let words = rig.spy.take();
    assert!(words.iter().any(|w| w.db_type() == DbType::SRQ && w.index().get() == 6), "{words:?}");
}

#[test]
fn a22_arm_goes_at_once_and_loses_nothing() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    rig.qp.post_send(&rig.spy, &[write(1, &one_sge())]).unwrap();
    assert_eq!(rig.poll(1).unwrap(), []);
    rig.spy.take();
    rig.cq.arm(false, Toggle::ZERO, &rig.spy);
    let words = rig.spy.take();
    assert_eq!((words.len(), words[0].db_type()), (1, DbType::CQ_ARMALL));
    rig.device.push(req(1, 0));
    assert_eq!(rig.poll(1).unwrap().len(), 1);
}

#[test]
fn a23_srq_is_enabled_once() {
    let (srq, _) = srq(4);
    let spy = Spy::default();
    srq.enable(&spy, Toggle::ZERO);
    let words = spy.take();
    assert_eq!((words.len(), words[0].db_type(), words[0].xid().get()), (1, DbType::SRQ_ARMENA, 4));
}

#[test]
fn a24_limit_above_the_fill_is_armed_at_once() {
    let (mut srq, _) = srq(16);
    let spy = Spy::default();
    srq.arm_limit(10, Toggle::truncated(1), &spy);
    let words = spy.take();
    assert_eq!(words.len(), 1);
    assert_eq!((words[0].db_type(), words[0].index().get()), (DbType::SRQ_ARM, 10));
}

/// A push page that remembers its blocks.
#[derive(Default)]
struct PushMemory(RefCell<Vec<(usize, [u8; 16])>>);

impl DeviceMemory for &PushMemory {
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        self.0.borrow_mut().push((offset, *block));
    }
    fn store_64(&self, _: usize, _: &[u8; 64]) {
        panic!("push copies slots");
    }
}

#[test]
fn a30_push_copies_the_ring_between_its_doorbells() {
    for flavor in Flavor::all() {
        let mut rig = Rig::new(flavor, QpType::Rc, &SMALL, 64);
        let memory = PushMemory::default();
        let push = PushBuffer::new(&memory, PushPage::new(0x123).unwrap(), 2).unwrap();
        let data: Vec<u8> = (0..40).collect();
        let pieces = [&data[..7], &data[7..]];
        let request = SendRequest::write(0x1000, RKey::truncated(5)).inline(&pieces);
        rig.qp.push(&request, &push, &rig.spy).unwrap();

        let end = if flavor.mode == WqeMode::Static { 1 } else { 5 };
        let word = |db_type, index| {
            let index = DbIndex::slot(SlotIdx(index)).unwrap();
            DbWord::push(db_type, PushPage::new(0x123).unwrap(), qp_xid(), index).to_u64()
        };
        assert_eq!(
            rig.spy.events.take(),
            [
                Event::ToDevice,
                Event::Store(3, word(DbType::PUSH_START, 0)),
                Event::WcStart,
                Event::WcFlush,
                Event::ToDevice,
                Event::Store(3, word(DbType::PUSH_END, end)),
            ]
        );
        let blocks = memory.0.take();
        assert_eq!(blocks.len(), 5);
        for (i, (offset, block)) in blocks.into_iter().enumerate() {
            assert_eq!((offset, block), (2 * 256 + i * 16, rig.sq_memory.read(i * 16)));
        }
    }
    assert!(PushBuffer::new(&PushMemory::default(), PushPage::new(0).unwrap(), 16).is_err());
}

#[test]
fn a30_push_keeps_to_the_state_of_the_queue_pair() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    let memory = PushMemory::default();
    let push = PushBuffer::new(&memory, PushPage::new(0x123).unwrap(), 2).unwrap();
    let request = SendRequest::send().wr_id(7).inline(&[]);
    rig.qp.modify(&QpAttributes::to(QpState::Err)).unwrap();
    assert_eq!(rig.poll(4).unwrap(), []);
    // In error it is accepted, and flushed.
    rig.qp.push(&request, &push, &rig.spy).unwrap();
    let found = rig.poll(4).unwrap();
    assert_eq!(found.iter().map(|wc| (wc.wr_id, wc.status)).collect::<Vec<_>>(), [(7, WcStatus::WrFlush)]);
    // Before RTS nothing is sent, and nothing is written.
    rig.qp.modify(&QpAttributes::to(QpState::Reset)).unwrap();
    rig.spy.events.take();
    memory.0.take();
    let refused = rig.qp.push(&request, &push, &rig.spy);
    assert_eq!(refused, Err(PostError::BadState(QpState::Reset)));
    assert!(rig.spy.events.take().is_empty() && memory.0.take().is_empty());
}

#[test]
fn a32_pollers_never_arm() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 8);
    for _ in 0..100 {
        rig.device.push(cqe([0; 3], 0xd, 0, 0, 0));
        rig.poll(1).unwrap();
    }
    let words = rig.spy.take();
    assert!(!words.is_empty());
    assert!(words.iter().all(|w| w.db_type() == DbType::CQ && w.db_type().code() == 4));
}

/// That swapped arguments do not compile is a doctest of `directverbs::bnxt_re::doorbell`; here each lands in its own
/// field.
#[test]
fn a33_each_argument_lands_in_its_field() {
    let index = DbIndex::wqe(WqeIdx(1)).unwrap();
    let word = DbWord::ring(DbType::RQ, qp_xid(), index, Epoch(true), Toggle::truncated(3));
    assert_eq!(
        (word.index(), word.xid(), word.epoch(), word.toggle(), word.db_type()),
        (index, qp_xid(), Epoch(true), Toggle::truncated(3), DbType::RQ)
    );
}

#[test]
fn a34_a35_only_the_largest_position_is_published() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    let publisher = directverbs::queue::Publisher::new();
    // Two posters fill the ring one after the other, but come to the doorbell in the other order.
    let mut words = Vec::new();
    for wr_id in [1, 2] {
        let mut batch = rig.qp.send_batch().unwrap();
        batch.post(&write(wr_id, &one_sge())).unwrap();
        words.push(batch.finish());
    }
    let mut stored = Vec::new();
    publisher.publish(2, |position| stored.push(words[position as usize - 1]));
    publisher.publish(1, |position| stored.push(words[position as usize - 1]));
    assert_eq!(stored, [words[1]]);
    assert_eq!(stored[0].index().get(), 6);
}
