//! The workload finds what a device does wrong: over a loopback device that can be made to lie.

mod loopback;

use directverbs::verbs::{QpId, WcFlags, WcStatus};
use directverbs_workload::{
    BEFORE_ECHO, DataError, Error, Job, JobError, Op, PairError, PairReport, WrKind, run_pair,
};
use loopback::{Delivery, Never, pair};

type Failure = PairError<Never, Never>;

fn run(job: Job, lie: impl FnMut(&mut Delivery<'_>) + 'static) -> Result<PairReport, Failure> {
    let [mut a, mut b] = pair(lie);
    run_pair(&mut a, &mut b, &job, &mut |_| {})
}

fn job(op: Op) -> Job {
    Job { op, size: if op.is_atomic() { 8 } else { 100 }, iterations: 9, ..Job::default() }
}

/// A lie about the `n`th completion of a kind.
fn once(receive: bool, n: usize, mut lie: impl FnMut(&mut Delivery<'_>)) -> impl FnMut(&mut Delivery<'_>) {
    let mut seen = 0;
    move |delivery| {
        if delivery.is_receive == receive {
            seen += 1;
            if seen == n + 1 {
                lie(delivery);
            }
        }
    }
}

fn data_error(failure: Failure) -> DataError {
    match failure {
        PairError::First(Error::Data { error, .. }) | PairError::Second(Error::Data { error, .. }) => error,
        other => panic!("not about data: {other}"),
    }
}

#[test]
fn every_operation_ends_with_every_byte_verified() {
    for op in Op::ALL {
        for (batch, sges, srq, one_cq, signal_all) in
            [(1, 1, false, false, false), (5, 1, true, false, true), (32, 4, false, true, true)]
        {
            let sges = if op.is_atomic() { 1 } else { sges };
            let job = Job { batch, sges, srq, one_cq, signal_all, ..job(op) };
            let report = run(job, |_| {}).unwrap_or_else(|e| panic!("{op}, batch {batch}: {e}"));
            // An atomic is verified twice: the old value by the requester, the new one by the target.
            let times = if op.is_atomic() { 4 } else { 2 };
            assert_eq!(report.verified_bytes(), times * u64::from(job.size * batch) * job.iterations, "{op}");
            assert_eq!(report.first.messages, u64::from(batch) * job.iterations);
        }
    }
}

#[test]
fn empty_and_inline_messages_are_carried() {
    for op in Op::ALL.into_iter().filter(|op| !op.is_atomic()) {
        run(Job { size: 0, batch: 2, sges: 3, ..job(op) }, |_| {}).unwrap();
    }
    for op in Op::ALL.into_iter().filter(|op| !op.fetches()) {
        run(Job { inline: true, batch: 3, sges: 3, ..job(op) }, |_| {}).unwrap();
    }
}

#[test]
fn each_turn_is_observed_once() {
    for op in Op::ALL {
        let [mut a, mut b] = pair(|_| {});
        let mut seen = Vec::new();
        run_pair(&mut a, &mut b, &job(op), &mut |sample| seen.push(sample.iteration)).unwrap();
        assert_eq!(seen, (0..9).collect::<Vec<_>>(), "{op}");
    }
}

#[test]
fn a_flipped_byte_is_found() {
    for op in [Op::Send, Op::SendImm, Op::SendInv, Op::WriteImm] {
        let failure = run(job(op), once(true, 5, |d| d.payload[77] ^= 0x40)).unwrap_err();
        assert!(matches!(data_error(failure), DataError::Byte { offset: 77, .. }), "{op}: {failure}");
    }
    let failure = run(job(Op::SendTo), once(true, 5, |d| d.payload[40 + 99] ^= 1)).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Byte { offset: 99, .. }), "{failure}");
    let failure = run(job(Op::Read), once(false, 4, |d| d.payload[..].rotate_left(1))).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Byte { .. }), "{failure}");
}

#[test]
fn a_peer_that_does_not_echo_is_found() {
    let echoed = Job { echoed: true, batch: 1, ..job(Op::Send) };
    let error = data_error(run(echoed, |_| {}).expect_err("each side sends contents of its own"));
    assert!(matches!(error, DataError::Byte { expected: BEFORE_ECHO, .. }), "{error}");
    for wrong in [Job { batch: 2, ..echoed }, Job { op: Op::Write, ..echoed }] {
        assert!(matches!(wrong.check(), Err(JobError::Combination { .. })), "{wrong:?}");
    }
}

#[test]
fn a_wrong_immediate_is_found() {
    for op in [Op::SendImm, Op::WriteImm, Op::Write] {
        let failure = run(job(op), once(true, 3, |d| d.completion.imm_or_rkey ^= 1)).unwrap_err();
        assert!(
            matches!(data_error(failure), DataError::Value { what: "immediate data", .. }),
            "{op}: {failure}"
        );
        let failure = run(job(op), once(true, 3, |d| d.completion.flags = WcFlags::empty())).unwrap_err();
        assert_eq!(data_error(failure), DataError::Completion("there is no immediate data"));
    }
}

#[test]
fn a_wrong_invalidated_key_is_found() {
    let failure = run(job(Op::SendInv), once(true, 0, |d| d.completion.imm_or_rkey += 1)).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Value { what: "invalidated key", .. }), "{failure}");
}

