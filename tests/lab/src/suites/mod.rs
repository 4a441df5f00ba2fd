//! Runs suites and counts.

mod libtest;
mod report;
mod table;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use report::Row;
pub use table::SUITES;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process;
use crate::progress::{Step, say};
use crate::setup::{self, Need};

/// One suite.
#[derive(Debug)]
pub struct Suite {
    /// Name on the command line and in the table.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// What it cannot run without.
    pub needs: &'static [Need],
    /// How it runs.
    pub run: Run,
}

/// How a suite runs.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// A cargo command that is one check: it succeeds or fails.
    Cargo(&'static [&'static str]),
    /// `cargo test` with arguments; libtest counts.
    Tests(&'static [&'static str]),
    /// The same with environment variables, and a target folder of its own because those change every crate.
    TestsWith(&'static [(&'static str, &'static str)], &'static [&'static str]),
    /// Checks of the lab's own.
    Checks(fn(&mut Checks<'_>) -> Result<()>),
}

/// Counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// What held.
    pub passed: usize,
    /// What did not hold, or could not be tried.
    pub failed: usize,
}

impl Tally {
    /// Adds another's counts.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// No suite may take longer: something hangs.
const LIMIT: Duration = Duration::from_secs(900);

/// What checks of the lab's own work with.
#[derive(Debug)]
pub struct Checks<'l> {
    /// Where things are.
    pub lab: &'l Lab,
    /// Log of the suite.
    pub log: PathBuf,
    /// Progress of the suite.
    pub step: Step,
    tally: Tally,
    failures: Vec<String>,
}

impl Checks<'_> {
    /// Counts the outcome of the check `name`.
    pub fn count<E: std::fmt::Display>(&mut self, name: &str, outcome: std::result::Result<(), E>) {
        let line = match outcome {
            Ok(()) => {
                self.tally.passed += 1;
                format!("{name}: ok")
            }
            Err(error) => {
                self.tally.failed += 1;
                let line = format!("{name}: {error}");
                self.failures.push(line.clone());
                line
            }
        };
        self.step.at(&line);
        self.note(&line);
    }

    /// Writes to the log only.
    pub fn note(&self, line: &str) {
        let file = fs::File::options().create(true).append(true).open(&self.log);
        // A log that cannot be written is no reason to lose the result.
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }

    /// Runs a program that must succeed and gives its output.
    ///
    /// # Errors
    /// It did not succeed.
    pub fn succeed(&mut self, command: &mut std::process::Command) -> Result<String> {
        process::succeed(command, &self.log, &mut self.step, LIMIT)
    }

    fn tests(&mut self, command: &mut std::process::Command) -> Result<()> {
        let output = process::run(command, &self.log, &mut self.step, LIMIT)?;
        let tally = libtest::count(&output.text);
        self.tally.add(tally);
        match (output.status.success(), tally) {
            (true, Tally { passed: 0, .. }) => Err(Error::Unexpected("ran no test".into())),
            (true, _) => Ok(()),
            (false, Tally { failed: 0, .. }) => {
                let command = process::spelled(command);
                Err(Error::Failed { command, status: output.status, tail: output.tail() })
            }
            (false, _) => {
                self.failures.push(libtest::failures(&output.text));
                Ok(())
            }
        }
    }
}

/// Runs the suites that `names` names, or all, and prints the table. `Ok(true)` says that nothing failed.
///
/// # Errors
/// A name that no suite has.
pub fn run(lab: &Lab, names: &[String]) -> Result<bool> {
    if let Some(unknown) = names.iter().find(|name| !SUITES.iter().any(|suite| suite.name == **name)) {
        let known: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        return Err(Error::Unexpected(format!("no suite {unknown:?}; there are: {}", known.join(", "))));
    }
    let chosen: Vec<&Suite> =
        SUITES.iter().filter(|s| names.is_empty() || names.iter().any(|name| s.name == *name)).collect();

    let needs: Vec<Need> =
        Need::ALL.into_iter().filter(|need| chosen.iter().any(|s| s.needs.contains(need))).collect();
    // All suites link, and a linker that is exchanged meanwhile would be in their way.
    let (tools, others): (Vec<Need>, Vec<Need>) =
        needs.into_iter().partition(|need| *need == Need::Compilers);
    let missing = setup::provide(lab, &tools).err().unwrap_or_default();
    let rows = thread::scope(|scope| {
        // Downloads leave the processors alone: the suites that need nothing run meanwhile.
        let mut set_up = Needed::Coming(scope.spawn(move || setup::provide(lab, &others)), missing);
        let mut rows = Vec::new();
        for (i, suite) in chosen.iter().enumerate() {
            let title = format!("[{:>2}/{}] {}", i + 1, chosen.len(), suite.name);
            if !suite.needs.is_empty() {
                set_up = set_up.wait()?;
            }
            rows.push(run_one(lab, suite, title, set_up.lacks(suite))?);
        }
        Ok::<_, Error>(rows)
    })?;
    println!("{}", report::table(&rows));
    Ok(rows.iter().all(|row| row.tally.failed == 0))
}

/// What suites cannot run without.
enum Needed<'s> {
    /// Being got; what could not be had before is missing.
    Coming(ScopedJoinHandle<'s, std::result::Result<(), Vec<(Need, Error)>>>, Vec<(Need, Error)>),
    /// There, but for these.
    There(Vec<(Need, Error)>),
}

impl Needed<'_> {
    /// All that could be got is there.
    fn wait(self) -> Result<Self> {
        match self {
            Self::Coming(thread, mut missing) => {
                let outcome = thread.join().map_err(|_| Error::Unexpected("the set-up panicked".into()))?;
                missing.extend(outcome.err().unwrap_or_default());
                Ok(Self::There(missing))
            }
            there @ Self::There(_) => Ok(there),
        }
    }

    /// What `suite` lacks, and why.
    fn lacks(&self, suite: &Suite) -> Option<&(Need, Error)> {
        let Self::There(missing) = self else { return None };
        missing.iter().find(|(need, _)| suite.needs.contains(need))
    }
}

