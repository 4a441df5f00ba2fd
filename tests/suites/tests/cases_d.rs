//! Public cases, group D: ionic queues, doorbells and completions. Each test is named after its case.

use directverbs::ionic::caps::{Caps, CapsError, ContextReply, ExpressQueues, ExpressStrides};
use directverbs::ionic::clock::Clock;
use directverbs::ionic::cmb::{CmbGrant, CmbPreference, Mapping};
use directverbs::ionic::collapsed::{CollapsedQueue, Progress, is_pending};
use directverbs::ionic::cq::CompletionQueue;
use directverbs::ionic::cqe::{CqeType, QidTypeFlags, SendCqe, Status};
use directverbs::ionic::doorbell::{DbRing, QueueDoorbell, QueueType, RingIdx};
use directverbs::ionic::plan::{CqPlan, MAX_CQE, Placement, QpPlan};
use directverbs::ionic::qp::{QpConfig, QueuePair};
use directverbs::ionic::wqe::RdmaVersion::{V1, V2};
use directverbs::ionic::wqe::{BaseHeader, RecvWqe, SpecFormat, WqeFlags};
use directverbs::queue::{Boxed, Publisher, Reservations, is_before};
use directverbs::text;
use directverbs::verbs::{
    AhId, BatchError, CqFault, CqId, Datagram, FaultKind, Imm, LKey, MemoryError, PlanError, PostError, QKey,
    QpCapabilities, QpId, QpState, QpType, RKey, RecvRequest, SendFlags, SendOp, SendRequest, Sge, WcOpcode,
    WcStatus, WorkCompletion,
};
use directverbs_suites::ionic::{Arena, CQ, Event, RQ, Recorder, Rig, SQ, Setup, caps, cq_id, reply};
use zerocopy::FromBytes;

const LKEY: LKey = LKey::truncated(0xaabb_ccdd);
const RKEY: RKey = RKey::truncated(0xdead_beef);

fn sge(length: u32) -> Sge {
    Sge::new(0x1122_3344_5566_7788, length, LKEY)
}

fn write(sges: &[Sge]) -> SendRequest<'_> {
    SendRequest::write(0x0102_0304_0506_0708, RKEY).sges(sges)
}

fn wr_ids(wcs: &[WorkCompletion]) -> Vec<u64> {
    wcs.iter().map(|wc| wc.wr_id).collect()
}

fn summary(wcs: &[WorkCompletion]) -> Vec<(u64, WcStatus, u32)> {
    wcs.iter().map(|wc| (wc.wr_id, wc.status, wc.vendor_err)).collect()
}

#[test]
fn d1_doorbell_word_and_register() {
    let qtype = QueueType::new(6).unwrap();
    let db = QueueDoorbell::completion_queue(qtype, CqId::new(0x12_3456).unwrap());
    assert_eq!(db.index(RingIdx(0xbeef)), 0x0000_1234_5600_beef);
    assert_eq!(db.word(DbRing::ArmAny, RingIdx(3)), 0x0000_1234_5601_0003);
    assert_eq!(db.word(DbRing::ArmSolicited, RingIdx(3)), 0x0000_1234_5602_0003);
    assert_eq!(db.register(), 6);

    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    rig.qp.post_send(&mut rig.cq, &[write(&[sge(1)])], &rig.bell).unwrap();
    rig.qp.post_recv(&mut rig.cq, &[RecvRequest::new(1, &[])], &rig.bell).unwrap();
    assert_eq!(rig.bell.stores(), [(SQ, 5 << 24 | 1), (RQ, 5 << 24 | 1)]);
}

#[test]
fn d2_depth_keeps_one_slot_free_and_requests_are_capped() {
    let depth = |n| {
        let wanted = QpCapabilities { max_send_wr: n, max_recv_wr: n, ..QpCapabilities::default() };
        QpPlan::new(&caps(V2), &wanted, Placement::default()).map(|p| (p.sq.ring.depth(), p.sq.ring.mask()))
    };
    assert_eq!(depth(255), Ok((256, 255)));
    assert_eq!(depth(256), Ok((512, 511)));
    assert_eq!(depth(32767), Ok((32768, 32767)));
    assert_eq!(
        depth(32768),
        Err(PlanError::OverDevice { what: text!("max_send_wr"), asked: 32768, max: 32767 })
    );
    // A ring is at least a page: 64 WQEs of 64 bytes.
    assert_eq!(depth(0), Ok((64, 63)));
    let plan = QpPlan::new(&caps(V2), &QpCapabilities::default(), Placement::default()).unwrap();
    assert_eq!((plan.sq.ring.bytes(), plan.granted(false, false).max_send_wr), (4096, 63));
}

