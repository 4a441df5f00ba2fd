//! `cargo lab`: installs what the tests need, runs every suite, and counts.

mod checks;
mod error;
mod lab;
mod process;
mod progress;
mod setup;
mod suites;
mod vm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Result;
use lab::Lab;

/// Installs what the tests need, runs every suite, and counts.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo lab")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install and build what the tests need from outside of Rust, and end with the line `setup: N needs, N met, N missing`
    Setup,
    /// Run the suites and end with a table and the line `N passed, N failed`
    Test {
        /// Only these suites
        suites: Vec<String>,
        /// List the suites and run none
        #[arg(long)]
        list: bool,
    },
    /// Compare the vendors' C providers with the core and end with the line `oracle: N cases, ...`
    Oracle {
        /// Arguments of the run: --family, --mode, --seed, --cases, --trace
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Compare the layouts with Debian's kernel, and end with the line `layout: N structures, N fields, N different`
    Layout,
    /// Measure what posts and polls cost, print a table, and fail if a must is missed
    Bench {
        /// One JSON object instead of the table
        #[arg(long)]
        json: bool,
    },
    /// Run a guest in QEMU and end with the line `vm GUEST: N checks, N passed, N failed`
    Vm {
        /// Which one
        #[command(subcommand)]
        guest: vm::Guest,
    },
    /// Run the fuzz targets with cargo-fuzz, which is installed into the lab's folder
    Fuzz {
        /// Only this target
        target: Option<String>,
        /// How long each runs
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo lab: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `Ok(false)` says that something failed and has been told.
fn run(cli: &Cli) -> Result<bool> {
    match &cli.command {
        Command::Setup => Ok(setup::setup(&Lab::find()?)),
        Command::Test { list: true, .. } => {
            for suite in suites::SUITES {
                println!("{:12} {}", suite.name, suite.about);
            }
            Ok(true)
        }
        Command::Test { suites, list: false } => suites::run(&Lab::find()?, suites),
        Command::Oracle { arguments } => checks::oracle::oracle(&Lab::find()?, arguments),
        Command::Layout => checks::layout::layout(&Lab::find()?),
        Command::Bench { json } => checks::bench::bench(&Lab::find()?, *json),
        Command::Vm { guest } => vm::run(&Lab::find()?, guest),
        Command::Fuzz { target, seconds } => checks::fuzz::fuzz(&Lab::find()?, target.as_deref(), *seconds),
    }
}
