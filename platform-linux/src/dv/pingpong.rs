//! `dv pingpong`.

use directverbs_workload::Job;

use crate::cli::PingpongArgs;
use crate::exchange::{Peer, with_runner};
use crate::latency::{histogram, record};
use crate::progress::{Bar, Extent};
use crate::report::Report;
use crate::runner::Runner;
use crate::{Failure, print};

/// Runs the job and reports.
pub fn run(args: &PingpongArgs) -> Result<(), Failure> {
    let peer = match (args.rc_pingpong, &args.exchange) {
        (false, _) => Peer::Dv,
        (true, exchange) if exchange.is_given() => Peer::RcPingpong,
        (true, _) => return Err(Failure::Usage("--rc-pingpong needs --listen or --connect".into())),
    };
    with_runner(&args.ends, &args.exchange, peer, &mut |runner| turns(args, runner))
}

fn turns(args: &PingpongArgs, runner: &mut dyn Runner) -> Result<(), Failure> {
    let job = job(args);
    job.check().map_err(|error| crate::ends::usage(&error))?;
    let mut latency = histogram()?;
    let mut verified = 0;
    let bar = Bar::new(args.op.name(), Extent::Count(args.iters), args.json);
    let result = runner.turns(&job, &mut |sample| {
        record(&mut latency, sample.ns);
        verified = sample.verified_bytes;
        bar.at(sample.iteration + 1, 0);
    });
    drop(bar);
    let (verified, error) = match result {
        Ok(bytes) => (bytes, None),
        Err(stop) => (verified, Some(stop.device()?)),
    };
    let report = Report::new(args, &job, &latency, verified, error.clone());
    if args.json {
        let text = serde_json::to_string(&report).map_err(|e| Failure::Fault(e.to_string()))?;
        print(&(text + "\n"))?;
    } else if error.is_none() {
        print(&report.to_string())?;
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
        mtu: args.ends.mtu,
        seed: args.ends.seed,
        ..Job::default()
    }
}
