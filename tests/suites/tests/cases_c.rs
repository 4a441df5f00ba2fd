//! Cases of group C: bnxt_re completions.

use std::cell::Cell;
use std::rc::Rc;

use directverbs::bnxt_re::collapsed::{CollapsedCq, Progress};
use directverbs::bnxt_re::cqe::{ReqStatus, ResStatus};
use directverbs::bnxt_re::doorbell::{DbType, Epoch};
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::{
    FaultKind, Imm, LKey, PostError, QpAttributes, QpCapabilities, QpId, QpState, QpType, RKey, RecvRequest,
    SendRequest, Sge, WcFlags, WcOpcode, WcStatus, WorkCompletion,
};
use directverbs_suites::bnxt_re::{Flavor, HANDLE, Pages, Producer, QP, Rig, SMALL, Spy, cqe, req, res_rc};

fn rig(flavor: Flavor) -> Rig {
    Rig::new(flavor, QpType::Rc, &SMALL, 64)
}

/// Posts requests with `wr_id`s from `first` on; `signaled` says which of them complete.
fn send(rig: &mut Rig, first: u64, signaled: &[bool]) {
    let sges = [Sge::new(0x1000, 32, LKey::truncated(1))];
    let mut batch = rig.qp.send_batch().unwrap();
    for (i, signaled) in signaled.iter().enumerate() {
        let request = SendRequest::read(0x2000, RKey::truncated(2)).sges(&sges).wr_id(first + i as u64);
        batch.post(&if *signaled { request.signaled() } else { request }).unwrap();
    }
    batch.commit(&rig.spy);
}

fn recv(rig: &mut Rig, first: u64, count: u64) {
    for i in 0..count {
        rig.qp.post_recv(&rig.spy, &[RecvRequest::new(first + i, &[])]).unwrap();
    }
}

fn outcomes(found: &[WorkCompletion]) -> Vec<(u64, WcStatus)> {
    found.iter().map(|wc| (wc.wr_id, wc.status)).collect()
}

fn to_error(rig: &mut Rig) {
    rig.qp.modify(&QpAttributes::to(QpState::Err)).unwrap();
}

#[test]
fn c1_fields_are_read_behind_the_barrier() {
    let mut rig = rig(Flavor::P7);
    send(&mut rig, 5, &[true]);
    // The phase bit is there, the rest arrives while the driver is in its barrier.
    let mut early = Producer { memory: Pages::new(4096, 0), ..rig.device };
    early.push(req(1, 0));
    let whole: [u8; 32] = early.memory.read(0);
    let memory = rig.device.memory;
    memory.write(24, &whole[24..25]);
    *rig.spy.hook.borrow_mut() = Some(Box::new(move || memory.write(0, &whole)));
    let found = rig.poll(1).unwrap();
    assert_eq!(outcomes(&found), [(5, WcStatus::Success)]);
}

#[test]
fn c2_phase_flips_at_every_wrap() {
    for exact in [false, true] {
        let flavor = Flavor { exact, ..Flavor::P7 };
        let mut rig = Rig::new(flavor, QpType::Rc, &SMALL, 6);
        let entries = u64::from(rig.cq.entries());
        assert_eq!(entries, if exact { 13 } else { 16 });
        for i in 0..5 * entries {
            send(&mut rig, i, &[true]);
            assert_eq!(rig.poll(4).unwrap(), [], "old entries are no news");
            rig.device.push(req(rig.qp.send.state().next, 0));
            assert_eq!(outcomes(&rig.poll(4).unwrap()), [(i, WcStatus::Success)]);
        }
    }
}

#[test]
fn c3_memory_that_was_not_zeroed_holds_no_cqe() {
    // The rig's memory is filled with a pattern whose phase bits would count.
    let mut rig = rig(Flavor::P7);
    assert_eq!(rig.poll(4).unwrap(), []);
    let memory = Pages::new(4096, 0xff);
    let plan = directverbs::bnxt_re::plan::CqPlan::new(&rig.caps, 20).unwrap();
    let id = directverbs::verbs::CqId::truncated(7);
    rig.cq = directverbs::bnxt_re::cq::CompletionQueue::new(memory.ring(), &plan, id).unwrap();
    assert_eq!(rig.poll(4).unwrap(), []);
}

