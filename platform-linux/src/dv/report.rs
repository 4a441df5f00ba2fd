//! What `dv pingpong` prints at the end.

use std::fmt;

use directverbs_workload::Job;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::cli::PingpongArgs;
use crate::units::duration;

/// The outcome of a job.
#[derive(Serialize)]
pub struct Report {
    device: String,
    peer_device: String,
    wqe_mode: &'static str,
    op: &'static str,
    size: u32,
    iters: u64,
    batch: u32,
    sges: u32,
    inline: bool,
    srq: bool,
    seed: u64,
    /// Both sides' bytes; after an error, those that the first side had verified.
    verified_bytes: u64,
    errors: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Missing if no iteration came to its end.
    latency: Option<Latency>,
}

#[derive(Serialize)]
struct Latency {
    min: u64,
    p50: u64,
    p99: u64,
    max: u64,
    unit: &'static str,
    /// `round-trip`, or `operation` for READ and atomics.
    of: &'static str,
    /// `real`, or `virtual` when the software NICs were stepped.
    clock: &'static str,
}

impl Report {
    pub fn new(
        args: &PingpongArgs,
        job: &Job,
        latency: &Histogram<u64>,
        verified_bytes: u64,
        error: Option<String>,
    ) -> Self {
        Self {
            device: args.device.to_string(),
            peer_device: args.peer_device.unwrap_or(args.device).to_string(),
            wqe_mode: args.wqe_mode.unwrap_or_default().name(),
            op: job.op.name(),
            size: job.size,
            iters: job.iterations,
            batch: job.batch,
            sges: job.sges,
            inline: job.inline,
            srq: job.srq,
            seed: job.seed,
            verified_bytes,
            errors: error.is_some().into(),
            error,
            latency: (!latency.is_empty()).then(|| Latency {
                min: latency.min(),
                p50: latency.value_at_quantile(0.5),
                p99: latency.value_at_quantile(0.99),
                max: latency.max(),
                unit: "ns",
                of: if job.op.fetches() { "operation" } else { "round-trip" },
                clock: if args.stepped { "virtual" } else { "real" },
            }),
        }
    }

    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, peer_device, op, size, iters, batch, .. } = self;
        writeln!(f, "{device} <-> {peer_device}: {op}, {size} bytes, batch {batch}, {iters} iterations")?;
        if let Some(latency) = &self.latency {
            let clock = if latency.clock == "virtual" { ", virtual time" } else { "" };
            writeln!(
                f,
                "{:<24} {:>10} {:>10} {:>10} {:>10}",
                format!("{}{clock}", latency.of),
                "min",
                "p50",
                "p99",
                "max"
            )?;
            let [min, p50, p99, max] = [latency.min, latency.p50, latency.p99, latency.max].map(duration);
            writeln!(f, "{:<24} {min:>10} {p50:>10} {p99:>10} {max:>10}", "")?;
        }
        writeln!(f, "{} bytes verified, no error", self.verified_bytes)
    }
}
