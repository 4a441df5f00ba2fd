//! Datagrams, raw frames, and shared receive queues.

mod engine_common;

use directverbs::verbs::{
    Datagram, Imm, Mac, Mtu, QKey, QpAttributes, QpState, QpType, SendFlags, SendOp, WcStatus,
};
use directverbs_softnic::fabric::FabricOptions;
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::roce::{DatagramSource, Event, Side};
use engine_common::{Pair, Setup, gid, mac, pattern, work};

const QKEY: u32 = 0x1111_1111;
/// Bytes before the payload of a datagram.
const GRH: usize = 40;

fn ud() -> Setup {
    Setup { qp_type: QpType::Ud, ..Setup::default() }
}

fn to_b(pair: &Pair, qkey: u32) -> Datagram {
    Datagram { ah: pair.a.ah, qp: pair.b.qp, qkey: QKey::truncated(qkey) }
}

#[test]
fn a_datagram_arrives_behind_its_ip_header() {
    for (ipv6, vlan) in [(false, None), (true, None), (false, Some(0x2007))] {
        let pair = Pair::new(Setup { ipv6, vlan, ..ud() });
        let data = pattern(1, 1001);
        pair.a.fill(0, &data);
        pair.b.recv(7, &[pair.b.sge(0, 20), pair.b.sge(20, 4000)]);
        let imm = Imm::truncated(0x0a0b_0c0d);
        pair.a.send(5, SendOp::SendToImm(to_b(&pair, QKEY), imm), &[pair.a.sge(0, 1001)]);
        pair.settle();
        assert_eq!(pair.a.take_outcomes(Side::Send), [(5, WcStatus::Success)]);
        let [received] = pair.b.take_completions()[..] else { panic!("one completion") };
        assert_eq!((received.token, received.status), (7, WcStatus::Success));
        assert_eq!((received.byte_len, received.imm), (1041, Some(imm)));
        let source = DatagramSource { qp: pair.a.qp, mac: mac(1), vlan, ipv6 };
        assert_eq!(received.source, Some(source));
        assert!(pair.b.bytes(GRH, 1001) == data);
        let header = pair.b.bytes(0, GRH);
        let (from, to) = (gid(&pair.setup, 1), gid(&pair.setup, 2));
        if ipv6 {
            assert_eq!(header[8..24], from.0);
            assert_eq!(header[24..40], to.0);
        } else {
            assert_eq!(header[20], 0x45);
            assert_eq!(header[32..36], from.as_v4().unwrap().octets());
            assert_eq!(header[36..40], to.as_v4().unwrap().octets());
        }
    }
}

#[test]
fn a_datagram_fills_at_most_the_ports_mtu() {
    let pair = Pair::new(ud());
    let max = Mtu::B4096.bytes() as usize;
    pair.b.recv(7, &[pair.b.sge(0, 8192)]);
    pair.a.send(5, SendOp::SendTo(to_b(&pair, QKEY)), &[pair.a.sge(0, max)]);
    pair.a.send(6, SendOp::SendTo(to_b(&pair, QKEY)), &[pair.a.sge(0, max + 1)]);
    pair.a.send(8, SendOp::SendTo(to_b(&pair, QKEY)), &[]);
    pair.settle();
    let expected = [(5, WcStatus::Success), (6, WcStatus::LocLen), (8, WcStatus::WrFlush)];
    assert_eq!(pair.a.take_outcomes(Side::Send), expected);
    assert_eq!(pair.a.state(), QpState::Sqe, "only the send queue of a datagram queue pair stops");
    pair.a.modify(&QpAttributes::to(QpState::Rts)).unwrap();
    pair.b.recv(9, &[pair.b.sge(0, 8192)]);
    pair.a.send(10, SendOp::SendTo(to_b(&pair, QKEY)), &[]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(10, WcStatus::Success)]);
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(7, WcStatus::Success), (9, WcStatus::Success)]);
}

