//! Requests that must fail: which status each side gets, and what becomes of the rest.

mod engine_common;

use directverbs::verbs::{
    AccessFlags, Imm, LKey, Mtu, Psn, QpAttributes, QpState, RKey, RemoteAddress, SendOp, Sge, WcStatus,
};
use directverbs_softnic::device::{Memory, MrConfig, MrKind};
use directverbs_softnic::roce::{Event, Payload, RecvWork, SendWork, Side};
use engine_common::{ALL, LEN, Node, Pair, Setup, work};

/// A place in the peer's memory.
type Place = fn(&Node) -> RemoteAddress;
/// An operation on a place there.
type Operation = fn(RemoteAddress) -> SendOp;

/// Posts one request that fails, with one before and one after, and checks every outcome at the requester.
fn fails(pair: &Pair, op: SendOp, sges: &[Sge], status: WcStatus) {
    pair.b.recv(90, &[pair.b.sge(0, 100)]);
    pair.a.send(1, SendOp::Write(pair.b.remote(0)), &[pair.a.sge(0, 100)]);
    pair.a.send(2, op, sges);
    pair.a.send(3, SendOp::Write(pair.b.remote(0)), &[pair.a.sge(0, 100)]);
    pair.settle();
    let expected = [(1, WcStatus::Success), (2, status), (3, WcStatus::WrFlush)];
    assert_eq!(pair.a.take_outcomes(Side::Send), expected, "{op:?}");
    assert_eq!(pair.a.state(), QpState::Err);
}

#[test]
fn a_remote_access_outside_the_region_is_refused() {
    let places: [Place; 4] = [
        |b| RemoteAddress { addr: b.remote(0).addr - 1, ..b.remote(0) },
        |b| RemoteAddress { addr: u64::MAX - 10, ..b.remote(0) },
        |b| b.remote(LEN - 99),
        |b| RemoteAddress { rkey: RKey::truncated(b.key ^ 1), ..b.remote(0) },
    ];
    for place in places {
        for is_read in [false, true] {
            let pair = Pair::new(Setup::default());
            let remote = place(&pair.b);
            let op = if is_read { SendOp::Read(remote) } else { SendOp::Write(remote) };
            fails(&pair, op, &[pair.a.sge(0, 100)], WcStatus::RemAccess);
            assert_eq!(pair.b.state(), QpState::Err);
            assert_eq!(pair.b.take_outcomes(Side::Recv), [(90, WcStatus::WrFlush)]);
        }
    }
}

#[test]
fn each_remote_right_is_asked_of_the_region_and_of_the_queue_pair() {
    let cases: [(AccessFlags, Operation, usize); 5] = [
        (AccessFlags::REMOTE_WRITE, SendOp::Write, 100),
        (AccessFlags::REMOTE_WRITE, |remote| SendOp::WriteImm(remote, Imm::truncated(1)), 100),
        (AccessFlags::REMOTE_READ, SendOp::Read, 100),
        (AccessFlags::REMOTE_ATOMIC, |remote| SendOp::FetchAdd { remote, add: 1 }, 8),
        (AccessFlags::REMOTE_ATOMIC, |remote| SendOp::CompareSwap { remote, compare: 0, swap: 1 }, 8),
    ];
    for (right, op, len) in cases {
        let rest = ALL.difference(right);
        for setup in [Setup { access: rest, ..Setup::default() }, Setup { region: rest, ..Setup::default() }]
        {
            let pair = Pair::new(setup);
            pair.b.recv(90, &[]);
            pair.a.send(2, op(pair.b.remote(0)), &[pair.a.sge(0, len)]);
            pair.settle();
            assert_eq!(pair.a.take_outcomes(Side::Send), [(2, WcStatus::RemAccess)], "{right:?}");
            assert_eq!(pair.b.bytes(0, 100), [0; 100]);
            let events = pair.b.take_events();
            let error = Event::QpError { qp: pair.b.qp, side: Side::Recv, status: WcStatus::LocAccess };
            assert_eq!(events.first(), Some(&error), "the error comes before what is flushed");
        }
    }
}

