//! Cases of group F for bnxt_re: barriers and doorbells in their order. F1 and F3 are properties.

use directverbs::bnxt_re::cqe::CQE_BYTES;
use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::verbs::{LKey, QpType, RKey, RecvRequest, SendRequest, Sge, WcStatus};
use directverbs_suites::bnxt_re::{Event, Flavor, Pages, Producer, Rig, SMALL, cqe, req, res_rc};

fn write<'a>(sges: &'a [Sge]) -> SendRequest<'a> {
    SendRequest::write(0x1000, RKey::truncated(5)).sges(sges).signaled()
}

/// The device writes its CQE in every order that puts the phase first; whatever is missing arrives in the barrier.
#[test]
fn f4_nothing_but_the_phase_is_read_before_the_barrier() {
    let sges = [Sge::new(0x2000, 64, LKey::truncated(3))];
    for missing in 0..32usize {
        for receive in [false, true] {
            let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
            rig.qp.post_send(&rig.spy, &[write(&sges).wr_id(7)]).unwrap();
            rig.qp.post_recv(&rig.spy, &[RecvRequest::new(7, &sges)]).unwrap();
            let mut elsewhere = Producer { memory: Pages::new(4096, 0), ..rig.device };
            elsewhere.push(if receive { res_rc(64, 0, 0, 0, 0) } else { req(1, 0) });
            let whole: [u8; 32] = elsewhere.memory.read(0);
            // The bytes before `missing` are there, the rest holds nonsense but for the phase.
            let mut early = [0xa5; 32];
            early[..missing].copy_from_slice(&whole[..missing]);
            early[24] = early[24] & !1 | 1;
            let memory = rig.device.memory;
            memory.write(0, &early);
            *rig.spy.hook.borrow_mut() = Some(Box::new(move || memory.write(0, &whole)));
            rig.spy.events.take();
            let found = rig.poll(1).unwrap();
            assert_eq!((found[0].wr_id, found[0].status), (7, WcStatus::Success), "byte {missing}");
            assert_eq!(rig.spy.events.take()[0], Event::FromDevice);
        }
    }
}

#[test]
fn f4_an_old_entry_is_left_before_any_barrier() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    assert_eq!(rig.poll(8).unwrap(), []);
    assert_eq!(rig.spy.events.take(), []);
}

#[test]
fn f5_one_doorbell_behind_all_ring_stores() {
    let sges = [Sge::new(0x2000, 64, LKey::truncated(3))];
    for flavor in Flavor::all() {
        let mut rig = Rig::new(flavor, QpType::Rc, &SMALL, 64);
        let mut batch = rig.qp.send_batch().unwrap();
        for _ in 0..3 {
            batch.post(&write(&sges)).unwrap();
        }
        assert_eq!(rig.spy.events.borrow().len(), 0, "nothing is rung before the commit");
        let word = batch.doorbell().to_u64();
        let third = if flavor == Flavor::P7 { 6 * 16 } else { 0 };
        assert_ne!(rig.sq_memory.read::<4>(third), [0; 4], "the ring is written before the doorbell");
        batch.commit(&rig.spy);
        assert_eq!(rig.spy.events.take(), [Event::WcStart, Event::Store(0, word), Event::WcFlush]);

        rig.qp.post_recv(&rig.spy, &[RecvRequest::new(1, &sges), RecvRequest::new(2, &sges)]).unwrap();
        let word = rig.qp.recv.as_ref().unwrap().doorbell().to_u64();
        assert_eq!(rig.spy.events.take(), [Event::WcStart, Event::Store(0, word), Event::WcFlush]);

        rig.qp.send_batch().unwrap().commit(&rig.spy);
        assert_eq!(rig.spy.events.take(), [], "an empty batch rings nothing");
    }
}

#[test]
fn f5_golden_words() {
    let sges = [Sge::new(0x2000, 64, LKey::truncated(3))];
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 2);
    let golden = |events: Vec<Event>| -> Vec<u64> {
        let words =
            events.iter().filter_map(|e| if let Event::Store(0, word) = e { Some(*word) } else { None });
        words.collect()
    };
    rig.qp.post_send(&rig.spy, &[write(&sges), write(&sges)]).unwrap();
    assert_eq!(golden(rig.spy.events.take()), [0x0400_0009_0000_0006]);
    rig.qp.post_recv(&rig.spy, &[RecvRequest::new(1, &sges)]).unwrap();
    assert_eq!(golden(rig.spy.events.take()), [0x1400_0009_0000_0001]);
    // Room for two completions makes five entries: half of them ring.
    assert_eq!(rig.cq.entries(), 5);
    rig.device.push(req(1, 0));
    rig.device.push(req(2, 0));
    assert_eq!(rig.poll(8).unwrap().len(), 2);
    assert_eq!(golden(rig.spy.events.take()), [0x4400_0007_0000_0002]);
    rig.cq.arm(false, Toggle::truncated(3), &rig.spy);
    rig.cq.arm(true, Toggle::truncated(1), &rig.spy);
    assert_eq!(golden(rig.spy.events.take()), [0x6400_0007_0600_0002, 0x5400_0007_0200_0002]);
    rig.cq.enable(Toggle::ZERO, &rig.spy);
    assert_eq!(golden(rig.spy.events.take()), [0x7400_0007_0000_0000]);
}

#[test]
fn a_device_that_writes_without_end_does_not_keep_the_poller() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 8);
    let mut device = rig.device;
    device.push(cqe([0; 3], 0xd, 0, 0, 0));
    *rig.spy.hook.borrow_mut() = Some(Box::new(move || device.push(cqe([0; 3], 0xd, 0, 0, 0))));
    assert_eq!(rig.poll(1).unwrap(), []);
    assert_eq!(rig.cq.memory().len() % CQE_BYTES as usize, 0);
    let barriers = rig.spy.events.take().iter().filter(|e| **e == Event::FromDevice).count();
    // Each entry of the ring once.
    assert_eq!(barriers, rig.cq.entries() as usize);
}
