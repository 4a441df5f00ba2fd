use directverbs::verbs::{Psn, SendFlags, SendOp, Sge, WcStatus};

/// What a request carries or fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Registered memory.
    Sges(Vec<Sge>),
    /// Bytes that came inside the WQE.
    Inline(Vec<u8>),
}

impl Payload {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Sges(sges) => sges.iter().map(|s| u64::from(s.length)).sum(),
            Self::Inline(bytes) => bytes.len() as u64,
        }
    }
}

/// A decoded send request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendWork {
    /// Comes back in the completion; means nothing to the engine.
    pub token: u64,
    /// The operation; or the status that a request which could not be decoded fails with when its turn comes.
    pub op: Result<SendOp, WcStatus>,
    /// Flags. `SIGNALED` is only passed through: the engine reports every completion.
    pub flags: SendFlags,
    /// What it carries or fills.
    pub payload: Payload,
}

/// A decoded receive request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecvWork {
    /// Comes back in the completion; means nothing to the engine.
    pub token: u64,
    /// Memory that the message fills; or the status that a request which could not be decoded fails with.
    pub sges: Result<Vec<Sge>, WcStatus>,
}

/// The sequence numbers that a send request was given: `first`, up to and without `next`. Equal for local operations,
/// which take none, and before the queue pair has ever been ready to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PsnRange {
    /// First.
    pub first: Psn,
    /// The next request's first.
    pub next: Psn,
}
