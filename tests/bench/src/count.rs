//! Counts instructions: the part of the benchmark that runs under callgrind.
//!
//! Each operation is one dump with a name. What the toggling itself costs is counted too, with nothing between, and
//! taken off.

use std::ffi::CString;

use crate::callgrind::Totals;
use crate::meter::{Counter, Meter, Nothing};
use crate::ours::{BnxtRe, Ionic, Ours};
use crate::side::{LANES, Side, round};
use crate::theirs::Theirs;
use crate::valgrind;
use crate::work::{Family, Operation};

/// Rounds that are not counted: queues have wrapped, and lazily bound symbols are bound.
const WARM_UP: usize = 40;

/// Rounds that are counted: all rings wrap several times.
const ROUNDS: usize = 400;

/// Calls that are counted in an operation.
const CALLS: usize = ROUNDS * LANES;

/// Name of the dump of no call.
const EMPTY: &str = "no call";

/// The sides, in the names of dumps.
pub const C: &str = "C";
/// Ours.
pub const OURS: &str = "ours";

/// Name of the dump of an operation.
fn name(family: Family, side: &str, operation: Operation) -> String {
    format!("{} {side}: {operation}", family.name())
}

/// Carries out all operations under callgrind.
pub fn run() {
    for _ in 0..CALLS {
        Counter.call(|| ());
    }
    dump(EMPTY);
    for family in Family::ALL {
        all(family, C, &mut Theirs::new(family));
        match family {
            Family::BnxtRe => all(family, OURS, &mut Ours::<BnxtRe>::new()),
            Family::Ionic => all(family, OURS, &mut Ours::<Ionic>::new()),
        }
    }
}

fn all(family: Family, name_of_side: &str, side: &mut impl Side) {
    for operation in Operation::ALL {
        for _ in 0..WARM_UP {
            round(side, operation, &mut Nothing);
        }
        for _ in 0..ROUNDS {
            round(side, operation, &mut Counter);
        }
        dump(&name(family, name_of_side, operation));
    }
}

fn dump(name: &str) {
    let name = CString::new(name).expect("a name without zeros");
    valgrind::dump(&name);
}

/// Instructions for one request or completion, or what is missing.
///
/// # Errors
/// The name of a dump that is not there.
pub fn instructions(
    totals: &Totals,
    family: Family,
    side: &str,
    operation: Operation,
) -> Result<f64, String> {
    let of = |name: String| totals.get(&name).ok_or(name);
    let (all, empty) = (of(name(family, side, operation))?, of(EMPTY.to_owned())?);
    Ok(all.saturating_sub(empty) as f64 / (CALLS * operation.per_call()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toggling_is_taken_off() {
        let operation = Operation::PostSend(1);
        let text = format!(
            "desc: Trigger: Client Request: {EMPTY}\ntotals: {}\n\
             desc: Trigger: Client Request: ionic ours: {operation}\ntotals: {}\n",
            10 * CALLS,
            (10 + 16 * 70) * CALLS,
        );
        let totals = Totals::read(&text);
        assert_eq!(instructions(&totals, Family::Ionic, "ours", operation), Ok(70.0));
        let missing = instructions(&totals, Family::BnxtRe, "ours", operation);
        assert_eq!(missing, Err(format!("bnxt_re ours: {operation}")));
    }
}
