//! What `dv pingpong` prints at the end.

use std::fmt;

use directverbs_workload::Job;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::cli::PingpongArgs;
use crate::latency::Latency;
use crate::table::table;
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

impl Report {
    pub fn new(
        args: &PingpongArgs,
        job: &Job,
        latency: &Histogram<u64>,
        verified_bytes: u64,
        error: Option<String>,
    ) -> Self {
        Self {
            device: args.ends.device.to_string(),
            peer_device: args.exchange.other(&args.ends),
            wqe_mode: args.ends.wqe_mode().name(),
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
            latency: Latency::of(latency, job.op, args.ends.stepped),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, peer_device, op, size, iters, batch, .. } = self;
        writeln!(f, "{device} <-> {peer_device}: {op}, {size} bytes, batch {batch}, {iters} iterations")?;
        if let Some(latency) = &self.latency {
            let figures = [latency.min, latency.p50, latency.p99, latency.p999, latency.max].map(duration);
            let mut row = vec![latency.what()];
            row.extend(figures);
            f.write_str(&table(&["LATENCY", "MIN>", "P50>", "P99>", "P99.9>", "MAX>"], &[row]))?;
        }
        writeln!(f, "{} bytes verified, no error", self.verified_bytes)
    }
}
