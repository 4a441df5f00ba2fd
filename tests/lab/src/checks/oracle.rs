//! The vendors' C providers against the core: builds `tests/oracle` and runs it with the libraries that the lab has
//! unpacked.

use std::process::Command;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{spelled, succeed};
use crate::progress::Step;
use crate::setup::{self, Need, providers};
use crate::suites::Checks;

const LIMIT: Duration = Duration::from_secs(900);

/// What the line of counts begins with.
const CLOSING: &str = "oracle: ";

/// Runs in the foreground with arguments of its own. `Ok(false)` says that something differs and was told.
///
/// # Errors
/// The providers cannot be had, or the build failed.
pub fn oracle(lab: &Lab, arguments: &[String]) -> Result<bool> {
    if !Need::Providers.is_there(lab)
        && let Err(mut missing) = setup::provide(lab, &[Need::Providers])
        && let Some((_, error)) = missing.pop()
    {
        return Err(error);
    }
    let mut step = Step::aside("oracle: build");
    succeed(&mut build(lab), &lab.logs().join("oracle.log"), &mut step, LIMIT)?;
    step.end("built");
    let mut command = run(lab)?;
    command.args(arguments);
    let status = command.status().map_err(|source| Error::Start { program: spelled(&command), source })?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(Error::Failed { command: spelled(&command), status, tail: String::new() }),
    }
}

/// The suite: one post of each provider, then all cases.
///
/// # Errors
/// The build failed, or something differs.
pub fn suite(checks: &mut Checks<'_>) -> Result<()> {
    checks.succeed(&mut build(checks.lab))?;
    let lab = checks.lab;
    let smoke = checks.succeed(program(lab)?.arg("smoke")).map(drop);
    checks.count("one RDMA WRITE of each provider", smoke);
    let text = checks.succeed(&mut run(lab)?)?;
    match text.lines().rfind(|line| line.starts_with(CLOSING)) {
        Some(line) => checks.count::<Error>(line, Ok(())),
        None => return Err(Error::Unexpected("the oracle has no closing line".into())),
    }
    Ok(())
}

fn build(lab: &Lab) -> Command {
    let mut cargo = lab.cargo();
    cargo.args(["build", "--bin", "oracle"]);
    cargo
}

fn program(lab: &Lab) -> Result<Command> {
    providers::command(lab, &lab.target.join("debug/oracle"))
}

fn run(lab: &Lab) -> Result<Command> {
    let mut command = program(lab)?;
    command.arg("run");
    Ok(command)
}
