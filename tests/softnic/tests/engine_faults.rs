//! A wire that loses, repeats, delays and corrupts frames; peers that are not ready or not there.

mod engine_common;

use directverbs::verbs::{Imm, Mtu, QpState, SendOp, WcStatus};
use directverbs_softnic::fabric::FabricOptions;
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::roce::{Event, Side};
use engine_common::{Pair, Setup, pattern};

/// Where the passive side's data lies.
const THERE: usize = 2 << 20;
/// A counter that atomics work on.
const COUNTER: usize = THERE - 64;

fn lossy(seed: u64, faults: FaultPlan) -> FabricOptions {
    FabricOptions { seed, faults, threaded: false }
}

/// Posts a mix of everything, and checks all that came of it.
fn mixed_job(pair: &Pair, rounds: u64, size: usize) {
    let data = pattern(5, size);
    pair.a.fill(0, &data);
    pair.b.fill(THERE, &data);
    for i in 0..rounds {
        pair.b.recv(i, &[pair.b.sge(0, size)]);
    }
    for i in 0..rounds {
        let (there, remote) = (pair.b.remote(THERE + size), pair.b.remote(COUNTER));
        pair.a.send(4 * i, SendOp::Write(there), &[pair.a.sge(0, size)]);
        pair.a.send(4 * i + 1, SendOp::Read(pair.b.remote(THERE)), &[pair.a.sge(THERE, size)]);
        let result = COUNTER - 8 * (i as usize + 1);
        pair.a.send(4 * i + 2, SendOp::FetchAdd { remote, add: 1 }, &[pair.a.sge(result, 8)]);
        pair.a.send(4 * i + 3, SendOp::SendImm(Imm::truncated(i as u32)), &[pair.a.sge(0, size)]);
    }
    pair.settle();
    let expected: Vec<_> = (0..4 * rounds).map(|i| (i, WcStatus::Success)).collect();
    assert_eq!(pair.a.take_outcomes(Side::Send), expected);
    let received = pair.b.take_completions();
    let seen: Vec<_> = received.iter().map(|c| (c.token, c.imm.map_or(0, |imm| imm.get()))).collect();
    assert_eq!(seen, (0..rounds).map(|i| (i, i as u32)).collect::<Vec<_>>());
    assert!(pair.b.bytes(0, size) == data, "SEND");
    assert!(pair.b.bytes(THERE + size, size) == data, "WRITE");
    assert!(pair.a.bytes(THERE, size) == data, "READ");
    assert_eq!(pair.b.bytes(COUNTER, 8), rounds.to_ne_bytes(), "each atomic once");
    for i in 0..rounds {
        let result = COUNTER - 8 * (i as usize + 1);
        assert_eq!(pair.a.bytes(result, 8), i.to_ne_bytes(), "each atomic's own result");
    }
    assert_eq!(pair.b.nic.lock().hardware().counters().atomics, rounds);
}

#[test]
fn every_operation_survives_every_fault_of_the_wire() {
    let some = 20_000;
    let plans = [
        FaultPlan { lose_frame: some, ..FaultPlan::NONE },
        FaultPlan { duplicate_frame: some, ..FaultPlan::NONE },
        FaultPlan { reorder_frame: some, ..FaultPlan::NONE },
        FaultPlan { corrupt_frame: some, ..FaultPlan::NONE },
        FaultPlan { corrupt_frame: some, ..FaultPlan::LOSSY_WIRE },
    ];
    for faults in plans {
        for seed in 0..4 {
            let setup = Setup {
                options: lossy(seed, faults),
                mtu: Mtu::B256,
                ipv6: seed % 2 == 1,
                ..Setup::default()
            };
            let pair = Pair::new(setup);
            mixed_job(&pair, 12, 20_000);
            assert_ne!(pair.fabric.counters().sent, 0);
        }
    }
}

#[test]
fn a_long_message_survives_heavy_loss() {
    let faults = FaultPlan { lose_frame: 50_000, reorder_frame: 20_000, ..FaultPlan::NONE };
    let pair = Pair::new(Setup { options: lossy(3, faults), mtu: Mtu::B1024, ..Setup::default() });
    let data = pattern(6, 1 << 20);
    pair.a.fill(0, &data);
    pair.b.fill(0, &data);
    pair.a.send(1, SendOp::Write(pair.b.remote(THERE)), &[pair.a.sge(0, 1 << 20)]);
    pair.a.send(2, SendOp::Read(pair.b.remote(0)), &[pair.a.sge(THERE, 1 << 20)]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::Success), (2, WcStatus::Success)]);
    assert!(pair.b.bytes(THERE, 1 << 20) == data);
    assert!(pair.a.bytes(THERE, 1 << 20) == data);
    assert!(pair.fabric.counters().lost > 50);
}

#[test]
fn what_is_sent_again_is_announced_with_its_sequence_numbers() {
    let faults = FaultPlan { lose_frame: 50_000, ..FaultPlan::NONE };
    let pair = Pair::new(Setup { options: lossy(3, faults), ..Setup::default() });
    for i in 0..50 {
        pair.a.send(i, SendOp::Write(pair.b.remote(0)), &[pair.a.sge(0, 10_000)]);
    }
    pair.settle();
    let first = pair.setup.first_psn;
    let mut seen = 0;
    for event in pair.a.take_events() {
        let Event::Retransmit { token, psn, psns, .. } = event else { continue };
        seen += 1;
        assert_eq!(psns.first.get(), (first + 10 * token as u32) & 0xff_ffff);
        assert_eq!(psns.next.get(), (first + 10 * (token as u32 + 1)) & 0xff_ffff);
        let within = psn.get().wrapping_sub(psns.first.get()) & 0xff_ffff;
        assert!(within < 10, "{event:?}");
    }
    assert!(seen > 0);
}

