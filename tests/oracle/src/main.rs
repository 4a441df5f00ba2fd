//! The oracle's command line. It runs under the dynamic linker that belongs to the providers: `cargo lab oracle`.

mod runner;
mod smoke;

use std::error::Error;
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
    /// Run cases, and end with a line of their counts
    Run(runner::Plan),
    /// List the modes
    Modes,
    /// Post one RDMA WRITE with each provider and print what it did
    Smoke,
}

fn main() -> ExitCode {
    let outcome: Result<bool, Box<dyn Error>> = match Cli::parse().command {
        Command::Run(plan) => runner::run(&plan).map_err(Into::into),
        Command::Modes => runner::modes().map(|()| true).map_err(Into::into),
        Command::Smoke => smoke::run().map(|()| true).map_err(Into::into),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("oracle: {error}");
            ExitCode::from(2)
        }
    }
}