#[test]
fn c4_one_cqe_completes_many() {
    for flavor in Flavor::all() {
        let mut rig = rig(flavor);
        send(&mut rig, 0, &[false, true, false, false, true]);
        rig.device.push(req(5, 0));
        let found = rig.poll(8).unwrap();
        assert_eq!(outcomes(&found), [(1, WcStatus::Success), (4, WcStatus::Success)]);
        assert_eq!((found[0].opcode, found[0].byte_len), (WcOpcode::RdmaRead, 32));
        let state = rig.qp.send.state();
        assert_eq!((state.oldest, state.head), (5, state.tail));

        send(&mut rig, 5, &[true; 5]);
        rig.device.push(req(10, 0));
        for wr_id in 5..10 {
            assert_eq!(outcomes(&rig.poll(1).unwrap()), [(wr_id, WcStatus::Success)]);
        }
        assert_eq!(rig.poll(1).unwrap(), []);
    }
}

/// Consumer index of an error CQE for the request at `position` of those just posted.
fn error_index(flavor: Flavor, position: u32) -> u32 {
    if flavor.mode == WqeMode::Static { position + 1 } else { position * 3 }
}

#[test]
fn c5_error_index_is_a_slot_in_variable_mode() {
    for flavor in Flavor::all() {
        let mut rig = rig(flavor);
        send(&mut rig, 0, &[true; 4]);
        let status = ReqStatus::REMOTE_ACCESS_ERR;
        rig.device.push(req(error_index(flavor, 3), status.0));
        let found = rig.poll(8).unwrap();
        assert_eq!(found[3].wr_id, 3);
        assert_eq!((found[3].status, found[3].vendor_err), (WcStatus::RemAccess, 7));
        assert_eq!(rig.qp.state(), QpState::Err);
    }
}

#[test]
fn c5_an_index_of_nothing_outstanding_is_a_fault() {
    for (flavor, status) in [(Flavor::P7, 7), (Flavor::P7, 0), (Flavor::P5, 7), (Flavor::P5, 0)] {
        let mut rig = rig(flavor);
        send(&mut rig, 0, &[true; 2]);
        rig.device.push(req(100, status));
        rig.device.push(req(2, 0));
        let fault = rig.poll(4).unwrap_err();
        assert_eq!(fault.kind, FaultKind::BadIndex { qp: QP, index: 100 });
        assert_eq!((fault.entry, fault.cqe[8]), (0, 100));
        assert_eq!(rig.poll(4).unwrap().len(), 2, "the queue goes on");
    }
}

#[test]
fn c6_earlier_requests_complete_before_the_error() {
    for flavor in Flavor::all() {
        let mut rig = rig(flavor);
        send(&mut rig, 0, &[true, false, false, true]);
        rig.device.push(req(error_index(flavor, 2), ReqStatus::LOCAL_PROTECTION_ERR.0));
        let found = rig.poll(8).unwrap();
        assert_eq!(
            outcomes(&found),
            [(0, WcStatus::Success), (2, WcStatus::LocProt), (3, WcStatus::WrFlush)]
        );
        // With room for one at a time, the same.
        let mut rig = self::rig(flavor);
        send(&mut rig, 0, &[true, false, false, true]);
        rig.device.push(req(error_index(flavor, 2), ReqStatus::LOCAL_PROTECTION_ERR.0));
        let one: Vec<_> = (0..3).flat_map(|_| outcomes(&rig.poll(1).unwrap())).collect();
        assert_eq!(one, outcomes(&found));
        assert_eq!(rig.poll(1).unwrap(), []);
    }
}