#[test]
fn nothing_is_asked_of_a_key_behind_which_nothing_lies() {
    let pair = Pair::new(Setup::default());
    let remote = RemoteAddress { addr: 0, rkey: RKey::truncated(0xdead_beef) };
    pair.a.send(1, SendOp::Write(remote), &[]);
    pair.a.send(2, SendOp::Read(remote), &[Sge::new(0, 0, LKey::truncated(77))]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::Success), (2, WcStatus::Success)]);
}

#[test]
fn a_misaligned_atomic_is_an_invalid_request() {
    let pair = Pair::new(Setup::default());
    let op = SendOp::FetchAdd { remote: pair.b.remote(4), add: 1 };
    fails(&pair, op, &[pair.a.sge(0, 8)], WcStatus::RemInvReq);
}

#[test]
fn local_memory_that_the_key_does_not_cover_is_a_protection_error() {
    let wrong_key = |node: &Node, len| Sge::new(node.block.addr(), len, LKey::truncated(node.key ^ 1));
    let outside = |node: &Node, _| node.sge(LEN - 50, 100);
    let cases: [&dyn Fn(&Node, u32) -> Sge; 2] = [&wrong_key, &outside];
    for bad in cases {
        for is_read in [false, true] {
            let pair = Pair::new(Setup::default());
            let remote = pair.b.remote(0);
            let op = if is_read { SendOp::Read(remote) } else { SendOp::Write(remote) };
            fails(&pair, op, &[pair.a.sge(0, 50), bad(&pair.a, 100)], WcStatus::LocProt);
            assert_eq!(pair.b.state(), QpState::Rts, "the peer has done nothing wrong");
        }
    }
}

#[test]
fn a_read_needs_the_right_to_write_locally() {
    let pair = Pair::new(Setup { region: AccessFlags::REMOTE_READ, ..Setup::default() });
    pair.a.send(1, SendOp::Read(pair.b.remote(0)), &[pair.a.sge(0, 10)]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::LocProt)]);
}

#[test]
fn memory_that_has_gone_from_the_bus_is_a_protection_error() {
    let pair = Pair::new(Setup::default());
    let block = pair.a.memory.alloc(4096);
    let addr = block.addr();
    let region = MrConfig {
        key: None,
        pd: pair.a.pd,
        kind: MrKind::Region(Memory::Host(addr)),
        addr,
        length: 4096,
        access: ALL,
    };
    let key = pair.a.nic.lock().create_mr(&region).unwrap();
    drop(block);
    fails(
        &pair,
        SendOp::Write(pair.b.remote(0)),
        &[Sge::new(addr, 100, LKey::truncated(key))],
        WcStatus::LocProt,
    );
}

#[test]
fn a_region_of_another_protection_domain_is_none() {
    let pair = Pair::new(Setup::default());
    let (key, addr) = {
        let mut nic = pair.b.nic.lock();
        let pd = nic.create_pd().unwrap();
        let addr = pair.b.block.addr();
        let kind = MrKind::Region(Memory::Host(addr));
        let region = MrConfig { key: None, pd, kind, addr, length: 4096, access: ALL };
        (nic.create_mr(&region).unwrap(), addr)
    };
    let remote = RemoteAddress { addr, rkey: RKey::truncated(key) };
    fails(&pair, SendOp::Write(remote), &[pair.a.sge(0, 100)], WcStatus::RemAccess);
}

#[test]
fn a_message_longer_than_the_receive_fails_on_both_sides() {
    for mtu in [Mtu::B256, Mtu::B4096] {
        let pair = Pair::new(Setup { mtu, ..Setup::default() });
        fails(&pair, SendOp::Send, &[pair.a.sge(0, 101)], WcStatus::RemInvReq);
        assert_eq!(pair.b.take_outcomes(Side::Recv), [(90, WcStatus::LocLen)]);
        assert_eq!(pair.b.state(), QpState::Err);
    }
}

#[test]
fn a_receive_into_foreign_memory_fails_on_both_sides() {
    let pair = Pair::new(Setup::default());
    pair.b.recv(80, &[Sge::new(pair.b.block.addr(), 100, LKey::truncated(3))]);
    fails(&pair, SendOp::Send, &[pair.a.sge(0, 100)], WcStatus::RemOp);
    let expected = [(80, WcStatus::LocProt), (90, WcStatus::WrFlush)];
    assert_eq!(pair.b.take_outcomes(Side::Recv), expected);
}