#[test]
fn d4_wqe_header_flags_and_sge() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    rig.qp.post_send(&mut rig.cq, &[write(&[sge(0x99)]).signaled()], &rig.bell).unwrap();
    let mut want = vec![
        0, 0, 0, 0, 0, 0, 0, 0, 0x21, 1, 0, 0x18, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xde, 0xad, 0xbe, 0xef,
        0, 0, 0, 0x99, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0, 0, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
    ];
    want.resize(64, 0);
    assert_eq!(rig.send_wqe(0), want);

    let flags = SendFlags::FENCE | SendFlags::SOLICITED;
    let imm = SendRequest::new(SendOp::SendImm(Imm::truncated(0x0a0b_0c0d))).flags(flags);
    rig.qp.post_send(&mut rig.cq, &[imm.inline(&[b"ab", b"c"])], &rig.bell).unwrap();
    let header = BaseHeader::read_from_bytes(&rig.send_wqe(1)[..16]).unwrap();
    assert_eq!((header.wqe_idx.get(), header.op, header.num_sge_key), (1, 0x60, 0));
    assert_eq!((header.flags.get(), header.imm_data_key.get()), (0x17, 0x0a0b_0c0d));
    let mut body = vec![0; 48];
    body[15] = 3;
    body[16..19].copy_from_slice(b"abc");
    assert_eq!(rig.send_wqe(1)[16..], body);
}

#[test]
fn d4_sge_lists_carry_their_lengths_past_two() {
    for (count, format) in [(2u32, SpecFormat::None), (3, SpecFormat::Spec32), (8, SpecFormat::Spec32)] {
        let arena = Arena::default();
        let mut setup = Setup::new(V2);
        setup.capabilities.max_send_sge = 8;
        setup.capabilities.max_recv_sge = 8;
        let mut rig = Rig::new(&arena, setup);
        let sges: Vec<_> = (1..=count).map(|i| Sge::new(u64::from(i) << 40, i, LKEY)).collect();
        rig.qp.post_send(&mut rig.cq, &[write(&sges)], &rig.bell).unwrap();
        rig.qp.post_recv(&mut rig.cq, &[RecvRequest::new(0, &sges)], &rig.bell).unwrap();
        let mut payload = Vec::new();
        if format == SpecFormat::Spec32 {
            (1..=8).for_each(|i| payload.extend((if i <= count { i } else { 0 }).to_be_bytes()));
        }
        for i in 1..=count {
            payload.extend((u64::from(i) << 40).to_be_bytes());
            payload.extend(i.to_be_bytes());
            payload.extend(LKEY.get().to_be_bytes());
        }
        for (wqe, op) in [(rig.send_wqe(0), 0x21), (rig.recv_wqe(0), 0)] {
            let header = BaseHeader::read_from_bytes(&wqe[..16]).unwrap();
            assert_eq!((header.op, u32::from(header.num_sge_key)), (op, count));
            assert_eq!(WqeFlags::from_bits(header.flags.get()).spec(), format as u8);
            assert_eq!(wqe[32..32 + payload.len()], payload);
            assert!(wqe[32 + payload.len()..].iter().all(|b| *b == 0));
        }
        let recv = RecvWqe::read_from_bytes(&rig.recv_wqe(0)[..64]).unwrap();
        assert_eq!(recv.length.get(), (1..=count).sum::<u32>());
    }
}

#[test]
fn d4_sixteen_lengths_are_16_bits() {
    let arena = Arena::default();
    let mut setup = Setup::new(V2);
    setup.caps.max_spec = 16;
    setup.capabilities.max_send_sge = 16;
    let mut rig = Rig::new(&arena, setup);
    let mut sges: Vec<_> = (1..=9).map(sge).collect();
    rig.qp.post_send(&mut rig.cq, &[write(&sges)], &rig.bell).unwrap();
    let wqe = rig.send_wqe(0);
    assert_eq!(wqe[10], (SpecFormat::Spec16 as u8) << 4);
    let lengths: Vec<_> = wqe[32..64].chunks(2).map(|b| u16::from_be_bytes([b[0], b[1]])).collect();
    assert_eq!(lengths, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0]);
    sges[4].length = 0x1_0000;
    let before = rig.sq.all();
    let refused = rig.qp.post_send(&mut rig.cq, &[write(&sges)], &rig.bell);
    assert_eq!(
        refused.unwrap_err().error,
        PostError::OutOfRange { field: text!("SGE length"), value: 0x1_0000, bits: 16 }
    );
    assert_eq!(rig.sq.all(), before);
}

#[test]
fn d7_a_full_queue_is_never_written_over() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    let depth = rig.qp.capabilities().max_send_wr;
    for i in 0..depth {
        rig.qp.post_send(&mut rig.cq, &[write(&[sge(i)]).wr_id(i.into())], &rig.bell).unwrap();
        rig.qp.post_recv(&mut rig.cq, &[RecvRequest::new(i.into(), &[sge(i)])], &rig.bell).unwrap();
    }
    rig.bell.take();
    let (before, state) = ((rig.sq.all(), rig.rq.all()), rig.qp.save());
    let full = BatchError { index: 0, error: PostError::QueueFull { needed: 1, free: 0 } };
    for _ in 0..3 {
        assert_eq!(rig.qp.post_send(&mut rig.cq, &[write(&[sge(1)])], &rig.bell), Err(full));
        assert_eq!(rig.qp.post_recv(&mut rig.cq, &[RecvRequest::new(1, &[])], &rig.bell), Err(full));
    }
    assert_eq!(((rig.sq.all(), rig.rq.all()), rig.qp.save()), (before, state));
    assert_eq!(rig.bell.take(), []);
    // One completes: there is room for one again.
    rig.device().msn(5, 1);
    rig.device().recv(5, 0, 1, |_| {});
    rig.poll(4).unwrap();
    rig.qp.post_send(&mut rig.cq, &[write(&[sge(1)])], &rig.bell).unwrap();
    rig.qp.post_recv(&mut rig.cq, &[RecvRequest::new(1, &[])], &rig.bell).unwrap();
}