#[test]
fn c7_error_state_flushes_both_queues_once_and_in_order() {
    for terminal in [false, true] {
        let mut rig = rig(Flavor::P7);
        send(&mut rig, 0, &[true, false, true]);
        recv(&mut rig, 10, 2);
        if terminal {
            rig.device.push(cqe([HANDLE.into(), 0, 0], 0xe, 0, 0, 0));
        } else {
            to_error(&mut rig);
        }
        let found = rig.poll(16).unwrap();
        let expected: Vec<_> = [0, 1, 2, 10, 11].map(|id| (id, WcStatus::WrFlush)).into();
        assert_eq!(outcomes(&found), expected);
        assert!(found.iter().all(|wc| wc.vendor_err == 0 && wc.qp == QpId::truncated(QP)));
        assert_eq!(rig.qp.state(), QpState::Err);
        assert_eq!(rig.poll(16).unwrap(), []);
        // What is posted now is flushed too; the device's own late flushes are no news.
        send(&mut rig, 20, &[false]);
        recv(&mut rig, 21, 1);
        rig.device.push(req(0, ReqStatus::WORK_REQUEST_FLUSHED_ERR.0));
        let found = rig.poll(16).unwrap();
        let rest: Vec<_> = found.iter().filter(|wc| wc.wr_id >= 20).collect();
        assert_eq!(rest.len(), 2, "{found:?}");
    }
}

#[test]
fn c7_two_completion_queues_flush_their_own() {
    use directverbs::bnxt_re::cq::CompletionQueue;
    use directverbs::bnxt_re::plan::CqPlan;
    use directverbs::bnxt_re::qp::{QueuePair, QueuePairInit};
    use directverbs::verbs::{CqId, Slices};
    let mut rig = rig(Flavor::P7);
    let plan = CqPlan::new(&rig.caps, 8).unwrap();
    let memory = Pages::new(plan.bytes as usize, 0);
    let mut recv_cq = CompletionQueue::new(memory.ring(), &plan, CqId::truncated(8)).unwrap();
    let init = QueuePairInit {
        id: QpId::truncated(QP),
        handle: HANDLE,
        qp_type: QpType::Rc,
        send_cq: rig.cq.id(),
        recv_cq: recv_cq.id(),
        srq: None,
        capabilities: rig.plan.granted(),
    };
    // The queues move into a queue pair with two completion queues.
    let fresh = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    let QueuePair { send: send_queue, recv: recv_queue, .. } = std::mem::replace(&mut rig.qp, fresh.qp);
    rig.qp = QueuePair::new(&init, send_queue, recv_queue).unwrap();
    rig.connect();
    send(&mut rig, 0, &[true]);
    recv(&mut rig, 1, 1);
    // The terminal CQE comes to the send side; the receive side flushes at its own queue.
    rig.device.push(cqe([HANDLE.into(), 0, 0], 0xe, 0, 0, 0));
    assert_eq!(outcomes(&rig.poll(8).unwrap()), [(0, WcStatus::WrFlush)]);
    let mut out = [WorkCompletion::default(); 8];
    let mut endpoints = Slices { qps: std::slice::from_mut(&mut rig.qp), srqs: rig.srqs.as_mut_slice() };
    assert_eq!(recv_cq.poll(&mut endpoints, &rig.spy, &mut out), Ok(1));
    assert_eq!(outcomes(&out[..1]), [(1, WcStatus::WrFlush)]);
    assert_eq!(recv_cq.poll(&mut endpoints, &rig.spy, &mut out), Ok(0));
}

#[test]
fn c7_the_flush_of_a_queue_pair_is_not_hidden_by_one_that_is_gone() {
    let mut rig = rig(Flavor::P7);
    send(&mut rig, 0, &[true]);
    to_error(&mut rig);
    assert_eq!(outcomes(&rig.poll(8).unwrap()), [(0, WcStatus::WrFlush)]);
    // It is destroyed, and another one goes the same way: their counts are equal.
    rig.cq.forget(HANDLE);
    let mut other = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    std::mem::swap(&mut rig.qp, &mut other.qp);
    send(&mut rig, 5, &[true]);
    to_error(&mut rig);
    assert_eq!(outcomes(&rig.poll(8).unwrap()), [(5, WcStatus::WrFlush)]);
}

