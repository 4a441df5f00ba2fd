//! What happens in a case, one thing after the other.

use directverbs::verbs::WcStatus;

use super::dice::Dice;
use super::request::{Recv, Send};

/// Which functions of libibverbs post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// `ibv_post_send`: a list of requests under one doorbell.
    List,
    /// `ibv_wr_start`, one call for each request and its data, `ibv_wr_complete`.
    Builder,
    /// The same, but given up with `ibv_wr_abort`.
    Abort,
}

/// One step. Queue pairs are counted from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Requests are posted to the send queue.
    PostSend {
        /// Queue pair.
        qp: usize,
        /// How.
        interface: Interface,
        /// What.
        requests: Vec<Send>,
    },
    /// Requests are posted to the receive queue.
    PostRecv {
        /// Queue pair.
        qp: usize,
        /// What.
        requests: Vec<Recv>,
    },
    /// Requests are posted to the shared receive queue.
    PostShared(Vec<Recv>),
    /// The device reports; both completion queues get the entries.
    Device(Vec<Event>),
    /// The completion queue is polled for at most so many completions.
    Poll {
        /// Room for completions.
        budget: u32,
    },
    /// The completion queue is armed.
    Arm {
        /// For solicited completions only.
        solicited: bool,
    },
    /// The limit of the shared receive queue is armed.
    ArmShared {
        /// The limit.
        limit: u32,
    },
    /// The completion queue gets new memory for so many completions.
    Resize {
        /// Completions.
        cqe: u32,
    },
    /// The queue pair is modified to ERR.
    Fail {
        /// Queue pair.
        qp: usize,
    },
    /// The queue pair is modified to RESET and made ready again.
    Reset {
        /// Queue pair.
        qp: usize,
        /// Its first PSN afterwards.
        psn: u32,
    },
}

/// A message that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// SEND.
    Plain,
    /// SEND with immediate data.
    Imm(u32),
    /// RDMA WRITE with immediate data.
    WriteImm(u32),
    /// SEND that has invalidated a key of ours.
    Invalidated(u32),
}

/// What the device reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Send requests have succeeded.
    Sent {
        /// Queue pair.
        qp: usize,
        /// How many of those outstanding.
        count: Dice,
    },
    /// A send request has failed.
    SendFailed {
        /// Queue pair.
        qp: usize,
        /// Which of those outstanding.
        which: Dice,
        /// How.
        status: WcStatus,
    },
    /// A message was received.
    Received {
        /// Queue pair.
        qp: usize,
        /// Which outstanding request it took, if the queue lets the device choose.
        which: Dice,
        /// Its length.
        length: u32,
        /// Its kind.
        message: Message,
        /// The sender's queue pair, of a datagram.
        src_qp: u32,
    },
    /// A receive request has failed.
    RecvFailed {
        /// Queue pair.
        qp: usize,
        /// Which outstanding request, if the queue lets the device choose.
        which: Dice,
        /// How.
        status: WcStatus,
    },
    /// The queue pair has gone into error.
    Fatal {
        /// Queue pair.
        qp: usize,
    },
    /// An entry of a queue pair that is gone.
    Gone,
    /// An entry without meaning.
    Nothing,
    /// An entry that a device in order never writes. It comes only if [`super::Profile::senseless_once_in`] asks for it.
    Senseless {
        /// Queue pair that it names, or nearly so.
        qp: usize,
        /// Kind, one of the family's.
        which: Dice,
    },
}
