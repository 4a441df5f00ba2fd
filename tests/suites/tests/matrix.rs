//! The workload over the software NICs: family x WQE mode x operation x size x inline x SGEs x SRQ, on a wire without
//! faults and on a bad one, and with all families mixed across the wire. Every byte is verified.

use std::sync::mpsc::{Receiver, Sender, channel};

use directverbs::verbs::{Device, Mtu};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::open::{NicKind, Options, Visit, WqeMode, join};
use directverbs_suites::jobs::{INLINE_EVERYWHERE, LARGE, bytes_to_verify, jobs, may_refuse};
use directverbs_workload::{
    Contact, Job, JobError, Op, PairReport, Report, Role, Sample, Side, run_pair, run_side,
};

/// Runs a job between two devices.
struct Run<'a> {
    job: &'a Job,
    observe: &'a mut dyn FnMut(Sample),
}

/// How a job ended that did not end well: refused as a whole, or failed.
#[derive(Debug)]
enum Failure {
    Refused(JobError),
    Failed(String),
}

impl Visit for Run<'_> {
    type Out = Result<PairReport, Failure>;

    fn run<A: Device + Send, B: Device + Send>(self, mut a: A, mut b: B) -> Self::Out {
        run_pair(&mut a, &mut b, self.job, &mut |sample| (self.observe)(sample))
            .map_err(|error| error.job().map_or_else(|| Failure::Failed(error.to_string()), Failure::Refused))
    }
}

fn run(nics: [NicKind; 2], options: &Options, job: &Job) -> Result<PairReport, Failure> {
    let [a, b] = nics;
    join(a, b, options, Run { job, observe: &mut |_| {} })
        .map_err(|error| Failure::Failed(error.to_string()))?
}

/// Runs all `jobs`; reports all that went wrong at once. Returns how many ran.
fn run_all(nics: [NicKind; 2], options: &Options, jobs: impl IntoIterator<Item = Job>) -> usize {
    let (mut ran, mut wrong) = (0, Vec::new());
    for job in jobs {
        let problem = match run(nics, options, &job) {
            Ok(report) if report.verified_bytes() == bytes_to_verify(&job) => {
                ran += 1;
                continue;
            }
            Ok(report) => {
                format!("verified {} bytes, not {}", report.verified_bytes(), bytes_to_verify(&job))
            }
            Err(Failure::Refused(error)) if may_refuse(nics, &job, &error) => continue,
            Err(Failure::Refused(error)) => format!("refused: {error}"),
            Err(Failure::Failed(error)) => error,
        };
        let Job { op, size, iterations, batch, sges, inline, srq, one_cq, signal_all, mtu, .. } = job;
        wrong.push(format!(
            "{op} size {size} iterations {iterations} batch {batch} sges {sges} inline {inline} srq {srq} \
             one_cq {one_cq} signal_all {signal_all} mtu {mtu:?}: {problem}"
        ));
    }
    let shown = wrong.len().min(12);
    let [a, b] = nics;
    assert!(
        wrong.is_empty(),
        "{a} to {b}, {}, seed {}: {} jobs went wrong, {ran} well:\n{}",
        options.wqe_mode,
        options.seed,
        wrong.len(),
        wrong[..shown].join("\n")
    );
    ran
}

fn lossless(kind: NicKind, wqe_mode: WqeMode) {
    let options = Options { wqe_mode, ..Options::default() };
    for op in Op::ALL {
        let ran = run_all([kind, kind], &options, jobs(op));
        assert!(ran >= if op.is_atomic() { 1 } else { 9 }, "{kind} {op}: only {ran} jobs ran");
    }
}

/// Jobs that a bad wire shall not disturb. Datagrams are not among them: nobody repeats those.
fn lossy_jobs(seed: u64) -> Vec<Job> {
    let ops = Op::ALL.into_iter().filter(|op| *op != Op::SendTo);
    ops.flat_map(|op| {
        let shapes: &[(u32, u32)] =
            if op.is_atomic() { &[(8, 8), (8, 1)] } else { &[(0, 1), (64, 8), (4096, 3), (LARGE, 1)] };
        shapes.iter().map(move |&(size, batch)| Job {
            op,
            size,
            batch,
            sges: if op.is_atomic() { 1 } else { 1 + seed as u32 % 3 },
            inline: size == INLINE_EVERYWHERE && !op.fetches() && seed % 2 == 1,
            one_cq: seed.is_multiple_of(2),
            signal_all: seed.is_multiple_of(3),
            iterations: if size == LARGE { 4 } else { 30 },
            mtu: Some(Mtu::B1024),
            seed,
            ..Job::default()
        })
    })
    .collect()
}