#[test]
fn a_datagram_with_a_wrong_key_or_no_receive_is_dropped_silently() {
    let pair = Pair::new(ud());
    pair.b.recv(7, &[pair.b.sge(0, 100)]);
    pair.a.send(1, SendOp::SendTo(to_b(&pair, QKEY + 1)), &[pair.a.sge(0, 10)]);
    let other = Datagram { qp: directverbs::verbs::QpId::truncated(99), ..to_b(&pair, QKEY) };
    pair.a.send(2, SendOp::SendTo(other), &[pair.a.sge(0, 10)]);
    pair.a.send(3, SendOp::SendTo(to_b(&pair, QKEY)), &[pair.a.sge(0, 10)]);
    pair.a.send(4, SendOp::SendTo(to_b(&pair, QKEY)), &[pair.a.sge(0, 10)]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [1, 2, 3, 4].map(|token| (token, WcStatus::Success)));
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(7, WcStatus::Success)]);
    let counters = pair.b.nic.lock().hardware().counters();
    assert_eq!((counters.bad_qkey, counters.no_qp, counters.no_recv), (1, 1, 1));
    assert_eq!(pair.b.state(), QpState::Rts);
}

#[test]
fn a_privileged_queue_key_stands_for_the_senders_own() {
    let pair = Pair::new(ud());
    pair.b.recv(7, &[pair.b.sge(0, 100)]);
    pair.a.send(1, SendOp::SendTo(to_b(&pair, 0x8000_0001)), &[]);
    pair.settle();
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(7, WcStatus::Success)]);
}

#[test]
fn a_datagram_that_does_not_fit_its_receive_is_a_length_error() {
    let pair = Pair::new(ud());
    pair.b.recv(7, &[pair.b.sge(0, GRH + 9)]);
    pair.a.send(1, SendOp::SendTo(to_b(&pair, QKEY)), &[pair.a.sge(0, 10)]);
    pair.settle();
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(7, WcStatus::LocLen)]);
    assert_eq!(pair.b.state(), QpState::Err);
}

#[test]
fn an_address_handle_that_is_gone_is_an_error_of_the_sender() {
    let pair = Pair::new(ud());
    pair.a.nic.lock().destroy_ah(pair.a.ah).unwrap();
    pair.a.send(1, SendOp::SendTo(to_b(&pair, QKEY)), &[]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::LocQpOp)]);
}

#[test]
fn lost_and_doubled_datagrams_stay_whole() {
    let options = FabricOptions { seed: 3, faults: FaultPlan::LOSSY_WIRE, threaded: false };
    let pair = Pair::new(Setup { options, ..ud() });
    for i in 0..300 {
        pair.b.recv(i, &[pair.b.sge(64 * i as usize, 64)]);
        pair.a.fill(0, &i.to_le_bytes());
        pair.a.send(i, SendOp::SendTo(to_b(&pair, QKEY)), &[pair.a.sge(0, 8)]);
        pair.settle();
    }
    assert_eq!(pair.a.take_completions().len(), 300);
    let received = pair.b.take_completions();
    assert!(received.iter().all(|c| c.status == WcStatus::Success && c.byte_len == 48));
    let counters = pair.fabric.counters();
    assert!(counters.lost > 0 && counters.duplicated > 0);
    let unheard = pair.b.nic.lock().hardware().counters().no_recv;
    assert_eq!(received.len() as u64, 300 - counters.lost + counters.duplicated - unheard);
    let numbers = received.iter().map(|c| pair.b.bytes(64 * c.token as usize + GRH, 8));
    assert!(numbers.is_sorted_by_key(|n| u64::from_le_bytes(n.try_into().unwrap())));
}

#[test]
fn raw_frames_go_as_they_are() {
    let pair = Pair::new(Setup { qp_type: QpType::RawPacket, ..Setup::default() });
    let mut frame = pattern(1, 200);
    frame[..6].copy_from_slice(&mac(2).0);
    frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    pair.a.fill(0, &frame);
    pair.b.recv(7, &[pair.b.sge(0, 1000)]);
    pair.b.recv(8, &[pair.b.sge(1000, 1000)]);
    pair.a.send(1, SendOp::Send, &[pair.a.sge(0, 200)]);
    pair.a.send(2, SendOp::Send, &[pair.a.sge(0, 20)]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::Success), (2, WcStatus::Success)]);
    let received = pair.b.take_completions();
    assert_eq!(received.iter().map(|c| (c.token, c.byte_len)).collect::<Vec<_>>(), [(7, 200), (8, 60)]);
    assert!(pair.b.bytes(0, 200) == frame);
    assert!(pair.b.bytes(1000, 20) == frame[..20]);
    assert_eq!(pair.b.bytes(1020, 40), [0; 40], "short frames are padded");
}

