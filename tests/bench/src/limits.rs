//! What the figures must be, and what they should be.

use serde::Serialize;

use crate::work::{Family, MANY, Operation};

/// Bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Our figure is at most this.
    OursAtMost(f64),
    /// Our figure over C's is at most this.
    RatioAtMost(f64),
    /// Our figure is at least this.
    OursAtLeast(f64),
}

impl Bound {
    /// Whether it holds; a ratio that is not known holds no bound.
    pub fn holds(self, ours: f64, ratio: Option<f64>) -> bool {
        match self {
            Self::OursAtMost(most) => ours <= most,
            Self::RatioAtMost(most) => ratio.is_some_and(|ratio| ratio <= most),
            Self::OursAtLeast(least) => ours >= least,
        }
    }
}

/// What must hold, and what should.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The benchmark fails if this does not hold.
    pub must: Option<Bound>,
    /// The aim.
    pub target: Bound,
}

const fn at_most(must: u32, target: u32) -> Option<Limits> {
    Some(Limits { must: Some(Bound::OursAtMost(must as f64)), target: Bound::OursAtMost(target as f64) })
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

/// Limits of the cycles of an operation, over C's: a must of those that have one for their instructions, and the same aim
/// for all.
pub fn cycles(family: Family, operation: Operation) -> Limits {
    let must = instructions(family, operation).map(|_| Bound::RatioAtMost(0.6));
    Limits { must, target: Bound::RatioAtMost(0.4) }
}

/// Limits of the memory for DMA, in KiB, with 64 queue pairs open.
pub fn memory(family: Family) -> Option<Limits> {
    match family {
        Family::BnxtRe => at_most(16 << 10, 16 << 10),
        Family::Ionic => at_most(4 << 10, 4 << 10),
    }
}

/// Limits of the text and the data of an image, in KiB.
pub const IMAGE: Limits = Limits { must: None, target: Bound::OursAtMost(192.0) };

/// Limits of the work of two threads over that of one.
pub const SCALING: Limits = Limits { must: Some(Bound::OursAtLeast(1.9)), target: Bound::OursAtLeast(1.9) };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_up_to_itself() {
        assert!(Bound::OursAtMost(130.0).holds(130.0, None));
        assert!(!Bound::OursAtMost(130.0).holds(130.1, Some(0.1)));
        assert!(Bound::RatioAtMost(0.6).holds(1e9, Some(0.6)));
        assert!(!Bound::RatioAtMost(0.6).holds(1.0, Some(0.61)));
        assert!(!Bound::RatioAtMost(0.6).holds(1.0, None));
        assert!(Bound::OursAtLeast(1.9).holds(1.9, None));
        assert!(!Bound::OursAtLeast(1.9).holds(1.89, None));
    }

    #[test]
    fn six_rows_have_a_limit_of_instructions() {
        let limited =
            |family| Operation::ALL.iter().filter(|op| instructions(family, **op).is_some()).count();
        assert_eq!(Family::ALL.map(limited), [3, 3]);
    }
}