#[test]
fn d8_signal_all_completes_unsignaled_requests() {
    for signal_all in [false, true] {
        let arena = Arena::default();
        let mut rig = Rig::new(&arena, Setup { signal_all, ..Setup::new(V2) });
        rig.qp.post_send(&mut rig.cq, &[write(&[sge(1)]).wr_id(9)], &rig.bell).unwrap();
        assert_eq!(rig.send_wqe(0)[11] & 8 != 0, signal_all);
        rig.device().msn(5, 1);
        assert_eq!(rig.poll(4).unwrap().len(), usize::from(signal_all));
        assert_eq!(rig.qp.send_queue().outstanding(), 0);
    }
}

#[test]
fn d9_messages_and_positions_are_reported_in_post_order() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    let one = [sge(1)];
    let local = SendRequest::new(SendOp::LocalInv(RKEY));
    let requests = [write(&one), local, write(&one), write(&one), local];
    let requests: Vec<_> = (0..).zip(requests).map(|(i, r)| r.wr_id(i).signaled()).collect();
    rig.qp.post_send(&mut rig.cq, &requests, &rig.bell).unwrap();
    // Local operations complete first, then messages up to 2, then the last.
    rig.device().npg(5, 4);
    assert_eq!(rig.poll(8).unwrap(), []);
    rig.device().msn(5, 1);
    assert_eq!(wr_ids(&rig.poll(8).unwrap()), [0]);
    rig.device().msn(5, 2);
    assert_eq!(rig.poll(8).unwrap(), [], "the local operation before it is not done");
    rig.device().npg(5, 1);
    assert_eq!(wr_ids(&rig.poll(8).unwrap()), [1, 2]);
    rig.device().msn(5, 3);
    let last = rig.poll(8).unwrap();
    assert_eq!(wr_ids(&last), [3, 4]);
    assert_eq!((last[0].opcode, last[1].opcode), (WcOpcode::RdmaWrite, WcOpcode::LocalInv));
}

#[test]
fn d9_what_does_not_fit_comes_with_the_next_poll() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup { signal_all: true, ..Setup::new(V2) });
    let one = [sge(1)];
    let requests: Vec<_> = (0..5).map(|i| write(&one).wr_id(i)).collect();
    rig.qp.post_send(&mut rig.cq, &requests, &rig.bell).unwrap();
    rig.device().msn(5, 5);
    assert_eq!(wr_ids(&rig.poll(2).unwrap()), [0, 1]);
    assert_eq!(rig.poll(0).unwrap(), []);
    assert_eq!(wr_ids(&rig.poll(2).unwrap()), [2, 3]);
    assert_eq!(wr_ids(&rig.poll(2).unwrap()), [4]);
    assert_eq!(rig.poll(2).unwrap(), []);
}

#[test]
fn d11_a_flushed_cqe_consumes_no_request() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup { signal_all: true, ..Setup::new(V2) });
    let one = [sge(1)];
    let requests: Vec<_> = (0..4).map(|i| write(&one).wr_id(i)).collect();
    rig.qp.post_send(&mut rig.cq, &requests, &rig.bell).unwrap();
    rig.device().msn(5, 2);
    rig.device().send(5, CqeType::SEND_NPG, 0, 0, Some(Status::WQE_FLUSHED));
    let all = rig.poll(8).unwrap();
    let flush = |i| (i, WcStatus::WrFlush, 0);
    let success = |i| (i, WcStatus::Success, 0);
    assert_eq!(summary(&all), [success(0), success(1), flush(2), flush(3)]);
    assert_eq!(rig.poll(8).unwrap(), []);
}

#[test]
fn d11_the_flush_begins_also_when_there_was_no_room() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup { signal_all: true, ..Setup::new(V2) });
    let one = [sge(1)];
    let requests: Vec<_> = (0..4).map(|i| write(&one).wr_id(i)).collect();
    rig.qp.post_send(&mut rig.cq, &requests, &rig.bell).unwrap();
    rig.device().send(5, CqeType::SEND_NPG, 0, 0, Some(Status::WQE_FLUSHED));
    let mut got = Vec::new();
    for _ in 0..4 {
        let wcs = rig.poll(1).unwrap();
        assert_eq!(wcs.len(), 1);
        got.extend(wr_ids(&wcs));
    }
    assert_eq!(got, [0, 1, 2, 3]);
    assert_eq!(rig.poll(1).unwrap(), []);
}