/// 1 % of the frames are lost, and as many duplicated, reordered and, at every other seed, damaged.
fn bad_wire(seed: u64) -> FaultPlan {
    FaultPlan { corrupt_frame: if seed.is_multiple_of(2) { 10_000 } else { 0 }, ..FaultPlan::LOSSY_WIRE }
}

fn lossy(kind: NicKind, wqe_mode: WqeMode) {
    let srq = !matches!(kind, NicKind::IonicV1 | NicKind::IonicV2);
    for seed in 1..=6 {
        let options = Options { wqe_mode, seed, faults: bad_wire(seed), ..Options::default() };
        let jobs: Vec<_> =
            lossy_jobs(seed).into_iter().map(|job| Job { srq: srq && seed % 3 == 1, ..job }).collect();
        assert_eq!(run_all([kind, kind], &options, jobs.iter().copied()), jobs.len());
    }
}

#[test]
fn bnxt_re_p5_static() {
    lossless(NicKind::BnxtReP5, WqeMode::Static);
}

#[test]
fn bnxt_re_p5_variable() {
    lossless(NicKind::BnxtReP5, WqeMode::Variable);
}

#[test]
fn bnxt_re_p7_static() {
    lossless(NicKind::BnxtReP7, WqeMode::Static);
}

#[test]
fn bnxt_re_p7_variable() {
    lossless(NicKind::BnxtReP7, WqeMode::Variable);
}

#[test]
fn ionic_v1() {
    lossless(NicKind::IonicV1, WqeMode::Static);
}

#[test]
fn ionic_v2() {
    lossless(NicKind::IonicV2, WqeMode::Static);
}

#[test]
fn bnxt_re_on_a_bad_wire() {
    for kind in [NicKind::BnxtReP5, NicKind::BnxtReP7] {
        WqeMode::ALL.into_iter().for_each(|mode| lossy(kind, mode));
    }
}

#[test]
fn ionic_on_a_bad_wire() {
    for kind in [NicKind::IonicV1, NicKind::IonicV2] {
        lossy(kind, WqeMode::Static);
    }
}

/// Indices, epochs, colors and sequence numbers wrap many times.
#[test]
fn long_runs() {
    for kind in NicKind::ALL {
        for wqe_mode in WqeMode::ALL.into_iter().filter(|mode| kind.has_wqe_mode(*mode)) {
            let options = Options { wqe_mode, ..Options::default() };
            let jobs = Op::ALL.map(|op| Job {
                op,
                size: if op.is_atomic() { 8 } else { 40 },
                iterations: 2500,
                batch: 7,
                sges: if op.is_atomic() { 1 } else { 3 },
                ..Job::default()
            });
            assert_eq!(run_all([kind, kind], &options, jobs), jobs.len());
        }
    }
}

/// All ordered pairs of different NICs, in all modes that one of them has.
fn mixed_pairs() -> impl Iterator<Item = ([NicKind; 2], WqeMode)> {
    let pairs = NicKind::ALL.into_iter().flat_map(|a| NicKind::ALL.into_iter().map(move |b| [a, b]));
    pairs.filter(|[a, b]| a != b).flat_map(|nics| {
        let modes = WqeMode::ALL.into_iter().filter(move |mode| nics.iter().any(|k| k.has_wqe_mode(*mode)));
        modes.map(move |mode| (nics, mode))
    })
}

#[test]
fn families_mixed_across_the_wire() {
    for (nics, wqe_mode) in mixed_pairs() {
        let options = Options { wqe_mode, ..Options::default() };
        let jobs = Op::ALL.into_iter().flat_map(|op| {
            let sizes: &[u32] = if op.is_atomic() { &[8] } else { &[0, 64, 4096, LARGE] };
            sizes.iter().map(move |&size| Job {
                op,
                size,
                iterations: 5,
                batch: if size == LARGE { 1 } else { 5 },
                sges: if op.is_atomic() { 1 } else { 2 },
                ..Job::default()
            })
        });
        let ran = run_all(nics, &options, jobs);
        assert!(ran >= 6 * 4 + 2 + 2, "{nics:?}: only {ran} jobs ran");
    }
}

