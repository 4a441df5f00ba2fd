//! `cargo lab vm unikernel`: our image as the only program of a guest, with software NICs on its PCI bus.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::daemon::{self, Daemon};
use super::outcome::{GUEST, Outcome};
use super::{apart, image};
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{self, tail};
use crate::progress::Step;
use crate::setup::qemu::Arch;
use crate::setup::{self, Need};
use crate::suites::Checks;

/// What the guest cannot run without.
pub const NEEDS: &[Need] = image::NEEDS;

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
    /// Two guests, each with one of the NICs, across a wire
    #[arg(long)]
    apart: bool,
}

impl Options {
    fn name(&self) -> String {
        let joined = if self.apart { "-to-" } else { "-" };
        format!("unikernel-{}-{}", self.arch.name(), self.nics.join(joined))
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

/// The pairs of guests of the suite: what each has.
const APART: [[&str; 2]; 6] = [
    ["bnxt_re-p5", "bnxt_re-p5"],
    ["bnxt_re", "bnxt_re"],
    ["ionic-v1", "ionic-v1"],
    ["ionic", "ionic"],
    ["bnxt_re", "ionic-v1"],
    ["ionic", "bnxt_re-p5"],
];

fn all() -> impl Iterator<Item = Options> {
    let nics = BUSES.map(|nics| (nics, false)).into_iter().chain(APART.map(|nics| (nics, true)));
    let each = move |arch| {
        nics.clone().map(move |(nics, apart)| Options { arch, nics: nics.map(str::to_owned).into(), apart })
    };
    Arch::ALL.into_iter().flat_map(each)
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

/// Builds, boots; gives the guests' report, and the end of what they have said.
fn run(lab: &Lab, options: &Options, log: &Path, step: &mut Step) -> Result<(Outcome, String)> {
    let (arch, name) = (options.arch, options.name());
    let image = image::build(lab, arch, log, step)?;
    let nics: Vec<&str> = options.nics.iter().map(String::as_str).collect();
    if options.apart {
        let [first, second] = nics[..] else {
            return Err(Error::Unexpected("two guests have a NIC each: --nic names two".into()));
        };
        return apart::run(lab, &name, (arch, &image), [first, second], (log, step, LIMIT));
    }
    let daemon = Daemon::start(lab, &name, &nics, &[])?;
    let mut command = image::machine(lab, arch, &image, &daemon.sockets, None)?;
    let output = process::run(&mut command, log, step, LIMIT)?;
    let text = output.text.replace('\r', "");
    Ok((image::outcome(arch, &text, output.status), tail(&text)))
}

/// Boots one guest with these NICs, and gives the microseconds that it took to the first data that were verified.
///
/// # Errors
/// It could not be built or booted, or something failed.
pub fn first_verified(lab: &Lab, arch: Arch, nics: [&str; 2], log: &Path, step: &mut Step) -> Result<u64> {
    let options = Options { arch, nics: nics.map(str::to_owned).into(), apart: false };
    let (outcome, said) = run(lab, &options, log, step)?;
    let whole = outcome.first_verified.filter(|_| outcome.counts().1 == 0);
    whole.ok_or_else(|| Error::Unexpected(format!("{}: {said}", options.name())))
}