#[test]
fn d11_an_error_is_reported_once_and_the_rest_is_flushed() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    let one = [sge(1)];
    let requests: Vec<_> = (0..4).map(|i| write(&one).wr_id(i)).collect();
    rig.qp.post_send(&mut rig.cq, &requests, &rig.bell).unwrap();
    rig.qp
        .post_recv(&mut rig.cq, &[RecvRequest::new(50, &[]), RecvRequest::new(51, &[])], &rig.bell)
        .unwrap();
    rig.device().send(5, CqeType::SEND_MSN, 2, 0, Some(Status::REMOTE_ACC));
    rig.device().recv_error(5, 0, Status::WQE_FLUSHED);
    let want = [
        (1, WcStatus::RemAccess, 9),
        (2, WcStatus::WrFlush, 0),
        (3, WcStatus::WrFlush, 0),
        (50, WcStatus::WrFlush, 0),
        (51, WcStatus::WrFlush, 0),
    ];
    assert_eq!(summary(&rig.poll(8).unwrap()), want, "request 0 is unsignaled and succeeded");
    // What is posted now is flushed too.
    rig.qp.set_error();
    rig.qp.post_send(&mut rig.cq, &[write(&one).wr_id(7)], &rig.bell).unwrap();
    assert_eq!(summary(&rig.poll(8).unwrap()), [(7, WcStatus::WrFlush, 0)]);
}

#[test]
fn d12_the_cq_doorbell_is_rung_before_a_post_that_uses_up_the_credit() {
    let arena = Arena::default();
    let setup = Setup { cqe: 1, ..Setup::new(V2) };
    let plan = CqPlan::new(&setup.caps, 1).unwrap();
    assert_eq!((plan.ring.depth(), plan.ring.bytes()), (128, 4096), "1 + 100 entries");
    let mut rig = Rig::new(&arena, setup);
    let one = [sge(1)];
    // 127 entries of credit: 63 + 63 outstanding leave 1.
    let requests: Vec<_> = (0..63).map(|i| write(&one).wr_id(i)).collect();
    rig.qp.post_send(&mut rig.cq, &requests, &rig.bell).unwrap();
    rig.device().msn(5, 63);
    rig.poll(1).unwrap();
    rig.qp.post_send(&mut rig.cq, &requests, &rig.bell).unwrap();
    rig.device().msn(5, 126);
    rig.poll(1).unwrap();
    assert!(rig.bell.stores().iter().all(|(register, _)| *register == SQ));
    assert_eq!(rig.cq.ring(0).unwrap().state().reserve, 1);
    rig.qp.post_send(&mut rig.cq, &requests[..1], &rig.bell).unwrap();
    let id = u64::from(cq_id(0).get()) << 24;
    assert_eq!(rig.bell.stores(), [(CQ, id | 2), (SQ, 5 << 24 | (126 + 1) % 64)]);
    assert_eq!(rig.cq.ring(0).unwrap().state().reserve, 126);
}

#[test]
fn d12_the_grace_entries_bound_the_request() {
    let err = PlanError::OverDevice { what: text!("cqe"), asked: 0xffff - 99, max: 0xffff - 100 };
    assert_eq!(CqPlan::new(&caps(V2), 0xffff - 99), Err(err));
    assert_eq!(CqPlan::new(&caps(V2), MAX_CQE).unwrap().ring.mask(), 0xffff);
    assert_eq!(CqPlan::new(&caps(V2), 156).unwrap().ring.depth(), 512, "256 takes 512, one entry stays free");
    assert!(CqPlan::new(&caps(V2), 0).is_err());
}

#[test]
fn d13_the_color_is_loaded_before_the_barrier_and_the_rest_after_it() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    rig.qp.post_send(&mut rig.cq, &[write(&[sge(1)]).signaled()], &rig.bell).unwrap();
    rig.bell.take();
    assert_eq!(rig.poll(1).unwrap(), []);
    assert_eq!(rig.bell.take(), [], "no barrier without a new color");
    rig.device().msn(5, 1);
    assert_eq!(rig.poll(1).unwrap().len(), 1);
    assert_eq!(rig.bell.take(), [Event::FromDevice]);
}

#[test]
fn d14_express_doorbell_word() {
    let db = QueueDoorbell::queue_pair(QueueType::new(3).unwrap(), QpId::new(5).unwrap());
    assert_eq!(db.express(RingIdx(0), 63), 0x0003_0000_0558_0001);
    assert_eq!(db.express(RingIdx(63), 63) & 0xffff, 0);

    let arena = Arena::default();
    let sq = CmbGrant::Cmb { express: true, mapping: Mapping::WriteCombined };
    let mut setup = Setup { sq, ..Setup::new(V2) };
    setup.capabilities.max_send_sge = 1;
    setup.capabilities.max_inline_data = 0;
    let mut rig = Rig::new(&arena, setup);
    for i in 0..64 {
        let word = 0x0003_0000_0558_0000 | (i as u64 + 1) % 64;
        assert_eq!(rig.send_wqe(i)[56..], word.to_le_bytes(), "{i}");
    }
    // It stays when the WQE is written.
    rig.qp.post_send(&mut rig.cq, &[write(&[sge(1)])], &rig.bell).unwrap();
    assert_eq!(rig.send_wqe(0)[56..], 0x0003_0000_0558_0001u64.to_le_bytes());
    assert_eq!(rig.qp.capabilities().max_inline_data, 24);
}

