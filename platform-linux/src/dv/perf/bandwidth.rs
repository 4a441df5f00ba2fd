//! `dv perf OP bw`.

use directverbs_workload::{StreamJob, StreamReport};
use serde::Serialize;

use super::{How, PerfArgs};
use crate::Failure;
use crate::chart::{Lines, Series, lines};
use crate::ends::usage;
use crate::progress::{Bar, Extent};
use crate::runner::Runner;
use crate::table::table;
use crate::units::{bytes, duration, rate};

/// More messages than a stream can have in any time.
const UNLIMITED: u64 = (1 << 40) - 1;

/// What came out for a size.
#[derive(Serialize)]
struct Row {
    size: u32,
    messages: u64,
    bytes: u64,
    elapsed_ns: u64,
    doorbells: u64,
    verified_bytes: u64,
    /// Missing at the side that serves.
    gbit_per_second: Option<f64>,
    messages_per_second: Option<f64>,
}

impl Row {
    fn new(size: u32, report: StreamReport) -> Self {
        let StreamReport { messages, bytes, elapsed_ns, doorbells, verified_bytes } = report;
        let rate = |count: u64| (elapsed_ns > 0).then(|| count as f64 * 1e9 / elapsed_ns as f64);
        Self {
            size,
            messages,
            bytes,
            elapsed_ns,
            doorbells,
            verified_bytes,
            gbit_per_second: rate(bytes).map(|bytes| bytes * 8.0 / 1e9),
            messages_per_second: rate(messages),
        }
    }
}

pub fn run(args: &PerfArgs, runner: &mut dyn Runner) -> Result<(), Failure> {
    let jobs: Vec<_> = args.sizes().into_iter().map(|size| job(args, size)).collect();
    jobs.iter().try_for_each(|job| job.check().map_err(|error| usage(&error)))?;
    let (mut rows, mut error) = (Vec::new(), None);
    for job in &jobs {
        let extent = match job.messages {
            UNLIMITED => Extent::Time(job.duration_ns),
            messages => Extent::Count(messages),
        };
        let bar = Bar::new(&args.label(job.size), extent, args.json || !runner.measures());
        let outcome = runner.stream(job, &mut |progress| bar.at(progress.messages, progress.ns));
        drop(bar);
        match outcome {
            Ok(report) => rows.push(Row::new(job.size, report)),
            Err(stop) => {
                error = Some(stop.device()?);
                break;
            }
        }
    }
    let text = if error.is_some() { String::new() } else { text(args, &rows) };
    let svg = picture(args, &rows);
    let how = jobs.first().map_or_else(How::default, |job| How {
        depth: Some(job.depth),
        batch: Some(job.batch),
        signal_every: Some(job.signal_every),
        inline: None,
    });
    args.tell(args.outcome(how, rows, error), &text, svg)
}

fn job(args: &PerfArgs, size: u32) -> StreamJob {
    let depth = args.depth.unwrap_or(128);
    // What is not given follows from what is.
    let batch = args.batch.unwrap_or(16.min(depth));
    let every = args.signal_every.unwrap_or_else(|| 16.min((depth + 1).saturating_sub(batch)).max(1));
    let by_time = args.duration.unwrap_or(if args.all { 200_000_000 } else { 1_000_000_000 });
    StreamJob {
        op: args.op(),
        size,
        messages: args.iters.unwrap_or(UNLIMITED),
        duration_ns: if args.iters.is_some() { u64::MAX } else { by_time },
        depth,
        batch,
        signal_every: every,
        mtu: args.ends.mtu,
        seed: args.ends.seed,
        ..StreamJob::default()
    }
}

fn text(args: &PerfArgs, rows: &[Row]) -> String {
    let cells = |row: &Row| {
        let told = |value: Option<f64>, unit: &str| value.map_or_else(|| "-".to_owned(), |v| rate(v, unit));
        vec![
            bytes(row.size),
            row.messages.to_string(),
            duration(row.elapsed_ns),
            told(row.gbit_per_second.map(|gbit| gbit * 1e9), "bit/s"),
            told(row.messages_per_second, "msg/s"),
        ]
    };
    let clock = if args.ends.stepped { ", virtual time" } else { "" };
    let mut out = format!("{}{clock}\n", args.title());
    let head = ["SIZE>", "MESSAGES>", "TIME>", "BANDWIDTH>", "RATE>"];
    out += &table(&head, &rows.iter().map(cells).collect::<Vec<_>>());
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    out + &format!(
        "{} bytes carried, {} verified at the end, no error\n",
        sum(|r| r.bytes),
        sum(|r| r.verified_bytes)
    )
}

/// Bandwidth over the size.
fn picture(args: &PerfArgs, rows: &[Row]) -> Option<String> {
    let rows: Vec<_> = rows.iter().filter_map(|row| Some((row.size, row.gbit_per_second?))).collect();
    (!rows.is_empty()).then(|| {
        lines(&Lines {
            title: args.title(),
            unit: "Gbit/s",
            sizes: rows.iter().map(|(size, _)| *size).collect(),
            series: vec![Series { name: "bandwidth", values: rows.iter().map(|(_, gbit)| *gbit).collect() }],
        })
    })
}