#[test]
fn c9_flush_keeps_to_the_budget() {
    let mut rig = rig(Flavor::P7);
    send(&mut rig, 0, &[true; 3]);
    recv(&mut rig, 10, 3);
    to_error(&mut rig);
    let mut out = [WorkCompletion { wr_id: 99, ..WorkCompletion::default() }; 8];
    let mut endpoints =
        directverbs::verbs::Slices { qps: std::slice::from_mut(&mut rig.qp), srqs: rig.srqs.as_mut_slice() };
    assert_eq!(rig.cq.poll(&mut endpoints, &rig.spy, &mut out[..4]), Ok(4));
    assert_eq!(out.map(|wc| wc.wr_id), [0, 1, 2, 10, 99, 99, 99, 99]);
    assert_eq!(rig.cq.poll(&mut endpoints, &rig.spy, &mut out[..4]), Ok(2));
    assert_eq!(out.map(|wc| wc.wr_id), [11, 12, 2, 10, 99, 99, 99, 99]);
    assert_eq!(rig.cq.poll(&mut endpoints, &rig.spy, &mut out[..4]), Ok(0));
}

#[test]
fn c11_reset_equals_fresh_and_stale_cqes_complete_nothing() {
    for flavor in Flavor::all() {
        let mut rig = rig(flavor);
        let fresh = Rig::new(flavor, QpType::Rc, &SMALL, 64).qp.save();
        // Past a wrap, so that epochs are odd.
        let wqes = rig.plan.send.slots / if flavor.mode == WqeMode::Static { 8 } else { 3 };
        for i in 0..wqes + 5 {
            send(&mut rig, 0, &[true]);
            recv(&mut rig, 0, 1);
            rig.device.push(req(rig.qp.send.state().next, 0));
            rig.device.push(res_rc(4, 0, 0, 0, i % rig.plan.recv.unwrap().wqes));
            assert_eq!(rig.poll(4).unwrap().len(), 2);
        }
        send(&mut rig, 0, &[true; 3]);
        recv(&mut rig, 7, 1);
        let next = rig.qp.recv.as_ref().unwrap().state().oldest;
        rig.device.push(req(rig.qp.send.state().next, 0));
        rig.device.push(res_rc(4, 0, 0, 0, next));
        rig.device.push(cqe([HANDLE.into(), 0, 0], 0xe, 0, 0, 0));

        rig.qp.modify(&QpAttributes::to(QpState::Reset)).unwrap();
        rig.cq.forget(HANDLE);
        let error = rig.qp.post_send(&rig.spy, &[SendRequest::send()]).unwrap_err().error;
        assert_eq!(error, PostError::BadState(QpState::Reset));
        assert_eq!(rig.qp.save().send.psn, 0);
        rig.connect();
        assert_eq!(rig.qp.save(), fresh);
        assert_eq!(rig.poll(8).unwrap(), []);
        rig.spy.take();
        send(&mut rig, 1, &[true]);
        let word = rig.spy.take()[0];
        assert_eq!(word.epoch(), Epoch(false));
        assert_eq!(word.index().get(), if flavor.mode == WqeMode::Static { 1 } else { 3 });
        rig.device.push(req(1, 0));
        assert_eq!(outcomes(&rig.poll(8).unwrap()), [(1, WcStatus::Success)]);
    }
}

#[test]
fn c12_forgetting_twice_is_forgetting_once() {
    let mut rig = rig(Flavor::P7);
    send(&mut rig, 0, &[true]);
    rig.device.push(req(1, 0));
    rig.qp.modify(&QpAttributes::to(QpState::Reset)).unwrap();
    rig.cq.forget(HANDLE);
    let (bytes, state) = (rig.device.memory.bytes(), rig.cq.state());
    rig.cq.forget(HANDLE);
    assert_eq!((rig.device.memory.bytes(), rig.cq.state()), (bytes, state));
    assert_eq!(rig.poll(4).unwrap(), []);
    assert_eq!(rig.cq.state().head, 1);
}

#[test]
fn c13_handle_zero_is_skipped_and_counted() {
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 2);
    let half = rig.cq.entries() / 2;
    for _ in 0..half {
        rig.device.push(cqe([0; 3], 0, 0, 0, 0));
    }
    assert_eq!(rig.poll(8).unwrap(), []);
    let words = rig.spy.take();
    assert_eq!(words.len(), 1);
    assert_eq!((words[0].db_type(), words[0].index().get()), (DbType::CQ, half));
    for handle in [5u64, 1 << 40 | u64::from(HANDLE)] {
        rig.device.push(cqe([handle, 0, 0], 0, 0, 0, 0));
        assert_eq!(rig.poll(8).unwrap_err().kind, FaultKind::UnknownQp(handle));
    }
}

