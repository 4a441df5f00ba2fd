//! What a post and a poll cost, and whether that is within the limits of the design.
//!
//! `count` runs under callgrind; `report` reads what it counted and prints the table. `cargo lab bench` runs both.
//! RESULTS.md says how the figures are taken.

mod callgrind;
mod count;
mod cqe;
mod device;
mod limits;
mod memory;
mod meter;
mod ours;
mod report;
mod side;
mod valgrind;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use callgrind::Totals;
use report::{Measure, Report, Row};
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
        Command::Report { counted, json } => {
            let text = std::fs::read_to_string(counted)
                .map_err(|source| Error::File { path: counted.clone(), source })?;
            let rows = instructions(&Totals::read(&text));
            let report = Report::new(rows.map_err(|name| Error::NotCounted { path: counted.clone(), name })?);
            if *json {
                println!("{}", serde_json::to_string(&report)?);
            } else {
                println!("{}", report.table());
            }
            Ok(report.holds())
        }
    }
}

fn instructions(totals: &Totals) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for family in Family::ALL {
        for operation in Operation::ALL {
            let ours = count::instructions(totals, family, "ours", operation)?;
            let limits = limits::instructions(family, operation);
            let (name, measure) = (operation.to_string(), Measure::Instructions);
            rows.push(Row::new(family.name(), name, measure, (None, ours), limits));
        }
    }
    Ok(rows)
}
