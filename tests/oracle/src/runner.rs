//! Runs the cases of all families, spread evenly over the modes, and counts.

use std::fmt::Display;
use std::io::IsTerminal;
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use oracle::bnxt_re::BnxtRe;
use oracle::case::{CaseResult, Exception, Family, Tally};
use oracle::ibv::{self, Library};
use oracle::ionic::Ionic;

/// Cases of a whole run.
pub const CASES: u64 = 16_000;
/// Differences that are told in full.
const TOLD: usize = 5;
/// Without a terminal, a line as often as this.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Plan {
    /// Only this family
    #[arg(long)]
    family: Option<String>,
    /// Only this mode
    #[arg(long)]
    mode: Option<String>,
    /// First seed
    #[arg(long)]
    seed: Option<u64>,
    /// Number of cases; one if a mode and a seed are given
    #[arg(long)]
    cases: Option<u64>,
    /// Name each case before it runs
    #[arg(long)]
    trace: bool,
}

/// Why a run came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library failed.
    #[error(transparent)]
    Library(#[from] ibv::Error),
    /// A case could not be run.
    #[error("{case}: {error}")]
    Case {
        /// Family, mode and seed.
        case: String,
        /// Why.
        error: String,
    },
    /// No mode has that name.
    #[error("no such family or mode; `oracle modes` lists them")]
    NoMode,
}

/// A family, with its errors as text.
trait Cases {
    fn name(&self) -> &'static str;
    fn modes(&self) -> Vec<String>;
    fn exceptions(&self) -> &'static [&'static Exception];
    fn run(&mut self, mode: usize, seed: u64) -> Result<CaseResult, String>;
}

impl<F: Family<Error: Display>> Cases for F {
    fn name(&self) -> &'static str {
        Family::name(self)
    }

    fn modes(&self) -> Vec<String> {
        Family::modes(self)
    }

    fn exceptions(&self) -> &'static [&'static Exception] {
        Family::exceptions(self)
    }

    fn run(&mut self, mode: usize, seed: u64) -> Result<CaseResult, String> {
        Family::run(self, mode, seed).map_err(|error| error.to_string())
    }
}

fn families(library: &Library) -> Vec<Box<dyn Cases>> {
    vec![Box::new(BnxtRe::new(library)), Box::new(Ionic::new(library.clone()))]
}

/// Prints the names of all modes.
///
/// # Errors
/// The library cannot be loaded.
pub fn modes() -> Result<(), Failure> {
    for family in families(&Library::load()?) {
        for mode in family.modes() {
            println!("{} {mode}", family.name());
        }
    }
    Ok(())
}

/// The case that is being run, for who reads of a panic.
static CURRENT: Mutex<String> = Mutex::new(String::new());

fn name_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        eprintln!("in the case {}:", CURRENT.lock().unwrap_or_else(PoisonError::into_inner));
        before(info);
    }));
}

/// Runs and prints. `Ok(true)` says that all cases are as they shall be.
///
/// # Errors
/// The library cannot be loaded, or a case could not be run.
pub fn run(plan: &Plan) -> Result<bool, Failure> {
    name_panics();
    let mut families = families(&Library::load()?);
    let wanted = |name: &str, filter: &Option<String>| filter.as_ref().is_none_or(|only| only == name);
    families.retain(|family| {
        wanted(family.name(), &plan.family) && family.modes().iter().any(|mode| wanted(mode, &plan.mode))
    });
    let mut chosen = Vec::new();
    for (index, family) in families.iter().enumerate() {
        let modes = family.modes().into_iter().enumerate();
        chosen.extend(modes.filter(|(_, m)| wanted(m, &plan.mode)).map(|(mode, name)| (index, mode, name)));
    }
    if chosen.is_empty() {
        return Err(Failure::NoMode);
    }
    let alone = plan.mode.is_some() && plan.seed.is_some();
    let cases = plan.cases.unwrap_or(if alone { 1 } else { CASES });
    let first = plan.seed.unwrap_or(1);

    let mut tallies: Vec<Tally> = families.iter().map(|_| Tally::default()).collect();
    let mut progress = Progress::new(cases);
    let mut told = 0;
    // One mode after the other: a mode keeps its device open.
    for (place, (index, mode, name)) in chosen.iter().enumerate() {
        // Each family gets as many cases as the other, and each of its modes as many as any other.
        let of_family = share(cases, families.len(), *index);
        let before = chosen[..place].iter().filter(|(family, ..)| family == index).count();
        let modes = chosen.iter().filter(|(family, ..)| family == index).count();
        for seed in first..first + share(of_family, modes, before) {
            let case = format!("--family {} --mode {name} --seed {seed}", families[*index].name());
            if plan.trace {
                eprintln!("{case}");
            }
            progress.at(&case);
            CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&case);
            let result = families[*index].run(*mode, seed);
            let result = result.map_err(|error| Failure::Case { case: case.clone(), error })?;
            tallies[*index].record(&result);
            if let Some(report) = &result.report
                && told < TOLD
            {
                progress.say(&format!("DIFFERENT {case}\n{}", report.text));
                told += 1;
            }
        }
    }
    progress.end();
    let whole = plan.mode.is_none() && cases >= CASES;
    Ok(close(&families, &tallies, whole))
}

/// What the one at `place` of `parts` gets of `whole`.
const fn share(whole: u64, parts: usize, place: usize) -> u64 {
    let (parts, place) = (parts as u64, place as u64);
    whole / parts + (place < whole % parts) as u64
}

/// Prints what was counted, and says whether it is as it shall be. `whole` runs must need each exception.
fn close(families: &[Box<dyn Cases>], tallies: &[Tally], whole: bool) -> bool {
    let mut sum = Tally::default();
    let mut good = true;
    for (family, tally) in families.iter().zip(tallies) {
        println!("{}: {} cases; exceptions, and the cases that needed them:", family.name(), tally.cases);
        print!("{}", tally.exceptions(family.exceptions()));
        if whole {
            for exception in tally.unneeded(family.exceptions()) {
                println!("  UNNEEDED {}: {}", exception.name, exception.fault);
                good = false;
            }
        }
        sum.add(tally);
    }
    println!("{}", sum.closing());
    good && sum.different == 0
}

/// On a terminal a bar, elsewhere a line now and then.
struct Progress {
    bar: Option<ProgressBar>,
    cases: u64,
    done: u64,
    spoke: Instant,
}

impl Progress {
    fn new(cases: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(cases);
            if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta}  {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, cases, done: 0, spoke: Instant::now() }
    }

    fn at(&mut self, case: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
            bar.set_message(case.to_owned());
        } else if self.spoke.elapsed() >= HEARTBEAT {
            self.spoke = Instant::now();
            eprintln!("oracle: {} of {} cases, now {case}", self.done, self.cases);
        }
        self.done += 1;
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| println!("{text}")),
            None => println!("{text}"),
        }
    }

    fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
