//! `dv perf OP lat`.

use std::time::Instant;

use directverbs_workload::Job;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{How, PerfArgs};
use crate::Failure;
use crate::chart::{Bucket, Lines, Series, bars, buckets, histogram, lines};
use crate::ends::usage;
use crate::latency::{self, Latency, record};
use crate::progress::{Bar, Extent};
use crate::runner::{Runner, Stop};
use crate::table::table;
use crate::units::{bytes, duration};

/// Turns of a round when the time decides.
const ROUND: u64 = 500;

/// What came out for a size.
#[derive(Serialize)]
struct Row {
    size: u32,
    /// Turns that came to their end.
    iters: u64,
    verified_bytes: u64,
    /// Missing at the side that serves, and if no turn came to its end.
    latency: Option<Latency>,
    histogram: Vec<Bucket>,
}

pub fn run(args: &PerfArgs, runner: &mut dyn Runner) -> Result<(), Failure> {
    let iters = args.iters.unwrap_or(if args.all { 1000 } else { 10_000 });
    let jobs: Vec<_> = args.sizes().into_iter().map(|size| job(args, size, iters)).collect();
    jobs.iter().try_for_each(|job| job.check().map_err(|error| usage(&error)))?;
    let (mut rows, mut error) = (Vec::new(), None);
    for job in &jobs {
        let mut row =
            Row { size: job.size, iters: 0, verified_bytes: 0, latency: None, histogram: Vec::new() };
        let mut values = latency::histogram()?;
        let stopped = measure(args, runner, job, &mut row, &mut values).err();
        row.latency = Latency::of(&values, job.op, args.ends.stepped);
        row.histogram = buckets(&values);
        rows.push(row);
        if let Some(stop) = stopped {
            error = Some(stop.device()?);
            break;
        }
    }
    let text = if error.is_some() { String::new() } else { text(args, &rows) };
    let svg = picture(args, &rows);
    args.tell(args.outcome(How { inline: Some(args.inline), ..How::default() }, rows, error), &text, svg)
}

fn measure(
    args: &PerfArgs,
    runner: &mut dyn Runner,
    job: &Job,
    row: &mut Row,
    values: &mut Histogram<u64>,
) -> Result<(), Stop> {
    let extent = args.duration.map_or(Extent::Count(job.iterations), Extent::Time);
    let bar = Bar::new(&args.label(job.size), extent, args.json);
    let began = Instant::now();
    let ns = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    loop {
        let before = row.iters;
        let verified = runner.turns(job, &mut |sample| {
            record(values, sample.ns);
            row.iters = before + sample.iteration + 1;
            bar.at(row.iters, ns());
        })?;
        row.verified_bytes += verified;
        row.iters = before + job.iterations;
        if !runner.again(args.duration.is_some_and(|limit| ns() < limit))? {
            return Ok(());
        }
    }
}

fn job(args: &PerfArgs, size: u32, iters: u64) -> Job {
    Job {
        op: args.op(),
        size,
        iterations: if args.duration.is_some() { ROUND } else { iters },
        inline: args.inline,
        mtu: args.ends.mtu,
        seed: args.ends.seed,
        ..Job::default()
    }
}

fn text(args: &PerfArgs, rows: &[Row]) -> String {
    let what = rows.iter().find_map(|row| row.latency.as_ref()).map(Latency::what);
    let mut out = format!("{}{}\n", args.title(), what.map_or(String::new(), |what| format!(", {what}")));
    let cells = |row: &Row| {
        let figures =
            row.latency.as_ref().map(|l| [l.min, l.mean, l.p50, l.p99, l.p999, l.max].map(duration));
        let figures = figures.unwrap_or_else(|| std::array::from_fn(|_| "-".to_owned()));
        [bytes(row.size), row.iters.to_string()].into_iter().chain(figures).collect::<Vec<_>>()
    };
    let head = ["SIZE>", "ITERS>", "MIN>", "MEAN>", "P50>", "P99>", "P99.9>", "MAX>"];
    out += &table(&head, &rows.iter().map(cells).collect::<Vec<_>>());
    if let [row] = rows {
        out += &bars(&row.histogram);
    }
    out + &format!("{} bytes verified, no error\n", rows.iter().map(|row| row.verified_bytes).sum::<u64>())
}

/// A histogram of one size, or percentiles over all.
fn picture(args: &PerfArgs, rows: &[Row]) -> Option<String> {
    if let [row] = rows {
        let title = format!("{}, {}", args.title(), bytes(row.size));
        return row.latency.as_ref().map(|latency| histogram(&title, &row.histogram, latency));
    }
    let rows: Vec<_> = rows.iter().filter_map(|row| Some((row.size, row.latency.as_ref()?))).collect();
    let series = |name, of: fn(&Latency) -> u64| Series {
        name,
        values: rows.iter().map(|(_, latency)| of(latency) as f64 / 1e3).collect(),
    };
    (!rows.is_empty()).then(|| {
        lines(&Lines {
            title: args.title(),
            unit: "us",
            sizes: rows.iter().map(|(size, _)| *size).collect(),
            series: vec![series("p50", |l| l.p50), series("p99", |l| l.p99), series("p99.9", |l| l.p999)],
        })
    })
}