#[test]
fn c14_datagrams_received() {
    let mut rig = Rig::new(Flavor::P7, QpType::Ud, &SMALL, 64);
    recv(&mut rig, 3, 2);
    let (imm, qp_low) = (0x0102_0304u64, 0x5678u64);
    let ud = |flags, tag| cqe([imm << 32 | 0xffff_c068, HANDLE.into(), qp_low << 48], 2, 0, flags, tag);
    rig.device.push(ud(0x20, 0x1200_0000));
    rig.device.push(ud(0x32, 0xff00_0001));
    let found = rig.poll(4).unwrap();
    assert_eq!((found[0].wr_id, found[0].byte_len, found[0].sl), (3, 0x68, 2));
    assert_eq!((found[0].src_qp, found[0].flags), (QpId::truncated(0x12_5678), WcFlags::GRH));
    assert_eq!((found[1].src_qp, found[1].sl), (QpId::truncated(0xff_5678), 3));
    assert_eq!(found[1].imm(), Some(Imm::truncated(0x0102_0304)));
    assert!(found[1].flags.contains(WcFlags::GRH));
}

#[test]
fn c16_immediate_data_or_invalidated_key() {
    let mut rig = rig(Flavor::P7);
    recv(&mut rig, 0, 4);
    for (tag, flags) in [(0, 0), (1, 2), (2, 2 | 8), (3, 4)] {
        rig.device.push(res_rc(77, 0x0a0b_0c0d, 0, flags, tag));
    }
    let found = rig.poll(4).unwrap();
    assert_eq!(found.iter().map(|wc| wc.byte_len).collect::<Vec<_>>(), [77; 4]);
    let imm = Some(Imm::truncated(0x0a0b_0c0d));
    assert_eq!(found.iter().map(WorkCompletion::imm).collect::<Vec<_>>(), [None, imm, imm, None]);
    let key = Some(RKey::truncated(0x0a0b_0c0d));
    assert_eq!([found[0].invalidated(), found[3].invalidated()], [None, key]);
    assert_eq!([found[1].opcode, found[2].opcode], [WcOpcode::Recv, WcOpcode::RecvRdmaWithImm]);
}

#[test]
fn c17_every_status_maps() {
    use WcStatus::*;
    let requester = [
        BadResp,
        LocLen,
        LocQpOp,
        LocProt,
        MwBind,
        RemInvReq,
        RemAccess,
        RemOp,
        RnrRetryExceeded,
        RetryExceeded,
        WrFlush,
        General,
        General,
    ];
    for (i, status) in requester.into_iter().enumerate() {
        let code = i as u8 + 1;
        let mut rig = rig(Flavor::P5);
        send(&mut rig, 0, &[true]);
        rig.device.push(req(1, code));
        let wc = rig.poll(1).unwrap()[0];
        assert_eq!((wc.status, wc.vendor_err), (status, u32::from(code)));
    }
    let responder = [LocAccess, LocLen, LocProt, LocQpOp, MwBind, RemInvReq, WrFlush];
    let unknown = [(9, General), (0xff, General)];
    for (code, status) in (1..).zip(responder).chain(unknown) {
        let mut rig = rig(Flavor::P5);
        recv(&mut rig, 4, 1);
        rig.device.push(res_rc(0, 0, code, 0, 0));
        let wc = rig.poll(1).unwrap()[0];
        assert_eq!((wc.wr_id, wc.status, wc.vendor_err), (4, status, u32::from(code)));
    }
    let mut rig = rig(Flavor::P5);
    recv(&mut rig, 4, 1);
    rig.device.push(res_rc(0, 0, ResStatus::HW_FLUSH_ERR.0, 0, 0));
    assert_eq!(rig.poll(1).unwrap(), [], "a flush inside the device belongs to no request");
    assert_eq!(rig.qp.recv.as_ref().unwrap().outstanding(), 1);
}