#[test]
fn a_wrong_old_value_of_an_atomic_is_found() {
    for op in [Op::CompareSwap, Op::FetchAdd] {
        let lie = once(false, 4, |d| {
            if d.payload.len() == 8 {
                d.payload[7] ^= 0x80;
            }
        });
        let failure = run(Job { signal_all: true, ..job(op) }, lie).unwrap_err();
        assert!(
            matches!(data_error(failure), DataError::Value { what: "value before the atomic", .. }),
            "{op}: {failure}"
        );
    }
}

#[test]
fn a_wrong_sender_of_a_datagram_is_found() {
    let failure = run(job(Op::SendTo), once(true, 2, |d| d.completion.src_qp = QpId::MAX)).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Value { what: "source queue pair", .. }), "{failure}");
    let failure = run(job(Op::SendTo), once(true, 0, |d| d.payload[35] ^= 1)).unwrap_err();
    assert!(
        matches!(data_error(failure), DataError::Value { what: "source address in the GRH", .. }),
        "{failure}"
    );
}

#[test]
fn a_wrong_length_or_opcode_is_found() {
    let failure = run(job(Op::Send), once(true, 1, |d| d.completion.byte_len -= 1)).unwrap_err();
    assert_eq!(data_error(failure), DataError::Value { what: "byte_len", expected: 100, found: 99 });
    let failure = run(job(Op::Send), once(false, 1, |d| d.completion.opcode = Default::default())).err();
    assert_eq!(failure, None, "SEND is the default opcode");
    let failure =
        run(job(Op::Read), once(false, 0, |d| d.completion.opcode = Default::default())).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Value { what: "opcode", .. }), "{failure}");
}

#[test]
fn a_lost_completion_is_an_error_and_not_a_hang() {
    for receive in [false, true] {
        for op in Op::ALL {
            let failure = run(job(op), once(receive, 4, |d| *d.lost = true)).unwrap_err();
            let (PairError::First(Error::Stalled { outstanding, .. })
            | PairError::Second(Error::Stalled { outstanding, .. })) = failure
            else {
                panic!("{op}: {failure}");
            };
            assert!(outstanding.sends > 0 || outstanding.receives > 0, "{op}");
        }
    }
}

#[test]
fn a_device_that_is_busy_for_ever_is_an_error_too() {
    let [mut a, mut b] = pair(once(true, 4, |d| *d.lost = true));
    (a.restless, b.restless) = (true, true);
    let job = Job { idle_limit_ns: 1_000_000, ..job(Op::Send) };
    let failure = run_pair(&mut a, &mut b, &job, &mut |_| {}).unwrap_err();
    let (PairError::First(Error::TimedOut { waited_ns, outstanding, .. })
    | PairError::Second(Error::TimedOut { waited_ns, outstanding, .. })) = failure
    else {
        panic!("{failure}");
    };
    assert!(waited_ns > 1_000_000 && outstanding.receives == 1, "{failure}");
}

#[test]
fn a_completion_that_comes_twice_is_found() {
    let mut first = None;
    let lie = move |d: &mut Delivery<'_>| {
        if d.is_receive {
            d.completion.wr_id = *first.get_or_insert(d.completion.wr_id);
        }
    };
    let failure = run(job(Op::Send), lie).unwrap_err();
    assert!(matches!(failure, PairError::Second(Error::Unexpected { .. })), "{failure}");
}

#[test]
fn a_failed_request_is_named_with_its_queue_pair_and_status() {
    let lie = once(false, 6, |d| {
        d.completion.status = WcStatus::RemAccess;
        d.completion.vendor_err = 0x88;
    });
    let failure = run(job(Op::Write), lie).unwrap_err();
    let PairError::First(Error::Status { wr, status, .. }) = failure else { panic!("{failure}") };
    assert_eq!((wr.kind(), wr.turn(), status), (Some(WrKind::HandOver), 3, WcStatus::RemAccess));
    assert_eq!(
        failure.to_string(),
        "first side: queue pair 0x0, work request 0x300000000030000 (hand-over 0 of turn 3): remote access error \
         (vendor code 0x88)"
    );
}

#[test]
fn a_job_that_cannot_be_is_refused_with_the_limit() {
    let cases = [
        (
            Job { size: 16, ..job(Op::FetchAdd) },
            "fetch-add works on 8 bytes, size 16 given: leave the size out or say 8",
        ),
        (
            Job { size: 1025, ..job(Op::SendTo) },
            "a datagram fits one packet: size 1025 is over the path MTU of 1024 bytes",
        ),
        (
            Job { inline: true, size: 101, ..job(Op::Send) },
            "loopback takes at most 100 inline bytes, size 101 given",
        ),
        (Job { inline: true, ..job(Op::Read) }, "read cannot be combined with inline data: it carries none"),
        (Job { sges: 9, ..job(Op::Write) }, "loopback has at most 8 SGEs of a send request, the job needs 9"),
        (Job { batch: 33, ..job(Op::Send) }, "batch 33: must be 1 to 32"),
        (Job { iterations: 0, ..job(Op::Send) }, "iterations 0: must be 1 to 1099511627775"),
    ];
    for (job, message) in cases {
        let failure = run(job, |_| panic!("nothing may be posted")).unwrap_err();
        assert!(failure.is_job());
        assert_eq!(failure.job().as_ref().map(JobError::to_string).as_deref(), Some(message));
    }
}
