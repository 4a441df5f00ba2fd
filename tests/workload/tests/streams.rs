//! A stream finds what a device does wrong: over a loopback device that can be made to lie.

mod loopback;

use directverbs::verbs::WcStatus;
use directverbs_workload::{
    DataError, Error, JobError, Op, PairError, Progress, StreamJob, StreamReport, WrKind, run_stream,
};
use loopback::{Delivery, Never, pair};

type Failure = PairError<Never, Never>;

fn run(job: StreamJob, lie: impl FnMut(&mut Delivery<'_>) + 'static) -> Result<[StreamReport; 2], Failure> {
    let [mut a, mut b] = pair(lie);
    run_stream(&mut a, &mut b, &job, &mut |_| {})
}

fn job(op: Op) -> StreamJob {
    StreamJob { op, size: 100, messages: 50, depth: 16, batch: 4, signal_every: 5, ..StreamJob::default() }
}

const OPS: [Op; 3] = [Op::Send, Op::Write, Op::Read];

/// A lie about completion `n` of a kind.
fn once(receive: bool, n: usize, mut lie: impl FnMut(&mut Delivery<'_>)) -> impl FnMut(&mut Delivery<'_>) {
    let mut seen = 0;
    move |delivery| {
        if delivery.is_receive == receive {
            if seen == n {
                lie(delivery);
            }
            seen += 1;
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
fn a_stream_ends_with_every_slot_verified() {
    for op in OPS {
        for (messages, depth, batch, signal_every) in
            [(1, 1, 1, 1), (3, 16, 4, 5), (50, 16, 4, 5), (64, 16, 16, 1), (101, 8, 1, 8), (40, 100, 7, 90)]
        {
            let job = StreamJob { messages, depth, batch, signal_every, ..job(op) };
            let [first, second] = run(job, |_| {}).unwrap_or_else(|e| panic!("{op}, {job:?}: {e}"));
            assert_eq!((first.messages, first.bytes), (messages, messages * 100), "{op}");
            assert_eq!(first.doorbells, messages.div_ceil(batch.into()), "{op}");
            assert!(first.elapsed_ns > 0);
            let slots = messages.min(depth.into());
            let (verifier, source) = if op == Op::Read { (first, second) } else { (second, first) };
            assert_eq!((verifier.verified_bytes, source.verified_bytes), (slots * 100, 0), "{op}");
            if op == Op::Send {
                assert_eq!(second.messages, messages);
            }
        }
    }
}

#[test]
fn a_stream_ends_when_its_time_is_over() {
    for op in OPS {
        // The clock of the loopback device moves by 100 ns with each look at it.
        let job = StreamJob { messages: 1 << 39, duration_ns: 20_000, ..job(op) };
        let [first, _] = run(job, |_| {}).unwrap();
        assert!((20..2000).contains(&first.messages), "{op}: {}", first.messages);
        assert!(first.elapsed_ns >= 20_000);
    }
}

#[test]
fn progress_is_told_and_never_goes_back() {
    let [mut a, mut b] = pair(|_| {});
    let mut seen = vec![Progress::default()];
    run_stream(&mut a, &mut b, &job(Op::Write), &mut |progress| seen.push(progress)).unwrap();
    assert!(seen.len() > 5);
    assert!(seen.windows(2).all(|p| p[0].messages <= p[1].messages && p[0].ns <= p[1].ns), "{seen:?}");
}

#[test]
fn a_flipped_byte_is_found_at_the_end() {
    // The last message of a slot decides what it holds.
    let failure = run(job(Op::Send), once(true, 49, |d| d.payload[77] ^= 1)).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Byte { offset: 77, .. }), "{failure}");
    let failure = run(job(Op::Read), once(false, 9, |d| d.payload[3] ^= 1)).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Byte { offset: 3, .. }), "{failure}");
}

#[test]
fn a_message_too_few_is_found() {
    // The closing message is the 51st that is received.
    let failure = run(job(Op::Send), once(true, 50, |d| d.completion.imm_or_rkey += 1)).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Value { what: "messages", .. }), "{failure}");
    let failure = run(job(Op::Write), once(true, 1, |d| d.completion.imm_or_rkey ^= 1)).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Value { what: "answered messages", .. }), "{failure}");
    let failure = run(job(Op::Send), once(true, 3, |d| d.completion.byte_len -= 1)).unwrap_err();
    assert!(matches!(data_error(failure), DataError::Value { what: "byte_len", .. }), "{failure}");
}

#[test]
fn a_completion_out_of_turn_or_missing_is_named() {
    for op in OPS {
        let failure = run(job(op), once(false, 2, |d| *d.lost = true)).unwrap_err();
        assert!(matches!(failure, PairError::First(Error::Unexpected { .. })), "{op}: {failure}");
        let failure = run(job(op), once(false, 2, |d| d.completion.wr_id += 1 << 16)).unwrap_err();
        assert!(matches!(failure, PairError::First(Error::Unexpected { .. })), "{op}: {failure}");
        let failure =
            run(job(op), once(false, 1, |d| d.completion.status = WcStatus::RemAccess)).unwrap_err();
        let PairError::First(Error::Status { wr, status: WcStatus::RemAccess, .. }) = failure else {
            panic!("{op}: {failure}");
        };
        assert_eq!((wr.kind(), wr.turn()), (Some(WrKind::Operation), 9));
    }
}

#[test]
fn a_stream_that_stops_is_not_waited_for() {
    let failure = run(job(Op::Write), |d| *d.lost = true).unwrap_err();
    let PairError::First(Error::Stalled { outstanding, .. }) = failure else { panic!("{failure}") };
    assert_eq!((outstanding.sends, outstanding.receives), (16, 1));
    let [mut a, mut b] = pair(|d| *d.lost = true);
    (a.restless, b.restless) = (true, true);
    let job = StreamJob { idle_limit_ns: 1_000_000, ..job(Op::Write) };
    let failure = run_stream(&mut a, &mut b, &job, &mut |_| {}).unwrap_err();
    assert!(
        matches!(
            failure,
            PairError::First(Error::TimedOut { .. }) | PairError::Second(Error::TimedOut { .. })
        ),
        "{failure}"
    );
}

#[test]
fn what_the_device_does_not_have_is_refused_before_anything_is_made() {
    let deep = StreamJob { depth: 128, ..job(Op::Write) };
    let failure = run(deep, |_| {}).unwrap_err();
    let expected = JobError::OverDevice { family: "loopback", what: "send requests", needed: 129, max: 128 };
    assert_eq!(failure.job(), Some(expected));
}