#[test]
fn families_mixed_across_a_bad_wire() {
    for (nics, wqe_mode) in mixed_pairs() {
        let options = Options { wqe_mode, seed: 4, faults: bad_wire(4), ..Options::default() };
        let jobs: Vec<_> = lossy_jobs(4).into_iter().filter(|job| job.size < LARGE).collect();
        assert_eq!(run_all(nics, &options, jobs.iter().copied()), jobs.len());
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for kind in NicKind::ALL {
        let trace = |seed| {
            let options = Options { seed, faults: FaultPlan::LOSSY_WIRE, ..Options::default() };
            let job = Job { op: Op::Write, size: 5000, iterations: 40, batch: 3, ..Job::default() };
            let mut samples = Vec::new();
            let observe = &mut |sample| samples.push(sample);
            let report = join(kind, kind, &options, Run { job: &job, observe });
            (report.expect("it opens").expect("it ends well"), samples)
        };
        let (first, again, other) = (trace(1), trace(1), trace(2));
        assert_eq!(first, again, "{kind}");
        assert_ne!(first.1, other.1, "{kind}: faults fall elsewhere");
    }
}

#[test]
fn nics_on_threads_of_their_own_verify_all_the_same() {
    for kind in NicKind::ALL {
        let options = Options { threaded: true, ..Options::default() };
        let jobs = [
            Job { op: Op::Send, size: 300, iterations: 200, batch: 2, ..Job::default() },
            Job { op: Op::Write, size: LARGE, iterations: 4, ..Job::default() },
            Job { op: Op::Read, size: 4096, iterations: 50, batch: 8, ..Job::default() },
            Job { op: Op::FetchAdd, size: 8, iterations: 100, ..Job::default() },
            Job { op: Op::SendTo, size: 512, iterations: 50, ..Job::default() },
        ];
        assert_eq!(run_all([kind, kind], &options, jobs), jobs.len(), "{kind}");
    }
}

/// A job whose sides run on threads of their own, like two processes: contacts and the ends of phases go through
/// channels.
struct Apart(Job);

impl Visit for Apart {
    type Out = Result<[Report; 2], String>;

    fn run<A: Device + Send, B: Device + Send>(self, a: A, b: B) -> Self::Out {
        let (to_second, from_first) = channel();
        let (to_first, from_second) = channel();
        let job = &self.0;
        std::thread::scope(|scope| {
            let first = scope.spawn(move || drive(a, Role::First, job, &to_second, &from_second));
            let second = scope.spawn(move || drive(b, Role::Second, job, &to_first, &from_first));
            let [first, second] = [first, second].map(|thread| thread.join().expect("no panic"));
            Ok([first?, second?])
        })
    }
}

fn drive<D: Device>(
    mut device: D,
    role: Role,
    job: &Job,
    tell: &Sender<Option<Contact>>,
    hear: &Receiver<Option<Contact>>,
) -> Result<Report, String> {
    // A peer that fails hangs up.
    let meet = |contact| {
        tell.send(contact).map_err(|_| format!("{role:?}: the peer is gone"))?;
        hear.recv().map_err(|_| format!("{role:?}: the peer is gone"))
    };
    let failed = |error| format!("{role:?}: {error}");
    let mut side = Side::setup(&mut device, job, role).map_err(failed)?;
    let peer = meet(Some(side.contact()))?.ok_or("no contact")?;
    side.connect(&mut device, &peer).map_err(failed)?;
    while !side.is_ready() {
        side.step(&mut device, &mut |_| {}).map_err(failed)?;
        device.progress();
    }
    meet(None)?;
    let report = run_side(&mut side, &mut device, &mut |_| {}).map_err(failed)?;
    meet(None)?;
    side.teardown(&mut device).map_err(failed)?;
    Ok(report)
}

#[test]
fn sides_on_threads_of_their_own_verify_all_the_same() {
    for (a, b) in [(NicKind::BnxtReP5, NicKind::BnxtReP7), (NicKind::IonicV1, NicKind::BnxtReP7)] {
        for op in Op::ALL.into_iter().filter(|op| *op != Op::SendTo) {
            let size = if op.is_atomic() { 8 } else { 3000 };
            let job = Job { op, size, iterations: 60, batch: 3, ..Job::default() };
            let options = Options { threaded: true, ..Options::default() };
            let [first, second] = join(a, b, &options, Apart(job)).expect("it opens").expect("it ends well");
            assert_eq!(first.verified_bytes + second.verified_bytes, bytes_to_verify(&job), "{a} {b} {op}");
        }
    }
}
