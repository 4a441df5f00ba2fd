//! What is measured: one table for both families and both sides.

use std::fmt;

/// Requests under one doorbell, and completions of one poll, in the operations that take many.
pub const MANY: usize = 16;

/// Bytes of an SGE.
pub const SGE_BYTES: u32 = 64;

/// Bytes of an inline message.
pub const INLINE_BYTES: usize = 32;

/// What a send request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// RDMA WRITE of one SGE.
    Write,
    /// SEND of one SGE.
    Send,
    /// RDMA WRITE of [`INLINE_BYTES`] inline.
    Inline,
    /// RDMA WRITE of two SGEs.
    TwoSges,
}

/// Which requests of a batch ask for a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signaled {
    /// The last.
    Last,
    /// Each.
    Each,
}

/// Send requests under one doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sends {
    /// What each is.
    pub shape: Shape,
    /// How many.
    pub count: usize,
    /// Which ask for a completion.
    pub signaled: Signaled,
}

impl Sends {
    const fn new(shape: Shape, count: usize, signaled: Signaled) -> Self {
        Self { shape, count, signaled }
    }

    /// All that are measured, or that polls are measured after.
    pub const ALL: [Self; 9] = [
        Self::new(Shape::Write, 1, Signaled::Last),
        Self::new(Shape::Write, MANY, Signaled::Last),
        Self::new(Shape::Send, 1, Signaled::Last),
        Self::new(Shape::Send, MANY, Signaled::Last),
        Self::new(Shape::Inline, 1, Signaled::Last),
        Self::new(Shape::Inline, MANY, Signaled::Last),
        Self::new(Shape::TwoSges, 1, Signaled::Last),
        Self::new(Shape::TwoSges, MANY, Signaled::Last),
        Self::new(Shape::Write, MANY, Signaled::Each),
    ];

    /// Whether the request at `index` of the batch asks for a completion.
    pub const fn signals(self, index: usize) -> bool {
        matches!(self.signaled, Signaled::Each) || index + 1 == self.count
    }

    /// Completions that the batch gives.
    pub const fn completions(self) -> usize {
        match self.signaled {
            Signaled::Last => 1,
            Signaled::Each => self.count,
        }
    }
}

/// One operation of a queue, which is a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Posts [`Sends::ALL`] at this index.
    PostSend(usize),
    /// Posts so many receive requests of one SGE.
    PostRecv(usize),
    /// Polls once, when this index of [`Sends::ALL`] was posted and has completed; there is room for [`MANY`].
    Poll(usize),
}

impl Operation {
    /// All, in the order of the table.
    pub const ALL: [Self; 12] = [
        Self::PostSend(0),
        Self::PostSend(1),
        Self::PostSend(2),
        Self::PostSend(3),
        Self::PostSend(4),
        Self::PostSend(5),
        Self::PostSend(6),
        Self::PostSend(7),
        Self::PostRecv(1),
        Self::PostRecv(MANY),
        Self::Poll(0),
        Self::Poll(8),
    ];

    /// Requests or completions that one call handles: figures are per one of them.
    pub const fn per_call(self) -> usize {
        match self {
            Self::PostSend(index) => Sends::ALL[index].count,
            Self::PostRecv(count) => count,
            Self::Poll(index) => Sends::ALL[index].completions(),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PostSend(index) => {
                let what = match Sends::ALL[index].shape {
                    Shape::Write => "WRITE, 1 SGE",
                    Shape::Send => "SEND, 1 SGE",
                    Shape::Inline => "WRITE, 32 B inline",
                    Shape::TwoSges => "WRITE, 2 SGEs",
                };
                write!(f, "post {what}")?;
            }
            Self::PostRecv(_) => f.write_str("post receive, 1 SGE")?,
            Self::Poll(_) => f.write_str("poll")?,
        }
        match self.per_call() {
            1 => Ok(()),
            many => write!(f, ", x{many}"),
        }
    }
}

/// A family of NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Broadcom, P7 with variable WQEs and MSN table.
    BnxtRe,
    /// AMD Pensando, rdma version 2.
    Ionic,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::BnxtRe, Self::Ionic];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BnxtRe => "bnxt_re",
            Self::Ionic => "ionic",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let mut names: Vec<String> = Operation::ALL.iter().map(ToString::to_string).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Operation::ALL.len());
    }

    #[test]
    fn figures_are_per_request_or_completion() {
        let per_call: Vec<usize> = Operation::ALL.iter().map(|op| op.per_call()).collect();
        assert_eq!(per_call, [1, 16, 1, 16, 1, 16, 1, 16, 1, 16, 1, 16]);
    }

    #[test]
    fn a_batch_signals_as_often_as_it_completes() {
        for sends in Sends::ALL {
            assert_eq!((0..sends.count).filter(|&i| sends.signals(i)).count(), sends.completions());
        }
    }
}
