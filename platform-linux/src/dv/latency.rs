//! Latencies of a run.

use directverbs_workload::Op;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::Failure;

/// Longer latencies are counted as this one.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds, three digits of them kept.
pub fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new_with_bounds(1, HIGHEST_NS, 3).map_err(|e| Failure::Fault(e.to_string()))
}

/// Counts a latency.
pub fn record(histogram: &mut Histogram<u64>, ns: u64) {
    histogram.saturating_record(ns.max(1));
}

/// What is told of a histogram.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    pub min: u64,
    pub mean: u64,
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
    unit: &'static str,
    /// `round-trip`, or `operation` for READ and atomics.
    pub of: &'static str,
    /// `real`, or `virtual` when the software NICs were stepped.
    pub clock: &'static str,
}

impl Latency {
    /// None if nothing was counted.
    pub fn of(histogram: &Histogram<u64>, op: Op, stepped: bool) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self {
            min: histogram.min(),
            mean: histogram.mean().round() as u64,
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
            unit: "ns",
            of: if op.fetches() { "operation" } else { "round-trip" },
            clock: if stepped { "virtual" } else { "real" },
        })
    }

    /// What the figures are of, for a head line.
    pub fn what(&self) -> String {
        let clock = if self.clock == "virtual" { ", virtual time" } else { "" };
        format!("{}{clock}", self.of)
    }
}
