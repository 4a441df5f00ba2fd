//! The `dv` command: lists and exercises RoCE devices, and shows and checks their layouts.
//!
//! Exit status: 0 when all is verified, 1 when a device failed, 2 when the arguments make no sense.

mod chart;
mod cli;
mod device;
mod devices;
mod ends;
mod exchange;
mod info;
mod latency;
mod layout;
mod man;
mod pci;
mod perf;
mod pingpong;
mod progress;
mod report;
mod runner;
mod table;
mod units;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, error::ErrorKind};

use cli::{Cli, Command};
use serde::Serialize;

/// Why a command ended early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The arguments ask for something that cannot be; says what would be right.
    #[error("{0}")]
    Usage(String),
    /// A device, or the host, failed.
    #[error("{0}")]
    Fault(String),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (name, result) = match &cli.command {
        Command::Devices(args) => ("devices", devices::run(args)),
        Command::Info(args) => ("info", info::run(args)),
        Command::Pingpong(args) => ("pingpong", pingpong::run(args)),
        Command::Perf(args) => ("perf", perf::run(args)),
        Command::Man(args) => ("man", man::run(args)),
        Command::Layout(args) => ("layout", layout::run(args)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Fault(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage(message)) => {
            let mut command = Cli::command();
            command.build();
            let command =
                command.find_subcommand_mut(name).map(|c| c.error(ErrorKind::ValueValidation, &message));
            match command {
                Some(error) => error.exit(),
                None => Cli::command().error(ErrorKind::ValueValidation, message).exit(),
            }
        }
    }
}

/// Writes to standard output. A reader that has seen enough is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Fault(e.to_string())),
        _ => Ok(()),
    }
}

/// Writes one JSON value.
fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Fault(e.to_string()))?;
    print(&(text + "\n"))
}
