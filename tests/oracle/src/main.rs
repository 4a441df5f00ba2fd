//! The oracle's command line.

mod smoke;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs the vendors' C providers over a made-up device and compares them with the core.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Post one RDMA WRITE with each provider and print what it did
    Smoke,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Smoke => smoke::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oracle: {error}");
            ExitCode::FAILURE
        }
    }
}
