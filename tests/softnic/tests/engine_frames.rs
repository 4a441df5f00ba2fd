//! Frames on the wire: known bytes, captures that tshark reads, and frames that make no sense.

mod engine_common;

use std::process::Command;

use directverbs::verbs::{Datagram, Imm, Mtu, QKey, QpState, QpType, SendOp, WcStatus};
use directverbs_softnic::fabric::FabricOptions;
use directverbs_softnic::fault::Random;
use directverbs_softnic::roce::{FrameError, Packet, Side, icrc};
use engine_common::{LEN, Pair, Setup, pattern};

/// Bytes of a pcap file before its first frame, and of the header of each.
const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 16;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[derive(Clone, Default)]
struct Sink(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The frames of a capture.
fn frames(capture: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &capture[FILE_HEADER..];
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        frames.push(rest[FRAME_HEADER..FRAME_HEADER + len].to_vec());
        rest = &rest[FRAME_HEADER + len..];
    }
    frames
}

/// Runs `job` on a fresh pair and returns what went over the wire.
fn captured(setup: Setup, job: impl FnOnce(&Pair)) -> Vec<u8> {
    let pair = Pair::new(setup);
    let sink = Sink::default();
    pair.fabric.capture(Box::new(sink.clone())).unwrap();
    job(&pair);
    pair.settle();
    pair.fabric.end_capture();
    let capture = sink.0.lock().unwrap();
    capture.clone()
}