fn run_one(lab: &Lab, suite: &Suite, title: String, lacks: Option<&(Need, Error)>) -> Result<Row> {
    let log = lab.logs().join(format!("{}.log", suite.name));
    fs::write(&log, "").map_err(Error::file(&log))?;
    let step = Step::new(title);
    let mut checks = Checks { lab, log, step, tally: Tally::default(), failures: Vec::new() };

    let outcome = match (lacks, suite.run) {
        (Some((need, error)), _) => {
            Err(Error::Unexpected(format!("could not run without {}: {error}", need.name())))
        }
        (None, Run::Cargo(arguments)) => {
            checks.succeed(lab.cargo().args(arguments)).map(|_| checks.tally.passed += 1)
        }
        (None, Run::Tests(arguments)) => {
            checks.tests(lab.cargo().args(["test", "--no-fail-fast"]).args(arguments))
        }
        (None, Run::TestsWith(variables, arguments)) => {
            let mut cargo = lab.cargo();
            cargo.args(["test", "--no-fail-fast"]).args(arguments).envs(variables.iter().copied());
            checks.tests(cargo.arg("--target-dir").arg(lab.dir.join(suite.name)))
        }
        (None, Run::Checks(check)) => check(&mut checks),
    };
    if let Err(error) = outcome {
        checks.tally.failed += 1;
        checks.note(&error.to_string());
        checks.failures.push(error.to_string());
    }
    let Checks { log, step, tally, failures, .. } = checks;
    let time = step.elapsed();
    if failures.is_empty() {
        step.end(&format!("{} passed", tally.passed));
    } else {
        step.end(&format!("{} passed, {} FAILED; log: {}", tally.passed, tally.failed, log.display()));
        say(&failures.join("\n"));
    }
    Ok(Row { name: suite.name, tally, time })
}
