//! What the figures must be, and what they should be.

use serde::Serialize;

use crate::work::{Family, MANY, Operation};

/// Bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Our figure is at most this.
    OursAtMost(f64),
}

impl Bound {
    /// Whether it holds.
    pub fn holds(self, ours: f64) -> bool {
        match self {
            Self::OursAtMost(most) => ours <= most,
        }
    }
}

/// What must hold, and what should.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The benchmark fails if this does not hold.
    pub must: Bound,
    /// The aim.
    pub target: Bound,
}

const fn at_most(must: u32, target: u32) -> Option<Limits> {
    Some(Limits { must: Bound::OursAtMost(must as f64), target: Bound::OursAtMost(target as f64) })
}

/// Limits of the instructions of an operation, for one request or completion.
pub fn instructions(family: Family, operation: Operation) -> Option<Limits> {
    use Operation::{Poll, PostSend};
    debug_assert_eq!(PostSend(1).per_call(), MANY);
    match (family, operation) {
        (Family::BnxtRe, PostSend(0)) => at_most(130, 90),
        (Family::BnxtRe, PostSend(1)) => at_most(100, 60),
        (Family::BnxtRe, Poll(0)) => at_most(110, 80),
        (Family::Ionic, PostSend(0)) => at_most(140, 90),
        (Family::Ionic, PostSend(1)) => at_most(110, 70),
        (Family::Ionic, Poll(0)) => at_most(120, 80),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_up_to_itself() {
        assert!(Bound::OursAtMost(130.0).holds(130.0));
        assert!(!Bound::OursAtMost(130.0).holds(130.1));
    }

    #[test]
    fn six_rows_have_a_limit_of_instructions() {
        let limited =
            |family| Operation::ALL.iter().filter(|op| instructions(family, **op).is_some()).count();
        assert_eq!(Family::ALL.map(limited), [3, 3]);
    }
}