#[test]
fn d14_an_atomic_of_version_1_has_no_room_for_an_express_doorbell() {
    for (version, fits) in [(V1, false), (V2, true)] {
        let arena = Arena::default();
        let sq = CmbGrant::Cmb { express: true, mapping: Mapping::WriteCombined };
        let mut setup = Setup { sq, ..Setup::new(version) };
        setup.capabilities.max_send_sge = 1;
        setup.capabilities.max_inline_data = 0;
        let mut rig = Rig::new(&arena, setup);
        let remote = directverbs::verbs::RemoteAddress { addr: 8, rkey: RKEY };
        let eight = [sge(8)];
        let atomic = SendRequest::new(SendOp::FetchAdd { remote, add: 1 }).sges(&eight);
        let posted = rig.qp.post_send(&mut rig.cq, &[atomic], &rig.bell);
        assert_eq!(posted.is_ok(), fits);
        assert_eq!(rig.send_wqe(0)[56..], 0x0003_0000_0558_0001u64.to_le_bytes());
    }
}

#[test]
fn d15_express_doorbells_exist_for_some_strides() {
    let prefer = CmbPreference { enable: true, express: true, require: false };
    let require = CmbPreference { require: true, ..prefer };
    let plan = |strides, sges, place| {
        let caps = Caps { express_strides: strides, ..caps(V2) };
        let wanted = QpCapabilities { max_send_sge: sges, max_recv_sge: sges, ..QpCapabilities::default() };
        QpPlan::new(&caps, &wanted, place)
    };
    let both = |p| Placement { sq: p, rq: p };
    let small = plan(ExpressStrides::B64, 1, both(prefer)).unwrap();
    assert!(small.sq.cmb.express && small.rq.cmb.express);
    assert_eq!(small.granted(true, true).max_send_sge, 1);
    assert_eq!(small.granted(false, false).max_send_sge, 2, "the doorbell takes an SGE's room");
    // Two SGEs and the doorbell take 80 bytes: 128 for a send queue, and no stride at all for a receive queue.
    let dropped = plan(ExpressStrides::B64, 2, both(prefer)).unwrap();
    assert_eq!((dropped.sq.cmb.express, dropped.sq.ring.stride()), (false, 64));
    let larger = plan(ExpressStrides::all(), 2, both(prefer)).unwrap();
    assert_eq!((larger.sq.cmb.express, larger.sq.ring.stride()), (true, 128));
    assert_eq!((larger.rq.cmb.express, larger.rq.ring.stride()), (false, 64));
    let unsupported = PlanError::Unsupported(text!("no express doorbells for WQEs of this size"));
    let only_sq = Placement { sq: require, rq: CmbPreference::HOST };
    assert_eq!(plan(ExpressStrides::B64, 2, only_sq), Err(unsupported));
}

#[test]
fn d16_the_reply_says_what_was_granted() {
    let prefer = CmbPreference { enable: true, express: true, require: false };
    let require = CmbPreference { require: true, ..prefer };
    assert_eq!((prefer.to_abi(), require.to_abi(), CmbPreference::HOST.to_abi()), (5, 7, 0));
    assert_eq!(prefer.granted(0), Ok(CmbGrant::Host));
    let combined = CmbGrant::Cmb { express: true, mapping: Mapping::WriteCombined };
    let uncached = CmbGrant::Cmb { express: false, mapping: Mapping::Uncached };
    assert_eq!(prefer.granted(1 | 4 | 8), Ok(combined));
    assert_eq!(prefer.granted(1 | 16), Ok(uncached));
    assert_eq!(prefer.granted(combined.to_abi()), Ok(combined));
    assert_eq!(prefer.granted(uncached.to_abi()), Ok(uncached));
    assert!(require.granted(0).is_err());
    assert!(require.granted(1).is_err(), "express doorbells were required");
    assert_eq!(require.granted(1 | 4), Ok(combined));
    assert!(CmbPreference::HOST.granted(1).is_err(), "nobody asked");
}

#[test]
fn d17_express_doorbells_that_the_device_does_not_have_cannot_be_required() {
    let require = CmbPreference { enable: true, express: true, require: true };
    assert!(require.supported(false).is_err());
    assert_eq!(require.supported(true), Ok(require));
    let prefer = CmbPreference { require: false, ..require };
    assert_eq!(prefer.supported(false), Ok(CmbPreference { express: false, ..prefer }));
    assert_eq!(CmbPreference { enable: false, ..require }.supported(false), Ok(CmbPreference::HOST));
    let caps = Caps { express_queues: ExpressQueues::SEND, ..caps(V2) };
    let place = Placement { sq: CmbPreference::HOST, rq: require };
    assert!(QpPlan::new(&caps, &QpCapabilities::default(), place).is_err());
}

#[test]
fn d18_the_copy_wraps_in_two_parts() {
    let arena = Arena::default();
    let sq = CmbGrant::Cmb { express: false, mapping: Mapping::WriteCombined };
    let mut rig = Rig::new(&arena, Setup { sq, ..Setup::new(V2) });
    let one = [sge(1)];
    let requests: Vec<_> = (0..62).map(|_| write(&one)).collect();
    rig.qp.post_send(&mut rig.cq, &requests, &rig.bell).unwrap();
    rig.device().msn(5, 62);
    rig.poll(1).unwrap();
    rig.bell.take();
    rig.qp.post_send(&mut rig.cq, &requests[..4], &rig.bell).unwrap();
    let copy = |index: usize| Event::Copy {
        offset: index * 64,
        block: Box::new(rig.send_wqe(index).try_into().unwrap()),
    };
    let want = [
        copy(62),
        copy(63),
        copy(0),
        copy(1),
        Event::WcFlush,
        Event::ToDevice,
        Event::Store { register: SQ, value: 5 << 24 | 2 },
    ];
    assert_eq!(rig.bell.take(), want);
}

