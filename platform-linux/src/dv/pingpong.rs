//! `dv pingpong`.

use std::fs::File;
use std::sync::Arc;

use directverbs::verbs::Device;
use directverbs_softnic::open::{Options, Visit, WqeMode, join};
use directverbs_workload::{Job, JobError, PairReport, Sample, run_pair};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::Failure;
use crate::cli::{DeviceName, PingpongArgs};
use crate::report::Report;

/// Longer latencies are counted as this one.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// The job, for whatever devices it is run with.
struct PingPong<'a> {
    job: &'a Job,
    observe: &'a mut dyn FnMut(Sample),
}

/// Why a job failed, without the types of the devices.
struct JobFailure {
    job: Option<JobError>,
    message: String,
}

impl Visit for PingPong<'_> {
    type Out = Result<PairReport, JobFailure>;

    fn run<A, B>(self, mut a: A, mut b: B) -> Self::Out
    where
        A: Device + Send,
        B: Device + Send,
    {
        run_pair(&mut a, &mut b, self.job, &mut |sample| (self.observe)(sample))
            .map_err(|error| JobFailure { job: error.job(), message: error.to_string() })
    }
}

/// Runs the job and reports.
pub fn run(args: &PingpongArgs) -> Result<(), Failure> {
    let peer = args.peer_device.unwrap_or(args.device);
    let job = job(args);
    job.check().map_err(|error| usage(&error))?;
    let options = options(args, peer)?;

    let mut latency =
        Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, 3).map_err(|e| Failure::Fault(e.to_string()))?;
    let progress = progress_bar(args);
    let mut verified = 0;
    let result = join(
        args.device.0,
        peer.0,
        &options,
        PingPong {
            job: &job,
            observe: &mut |sample| {
                latency.saturating_record(sample.ns.max(1));
                verified = sample.verified_bytes;
                progress.inc(1);
            },
        },
    )
    .map_err(|error| Failure::Fault(error.to_string()))?;
    progress.finish_and_clear();

    let (outcome, error) = match result {
        Ok(report) => (Some(report), None),
        Err(JobFailure { job: Some(error), .. }) => return Err(usage(&error)),
        Err(JobFailure { message, .. }) => (None, Some(message)),
    };
    let report =
        Report::new(args, &job, &latency, outcome.map_or(verified, |r| r.verified_bytes()), error.clone());
    if args.json {
        println!("{}", report.json().map_err(|e| Failure::Fault(e.to_string()))?);
    } else if error.is_none() {
        print!("{report}");
    }
    error.map_or(Ok(()), |message| Err(Failure::Fault(message)))
}

fn job(args: &PingpongArgs) -> Job {
    Job {
        op: args.op,
        size: args.size.unwrap_or(if args.op.is_atomic() { 8 } else { 64 }),
        iterations: args.iters,
        batch: args.batch,
        sges: args.sges,
        inline: args.inline,
        srq: args.srq,
        one_cq: args.one_cq,
        signal_all: args.signal_all,
        mtu: args.mtu,
        seed: args.seed,
        ..Job::default()
    }
}

fn options(args: &PingpongArgs, peer: DeviceName) -> Result<Options, Failure> {
    let wqe_mode = args.wqe_mode.unwrap_or_default();
    if wqe_mode == WqeMode::Variable && ![args.device, peer].iter().any(|d| d.0.has_wqe_mode(wqe_mode)) {
        let having: Vec<_> =
            DeviceName::all().filter(|d| d.0.has_wqe_mode(wqe_mode)).map(|d| d.to_string()).collect();
        return Err(Failure::Usage(format!(
            "{} has no variable WQE mode: leave --wqe-mode out, or use a device that has it ({})",
            args.device,
            having.join(", ")
        )));
    }
    let capture = match &args.pcap {
        Some(path) => {
            let file = File::create(path)
                .map_err(|error| Failure::Usage(format!("--pcap {}: {error}", path.display())))?;
            Some(Arc::new(file))
        }
        None => None,
    };
    Ok(Options {
        wqe_mode,
        seed: args.seed,
        threaded: !args.stepped,
        faults: args.fault_plan.unwrap_or_default(),
        capture,
        ..Options::default()
    })
}

/// What is wrong, and which arguments would be right.
fn usage(error: &JobError) -> Failure {
    let hint = match error {
        JobError::InlineTooLong { max, .. } => format!("say --size {max} or less, or leave out --inline"),
        JobError::Missing { what: "shared receive queue", .. } => {
            "leave out --srq, or use soft:bnxt_re or soft:bnxt_re-p5 at both ends".into()
        }
        JobError::DatagramTooLong { mtu, .. } => format!("say --size {mtu} or less, or another --op"),
        JobError::OverDevice {
            what: "SGEs of a send request" | "SGEs of a receive request", max, ..
        } => {
            format!("say --sges {max} or less")
        }
        _ => return Failure::Usage(error.to_string()),
    };
    Failure::Usage(format!("{error}: {hint}"))
}

/// A bar on standard error, if that is a terminal.
fn progress_bar(args: &PingpongArgs) -> ProgressBar {
    if args.json {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(args.iters), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(
        "{op} {wide_bar} {pos}/{len}, {eta} left".replace("{op}", args.op.name()).as_str(),
    );
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
