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

/// Gives all of `requests` to `f` as the core takes them.
pub fn with_all<R>(requests: &[Send], f: impl FnOnce(&[SendRequest<'_>]) -> R) -> R {
    let pieces: Vec<Vec<&[u8]>> = requests.iter().map(Send::inline_pieces).collect();
    let list: Vec<SendRequest<'_>> =
        requests.iter().zip(&pieces).map(|(request, pieces)| request.borrowed(pieces)).collect();
    f(&list)
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
        f(&self.borrowed(&self.inline_pieces()))
    }

    fn inline_pieces(&self) -> Vec<&[u8]> {
        match &self.payload {
            Payload::Sges(_) => Vec::new(),
            Payload::Inline(owned) => owned.iter().map(Vec::as_slice).collect(),
        }
    }

    fn borrowed<'a>(&'a self, pieces: &'a [&'a [u8]]) -> SendRequest<'a> {
        let data = match &self.payload {
            Payload::Sges(sges) => Data::Sges(sges),
            Payload::Inline(_) => Data::Inline(pieces),
        };
        SendRequest { wr_id: self.wr_id, op: self.op, flags: self.flags, data }
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