#[test]
fn d22_an_over_ask_fails_clearly() {
    let ask = |sges| {
        let wanted = QpCapabilities { max_send_sge: sges, max_recv_sge: 1, ..QpCapabilities::default() };
        QpPlan::new(&caps(V2), &wanted, Placement::default())
    };
    // 512 bytes hold (512 - 32) / 16 SGEs.
    assert_eq!(ask(31), Err(PlanError::OverDevice { what: text!("max_send_sge"), asked: 31, max: 30 }));
    assert_eq!(ask(30).unwrap().granted(false, false).max_send_sge, 30);
    // Up to the spec limit the stride keeps room for the list of lengths, and the limit is the spec's.
    let plan = ask(8).unwrap();
    assert_eq!((plan.sq.spec, plan.sq.ring.stride(), plan.sq.max_sge(false)), (8, 256, 8));
    assert_eq!((ask(2).unwrap().sq.spec, ask(9).unwrap().sq.spec), (2, 0));
    let inline = QpCapabilities { max_inline_data: 481, ..QpCapabilities::default() };
    assert!(QpPlan::new(&caps(V2), &inline, Placement::default()).is_err());
    assert_eq!(QpPlan::largest(&caps(V2)).max_inline_data, 480);
}

#[test]
fn d23_a_queue_pair_completes_on_its_own_pipeline() {
    let arena = Arena::default();
    let setup = Setup { udma: 1, udma_mask: 3, ..Setup::new(V2) };
    let mut rig = Rig::new(&arena, setup);
    assert_eq!(rig.cq.udma_mask(), 3);
    rig.qp.post_send(&mut rig.cq, &[write(&[sge(1)]).wr_id(3).signaled()], &rig.bell).unwrap();
    rig.device().msn(5, 1);
    assert_eq!(wr_ids(&rig.poll(4).unwrap()), [3]);
    // The same CQE in the ring of the other pipeline makes no sense.
    rig.cqs[0].as_mut().unwrap().msn(5, 1);
    let fault = rig.poll(4).unwrap_err();
    assert_eq!((fault.cq, fault.kind), (cq_id(0), FaultKind::Unexpected(2)));

    let (cq, _) = directverbs_suites::ionic::completion_queue(&arena, &setup.caps, 64, 1);
    let plan = setup.plan();
    let config = QpConfig {
        id: QpId::new(6).unwrap(),
        qp_type: QpType::Rc,
        udma: 1,
        signal_all: false,
        send_cq: &cq,
        recv_cq: &cq,
    };
    let memory = |plan: &directverbs::ionic::plan::WorkQueuePlan| arena.ring(plan.ring.bytes()).0;
    let refused = QueuePair::<Boxed, Recorder>::new(
        &setup.caps,
        &config,
        &plan,
        directverbs::ionic::QueueMemory {
            ring: memory(&plan.sq),
            records: vec![Default::default(); plan.sq.records()].into(),
            cmb: None,
        },
        directverbs::ionic::QueueMemory {
            ring: memory(&plan.rq),
            records: vec![Default::default(); plan.rq.records()].into(),
            cmb: None,
        },
    );
    let no_ring = MemoryError::Mismatch(text!("a completion queue has no ring on the queue pair's pipeline"));
    assert_eq!(refused.map(|_| ()), Err(no_ring));
    assert!(CompletionQueue::new(2, [None, None]).is_err());
}

#[test]
fn d23_the_rings_take_turns_in_being_first() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup { udma: 1, udma_mask: 3, ..Setup::new(V2) });
    // Both rings have a CQE of no queue pair: the faults tell which ring was first.
    for _ in 0..2 {
        for side in rig.cqs.iter_mut().flatten() {
            side.msn(99, 1);
        }
    }
    let order: Vec<_> = (0..4).map(|_| rig.poll(4).unwrap_err().cq).collect();
    assert_eq!(order, [cq_id(0), cq_id(1), cq_id(0), cq_id(1)]);
}

#[test]
fn d24_a_context_reply_that_cannot_be_worked_with_is_refused() {
    let refused = |edit: fn(&mut ContextReply)| {
        let mut bad = reply(V1);
        edit(&mut bad);
        Caps::from_reply(&bad).unwrap_err()
    };
    assert_eq!(refused(|r| r.version = 0.into()), CapsError::Version(0));
    assert_eq!(refused(|r| r.version = 3.into()), CapsError::Version(3));
    assert_eq!(refused(|r| r.qp_opcodes = 10), CapsError::Opcodes { given: 10, needed: 11 });
    for count in [0, 3] {
        let mut bad = reply(V2);
        bad.udma_count = count;
        let range = CapsError::Range { what: "udma_count", given: count.into(), min: 1, max: 2 };
        assert_eq!(Caps::from_reply(&bad), Err(range));
    }
    let mut lenient = reply(V2);
    (lenient.qp_opcodes, lenient.max_spec) = (0, 17);
    assert_eq!(Caps::from_reply(&lenient).unwrap().max_spec, 0, "a spec limit over 16 is none");
    assert!(matches!(refused(|r| r.sq_qtype = 8), CapsError::Range { what: "sq_qtype", .. }));
    assert!(matches!(refused(|r| r.page_shift = 11.into()), CapsError::Range { what: "page_shift", .. }));
    assert!(matches!(refused(|r| r.max_stride = 5), CapsError::Range { what: "max_stride", .. }));
}