#[test]
fn a_request_that_could_not_be_decoded_fails_in_its_turn() {
    let pair = Pair::new(Setup::default());
    pair.a.send(1, SendOp::Read(pair.b.remote(0)), &[pair.a.sge(0, 100_000)]);
    let bad = SendWork { op: Err(WcStatus::LocQpOp), ..work(2, SendOp::Send, &[]) };
    pair.a.post(bad);
    pair.a.send(3, SendOp::Send, &[]);
    pair.settle();
    let expected = [(1, WcStatus::Success), (2, WcStatus::LocQpOp), (3, WcStatus::WrFlush)];
    assert_eq!(pair.a.take_outcomes(Side::Send), expected);

    let pair = Pair::new(Setup::default());
    let bad = RecvWork { token: 5, sges: Err(WcStatus::LocQpOp) };
    pair.b.nic.lock().hardware().post_recv(pair.b.qp, bad).unwrap();
    pair.a.send(1, SendOp::Send, &[]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::RemOp)]);
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(5, WcStatus::LocQpOp)]);
}

#[test]
fn operations_that_the_queue_pair_lacks_fail() {
    let pair = Pair::new(Setup { reads: 0, ..Setup::default() });
    fails(&pair, SendOp::Read(pair.b.remote(0)), &[pair.a.sge(0, 8)], WcStatus::LocQpOp);
    let pair = Pair::new(Setup::default());
    let inline = Payload::Inline(vec![0; 8]);
    pair.a.post(SendWork { payload: inline, ..work(1, SendOp::Read(pair.b.remote(0)), &[]) });
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::LocQpOp)]);
    let pair = Pair::new(Setup::default());
    let add = SendOp::FetchAdd { remote: pair.b.remote(0), add: 1 };
    fails(&pair, add, &[pair.a.sge(0, 16)], WcStatus::LocLen);
}

#[test]
fn more_reads_than_the_peer_agreed_to_are_invalid() {
    let pair = Pair::new(Setup::default());
    pair.a.modify(&QpAttributes { max_rd_atomic: Some(16), ..QpAttributes::to(QpState::Rts) }).unwrap();
    pair.b.modify(&QpAttributes { max_dest_rd_atomic: Some(1), ..QpAttributes::to(QpState::Rts) }).unwrap();
    for i in 0..8 {
        pair.a.send(i, SendOp::Read(pair.b.remote(0)), &[pair.a.sge(0, 100_000)]);
    }
    pair.settle();
    let outcomes = pair.a.take_outcomes(Side::Send);
    assert_eq!(outcomes.len(), 8);
    assert_eq!(outcomes[1].1, WcStatus::RemInvReq, "{outcomes:?}");
}

#[test]
fn a_queue_pair_in_error_flushes_what_it_had_and_what_comes() {
    let pair = Pair::new(Setup::default());
    pair.a.recv(10, &[]);
    pair.a.recv(11, &[]);
    pair.a.send(1, SendOp::Send, &[]);
    pair.a.send(2, SendOp::Send, &[]);
    pair.a.modify(&QpAttributes::to(QpState::Err)).unwrap();
    pair.a.send(3, SendOp::Send, &[]);
    pair.a.recv(12, &[]);
    let flushed: Vec<_> =
        pair.a.take_completions().iter().map(|c| (c.side, c.token, c.status == WcStatus::WrFlush)).collect();
    let (send, recv) = (Side::Send, Side::Recv);
    let expected = [(send, 1), (send, 2), (recv, 10), (recv, 11), (send, 3), (recv, 12)];
    assert_eq!(flushed, expected.map(|(side, token)| (side, token, true)));
    pair.settle();
    assert!(pair.b.take_events().is_empty(), "a flushed request sends nothing");
}

