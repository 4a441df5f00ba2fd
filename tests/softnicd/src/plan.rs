//! What shall go wrong, as it is spelled on the command line.

use std::fmt;
use std::str::FromStr;

use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::pci::{AccessFault, CommandFault};

/// What goes wrong with frames, doorbells and completions, and with one access and one command of each NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// How often, in parts per million.
    pub rates: FaultPlan,
    /// The register access that fails, counted from 0, and how.
    pub access: Option<(u64, AccessFault)>,
    /// The command that fails, counted from 0, and how.
    pub command: Option<(u64, CommandFault)>,
}

/// What is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no fault: NAME=PPM with one of {rates}; access=NUMBER:HOW with one of {accesses}; or \
         command=NUMBER:HOW with one of {commands}",
        rates = RATES.map(|(name, _)| name).join(", "),
        accesses = AccessFault::ALL.map(|fault| spelled(&fault)).join(", "),
        commands = CommandFault::ALL.map(|fault| spelled(&fault)).join(", "))]
pub struct NoPlan(String);

type Rate = fn(&mut FaultPlan) -> &mut u32;

const RATES: [(&str, Rate); 8] = [
    ("lose-frame", |plan| &mut plan.lose_frame),
    ("duplicate-frame", |plan| &mut plan.duplicate_frame),
    ("reorder-frame", |plan| &mut plan.reorder_frame),
    ("corrupt-frame", |plan| &mut plan.corrupt_frame),
    ("drop-doorbell", |plan| &mut plan.drop_doorbell),
    ("delay-cqe", |plan| &mut plan.delay_cqe),
    ("duplicate-cqe", |plan| &mut plan.duplicate_cqe),
    ("corrupt-cqe", |plan| &mut plan.corrupt_cqe),
];

/// A fault's name: that of its variant, in small letters and with hyphens.
fn spelled(fault: &impl fmt::Debug) -> String {
    let mut out = String::new();
    for letter in format!("{fault:?}").chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// `NUMBER:HOW`.
fn strike<F: Copy + fmt::Debug>(text: &str, all: &[F]) -> Option<(u64, F)> {
    let (number, how) = text.split_once(':')?;
    Some((number.parse().ok()?, *all.iter().find(|fault| spelled(fault) == how)?))
}

impl Plan {
    fn add(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "access" => self.access = Some(strike(value, &AccessFault::ALL)?),
            "command" => self.command = Some(strike(value, &CommandFault::ALL)?),
            _ => {
                let (_, rate) = RATES.iter().find(|(known, _)| *known == name)?;
                *rate(&mut self.rates) = value.parse().ok().filter(|ppm| *ppm <= 1_000_000)?;
            }
        }
        Some(())
    }
}

impl FromStr for Plan {
    type Err = NoPlan;

    fn from_str(text: &str) -> Result<Self, NoPlan> {
        let mut plan = Self::default();
        for part in text.split(',') {
            let added = part.split_once('=').and_then(|(name, value)| plan.add(name, value));
            added.ok_or_else(|| NoPlan(part.into()))?;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_rates_and_one_of_each() {
        let plan: Plan =
            "lose-frame=10000,corrupt-cqe=5,access=7:hung,command=3:wrong-sequence".parse().unwrap();
        assert_eq!((plan.rates.lose_frame, plan.rates.corrupt_cqe), (10_000, 5));
        assert_eq!(plan.access, Some((7, AccessFault::Hung)));
        assert_eq!(plan.command, Some((3, CommandFault::WrongSequence)));
        for wrong in
            ["", "x=1", "lose-frame", "lose-frame=1000001", "access=1", "command=x:silent", "command=1:odd"]
        {
            let error = wrong.parse::<Plan>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{wrong}` is no fault")), "{error}");
            assert!(error.contains("hot-reset") && error.contains("removed"), "{error}");
        }
    }
}