#[test]
fn c20_collapsed_cqe_counts_modulo_and_never_goes_back() {
    let memory = Pages::new(4096, 0xff);
    let mut cq = CollapsedCq::new(memory.ring()).unwrap();
    let (mut device, spy) = (Producer::new(memory, 2), Spy::default());
    assert_eq!(cq.poll(&spy), None);
    let mut overwrite = |index| {
        device.index = 0;
        device.push(req(index, 0));
    };
    let mut total = 0u64;
    for index in [3, 3, 0x4000, 0x8000, 0xffff, 2, 0xfff0, 5] {
        overwrite(index);
        total += cq.poll(&spy).map_or(0, |p| u64::from(p.completed));
    }
    assert_eq!(total, 0x1_0005);
    assert_eq!(cq.index(), 5);
}

#[test]
fn c22_collapsed_status_and_index_are_of_one_state() {
    let memory = Pages::new(4096, 0);
    let mut cq = CollapsedCq::new(memory.ring()).unwrap();
    let mut device = Producer::new(memory, 2);
    device.push(req(4, 0));
    let spy = Spy::default();
    // The error arrives between the two looks.
    let once = Rc::new(Cell::new(true));
    *spy.hook.borrow_mut() = Some(Box::new(move || {
        if once.take() {
            device.index = 0;
            device.push(req(6, ReqStatus::REMOTE_ACCESS_ERR.0));
        }
    }));
    let progress = Progress { completed: 6, status: WcStatus::RemAccess, vendor_err: 7 };
    assert_eq!(cq.poll(&spy), Some(progress));
}

#[test]
fn c23_the_smallest_queue_announces_what_it_consumed() {
    for cqe in [1, 2] {
        let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, cqe);
        let mut unannounced = 0;
        for i in 0..20 {
            send(&mut rig, i, &[true]);
            rig.spy.take();
            rig.device.push(req(rig.qp.send.state().next, 0));
            assert_eq!(outcomes(&rig.poll(1).unwrap()), [(i, WcStatus::Success)]);
            unannounced = if rig.spy.take().is_empty() { unannounced + 1 } else { 0 };
            assert!(unannounced < rig.cq.entries(), "the ring would stall");
        }
    }
}

#[test]
fn raw_frames_received_and_wrong_types_refused() {
    let asked = QpCapabilities { max_recv_wr: 4, ..SMALL };
    let mut rig = Rig::new(Flavor::P5, QpType::RawPacket, &asked, 64);
    recv(&mut rig, 3, 1);
    rig.device.push(cqe([0xffff_ffff_ffff_c03c, HANDLE.into(), 0], 3, 0, 0, 0));
    let found = rig.poll(1).unwrap();
    assert_eq!((found[0].wr_id, found[0].byte_len, found[0].flags), (3, 0x3c, WcFlags::empty()));
    rig.device.push(res_rc(1, 0, 0, 0, 0));
    assert_eq!(rig.poll(1).unwrap_err().kind, FaultKind::Unexpected(1));
    rig.device.push(cqe([0; 3], 0xf, 0, 0, 0));
    assert_eq!(rig.poll(1).unwrap_err().kind, FaultKind::Unexpected(0xf));
    rig.device.push(cqe([0; 3], 5, 0, 0, 0));
    assert_eq!(rig.poll(1).unwrap_err().kind, FaultKind::UnknownType(5));
}

#[test]
fn completions_before_a_fault_are_returned_first() {
    let mut rig = rig(Flavor::P7);
    send(&mut rig, 0, &[true; 2]);
    rig.device.push(req(1, 0));
    rig.device.push(cqe([1234, 0, 0], 0, 0, 0, 0));
    rig.device.push(req(2, 0));
    assert_eq!(outcomes(&rig.poll(8).unwrap()), [(0, WcStatus::Success)]);
    assert_eq!(rig.poll(8).unwrap_err().kind, FaultKind::UnknownQp(1234));
    assert_eq!(outcomes(&rig.poll(8).unwrap()), [(1, WcStatus::Success)]);
}
