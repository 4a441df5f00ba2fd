//! Work requests that own their data, to be given to both sides.

use directverbs::verbs::{Data, RecvRequest, SendFlags, SendOp, SendRequest, Sge};

/// A send request.
#[derive(Clone, Debug, PartialEq)]
pub struct Send {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Operation.
    pub op: SendOp,
    /// Flags; inline is told by the payload.
    pub flags: SendFlags,
    /// What it carries.
    pub payload: Payload,
}

/// What a send request carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Registered memory.
    Sges(Vec<Sge>),
    /// Bytes that are copied at post, in pieces.
    Inline(Vec<Vec<u8>>),
}

impl Send {
    /// The request as the core takes it.
    pub fn with<R>(&self, f: impl FnOnce(&SendRequest<'_>) -> R) -> R {
        let pieces: Vec<&[u8]>;
        let data = match &self.payload {
            Payload::Sges(sges) => Data::Sges(sges),
            Payload::Inline(owned) => {
                pieces = owned.iter().map(Vec::as_slice).collect();
                Data::Inline(&pieces)
            }
        };
        f(&SendRequest { wr_id: self.wr_id, op: self.op, flags: self.flags, data })
    }

    /// The data is inline.
    pub fn inline(&self) -> bool {
        matches!(self.payload, Payload::Inline(_))
    }

    /// Pieces of the data.
    pub fn pieces(&self) -> usize {
        match &self.payload {
            Payload::Sges(sges) => sges.len(),
            Payload::Inline(pieces) => pieces.len(),
        }
    }

    /// Bytes of the message.
    pub fn length(&self) -> u64 {
        self.with(|request| request.length())
    }

    /// A completion is asked for.
    pub fn signaled(&self) -> bool {
        self.flags.contains(SendFlags::SIGNALED)
    }
}

/// A receive request.
#[derive(Clone, Debug, PartialEq)]
pub struct Recv {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Memory that the message fills.
    pub sges: Vec<Sge>,
}

impl Recv {
    /// The request as the core takes it.
    pub fn request(&self) -> RecvRequest<'_> {
        RecvRequest::new(self.wr_id, &self.sges)
    }
}
