use directverbs::verbs::{CqId, Imm, Mac, QpId, RKey, SrqId, WcOpcode, WcStatus};

use super::PsnRange;
use directverbs::verbs::Psn;

/// Side of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Send queue.
    Send,
    /// Receive queue, own or shared.
    Recv,
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramSource {
    /// Sender's queue pair.
    pub qp: QpId,
    /// Sender's Ethernet address.
    pub mac: Mac,
    /// VLAN tag (802.1Q TCI).
    pub vlan: Option<u16>,
    /// It came in IPv6; the GRH is then the IPv6 header. Otherwise the last 20 of the 40 bytes are the IPv4 header.
    pub ipv6: bool,
}

/// A request that has ended. Requests of one side of a queue pair end in post order, each exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Where it completes.
    pub cq: CqId,
    /// Queue pair.
    pub qp: QpId,
    /// The queue pair's handle, as given at creation.
    pub handle: u64,
    /// Side.
    pub side: Side,
    /// The shared receive queue that a receive request came from.
    pub srq: Option<SrqId>,
    /// The work's token.
    pub token: u64,
    /// A send request asked for a completion (by flag, or the queue pair signals all). True for receives.
    pub signaled: bool,
    /// Outcome. `WrFlush` for each request that was still there when the queue pair went into error.
    pub status: WcStatus,
    /// Operation; of a request that could not be decoded, SEND.
    pub opcode: WcOpcode,
    /// Bytes received (with the 40 of the GRH), read, or returned by an atomic.
    pub byte_len: u32,
    /// Immediate data received.
    pub imm: Option<Imm>,
    /// Key that the peer invalidated.
    pub invalidated: Option<RKey>,
    /// The sender asked for a solicited event.
    pub solicited: bool,
    /// Of a datagram received.
    pub source: Option<DatagramSource>,
    /// Sequence numbers of a send request.
    pub psns: PsnRange,
    /// A send request that took no acknowledgement: local operations and datagrams.
    pub local: bool,
}

/// What the engine tells the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request has ended. Also flushed ones, and unsignaled ones.
    Completion(Completion),
    /// A queue pair has gone into error by itself. It comes after the completion that says why, and before those of
    /// the flushed requests.
    QpError {
        /// Queue pair.
        qp: QpId,
        /// Which side failed.
        side: Side,
        /// Why.
        status: WcStatus,
    },
    /// A request is sent again from `psn` on. It comes before the packets do.
    Retransmit {
        /// Queue pair.
        qp: QpId,
        /// The send request's token.
        token: u64,
        /// First sequence number sent again.
        psn: Psn,
        /// All sequence numbers of the request.
        psns: PsnRange,
    },
    /// A shared receive queue holds fewer requests than its armed limit; it is not armed any more.
    SrqLimit {
        /// The queue.
        srq: SrqId,
    },
    /// A send queue has drained (state SQD).
    SqDrained {
        /// Queue pair.
        qp: QpId,
    },
}
