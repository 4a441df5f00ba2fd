//! Streams over the software NICs: family x WQE mode x operation x depth x batch x signaling, and on a bad wire.

use directverbs::verbs::Device;
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::open::{NicKind, Options, Visit, WqeMode, join};
use directverbs_workload::{Op, StreamJob, StreamReport, run_stream};

struct Run(StreamJob);

impl Visit for Run {
    type Out = Result<[StreamReport; 2], String>;

    fn run<A: Device + Send, B: Device + Send>(self, mut a: A, mut b: B) -> Self::Out {
        run_stream(&mut a, &mut b, &self.0, &mut |_| {}).map_err(|error| error.to_string())
    }
}

fn run(nics: [NicKind; 2], options: &Options, job: StreamJob) -> [StreamReport; 2] {
    let outcome = join(nics[0], nics[1], options, Run(job)).map_err(|error| error.to_string());
    outcome.and_then(|out| out).unwrap_or_else(|e| panic!("{nics:?}, {}, {job:?}: {e}", options.wqe_mode))
}

/// Runs a stream, and checks that all of it came to its end and was verified.
fn whole(nics: [NicKind; 2], options: &Options, job: StreamJob) {
    let [first, second] = run(nics, options, job);
    assert_eq!((first.messages, first.bytes), (job.messages, job.messages * u64::from(job.size)));
    let verified = job.messages.min(job.depth.into()) * u64::from(job.size);
    let verifier = if job.op == Op::Read { first } else { second };
    assert_eq!(verifier.verified_bytes, verified, "{nics:?} {job:?}");
}

const OPS: [Op; 3] = [Op::Send, Op::Write, Op::Read];

fn jobs() -> impl Iterator<Item = StreamJob> {
    let shapes = [(1, 1, 1), (16, 4, 3), (64, 32, 33), (100, 7, 1)];
    OPS.into_iter().flat_map(move |op| {
        shapes.into_iter().zip([1, 8, 4096, 5000]).map(move |((depth, batch, signal_every), size)| {
            StreamJob { op, size, depth, batch, signal_every, messages: 333, ..StreamJob::default() }
        })
    })
}

#[test]
fn streams_are_whole_on_every_device() {
    for kind in NicKind::ALL {
        for wqe_mode in WqeMode::ALL.into_iter().filter(|mode| kind.has_wqe_mode(*mode)) {
            let options = Options { wqe_mode, ..Options::default() };
            jobs().for_each(|job| whole([kind, kind], &options, job));
        }
    }
}

#[test]
fn streams_cross_between_families_on_a_bad_wire() {
    let faults =
        FaultPlan { lose_frame: 2_000, duplicate_frame: 2_000, reorder_frame: 2_000, ..FaultPlan::NONE };
    for (seed, nics) in
        [(1, [NicKind::BnxtReP7, NicKind::IonicV2]), (2, [NicKind::IonicV1, NicKind::BnxtReP5])]
    {
        let options = Options { faults, seed, ..Options::default() };
        jobs().for_each(|job| whole(nics, &options, StreamJob { seed, ..job }));
    }
}

#[test]
fn threaded_devices_stream_for_the_time_given() {
    for kind in NicKind::ALL {
        let options = Options { threaded: true, ..Options::default() };
        for op in OPS {
            let job = StreamJob {
                op,
                size: 256,
                messages: 1 << 39,
                duration_ns: 20_000_000,
                ..StreamJob::default()
            };
            let [first, _] = run([kind, kind], &options, job);
            assert!(first.messages > 0 && first.elapsed_ns >= 20_000_000, "{kind} {op}: {first:?}");
        }
    }
}
