//! `cargo lab vm unikernel`: our image as the only program of a guest, with software NICs on its PCI bus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use super::daemon::{self, Daemon};
use super::machine::attach;
use super::outcome::{GUEST, Outcome};
use crate::checks::bare;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{self, succeed, tail};
use crate::progress::Step;
use crate::setup::qemu::{self, Arch};
use crate::setup::{self, Need, rust_source};
use crate::suites::Checks;

/// What the guest cannot run without.
pub const NEEDS: &[Need] = &[Need::Compilers, Need::RustSource, Need::Qemu];

const PACKAGE: &str = "directverbs-unikernel";
const PROGRAM: &str = "unikernel";
const MEMORY: &str = "256M";

const BUILD_LIMIT: Duration = Duration::from_secs(900);
/// The guest takes a second; a machine that is busy takes more.
const LIMIT: Duration = Duration::from_secs(120);

/// Which guest.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Processor
    #[arg(long, value_enum, default_value = "x86_64")]
    arch: Arch,
    /// NICs on its bus, as softnicd calls them; all on one wire
    #[arg(long = "nic", value_delimiter = ',', default_value = "ionic,ionic-v1")]
    nics: Vec<String>,
}

impl Options {
    fn name(&self) -> String {
        format!("unikernel-{}-{}", self.arch.name(), self.nics.join("-"))
    }
}

/// The guests of the suite: what is on their buses.
const BUSES: [[&str; 2]; 7] = [
    ["copier", "copier"],
    ["bnxt_re-p5", "bnxt_re-p5"],
    ["bnxt_re", "bnxt_re"],
    ["ionic-v1", "ionic-v1"],
    ["ionic", "ionic"],
    ["bnxt_re-p5", "ionic-v1"],
    ["ionic", "bnxt_re"],
];

fn all() -> impl Iterator<Item = Options> {
    let options = |arch, nics: [&str; 2]| Options { arch, nics: nics.map(str::to_owned).into() };
    Arch::ALL.into_iter().flat_map(move |arch| BUSES.into_iter().map(move |nics| options(arch, nics)))
}

/// Runs in the foreground: progress, a table of the checks, and a closing line.
///
/// # Errors
/// The image or the daemon could not be built, or the machine not be started.
pub fn foreground(lab: &Lab, options: &Options) -> Result<bool> {
    if setup::provide(lab, NEEDS).is_err() {
        return Ok(false);
    }
    let log = lab.logs().join("vm-unikernel.log");
    fs::write(&log, "").map_err(Error::file(&log))?;
    let mut step = Step::new("vm unikernel");
    daemon::build(lab, &log, &mut step)?;
    let (outcome, console) = run(lab, options, &log, &mut step)?;
    step.end("ran");
    println!("{console}\n{}\n{}", outcome.table(), outcome.figures("vm unikernel"));
    Ok(outcome.counts().1 == 0)
}

/// The same as a suite, for each guest: each of its checks is one of the suite's.
///
/// # Errors
/// As [`foreground`].
pub fn suite(checks: &mut Checks<'_>) -> Result<()> {
    let log = checks.log.clone();
    daemon::build(checks.lab, &log, &mut checks.step)?;
    for options in all() {
        let (outcome, console) = run(checks.lab, &options, &log, &mut checks.step)?;
        for (name, result) in &outcome.rows {
            let result = result.as_ref().map(drop).map_err(|why| match name.as_str() {
                GUEST => format!("{why}\n{console}"),
                _ => why.clone(),
            });
            checks.count(&format!("{} {name}", options.name()), result);
        }
        checks.note(&console);
    }
    Ok(())
}

/// Builds, boots; gives the guest's report, and the end of what it has said.
fn run(lab: &Lab, options: &Options, log: &Path, step: &mut Step) -> Result<(Outcome, String)> {
    let image = build(lab, options.arch, log, step)?;
    let daemon = Daemon::start(lab, &options.name(), &options.nics)?;
    let mut command = machine(lab, options.arch, &image, &daemon.sockets)?;
    let output = process::run(&mut command, log, step, LIMIT)?;
    let text = output.text.replace('\r', "");
    let mut outcome = Outcome::read(&text);
    let (code, passed) = (output.status.code(), outcome.counts().1 == 0);
    if (code == Some(passed_code(options.arch))) != passed {
        outcome.rows.push((GUEST.into(), Err(format!("its exit status was {}", output.status))));
    }
    Ok((outcome, tail(&text)))
}

/// Exit status of QEMU when the image says that all checks held.
const fn passed_code(arch: Arch) -> i32 {
    match arch {
        Arch::X86_64 => 33,
        Arch::Aarch64 => 0,
    }
}

/// Builds the image.
fn build(lab: &Lab, arch: Arch, log: &Path, step: &mut Step) -> Result<PathBuf> {
    let target = format!("{}-unknown-none", arch.name());
    let mut cargo = bare::cargo(lab, "build", &rust_source(lab)?, &[&target], false);
    cargo.args(["--release", "--package", PACKAGE]);
    succeed(&mut cargo, log, step, BUILD_LIMIT)?;
    Ok(lab.dir.join("bare").join(target).join("release").join(PROGRAM))
}

/// A machine with this image and a function for each socket, each behind a port of PCI Express. Its serial port is QEMU's
/// standard output.
fn machine(lab: &Lab, arch: Arch, image: &Path, sockets: &[PathBuf]) -> Result<Command> {
    let mut command = qemu::command(lab, arch)?;
    command.args(["-accel", "tcg", "-smp", "1", "-m", MEMORY, "-nodefaults", "-nographic", "-no-reboot"]);
    match arch {
        Arch::X86_64 => {
            command.args(["-M", "q35,memory-backend=mem", "-cpu", "max"]);
            command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        }
        Arch::Aarch64 => {
            command.args(["-M", "virt,highmem=off,memory-backend=mem", "-cpu", "cortex-a72"]);
            command.args(["-semihosting-config", "enable=on,target=native"]);
        }
    }
    command.arg("-object").arg(format!("memory-backend-memfd,id=mem,size={MEMORY},share=on"));
    command.args(["-serial", "stdio"]).arg("-kernel").arg(image);
    attach(&mut command, sockets);
    Ok(command)
}
