use std::collections::VecDeque;
use std::fmt;

use directverbs::verbs::{CqId, QpId, SrqId};

/// What a driver did wrong, and to which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The object.
    pub object: Object,
    /// What was wrong.
    pub reason: String,
}

/// An object of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The device as a whole: a doorbell that names no object.
    Device,
    /// Queue pair.
    Qp(QpId),
    /// Completion queue.
    Cq(CqId),
    /// Shared receive queue.
    Srq(SrqId),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device => f.write_str("device"),
            Self::Qp(id) => write!(f, "QP {id}"),
            Self::Cq(id) => write!(f, "CQ {id}"),
            Self::Srq(id) => write!(f, "SRQ {id}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.reason)
    }
}

/// The violations of a driver: all are counted, the last ones are kept.
#[derive(Debug, Default)]
pub struct Violations {
    count: u64,
    last: VecDeque<Violation>,
}

impl Violations {
    /// How many are kept.
    pub const KEPT: usize = 64;

    /// Adds one.
    pub fn add(&mut self, object: Object, reason: impl fmt::Display) {
        self.count += 1;
        if self.last.len() == Self::KEPT {
            self.last.pop_front();
        }
        self.last.push_back(Violation { object, reason: reason.to_string() });
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those that are kept, oldest first.
    pub fn last(&self) -> impl Iterator<Item = &Violation> {
        self.last.iter()
    }
}