#[test]
fn raw_queue_pairs_hear_broadcasts_but_not_others_frames() {
    let pair = Pair::new(Setup { qp_type: QpType::RawPacket, ..Setup::default() });
    for (to, heard) in [(Mac([0xff; 6]), true), (mac(9), false)] {
        let mut frame = pattern(1, 64);
        frame[..6].copy_from_slice(&to.0);
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        pair.a.fill(0, &frame);
        pair.b.recv(7, &[pair.b.sge(0, 100)]);
        pair.a.send(1, SendOp::Send, &[pair.a.sge(0, 64)]);
        pair.settle();
        assert_eq!(pair.b.take_completions().len(), usize::from(heard), "{to}");
    }
}

#[test]
fn a_shared_receive_queue_serves_in_post_order() {
    let pair = Pair::new(Setup { srq: true, ..Setup::default() });
    for i in 0..5 {
        pair.b.recv(i, &[pair.b.sge(1000 * i as usize, 1000)]);
    }
    for i in 0..5u64 {
        pair.a.fill(0, &[i as u8; 1000]);
        pair.a.send(i, SendOp::Send, &[pair.a.sge(0, 1000)]);
        pair.settle();
    }
    let received = pair.b.take_completions();
    assert_eq!(received.iter().map(|c| c.token).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(received.iter().all(|c| c.srq == pair.b.srq && c.qp == pair.b.qp));
    for i in 0..5u8 {
        assert_eq!(pair.b.bytes(1000 * usize::from(i), 1000), [i; 1000]);
    }
    pair.a.send(9, SendOp::Send, &[]);
    pair.b.recv(6, &[]);
    pair.settle();
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(6, WcStatus::Success)]);
}

#[test]
fn the_limit_event_comes_once_when_fewer_are_left() {
    let pair = Pair::new(Setup { srq: true, ..Setup::default() });
    let srq = pair.b.srq.unwrap();
    for i in 0..5 {
        pair.b.recv(i, &[]);
    }
    pair.b.nic.lock().hardware().arm_srq(srq, 3).unwrap();
    let mut limits = Vec::new();
    for i in 0..5 {
        pair.a.send(i, SendOp::Send, &[]);
        pair.settle();
        let events = pair.b.take_events();
        limits.push(events.iter().filter(|e| **e == Event::SrqLimit { srq }).count());
    }
    assert_eq!(limits, [0, 0, 1, 0, 0], "three are not fewer than three");
    pair.b.nic.lock().hardware().arm_srq(srq, 1).unwrap();
    pair.settle();
    pair.b.nic.lock().doorbell(0, 0, 0);
    assert_eq!(pair.b.take_events(), [Event::SrqLimit { srq }], "armed below the limit, it comes at once");
}

#[test]
fn an_error_leaves_the_shared_receives_to_others() {
    let pair = Pair::new(Setup { srq: true, ..Setup::default() });
    pair.b.recv(1, &[]);
    pair.b.modify(&QpAttributes::to(QpState::Err)).unwrap();
    assert!(pair.b.take_completions().is_empty());
}

#[test]
fn a_solicited_message_is_marked() {
    let pair = Pair::new(Setup::default());
    for flags in [SendFlags::SOLICITED, SendFlags::empty()] {
        pair.b.recv(1, &[pair.b.sge(0, 5000)]);
        let mut send = work(1, SendOp::Send, &[pair.a.sge(0, 5000)]);
        send.flags |= flags;
        pair.a.post(send);
        pair.settle();
        assert_eq!(pair.b.take_completions()[0].solicited, !flags.is_empty());
    }
}