#[test]
fn the_same_seed_gives_the_same_capture() {
    let run = |seed| {
        let file = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let pair = Pair::new(Setup { options: lossy(seed, FaultPlan::LOSSY_WIRE), ..Setup::default() });
        pair.fabric.capture(Box::new(Shared(file.clone()))).unwrap();
        mixed_job(&pair, 5, 30_000);
        pair.fabric.end_capture();
        let bytes = file.lock().unwrap().clone();
        (bytes, pair.fabric.now_ns())
    };
    let (first, again, other) = (run(7), run(7), run(8));
    assert!(first.0.len() > 10_000);
    assert!(first == again);
    assert!(first.0 != other.0);
}

struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn threads_carry_the_same_job() {
    for faults in [FaultPlan::NONE, FaultPlan::LOSSY_WIRE] {
        let options = FabricOptions { seed: 2, faults, threaded: true };
        let pair = Pair::new(Setup { options, ..Setup::default() });
        mixed_job(&pair, 10, 20_000);
    }
}

#[test]
fn a_peer_that_does_not_answer_exceeds_the_retries() {
    let lost = FaultPlan { lose_frame: 1_000_000, ..FaultPlan::NONE };
    let setup = Setup { options: lossy(1, lost), timeout: 8, retry_count: 3, ..Setup::default() };
    let pair = Pair::new(setup);
    pair.a.recv(50, &[]);
    for i in 0..3 {
        pair.a.send(i, SendOp::Write(pair.b.remote(0)), &[pair.a.sge(0, 10)]);
    }
    pair.settle();
    let flushed = WcStatus::WrFlush;
    assert_eq!(pair.a.state(), QpState::Err);
    let events = pair.a.take_events();
    let completions = events.iter().filter_map(|event| match event {
        Event::Completion(c) => Some((c.side, c.token, c.status)),
        _ => None,
    });
    assert_eq!(
        completions.collect::<Vec<_>>(),
        [
            (Side::Send, 0, WcStatus::RetryExceeded),
            (Side::Send, 1, flushed),
            (Side::Send, 2, flushed),
            (Side::Recv, 50, flushed),
        ]
    );
    // Once and three retries, each after 4.096 us * 2^8.
    assert_eq!(pair.a.nic.lock().hardware().counters().timeouts, 4);
    assert!((4 * 1_048_576..4 * 1_048_576 + 100_000).contains(&pair.fabric.now_ns()));
}

#[test]
fn a_receiver_that_is_not_ready_is_waited_for() {
    let pair = Pair::new(Setup { rnr_retry: 7, ..Setup::default() });
    let data = pattern(2, 5000);
    pair.a.fill(0, &data);
    pair.a.send(1, SendOp::Send, &[pair.a.sge(0, 5000)]);
    let write = SendOp::WriteImm(pair.b.remote(THERE), Imm::truncated(3));
    pair.a.send(2, write, &[pair.a.sge(0, 5000)]);
    for _ in 0..2000 {
        assert!(pair.fabric.step(), "it goes on trying for ever");
    }
    assert!(pair.a.take_completions().is_empty());
    assert!(pair.b.nic.lock().hardware().counters().rnr_naks > 8);
    pair.b.recv(10, &[pair.b.sge(0, 5000)]);
    for _ in 0..2000 {
        assert!(pair.fabric.step());
    }
    assert_eq!(pair.a.take_outcomes(Side::Send), [(1, WcStatus::Success)]);
    pair.b.recv(11, &[]);
    pair.settle();
    assert_eq!(pair.a.take_outcomes(Side::Send), [(2, WcStatus::Success)]);
    assert_eq!(pair.b.take_outcomes(Side::Recv), [(10, WcStatus::Success), (11, WcStatus::Success)]);
    assert!(pair.b.bytes(0, 5000) == data);
    assert!(pair.b.bytes(THERE, 5000) == data);
}

#[test]
fn a_receiver_that_is_never_ready_exceeds_the_rnr_retries() {
    let pair = Pair::new(Setup { rnr_retry: 2, ..Setup::default() });
    pair.a.send(1, SendOp::Send, &[pair.a.sge(0, 8)]);
    pair.a.send(2, SendOp::Send, &[pair.a.sge(0, 8)]);
    pair.settle();
    let expected = [(1, WcStatus::RnrRetryExceeded), (2, WcStatus::WrFlush)];
    assert_eq!(pair.a.take_outcomes(Side::Send), expected);
    assert_eq!(pair.b.nic.lock().hardware().counters().rnr_naks, 3);
    assert_eq!(pair.b.state(), QpState::Rts, "the receiver has done nothing wrong");
}

#[test]
fn rnr_survives_a_lossy_wire() {
    for seed in 0..4 {
        let setup = Setup { options: lossy(seed, FaultPlan::LOSSY_WIRE), ..Setup::default() };
        let pair = Pair::new(setup);
        for i in 0..40 {
            pair.a.send(i, SendOp::Send, &[pair.a.sge(0, 3000)]);
        }
        for i in 0..40 {
            for _ in 0..50 {
                pair.fabric.step();
            }
            pair.b.recv(i, &[pair.b.sge(0, 3000)]);
        }
        pair.settle();
        let expected: Vec<_> = (0..40).map(|i| (i, WcStatus::Success)).collect();
        assert_eq!(pair.a.take_outcomes(Side::Send), expected);
        assert_eq!(pair.b.take_outcomes(Side::Recv), expected);
    }
}
