//! The `dv` command: lists and exercises RoCE devices, and shows and checks their layouts.
//!
//! Exit status: 0 when all is verified, 1 when a device failed, 2 when the arguments make no sense.

mod cli;
mod devices;
mod layout;
mod pingpong;
mod report;
mod units;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, error::ErrorKind};

use cli::{Cli, Command};

/// Why a command ended early.
enum Failure {
    /// The arguments ask for something that cannot be; says what would be right.
    Usage(String),
    /// A device, or the host, failed.
    Fault(String),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (name, result) = match &cli.command {
        Command::Devices(args) => ("devices", devices::run(args)),
        Command::Pingpong(args) => ("pingpong", pingpong::run(args)),
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