#[test]
fn d28_a_queue_pair_can_move_to_another_thread_but_is_not_shared() {
    fn is_send<T: Send>() {}
    is_send::<QueuePair<'static, Boxed>>();
    is_send::<CompletionQueue<'static>>();
}

#[test]
fn d29_a_collapsed_queue_has_one_cqe_that_is_written_over() {
    assert_eq!(CqPlan::collapsed(&caps(V2), 0).unwrap().ring.bytes(), 4096);
    let arena = Arena::default();
    let (memory, view) = arena.ring(4096);
    let (id, qp, bell) = (CqId::truncated(9), QpId::truncated(5), Recorder::default());
    let mut cq = CollapsedQueue::new(id, qp, memory).unwrap();
    assert_eq!(cq.poll(&bell), Ok(Progress::default()), "memory is zeroed: nothing has completed");
    let put = |msn: u32, qid: u32, kind: CqeType, error: Option<Status>| {
        let qtf = QidTypeFlags::new().with_qid(qid).with_cqe_type(kind.0).with_error(error.is_some());
        let cqe = SendCqe {
            msg_msn: msn.into(),
            status_length: error.map_or(0, |s| s.0).into(),
            qid_type_flags: qtf.into_bits().into(),
            ..SendCqe::ZERO
        };
        view.store(0, &cqe);
    };
    for msn in [3, 3, 7] {
        put(msn, 5, CqeType::SEND_MSN, None);
        assert_eq!(cq.poll(&bell), Ok(Progress { completed: msn, error: None }));
    }
    put(6, 5, CqeType::SEND_MSN, None);
    assert_eq!(cq.poll(&bell), Ok(Progress { completed: 7, error: None }), "progress never goes back");
    put(8, 6, CqeType::SEND_MSN, None);
    assert!(matches!(cq.poll(&bell), Err(CqFault { kind: FaultKind::UnknownQp(6), .. })));
    put(8, 5, CqeType::RECV, None);
    assert!(matches!(cq.poll(&bell), Err(CqFault { kind: FaultKind::Unexpected(1), .. })));
    put(8, 5, CqeType::SEND_MSN, Some(Status::REMOTE_ACC));
    assert_eq!(cq.poll(&bell), Ok(Progress { completed: 8, error: Some(Status::REMOTE_ACC) }));
}

#[test]
fn d31_the_timestamp_is_the_high_48_bits() {
    let arena = Arena::default();
    let mut setup = Setup::new(V2);
    setup.qp_type = QpType::Ud;
    let mut rig = Rig::new(&arena, setup);
    let to = Datagram { ah: AhId::truncated(7), qp: QpId::truncated(8), qkey: QKey::truncated(9) };
    let one = [sge(1)];
    rig.qp.post_send(&mut rig.cq, &[SendRequest::send_to(to).sges(&one).signaled()], &rig.bell).unwrap();
    rig.qp.post_recv(&mut rig.cq, &[RecvRequest::new(1, &one)], &rig.bell).unwrap();
    let qtf = QidTypeFlags::new().with_qid(5).with_cqe_type(CqeType::SEND_NPG.0).into_bits();
    rig.device().push(&SendCqe {
        npg_wqe_idx_timestamp: (0xabcd_ef01_2345_0000u64).into(),
        qid_type_flags: qtf.into(),
        ..SendCqe::ZERO
    });
    rig.device().recv(5, 0, 1, |cqe| cqe.wqe_idx_timestamp = 0x1234_5678_9abc_0000u64.into());
    let wcs = rig.poll(4).unwrap();
    let times: Vec<_> = wcs.iter().map(|wc| wc.timestamp).collect();
    assert_eq!(times, [0xabcd_ef01_2345, 0x1234_5678_9abc]);
    let info = directverbs::ionic::clock::ClockInfo {
        cycles: 0xabcd_ef01_2340u64.into(),
        nsec: 100.into(),
        mult: 4.into(),
        mask: 0xffff_ffff_ffffu64.into(),
        ..directverbs::ionic::clock::ClockInfo::ZERO
    };
    assert_eq!(Clock::from_info(&info).ns(times[0]), 120);
}

