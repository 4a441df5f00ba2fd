use super::Sge;

/// A receive work request.
#[derive(Clone, Copy, Debug)]
pub struct RecvRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Memory that the message fills, in order. A datagram begins with 40 bytes of GRH.
    pub sges: &'a [Sge],
}

impl<'a> RecvRequest<'a> {
    /// A request that fills `sges`.
    pub const fn new(wr_id: u64, sges: &'a [Sge]) -> Self {
        Self { wr_id, sges }
    }
}
