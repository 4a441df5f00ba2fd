//! Captures of the wire: every operation, over IPv4 and IPv6, on a good wire and on a lossy one, between the vendors.
//!
//! The captures stay in cargo's folder for temporary files, where `cargo lab` lets tshark judge them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use directverbs::verbs::{Device, Mtu};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::open::{NicKind, Options, Visit, WqeMode, join};
use directverbs_workload::{Job, Op, run_pair};

/// Runs jobs between two devices.
struct Jobs(Vec<Job>);

impl Visit for Jobs {
    type Out = ();

    fn run<A: Device + Send, B: Device + Send>(self, mut a: A, mut b: B) {
        for job in self.0 {
            if let Err(error) = run_pair(&mut a, &mut b, &job, &mut |_| {}) {
                panic!("{} of {} bytes: {error}", job.op, job.size);
            }
        }
    }
}

/// Every operation with messages of no byte, of one packet, and of several. Datagrams that a wire loses stay lost.
fn jobs(datagrams: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for op in Op::ALL.into_iter().filter(|op| datagrams || *op != Op::SendTo) {
        let sizes: &[u32] = match op {
            Op::CompareSwap | Op::FetchAdd => &[8],
            Op::SendTo => &[0, 1, 64, 1021],
            _ => &[0, 1, 64, 1021, 4096, 9999],
        };
        let jobs_of =
            |&size| Job { op, size, iterations: 3, batch: 4, mtu: Some(Mtu::B1024), ..Job::default() };
        jobs.extend(sizes.iter().map(jobs_of));
    }
    jobs
}

fn capture(name: &str, ipv6: bool, faults: FaultPlan) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name).with_extension("pcap");
    let capture = Some(Arc::new(File::create(&path).unwrap()));
    let options =
        Options { wqe_mode: WqeMode::Variable, seed: 7, faults, ipv6, capture, ..Options::default() };
    join(NicKind::BnxtReP7, NicKind::IonicV2, &options, Jobs(jobs(faults == FaultPlan::NONE))).unwrap();

    let bytes = fs::read(&path).unwrap();
    let (_, mut rest) = bytes.split_at(24);
    let mut frames = Vec::new();
    while let Some((header, tail)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        let (frame, tail) = tail.split_at(len);
        frames.push(frame.to_vec());
        rest = tail;
    }
    frames
}

/// Offset of the BTH in a frame.
fn bth(frame: &[u8]) -> usize {
    match frame[12..14] {
        [0x08, 0x00] => 14 + 20 + 8,
        [0x86, 0xdd] => 14 + 40 + 8,
        _ => panic!("neither IPv4 nor IPv6: {:x?}", &frame[..14]),
    }
}

/// Opcodes of all packets that the jobs make. Source: InfiniBand Architecture Specification, volume 1, table "OpCode
/// field".
const OPCODES: &[u8] = &[
    0x00, 0x01, 0x02, 0x03, 0x04,
    0x05, // SEND: first, middle, last, last with immediate, only, only with immediate
    0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, // RDMA WRITE, the same
    0x0c, 0x0d, 0x0e, 0x0f, 0x10, // RDMA READ: request; response first, middle, last, only
    0x11, 0x12, 0x13, 0x14, // acknowledge, atomic acknowledge, compare and swap, fetch and add
    0x16, 0x17, // SEND with invalidate: last, only
    DATAGRAM,
];
const DATAGRAM: u8 = 0x64;

#[test]
fn captures_hold_every_operation_over_both_versions_of_ip() {
    for (name, ipv6, faults) in [
        ("v4", false, FaultPlan::NONE),
        ("v6", true, FaultPlan::NONE),
        ("v4-lossy", false, FaultPlan::LOSSY_WIRE),
        ("v6-lossy", true, FaultPlan::LOSSY_WIRE),
    ] {
        let frames = capture(name, ipv6, faults);
        let opcodes: BTreeSet<u8> = frames.iter().map(|frame| frame[bth(frame)]).collect();
        let expected = OPCODES.iter().filter(|opcode| faults == FaultPlan::NONE || **opcode != DATAGRAM);
        let missing: Vec<&u8> = expected.filter(|opcode| !opcodes.contains(opcode)).collect();
        assert!(
            missing.is_empty(),
            "{name}: no packet with the opcodes {missing:x?} in {} frames",
            frames.len()
        );
        assert!(
            frames.iter().all(|frame| (frame[12] == 0x86) == ipv6),
            "{name}: frames of both versions of IP"
        );
    }
}

#[test]
fn a_lossy_wire_makes_acknowledgements_negative() {
    let frames = capture("v4-naks", false, FaultPlan { lose_frame: 50_000, ..FaultPlan::NONE });
    let negative = frames.iter().filter(|frame| {
        let at = bth(frame);
        // The syndrome follows the BTH; its bits 5 and 6 say NAK.
        frame[at] == 0x11 && frame[at + 12] & 0x60 == 0x60
    });
    assert!(negative.count() > 0, "no NAK in {} frames", frames.len());
}