#[test]
fn d32_every_refusal_is_one_typed_error() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    rig.qp.reset();
    let bad = BatchError { index: 0, error: PostError::BadState(QpState::Reset) };
    assert_eq!(rig.qp.post_recv(&mut rig.cq, &[RecvRequest::new(0, &[])], &rig.bell), Err(bad));
    rig.qp.set_state(QpState::Init);
    let three = [sge(1); 3];
    let many = BatchError { index: 1, error: PostError::TooManySges { given: 3, max: 2 } };
    let requests = [RecvRequest::new(0, &[]), RecvRequest::new(0, &three)];
    assert_eq!(rig.qp.post_recv(&mut rig.cq, &requests, &rig.bell), Err(many));
    let huge = [Sge::new(0, 1 << 31, LKEY), sge(1)];
    let long = PostError::MessageTooLong { given: (1 << 31) + 1, max: 1 << 31 };
    let refused = rig.qp.post_recv(&mut rig.cq, &[RecvRequest::new(0, &huge)], &rig.bell);
    assert_eq!(refused, Err(BatchError { index: 0, error: long }));
    assert_eq!(rig.bell.stores(), []);
}

#[test]
fn d34_color_flips_at_the_wrap_and_is_taken_back_from_a_dropped_batch() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    let one = [sge(1)];
    let color = |rig: &Rig<'_>, i| rig.send_wqe(i)[11] & 0x10 != 0;
    for round in 0..3u32 {
        for i in 0..64u32 {
            rig.qp.post_send(&mut rig.cq, &[write(&one)], &rig.bell).unwrap();
            assert_eq!(color(&rig, i as usize), round % 2 == 0, "{round} {i}");
            rig.device().msn(5, round * 64 + i + 1);
            rig.poll(1).unwrap();
        }
    }
    let mut batch = rig.qp.send_batch(&mut rig.cq).unwrap();
    batch.post(&write(&one)).unwrap();
    batch.post(&write(&one)).unwrap();
    assert_eq!((batch.len(), batch.doorbell()), (2, 5 << 24 | 2));
    drop(batch);
    assert!(color(&rig, 0) && color(&rig, 1), "the colors of the third round, not of the fourth");
    rig.qp.post_send(&mut rig.cq, &[write(&one)], &rig.bell).unwrap();
    assert!(!color(&rig, 0) && color(&rig, 1));
}

#[test]
fn d35_message_numbers_are_compared_modulo_24_bits() {
    assert!(!is_pending(0x00_0002, 0xff_fffe));
    assert!(is_pending(0xff_fffe, 0x00_0002));
    assert!(!is_pending(5, 5));
}

#[test]
fn d36_entries_in_use_are_not_reserved_and_only_newer_positions_are_rung() {
    let ring = Reservations::new();
    assert_eq!(ring.reserve(63, 0, 63), Some(0));
    assert_eq!(ring.reserve(1, 0, 63), None, "one more needs a completion");
    assert_eq!(ring.reserve(2, 2, 63), Some(63));
    assert!(is_before::<32>(10, 12) && !is_before::<32>(12, 10) && is_before::<32>(u32::MAX, 1));
    let (publisher, mut rung) = (Publisher::new(), Vec::new());
    for position in [65, 63, 65] {
        publisher.publish(position, |p| rung.push(p));
    }
    assert_eq!(rung, [65]);
}

#[test]
fn d37_the_consumer_doorbell_is_masked_and_the_color_follows_the_position() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup { cqe: 1, signal_all: true, ..Setup::new(V2) });
    let one = [sge(1)];
    let mut rung = Vec::new();
    for i in 0..1000u32 {
        rig.qp.post_send(&mut rig.cq, &[write(&one).wr_id(i.into())], &rig.bell).unwrap();
        rig.device().msn(5, i + 1);
        let position = i + 1;
        assert_eq!(wr_ids(&rig.poll(1).unwrap()), [u64::from(i)]);
        let state = rig.cq.ring(0).unwrap().state();
        assert_eq!(state.color, position >> 7 & 1 == 0, "not the bit above the mask");
        rung.extend(
            rig.bell.stores().into_iter().filter(|(register, _)| *register == CQ).map(|(_, v)| v & 0xffff),
        );
    }
    // The credit of 127 entries is used up by the post after 126 completions, and every 126 posts from then on.
    let want: Vec<_> = (1..=7).map(|k: u64| k * 126 & 127).collect();
    assert_eq!(rung, want);
}

#[test]
fn d37_an_arm_is_deferred_to_the_next_poll_or_post() {
    let arena = Arena::default();
    let mut rig = Rig::new(&arena, Setup::new(V2));
    let id = u64::from(cq_id(0).get()) << 24;
    rig.cq.arm(true);
    assert_eq!(rig.bell.stores(), []);
    rig.poll(1).unwrap();
    assert_eq!(rig.bell.stores(), [(CQ, id | 0x2_0001)]);
    rig.cq.arm(false);
    rig.cq.arm(true);
    rig.qp.post_send(&mut rig.cq, &[write(&[sge(1)])], &rig.bell).unwrap();
    assert_eq!(rig.bell.stores(), [(CQ, id | 0x1_0001), (SQ, 5 << 24 | 1)], "an arm for any is not weakened");
    rig.device().msn(5, 1);
    rig.cq.arm(false);
    rig.poll(1).unwrap();
    assert_eq!(rig.bell.stores(), [(CQ, id | 1), (CQ, id | 0x1_0002)], "the consumer comes first");
    rig.poll(1).unwrap();
    assert_eq!(rig.bell.stores(), []);
}
