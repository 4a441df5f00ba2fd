//! Named exceptions: known faults of a provider.

use std::ops::Range;

use super::observed::{Access, Outcome};

/// A known fault of a provider. It is allowed where it shows and nowhere else, and a full run fails when it never shows.
#[derive(Debug)]
pub struct Exception {
    /// Name, for the tally.
    pub name: &'static str,
    /// What the provider does, and why that is a fault.
    pub fault: &'static str,
    /// What is right, and who says so.
    pub right: &'static str,
}

impl PartialEq for Exception {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A difference that an exception explains in this step.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// The exception.
    pub exception: &'static Exception,
    /// What may differ, and only this.
    pub allowed: Allowed,
}

/// What may differ.
#[derive(Clone, Debug, PartialEq)]
pub enum Allowed {
    /// These bytes of an area.
    Bytes {
        /// The area.
        area: &'static str,
        /// The bytes.
        range: Range<usize>,
    },
    /// Bits of the store at this place of the sequence: what is set in `mask` may differ.
    StoreBits {
        /// Place in the sequence.
        index: usize,
        /// Bits.
        mask: u64,
    },
    /// They make an access that we do not.
    OnlyTheirs(Access),
    /// We make an access that they do not.
    OnlyOurs(Access),
    /// A field of the completion at this place has just this value with them.
    Field {
        /// Place in the sequence.
        index: usize,
        /// Name of the field.
        field: &'static str,
        /// Their value.
        theirs: Option<u64>,
    },
    /// The step ends in just these two ways.
    Outcome {
        /// Theirs.
        theirs: Outcome,
        /// Ours.
        ours: Outcome,
    },
    /// A number has just these two values.
    Value {
        /// Its name.
        name: &'static str,
        /// Theirs.
        theirs: u64,
        /// Ours.
        ours: u64,
    },
    /// Completions may differ altogether. The family checks ours by other means.
    Completions,
    /// Accesses may differ altogether.
    Accesses,
}
