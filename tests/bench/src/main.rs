//! What a post and a poll cost, and whether that is within the limits of the design.
//!
//! `count` runs under callgrind; `report` reads what it counted and prints the table. `cargo lab bench` runs both.
//! RESULTS.md says how the figures are taken.

mod bring_up;
mod bytes;
mod callgrind;
mod count;
mod cqe;
mod device;
mod image;
mod limits;
mod memory;
mod meter;
mod ours;
mod report;
mod requests;
mod scale;
mod side;
mod theirs;
mod time;
mod valgrind;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use bring_up::Nic;
use bytes::Queue;
use callgrind::Totals;
use image::Image;
use ours::{BnxtRe, Ionic, Ours};
use report::{Measure, Report, Row};
use side::Side;
use theirs::Theirs;
use time::Ticks;
use work::{Family, Operation};

#[derive(Debug, Parser)]
#[command(about = "What a post and a poll cost")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Counts instructions, under callgrind with --collect-atstart=no and --combine-dumps=yes
    Count,
    /// Prints the table, and fails if a must is missed
    Report {
        /// What callgrind wrote
        #[arg(long)]
        counted: PathBuf,
        /// An image without an operating system that was built and booted; may repeat
        #[arg(long = "image", value_name = "NAME=TEXT,DATA,BSS,MICROSECONDS")]
        images: Vec<Image>,
        /// One JSON object instead of the table
        #[arg(long)]
        json: bool,
    },
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("`count` runs under callgrind only; `cargo lab bench` does that")]
    NoValgrind,
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path} has no total of {name:?}", path = path.display())]
    NotCounted { path: PathBuf, name: String },
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("bringing up {nic}: {source}")]
    BringUp { nic: &'static str, source: bring_up::Failure },
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("directverbs-bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// `Ok(false)` says that a must was missed.
fn run(command: &Command) -> Result<bool, Error> {
    match command {
        Command::Count if !valgrind::is_running() => Err(Error::NoValgrind),
        Command::Count => {
            count::run();
            Ok(true)
        }
        Command::Report { counted, images, json } => {
            let text = std::fs::read_to_string(counted)
                .map_err(|source| Error::File { path: counted.clone(), source })?;
            let not_counted = |name| Error::NotCounted { path: counted.clone(), name };
            let mut rows = rows(&Totals::read(&text)).map_err(not_counted)?;
            rows.extend(bring_up()?);
            rows.extend(image::rows(images));
            let report = Report::new(rows);
            if *json {
                println!("{}", serde_json::to_string(&report)?);
            } else {
                println!("{}", report.table());
            }
            Ok(report.holds())
        }
    }
}

/// Measures what is not counted, and judges everything.
fn rows(totals: &Totals) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for family in Family::ALL {
        let mut row = |name: &str, measure, figures, limits| {
            rows.push(Row::new(family.name(), name.to_owned(), measure, figures, limits));
        };
        for operation in Operation::ALL {
            let count = |side| count::instructions(totals, family, side, operation);
            let figures = (Some(count(count::C)?), count(count::OURS)?);
            let limits = limits::instructions(family, operation);
            row(&operation.to_string(), Measure::Instructions, figures, limits);
        }
        for (operation, Ticks { c, ours }) in times(family) {
            row(
                &operation.to_string(),
                Measure::Ticks,
                (Some(c), ours),
                Some(limits::cycles(family, operation)),
            );
        }
        for queue in Queue::ALL {
            let (c, ours) = bytes::for_one_entry(family, queue);
            row(queue.name(), Measure::Bytes, (Some(c), ours), None);
        }
        let c = scale::scaling(|| Theirs::new(family));
        let ours = match family {
            Family::BnxtRe => scale::scaling(Ours::<BnxtRe>::new),
            Family::Ionic => scale::scaling(Ours::<Ionic>::new),
        };
        row("two threads over one", Measure::Scaling, (Some(c), ours), Some(limits::SCALING));
    }
    Ok(rows)
}

/// Rows of what it costs to bring NICs up.
fn bring_up() -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for family in Family::ALL {
        let mut costs = Vec::new();
        for nic in Nic::ALL.into_iter().filter(|nic| nic.family == family) {
            let cost = bring_up::cost(nic).map_err(|source| Error::BringUp { nic: nic.name, source })?;
            costs.push((nic, cost));
        }
        for measure in [Measure::Commands, Measure::Accesses, Measure::Kib] {
            rows.extend(costs.iter().map(|(nic, cost)| {
                let (what, figures, limits) = match measure {
                    Measure::Commands => ("", (Some(nic.linux_commands.into()), cost.commands as f64), None),
                    Measure::Accesses => ("", (None, cost.accesses as f64), None),
                    _ => (", 64 queue pairs", (None, cost.memory as f64 / 1024.0), limits::memory(family)),
                };
                Row::new(family.name(), format!("{}{what}", nic.name), measure, figures, limits)
            }));
        }
    }
    Ok(rows)
}

fn times(family: Family) -> Vec<(Operation, Ticks)> {
    fn all(c: &mut Theirs, ours: &mut impl Side) -> Vec<(Operation, Ticks)> {
        Operation::ALL.map(|operation| (operation, time::compare(c, ours, operation))).to_vec()
    }
    let mut c = Theirs::new(family);
    match family {
        Family::BnxtRe => all(&mut c, &mut Ours::<BnxtRe>::new()),
        Family::Ionic => all(&mut c, &mut Ours::<Ionic>::new()),
    }
}