#[test]
fn a_message_that_was_half_received_is_flushed() {
    let pair = Pair::new(Setup { mtu: Mtu::B256, ..Setup::default() });
    pair.b.recv(5, &[pair.b.sge(0, 100_000)]);
    pair.a.send(1, SendOp::Send, &[pair.a.sge(0, 100_000)]);
    for _ in 0..100 {
        pair.fabric.step();
    }
    pair.b.modify(&QpAttributes::to(QpState::Err)).unwrap();
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(5, WcStatus::WrFlush)]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::RetryExceeded)]);
}

#[test]
fn a_queue_pair_that_was_reset_is_fresh() {
    let pair = Pair::new(Setup::default());
    for round in 0..3u64 {
        pair.b.recv(round, &[pair.b.sge(0, 5000)]);
        pair.a.send(round, SendOp::Send, &[pair.a.sge(0, 5000)]);
        if round != 1 {
            pair.settle();
            assert_eq!(pair.a.take_outcomes(Side::Send), [(round, WcStatus::Success)]);
        }
        for node in [&pair.a, &pair.b] {
            node.modify(&QpAttributes::to(QpState::Reset)).unwrap();
            let status = node.nic.lock().query_qp(node.qp).unwrap();
            assert_eq!((status.state, status.sq_psn, status.rq_psn), (QpState::Reset, 0, 0));
            node.take_events();
        }
        // What is still under way on the wire belongs to a queue pair that is gone.
        pair.settle();
        pair.a.connect(&pair.setup, pair.b.qp);
        pair.b.connect(&pair.setup, pair.a.qp);
    }
}

#[test]
fn a_send_queue_drains_and_goes_on() {
    let pair = Pair::new(Setup::default());
    pair.a.send(1, SendOp::Write(pair.b.remote(0)), &[pair.a.sge(0, 100_000)]);
    for _ in 0..10 {
        pair.fabric.step();
    }
    pair.a.modify(&QpAttributes::to(QpState::Sqd)).unwrap();
    pair.a.send(2, SendOp::Write(pair.b.remote(0)), &[pair.a.sge(0, 10)]);
    pair.settle();
    let events = pair.a.take_events();
    assert!(matches!(events[0], Event::Completion(c) if c.token == 1), "{events:?}");
    assert_eq!(events[1..], [Event::SqDrained { qp: pair.a.qp }]);
    pair.a.modify(&QpAttributes::to(QpState::Rts)).unwrap();
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(2, WcStatus::Success)]);
}

#[test]
fn nothing_is_posted_before_its_state() {
    let pair = Pair::new(Setup::default());
    pair.a.modify(&QpAttributes::to(QpState::Reset)).unwrap();
    let mut nic = pair.a.nic.lock();
    assert!(nic.hardware().post_send(pair.a.qp, work(1, SendOp::Send, &[])).is_err());
    assert!(nic.hardware().post_recv(pair.a.qp, RecvWork { token: 1, sges: Ok(vec![]) }).is_err());
    let qp = pair.a.qp;
    assert!(nic.modify_qp(qp, &QpAttributes::to(QpState::Rts)).is_err(), "no way from RESET to RTS");
    let psn = QpAttributes { sq_psn: Some(Psn::MAX), ..QpAttributes::to(QpState::Init) };
    assert!(nic.modify_qp(qp, &psn).is_err(), "the access rights are missing");
}

#[test]
fn objects_in_use_stay() {
    let pair = Pair::new(Setup { srq: true, ..Setup::default() });
    let a = &pair.a;
    let mut nic = a.nic.lock();
    assert!(nic.destroy_pd(a.pd).is_err());
    assert!(nic.destroy_cq(a.cq).is_err());
    assert!(nic.destroy_srq(a.srq.unwrap()).is_err());
    nic.destroy_qp(a.qp).unwrap();
    assert!(nic.destroy_qp(a.qp).is_err());
    nic.destroy_srq(a.srq.unwrap()).unwrap();
    nic.destroy_cq(a.cq).unwrap();
    assert!(nic.destroy_pd(a.pd).is_err(), "a region and an address handle are left");
    nic.destroy_mr(a.key).unwrap();
    nic.destroy_ah(a.ah).unwrap();
    nic.destroy_pd(a.pd).unwrap();
}
