//! Running the steps of a case through both sides.

use std::fmt::Write;

use directverbs::layout::Layout;

use super::decode::{decode, hex};
use super::exception::{Allowance, Exception};
use super::judge::{Difference, Judgement, judge};
use super::observed::{Area, Observed};
use super::step::Step;
use super::tally::{CaseResult, Report};

/// What both sides did in a step.
#[derive(Debug, Default)]
pub struct Played {
    /// The provider.
    pub theirs: Observed,
    /// The core.
    pub ours: Observed,
    /// Differences that known faults make in this very step.
    pub allowances: Vec<Allowance>,
    /// Faults that leave the provider in another state than ours, which ours was put into so that the case can go on: they
    /// show with the next step that differs if the provider does not have them.
    pub assumed: Vec<&'static Exception>,
    /// The two have gone apart, as an exception says, so the case ends here. It ends only if an exception was needed.
    pub parted: bool,
}

/// The same queues at the provider and at the core.
pub trait Pair {
    /// What can go wrong with the test itself.
    type Error;

    /// Carries out a step on both sides.
    ///
    /// # Errors
    /// The step could not be carried out: no difference, but no result either.
    fn play(&mut self, step: &Step) -> Result<Played, Self::Error>;

    /// The memory that both sides have filled so far.
    fn areas(&self) -> Vec<Area>;

    /// Gives our memory the bytes that theirs has, where an exception has explained a difference.
    fn reconcile(&mut self, area: &'static str, offset: usize, bytes: &[u8]);

    /// The layout of the structure around byte `offset` of an area as the provider filled it, and where it begins.
    fn layout_at(&self, area: &Area, offset: usize) -> Option<(&'static Layout, usize)>;

    /// A doorbell in words.
    fn describe(&self, access: &super::observed::Access) -> String {
        format!("{access:x?}")
    }
}

/// The cases of one family.
pub trait Family {
    /// What can go wrong with the test itself.
    type Error;

    /// Name.
    fn name(&self) -> &'static str;

    /// Names of the modes.
    fn modes(&self) -> Vec<String>;

    /// Known faults of the provider.
    fn exceptions(&self) -> &'static [&'static Exception];

    /// Runs the case that follows from a mode's place in [`Family::modes`] and a seed.
    ///
    /// # Errors
    /// The case could not be run.
    fn run(&mut self, mode: usize, seed: u64) -> Result<CaseResult, Self::Error>;
}

/// Runs `steps`, up to the first difference that no exception explains. `case` says how to show it again.
///
/// # Errors
/// A step could not be carried out.
pub fn run_case<P: Pair>(pair: &mut P, steps: &[Step], case: &str) -> Result<CaseResult, P::Error> {
    let mut result = CaseResult::default();
    for (number, step) in steps.iter().enumerate() {
        let played = pair.play(step)?;
        let areas = pair.areas();
        let judgement = judge(&played.theirs, &played.ours, &areas, &played.allowances);
        for exception in judgement.used.iter().chain(&played.assumed) {
            if !result.used.contains(exception) {
                result.used.push(exception);
            }
        }
        if !judgement.differences.is_empty() {
            let text = report(pair, number, step, &played, &areas, &judgement);
            result.report = Some(Report { case: case.to_owned(), text });
            break;
        }
        if played.parted && !(judgement.used.is_empty() && played.assumed.is_empty()) {
            break;
        }
        for (area, offset, bytes) in &judgement.reconcile {
            pair.reconcile(area, *offset, bytes);
        }
    }
    Ok(result)
}

/// Bytes of a report that are shown around a difference.
const SHOWN: usize = 64;
/// Differences of a report.
const TOLD: usize = 12;

fn report<P: Pair>(
    pair: &P,
    number: usize,
    step: &Step,
    played: &Played,
    areas: &[Area],
    judgement: &Judgement,
) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "step {number}: {step:?}");
    for difference in judgement.differences.iter().take(TOLD) {
        match difference {
            Difference::Outcome { theirs, ours } => {
                let _ = writeln!(text, " outcome: theirs {theirs:?}, ours {ours:?}");
            }
            Difference::Bytes { area, range } => {
                let Some(area) = areas.iter().find(|a| a.name == *area) else { continue };
                let _ = write!(text, "{}", told(pair, area, range.start, range.end));
            }
            Difference::Access { index, theirs, ours } => {
                let one = |access: &Option<_>| {
                    access.as_ref().map_or_else(|| "none".to_owned(), |a| pair.describe(a))
                };
                let _ = writeln!(text, " access {index}: theirs {}, ours {}", one(theirs), one(ours));
            }
            Difference::Completion { index, theirs, ours } => {
                let _ = writeln!(text, " completion {index}: theirs {theirs:x?}\n  ours {ours:x?}");
            }
            Difference::Field { index, field, theirs, ours } => {
                let _ = writeln!(text, " completion {index}, {field}: theirs {theirs:x?}, ours {ours:x?}");
            }
            Difference::Value { name, theirs, ours } => {
                let _ = writeln!(text, " {name}: theirs {theirs:?}, ours {ours:?}");
            }
        }
    }
    let more = judgement.differences.len().saturating_sub(TOLD);
    if more != 0 {
        let _ = writeln!(text, " and {more} more");
    }
    let accesses = |observed: &Observed| -> Vec<String> {
        observed.accesses.iter().map(|access| pair.describe(access)).collect()
    };
    let _ = writeln!(text, " all accesses: theirs {:?}", accesses(&played.theirs));
    let _ = writeln!(text, "               ours {:?}", accesses(&played.ours));
    text
}

/// One run of bytes that differ: in hex, and by the names of the fields.
fn told<P: Pair>(pair: &P, area: &Area, start: usize, end: usize) -> String {
    let (start, end, layout) = match pair.layout_at(area, start) {
        Some((layout, at)) => (at, at + layout.size, Some(layout)),
        None => (start & !15, end, None),
    };
    let end = end.min(start + SHOWN);
    let part = |bytes: &[u8]| bytes.get(start..end.min(bytes.len())).unwrap_or(&[]).to_vec();
    let (theirs, ours) = (part(&area.theirs), part(&area.ours));
    let mut text = String::new();
    let _ = writeln!(text, " {} from byte {start:#x}:", area.name);
    let _ = writeln!(text, "  theirs {}", hex(&theirs));
    let _ = writeln!(text, "  ours   {}", hex(&ours));
    if let Some(layout) = layout {
        text.push_str(&decode(layout, &theirs, &ours));
    }
    text
}
