//! What posts and polls cost: builds `tests/bench` as a program would be built, lets callgrind count, and has the rest
//! measured and the table printed. Both run over the C providers that the lab has unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{spelled, succeed};
use crate::progress::Step;
use crate::setup::{self, Need, providers};

const LIMIT: Duration = Duration::from_secs(600);

/// What a measurement cannot do without.
const NEEDS: &[Need] = &[Need::Valgrind, Need::Providers];

/// Measures and prints the table. `Ok(false)` says that a must was missed.
///
/// # Errors
/// valgrind or the providers are missing, the build failed, or there are no figures.
pub fn bench(lab: &Lab, json: bool) -> Result<bool> {
    let missing: Vec<Need> = NEEDS.iter().copied().filter(|need| !need.is_there(lab)).collect();
    if !missing.is_empty()
        && let Err(mut missing) = setup::provide(lab, &missing)
        && let Some((_, error)) = missing.pop()
    {
        return Err(error);
    }
    let log = lab.logs().join("bench.log");
    fs::write(&log, "").map_err(Error::file(&log))?;
    let mut step = Step::aside("bench");
    succeed(&mut build(lab), &log, &mut step, LIMIT)?;
    succeed(&mut count(lab)?, &log, &mut step, LIMIT)?;
    let mut report = report(lab)?;
    if json {
        report.arg("--json");
    }
    let output = measured(&mut report)?;
    step.end("measured");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Ok(output.status.success())
}

fn build(lab: &Lab) -> Command {
    let mut cargo = lab.cargo();
    cargo.args(["build", "--release", "--bin", "directverbs-bench"]);
    cargo
}

/// The counted part, under callgrind.
fn count(lab: &Lab) -> Result<Command> {
    let program = program(lab)?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--collect-atstart=no", "--combine-dumps=yes"]);
    command.arg(format!("--callgrind-out-file={}", counted(lab).display()));
    command.arg(program.get_program()).args(program.get_args()).arg("count");
    Ok(command)
}

/// The rest, and the table.
fn report(lab: &Lab) -> Result<Command> {
    let mut command = program(lab)?;
    command.arg("report").arg("--counted").arg(counted(lab));
    Ok(command)
}

fn program(lab: &Lab) -> Result<Command> {
    providers::command(lab, Path::new(&lab.target.join("release/directverbs-bench")))
}

fn counted(lab: &Lab) -> PathBuf {
    lab.dir.join("callgrind.out")
}

/// Runs the part that prints figures; a must that was missed is a result like any other.
fn measured(report: &mut Command) -> Result<Output> {
    let output = report.output().map_err(|source| Error::Start { program: spelled(report), source })?;
    match output.status.code() {
        Some(0 | 1) => Ok(output),
        _ => {
            let tail = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Error::Failed { command: spelled(report), status: output.status, tail })
        }
    }
}
