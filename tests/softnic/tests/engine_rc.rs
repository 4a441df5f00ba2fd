//! Reliable connections on a wire without faults: every operation, size, path MTU and address family.

mod engine_common;

use directverbs::verbs::{Imm, Mtu, SendFlags, SendOp, WcOpcode, WcStatus};
use directverbs_softnic::roce::{Completion, Payload, SendWork, Side};
use engine_common::{Pair, Setup, pattern, work};

/// Where the passive side's data lies.
const THERE: usize = 2 << 20;

fn sizes(mtu: Mtu) -> [usize; 9] {
    let mtu = mtu.bytes() as usize;
    [0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu, 10 * mtu + 5, 300 * mtu + 7]
}

fn one(completions: &[Completion], side: Side) -> Completion {
    let found: Vec<_> = completions.iter().filter(|c| c.side == side).collect();
    assert_eq!(found.len(), 1, "{completions:?}");
    *found[0]
}

#[test]
fn a_send_of_any_size_arrives() {
    for mtu in Mtu::ALL {
        let pair = Pair::new(Setup { mtu, ..Setup::default() });
        for size in sizes(mtu) {
            let data = pattern(size as u64, size);
            pair.a.fill(0, &data);
            pair.b.recv(7, &[pair.b.sge(0, size / 3), pair.b.sge(size / 3, size - size / 3 + 10)]);
            pair.a.send(5, SendOp::Send, &[pair.a.sge(0, size / 2), pair.a.sge(size / 2, size - size / 2)]);
            pair.settle();
            let sent = one(&pair.a.take_completions(), Side::Send);
            assert_eq!((sent.token, sent.status, sent.opcode), (5, WcStatus::Success, WcOpcode::Send));
            let received = one(&pair.b.take_completions(), Side::Recv);
            assert_eq!((received.token, received.byte_len), (7, size as u32));
            assert_eq!((received.status, received.opcode), (WcStatus::Success, WcOpcode::Recv));
            assert!(pair.b.bytes(0, size) == data, "{mtu:?} {size}");
        }
    }
}

#[test]
fn a_write_of_any_size_arrives_without_a_completion_there() {
    for mtu in Mtu::ALL {
        let pair = Pair::new(Setup { mtu, ..Setup::default() });
        for size in sizes(mtu) {
            let data = pattern(size as u64, size);
            pair.a.fill(0, &data);
            pair.a.send(5, SendOp::Write(pair.b.remote(THERE)), &[pair.a.sge(0, size)]);
            pair.settle();
            let sent = one(&pair.a.take_completions(), Side::Send);
            assert_eq!((sent.token, sent.status, sent.opcode), (5, WcStatus::Success, WcOpcode::RdmaWrite));
            assert!(pair.b.take_completions().is_empty());
            assert!(pair.b.bytes(THERE, size) == data, "{mtu:?} {size}");
        }
    }
}

#[test]
fn a_read_of_any_size_comes_back() {
    for mtu in Mtu::ALL {
        let pair = Pair::new(Setup { mtu, ..Setup::default() });
        for size in sizes(mtu) {
            let data = pattern(size as u64, size);
            pair.b.fill(THERE, &data);
            let local = [pair.a.sge(0, size / 2), pair.a.sge(size / 2, size - size / 2)];
            pair.a.send(5, SendOp::Read(pair.b.remote(THERE)), &local);
            pair.settle();
            let read = one(&pair.a.take_completions(), Side::Send);
            assert_eq!((read.token, read.status, read.opcode), (5, WcStatus::Success, WcOpcode::RdmaRead));
            assert_eq!(read.byte_len, size as u32);
            assert!(pair.a.bytes(0, size) == data, "{mtu:?} {size}");
        }
    }
}

#[test]
fn messages_cross_ipv6_and_vlans() {
    for (ipv6, vlan) in [(true, None), (false, Some(0x6123)), (true, Some(5))] {
        let pair = Pair::new(Setup { ipv6, vlan, ..Setup::default() });
        let data = pattern(9, 5000);
        pair.a.fill(0, &data);
        pair.a.send(1, SendOp::Write(pair.b.remote(0)), &[pair.a.sge(0, 5000)]);
        pair.settle();
        assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::Success)]);
        assert!(pair.b.bytes(0, 5000) == data);
    }
}

#[test]
fn immediate_data_comes_with_send_and_write() {
    let pair = Pair::new(Setup::default());
    let data = pattern(3, 3000);
    pair.a.fill(0, &data);
    pair.b.recv(10, &[pair.b.sge(0, 4096)]);
    pair.b.recv(11, &[]);
    pair.a.send(1, SendOp::SendImm(Imm::truncated(0x0102_0304)), &[pair.a.sge(0, 3000)]);
    let write = SendOp::WriteImm(pair.b.remote(THERE), Imm::truncated(0xaabb_ccdd));
    pair.a.send(2, write, &[pair.a.sge(0, 3000)]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::Success), (2, WcStatus::Success)]);
    let received = pair.b.take_completions();
    let seen: Vec<_> = received.iter().map(|c| (c.token, c.opcode, c.byte_len, c.imm)).collect();
    let imm = |value| Some(Imm::truncated(value));
    assert_eq!(
        seen,
        [
            (10, WcOpcode::Recv, 3000, imm(0x0102_0304)),
            (11, WcOpcode::RecvRdmaWithImm, 3000, imm(0xaabb_ccdd))
        ]
    );
    assert!(pair.b.bytes(0, 3000) == data);
    assert!(pair.b.bytes(THERE, 3000) == data);
}