#[test]
fn the_icrc_of_a_packet_from_real_hardware_is_right() {
    // A congestion notification that a ConnectX-4 Lx sent, without its Ethernet header. Time to live, type of service
    // and the congestion bits are set, so that the masks count.
    let packet =
        hex("45c2003c 718c4000 40119161 0a001101 0a001201 000012b7 00280000 8100ffff 40000118 00000000
         00000000 00000000 00000000 00000000");
    assert_eq!(icrc(&packet, 20).to_le_bytes(), [0x82, 0xfd, 0x00, 0x2a]);
}

#[test]
fn a_write_and_its_acknowledgement_are_these_bytes() {
    let capture = captured(Setup { first_psn: 0x00_0102, ..Setup::default() }, |pair| {
        pair.a.fill(0, b"hello");
        let write = SendOp::WriteImm(pair.b.remote(0), Imm::truncated(0x0a0b_0c0d));
        pair.b.recv(1, &[]);
        pair.a.send(1, write, &[pair.a.sge(0, 5)]);
    });
    let [mut write, acknowledge] = frames(&capture).try_into().unwrap();
    // Address and key of the region differ from run to run, and with them the ICRC.
    write[54..66].fill(0);
    let crc = write.split_off(write.len() - 4);
    assert_eq!(crc.len(), 4);
    let expected = hex("020000000002 020000000001 0800
         45 00 0048 0000 4000 40 11 26a3 0a000001 0a000002
         de44 12b7 0034 0000
         0b 30 ffff 00 000002 80 000102
         0000000000000000 00000000 00000005
         0a0b0c0d
         68656c6c6f 000000");
    let mut expected = expected;
    // The UDP source port is only there to spread flows.
    expected[34..36].copy_from_slice(&write[34..36]);
    assert_eq!(write, expected);
    assert!(write[34] >= 0xc0, "source ports are dynamic ones");
    let expected = hex("11 00 ffff 00 000002 00 000102 1f 000001");
    assert_eq!(acknowledge[42..58], expected);
    assert_eq!(acknowledge.len(), 62);
}

/// A job with every operation.
fn everything(pair: &Pair) {
    pair.a.fill(0, &pattern(1, 9000));
    let b = &pair.b;
    for i in 0..4 {
        b.recv(i, &[b.sge(0, 9001)]);
    }
    let remote = b.remote(0);
    let imm = Imm::truncated(0x1234_5678);
    let jobs = [
        (SendOp::Send, 9000),
        (SendOp::SendImm(imm), 0),
        (SendOp::Write(remote), 1),
        (SendOp::Write(remote), 9000),
        (SendOp::WriteImm(remote, imm), 4097),
        (SendOp::Read(remote), 8999),
        (SendOp::Read(remote), 0),
        (SendOp::FetchAdd { remote, add: 1 }, 8),
        (SendOp::CompareSwap { remote, compare: 1, swap: 2 }, 8),
        (SendOp::Send, 3),
        (SendOp::Write(b.remote(LEN)), 1), // refused with a NAK
    ];
    for (i, (op, len)) in jobs.into_iter().enumerate() {
        pair.a.send(i as u64, op, &[pair.a.sge(0, len)]);
    }
}

fn datagrams(pair: &Pair) {
    pair.b.recv(1, &[pair.b.sge(0, 4200)]);
    pair.b.recv(2, &[pair.b.sge(0, 4200)]);
    let to = Datagram { ah: pair.a.ah, qp: pair.b.qp, qkey: QKey::truncated(0x1111_1111) };
    pair.a.send(1, SendOp::SendTo(to), &[pair.a.sge(0, 4093)]);
    pair.a.send(2, SendOp::SendToImm(to, Imm::truncated(7)), &[pair.a.sge(0, 50)]);
}

#[test]
#[ignore = "needs tshark"]
fn tshark_finds_nothing_wrong() {
    for ipv6 in [false, true] {
        for vlan in [None, Some(0x2007)] {
            for qp_type in [QpType::Rc, QpType::Ud] {
                let setup = Setup { ipv6, vlan, qp_type, mtu: Mtu::B2048, ..Setup::default() };
                let job = if qp_type == QpType::Rc { everything } else { datagrams };
                let capture = captured(setup, job);
                assert!(frames(&capture).len() >= 2);
                judge(&capture);
            }
        }
    }
}

/// Lets tshark read a capture: every frame must be an InfiniBand packet, without remarks.
fn judge(capture: &[u8]) {
    let path = std::env::temp_dir().join(format!("engine-{}.pcap", std::process::id()));
    std::fs::write(&path, capture).unwrap();
    let output = Command::new("tshark")
        .args(["-n", "-o", "ip.check_checksum:TRUE", "-o", "udp.ignore_ipv6_zero_checksum:TRUE"])
        // The payload is nobody's protocol, so nothing may be guessed from it.
        .args(["--disable-protocol", "rpcordma"])
        .args(["-T", "fields", "-e", "infiniband.bth.opcode", "-e", "ip.checksum.status"])
        .args(["-e", "_ws.expert.message"])
        .arg("-r")
        .arg(&path)
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert_eq!(text.lines().count(), frames(capture).len());
    for line in text.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        assert!(!fields[0].is_empty(), "no InfiniBand packet: {line}");
        assert!(matches!(fields[1], "" | "1"), "bad IPv4 checksum: {line}");
        assert_eq!(fields[2], "", "{line}");
    }
}

#[test]
fn a_changed_bit_is_noticed() {
    let capture = captured(Setup::default(), everything);
    let frames = frames(&capture);
    assert!(frames.iter().all(|frame| Packet::parse(frame).is_ok()));
    for frame in &frames {
        for bit in (14 * 8)..(frame.len().min(70) * 8) {
            let mut frame = frame.clone();
            frame[bit / 8] ^= 1 << (bit % 8);
            // Routers may change these, and the padding of a short frame belongs to nobody.
            let is_free = matches!(bit / 8, 40 | 41 | 46) || (bit / 8 >= 60 && frame.len() <= 60);
            assert!(is_free || Packet::parse(&frame).is_err(), "bit {bit} of {frame:02x?}");
        }
    }
}

#[test]
fn frames_that_make_no_sense_are_dropped_and_counted() {
    let capture = captured(Setup::default(), everything);
    let good = frames(&capture);
    let pair = Pair::new(Setup::default());
    let mut random = Random::new(5);
    for i in 0..20_000 {
        let mut frame = good[random.below(good.len() as u64) as usize].clone();
        match i % 4 {
            0 => frame.truncate(random.below(frame.len() as u64) as usize),
            1 => frame = pattern(random.next(), random.below(200) as usize),
            _ => {
                for _ in 0..=random.below(8) {
                    let at = 12 + random.below(frame.len() as u64 - 12) as usize;
                    frame[at] = random.next() as u8;
                }
            }
        }
        pair.b.nic.lock().receive(&frame);
    }
    let counters = pair.b.nic.lock().hardware().counters();
    assert!(counters.bad_icrc > 1000, "{counters:?}");
    assert!(counters.malformed > 1000, "{counters:?}");
    assert!(counters.not_ours > 1000, "{counters:?}");
}

/// Replaces the ICRC by the right one.
fn seal(frame: &mut Vec<u8>) {
    let (ip_len, total) = (20, usize::from(u16::from_be_bytes([frame[16], frame[17]])));
    frame.truncate(14 + total);
    let end = frame.len() - 4;
    let crc = icrc(&frame[14..end], ip_len);
    frame[end..].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn requests_and_answers_with_arbitrary_contents_never_panic() {
    // The sender is the peer that the queue pair is connected to, and everything that a router checks is right: what
    // the transport says is arbitrary.
    let mut answered = 0;
    for seed in 0..60 {
        let setup = Setup { options: FabricOptions { seed, ..FabricOptions::default() }, ..Setup::default() };
        let capture = captured(setup, everything);
        let good = frames(&capture);
        let pair = Pair::new(setup);
        let mut random = Random::new(seed);
        pair.a.send(1, SendOp::Read(pair.b.remote(0)), &[pair.a.sge(0, 100_000)]);
        pair.a.send(2, SendOp::Write(pair.b.remote(0)), &[pair.a.sge(0, 100_000)]);
        for _ in 0..100 {
            pair.fabric.step();
        }
        for _ in 0..100 {
            let mut frame = good[random.below(good.len() as u64) as usize].clone();
            let opcodes = [
                0x00, 0x01, 0x02, 0x03, 0x04, 0x06, 0x07, 0x08, 0x0a, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
                0x12, 0x13,
            ];
            if random.below(2) == 0 {
                frame[42] = opcodes[random.below(opcodes.len() as u64) as usize];
            }
            frame[53] = (0xf0 + random.below(64)) as u8; // near what is expected
            let end = frame.len() - 4;
            if end > 58 && random.below(2) == 0 {
                let at = 54 + random.below((end - 54) as u64) as usize;
                frame[at] = random.next() as u8;
            }
            seal(&mut frame);
            let to = if frame[5] == 1 { &pair.a } else { &pair.b };
            to.nic.lock().receive(&frame);
            for _ in 0..random.below(20) {
                pair.fabric.step();
            }
        }
        assert!(pair.fabric.settle(1_000_000));
        let outcomes = pair.a.take_outcomes(Side::Send);
        assert_eq!(outcomes.iter().map(|o| o.0).collect::<Vec<_>>(), [1, 2]);
        answered += outcomes.iter().filter(|o| o.1 == WcStatus::Success).count();
    }
    assert!(answered > 0, "some survive");
}

#[test]
fn a_packet_from_elsewhere_is_not_for_a_connected_queue_pair() {
    let capture = captured(Setup::default(), |pair| {
        pair.a.send(1, SendOp::Write(pair.b.remote(0)), &[]);
    });
    let mut frame = frames(&capture)[0].clone();
    frame[29] = 9; // 10.0.0.9
    let checksum = u16::from_be_bytes([frame[24], frame[25]]) - 8;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(Packet::parse(&frame).unwrap_err(), FrameError::BadIcrc);
    seal(&mut frame);
    let pair = Pair::new(Setup::default());
    pair.b.nic.lock().receive(&frame);
    assert_eq!(pair.b.nic.lock().hardware().counters().no_qp, 1);
    assert_eq!(pair.b.state(), QpState::Rts);
}
