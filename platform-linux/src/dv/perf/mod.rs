//! `dv perf`: latency of one message at a time, or bandwidth of a stream.

mod bandwidth;
mod latency;

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use directverbs_workload::Op;
use serde::Serialize;

use crate::ends::Ends;
use crate::exchange::{ExchangeArgs, Peer, with_runner};
use crate::runner::Runner;
use crate::{Failure, print, units};

/// Sizes of `--all`: powers of two up to this one, that is 2^20 bytes.
const LARGEST: u32 = 20;

/// Arguments of `dv perf`.
#[derive(Args)]
pub struct PerfArgs {
    /// Operation
    #[arg(value_enum)]
    op: Operation,
    /// What is measured
    #[arg(value_enum)]
    measure: Measure,
    #[command(flatten)]
    ends: Ends,
    #[command(flatten)]
    exchange: ExchangeArgs,
    /// Bytes of a message: a number, or one with k, M or G for powers of 1024 [default: lat 64, bw 64k]
    #[arg(long, value_parser = units::size)]
    size: Option<u32>,
    /// All powers of two from 1 byte to 1 MiB
    #[arg(long, conflicts_with = "size")]
    all: bool,
    /// Round trips or messages, for each size [default: lat 10000, with --all 1000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    iters: Option<u64>,
    /// How long, for each size: seconds, or a number with ms, s or m [default: bw 1s, with --all 200ms]
    #[arg(long, value_parser = units::span, conflicts_with = "iters")]
    duration: Option<u64>,
    /// bw: requests outstanding [default: 128]
    #[arg(long)]
    depth: Option<u32>,
    /// bw: requests posted under one doorbell [default: 16]
    #[arg(long)]
    batch: Option<u32>,
    /// bw: every so many requests one asks for a completion [default: 16]
    #[arg(long, value_name = "N")]
    signal_every: Option<u32>,
    /// lat: carry the data inside the WQE
    #[arg(long)]
    inline: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Draw a picture: latencies of one size as a histogram, otherwise the figures over the size
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Operation {
    Write,
    Read,
    Send,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Latency: each side sends one message when the other's has come; READ, one after the other
    Lat,
    /// Bandwidth: one side keeps messages outstanding
    Bw,
}

impl Measure {
    const fn name(self) -> &'static str {
        match self {
            Self::Lat => "lat",
            Self::Bw => "bw",
        }
    }
}

/// What both kinds of measurement tell.
#[derive(Serialize)]
struct Outcome<R> {
    device: String,
    peer_device: String,
    wqe_mode: &'static str,
    op: &'static str,
    measure: &'static str,
    seed: u64,
    #[serde(flatten)]
    how: How,
    sizes: Vec<R>,
    errors: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How messages were posted.
#[derive(Default, Serialize)]
struct How {
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal_every: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline: Option<bool>,
}

impl PerfArgs {
    fn op(&self) -> Op {
        match self.op {
            Operation::Write => Op::Write,
            Operation::Read => Op::Read,
            Operation::Send => Op::Send,
        }
    }

    /// Sizes to go through.
    fn sizes(&self) -> Vec<u32> {
        match (self.all, self.size, self.measure) {
            (true, ..) => (0..=LARGEST).map(|shift| 1 << shift).collect(),
            (_, Some(size), _) => vec![size],
            (_, None, Measure::Lat) => vec![64],
            (_, None, Measure::Bw) => vec![65_536],
        }
    }

    /// Name of what is going on, for a progress bar.
    fn label(&self, size: u32) -> String {
        format!("{} {} {}", self.op().name(), self.measure.name(), units::bytes(size))
    }

    /// A title for people.
    fn title(&self) -> String {
        let (device, other) = (&self.ends.device, self.exchange.other(&self.ends));
        format!("{device} <-> {other}: {} {}", self.op().name(), self.measure.name())
    }

    fn outcome<R>(&self, how: How, sizes: Vec<R>, error: Option<String>) -> Outcome<R> {
        Outcome {
            device: self.ends.device.to_string(),
            peer_device: self.exchange.other(&self.ends),
            wqe_mode: self.ends.wqe_mode().name(),
            op: self.op().name(),
            measure: self.measure.name(),
            seed: self.ends.seed,
            how,
            sizes,
            errors: error.is_some().into(),
            error,
        }
    }

    /// Prints what came out; an error is the command's.
    fn tell<R: Serialize>(
        &self,
        outcome: Outcome<R>,
        text: &str,
        svg: Option<String>,
    ) -> Result<(), Failure> {
        if self.json {
            let json = serde_json::to_string(&outcome).map_err(|e| Failure::Fault(e.to_string()))?;
            print(&(json + "\n"))?;
        } else {
            print(text)?;
        }
        if let (Some(path), Some(svg)) = (&self.svg, svg) {
            std::fs::write(path, svg).map_err(|error| svg_fault(path, &error))?;
        }
        outcome.error.map_or(Ok(()), |message| Err(Failure::Fault(message)))
    }

    /// Refuses options of the other measurement.
    fn check(&self) -> Result<(), Failure> {
        let wrong: &[(bool, &str, &str)] = match self.measure {
            Measure::Lat => &[
                (self.depth.is_some(), "--depth", "bw"),
                (self.batch.is_some(), "--batch", "bw"),
                (self.signal_every.is_some(), "--signal-every", "bw"),
            ],
            Measure::Bw => &[(self.inline, "--inline", "lat")],
        };
        match wrong.iter().find(|(given, ..)| *given) {
            Some((_, option, of)) => {
                let measure = self.measure.name();
                Err(Failure::Usage(format!("{option} belongs to {of}, {measure} does not have it")))
            }
            None => Ok(()),
        }
    }
}

fn svg_fault(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("--svg {}: {error}", path.display()))
}

/// Measures and reports.
pub fn run(args: &PerfArgs) -> Result<(), Failure> {
    args.check()?;
    if let Some(path) = &args.svg {
        // Better now than after the measurement.
        drop(File::create(path).map_err(|error| svg_fault(path, &error))?);
    }
    with_runner(&args.ends, &args.exchange, Peer::Dv, &mut |runner: &mut dyn Runner| match args.measure {
        Measure::Lat => latency::run(args, runner),
        Measure::Bw => bandwidth::run(args, runner),
    })
}
