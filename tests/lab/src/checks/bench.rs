//! What posts and polls cost: builds `tests/bench` as a program would be built, lets callgrind count, and has the table
//! printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{spelled, succeed};
use crate::progress::Step;
use crate::setup::{self, Need};

const LIMIT: Duration = Duration::from_secs(600);

/// Measures and prints the table. `Ok(false)` says that a must was missed.
///
/// # Errors
/// valgrind is missing, the build failed, or there are no figures.
pub fn bench(lab: &Lab, json: bool) -> Result<bool> {
    if !Need::Valgrind.is_there(lab)
        && let Err(mut missing) = setup::provide(lab, &[Need::Valgrind])
        && let Some((_, error)) = missing.pop()
    {
        return Err(error);
    }
    let log = lab.logs().join("bench.log");
    fs::write(&log, "").map_err(Error::file(&log))?;
    let mut step = Step::aside("bench");
    let (program, counted) = count(lab, &log, &mut step)?;
    step.end("measured");
    let mut report = report(&program, &counted);
    if json {
        report.arg("--json");
    }
    let status = report.status().map_err(|source| Error::Start { program: spelled(&report), source })?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(Error::Failed { command: spelled(&report), status, tail: String::new() }),
    }
}

/// Builds the program and runs its counted part under callgrind. Gives the program, and what callgrind wrote.
fn count(lab: &Lab, log: &Path, step: &mut Step) -> Result<(PathBuf, PathBuf)> {
    let mut build = lab.cargo();
    build.args(["build", "--release", "--bin", "directverbs-bench"]);
    succeed(&mut build, log, step, LIMIT)?;
    let program = lab.target.join("release/directverbs-bench");
    let counted = lab.dir.join("callgrind.out");
    let mut callgrind = Command::new("valgrind");
    callgrind.args(["--tool=callgrind", "--collect-atstart=no", "--combine-dumps=yes"]);
    callgrind.arg(format!("--callgrind-out-file={}", counted.display())).arg(&program).arg("count");
    succeed(&mut callgrind, log, step, LIMIT)?;
    Ok((program, counted))
}

fn report(program: &Path, counted: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("report").arg("--counted").arg(counted);
    command
}
