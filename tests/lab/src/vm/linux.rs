//! `cargo lab vm linux`: Debian's kernel with soft-RoCE, and our program as the only one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::initramfs::Initramfs;
use super::machine::{Hardware, Machine};
use super::modules::Modules;
use super::outcome::{GUEST, Outcome};
use super::programs;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::progress::Step;
use crate::setup::{self, Image, Need};
use crate::suites::Checks;

/// What the guest cannot run without.
pub const NEEDS: &[Need] = &[Need::Compilers, Need::Qemu, Need::Image];

const NAME: &str = "linux";
/// The program that a guest begins with.
pub const PROGRAM: &str = "directverbs-guest";

/// The modules that the guest loads.
const MODULES: [&str; 3] = ["veth", "rdma_rxe", "ib_uverbs"];

/// The guest takes some seconds; a machine that is busy takes more.
const LIMIT: Duration = Duration::from_secs(180);

/// Runs in the foreground: progress, a table of the checks, and a closing line.
///
/// # Errors
/// The program could not be built, or the machine not be started.
pub fn foreground(lab: &Lab) -> Result<bool> {
    in_foreground(lab, NAME, NEEDS, run)
}

/// Runs a guest with a kernel in the foreground. `run` gives its report, and the end of its console.
///
/// # Errors
/// Those of the run.
pub fn in_foreground(
    lab: &Lab,
    name: &str,
    needs: &[Need],
    run: impl FnOnce(&Lab, &Path, &mut Step) -> Result<(Outcome, String)>,
) -> Result<bool> {
    if setup::provide(lab, needs).is_err() {
        return Ok(false);
    }
    let log = lab.logs().join(format!("vm-{name}.log"));
    fs::write(&log, "").map_err(Error::file(&log))?;
    let name = format!("vm {name}");
    let mut step = Step::new(&name);
    let (outcome, console) = run(lab, &log, &mut step)?;
    step.end("ran");
    println!("{}", outcome.table());
    let failed = outcome.counts().1;
    if failed > 0 {
        eprintln!("{console}");
    }
    println!("{}", outcome.figures(&name));
    Ok(failed == 0)
}

/// The same as a suite: each check of the guest's is one of the suite's.
///
/// # Errors
/// As [`foreground`].
pub fn suite(checks: &mut Checks<'_>) -> Result<()> {
    as_suite(checks, NAME, run)
}

/// Runs a guest with a kernel as a suite.
///
/// # Errors
/// Those of the run.
pub fn as_suite(
    checks: &mut Checks<'_>,
    name: &str,
    run: impl FnOnce(&Lab, &Path, &mut Step) -> Result<(Outcome, String)>,
) -> Result<()> {
    let (outcome, console) = run(checks.lab, &checks.log.clone(), &mut checks.step)?;
    for (name, result) in &outcome.rows {
        let result = result.as_ref().map(drop).map_err(|why| match name.as_str() {
            GUEST => format!("{why}\n{console}"),
            _ => why.clone(),
        });
        checks.count(name, result);
    }
    if outcome.counts().1 > 0 {
        checks.note(&console);
    }
    checks.note(&outcome.figures(&format!("vm {name}")));
    Ok(())
}

/// Builds, packs, boots; gives the guest's report, and the end of its console.
fn run(lab: &Lab, log: &Path, step: &mut Step) -> Result<(Outcome, String)> {
    let mut files = Initramfs::default();
    programs::pack(lab, &[("init", PROGRAM)], log, step, &mut files)?;
    // The kernel opens it for the first program before anything is mounted.
    files.folder("dev");
    let kernel = Image::find(lab)?;
    Modules::find(&kernel.modules)?.pack(&MODULES, &mut files)?;
    let mut machine = Machine::new(lab, NAME, (&kernel, &files.finish()), &Hardware::Plain, "")?;
    let report = machine.run(log, step, LIMIT)?;
    Ok((Outcome::read(&report), machine.console()))
}