#[test]
fn an_empty_write_with_immediate_data_consumes_a_receive() {
    let pair = Pair::new(Setup::default());
    pair.b.recv(11, &[]);
    let write = SendOp::WriteImm(pair.b.remote(THERE), Imm::truncated(1));
    pair.a.send(2, write, &[]);
    pair.settle();
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(11, WcStatus::Success)]);
}

#[test]
fn atomics_return_the_value_before() {
    let pair = Pair::new(Setup::default());
    pair.b.fill(THERE, &10u64.to_ne_bytes());
    let remote = pair.b.remote(THERE);
    pair.a.send(1, SendOp::FetchAdd { remote, add: 5 }, &[pair.a.sge(0, 8)]);
    pair.a.send(2, SendOp::CompareSwap { remote, compare: 15, swap: 99 }, &[pair.a.sge(8, 8)]);
    pair.a.send(3, SendOp::CompareSwap { remote, compare: 15, swap: 1 }, &[pair.a.sge(16, 8)]);
    pair.a.send(4, SendOp::FetchAdd { remote, add: u64::MAX }, &[pair.a.sge(24, 8)]);
    pair.settle();
    let done = pair.a.take_completions();
    let seen: Vec<_> = done.iter().map(|c| (c.token, c.status, c.opcode, c.byte_len)).collect();
    let ok = WcStatus::Success;
    let (add, swap) = (WcOpcode::FetchAdd, WcOpcode::CompSwap);
    assert_eq!(seen, [(1, ok, add, 8), (2, ok, swap, 8), (3, ok, swap, 8), (4, ok, add, 8)]);
    let values = pair.a.bytes(0, 32);
    let words: Vec<_> = values.chunks(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap())).collect();
    assert_eq!(words, [10, 15, 99, 99]);
    assert_eq!(pair.b.bytes(THERE, 8), 98u64.to_ne_bytes());
}

#[test]
fn inline_bytes_need_no_memory() {
    let pair = Pair::new(Setup::default());
    let data = pattern(4, 200);
    pair.b.recv(1, &[pair.b.sge(0, 200)]);
    let payload = Payload::Inline(data.clone());
    pair.a.post(SendWork { token: 9, op: Ok(SendOp::Send), flags: SendFlags::empty(), payload });
    pair.settle();
    assert!(pair.b.bytes(0, 200) == data);
    let sent = one(&pair.a.take_completions(), Side::Send);
    assert!(!sent.signaled, "the front end is told whether a completion was asked for");
}

#[test]
fn many_mixed_requests_end_in_order() {
    let pair = Pair::new(Setup { mtu: Mtu::B256, reads: 2, ..Setup::default() });
    let data = pattern(8, 1 << 20);
    pair.a.fill(0, &data);
    pair.b.fill(THERE, &data);
    for i in 0..200u64 {
        let at = (i as usize % 16) * 4096;
        let op = match i % 4 {
            0 => SendOp::Write(pair.b.remote(at)),
            1 => SendOp::Read(pair.b.remote(THERE + at)),
            2 => SendOp::FetchAdd { remote: pair.b.remote(1 << 20), add: 1 },
            _ => SendOp::Send,
        };
        let len = if i % 4 == 2 { 8 } else { 3000 };
        if i % 4 == 3 {
            pair.b.recv(i, &[pair.b.sge((1 << 20) + 4096, 4096)]);
        }
        let to = if i % 4 == 1 || i % 4 == 2 { THERE } else { at };
        let flags = if i % 5 == 0 { SendFlags::FENCE } else { SendFlags::empty() };
        pair.a.post(SendWork { flags, ..work(i, op, &[pair.a.sge(to, len)]) });
    }
    pair.settle();
    let expected: Vec<_> = (0..200).map(|i| (i, WcStatus::Success)).collect();
    assert_eq!(pair.a.take_outcomes(Side::Send), expected);
    assert_eq!(pair.b.bytes(1 << 20, 8), 50u64.to_ne_bytes());
    assert_eq!(pair.b.nic.lock().hardware().counters().atomics, 50);
}

#[test]
fn both_sides_may_send_at_once() {
    let pair = Pair::new(Setup::default());
    let (left, right) = (pattern(1, 1 << 20), pattern(2, 1 << 20));
    pair.a.fill(0, &left);
    pair.b.fill(0, &right);
    pair.a.send(1, SendOp::Write(pair.b.remote(THERE)), &[pair.a.sge(0, 1 << 20)]);
    pair.b.send(2, SendOp::Write(pair.a.remote(THERE)), &[pair.b.sge(0, 1 << 20)]);
    pair.settle();
    assert!(pair.b.bytes(THERE, 1 << 20) == left);
    assert!(pair.a.bytes(THERE, 1 << 20) == right);
}

#[test]
fn sequence_numbers_are_known_at_post() {
    let pair = Pair::new(Setup { mtu: Mtu::B256, first_psn: 0xff_fffe, ..Setup::default() });
    let posted = |op, len| {
        let mut nic = pair.a.nic.lock();
        let psns = nic.hardware().post_send(pair.a.qp, work(0, op, &[pair.a.sge(0, len)])).unwrap();
        (psns.first.get(), psns.next.get())
    };
    assert_eq!(posted(SendOp::Write(pair.b.remote(0)), 1000), (0xff_fffe, 2));
    assert_eq!(posted(SendOp::Read(pair.b.remote(0)), 257), (2, 4));
    assert_eq!(posted(SendOp::FetchAdd { remote: pair.b.remote(0), add: 1 }, 8), (4, 5));
    assert_eq!(posted(SendOp::LocalInv(pair.b.remote(0).rkey), 0), (5, 5));
    assert_eq!(posted(SendOp::Send, 0), (5, 6));
}
