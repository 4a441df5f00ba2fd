//! A request of a send queue.

use directverbs::verbs::{Psn, QpId, SendFlags, SendOp, WcOpcode, WcStatus};

use super::event::{Completion, Event, Side};
use super::opcode::Service;
use super::work::{PsnRange, SendWork};
use crate::device::QpConfig;

/// What a send request does on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// SEND or WRITE: one packet for each path MTU, acknowledged.
    Message(Service),
    /// READ: one packet out, several back.
    Read,
    /// Atomic: one packet out, one back.
    Atomic,
    /// Datagram or raw frame: one packet, done once sent.
    Datagram,
    /// Nothing on the wire.
    Local,
    /// It cannot be carried out and fails when its turn comes.
    Refused(WcStatus),
}

/// A send request.
#[derive(Debug)]
pub struct Entry {
    /// As posted.
    pub work: SendWork,
    pub(super) kind: Kind,
    /// Bytes of the message.
    pub length: u32,
    /// Sequence numbers.
    pub psns: PsnRange,
    /// A local operation was carried out, and waits for earlier requests to end.
    pub(super) executed: bool,
    /// A local operation was reported before its turn.
    pub reported: bool,
}

impl Entry {
    /// READ or atomic.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Atomic)
    }

    /// Operation as completions name it.
    fn opcode(&self) -> WcOpcode {
        match self.work.op {
            Ok(SendOp::Write(_) | SendOp::WriteImm(..)) => WcOpcode::RdmaWrite,
            Ok(SendOp::Read(_)) => WcOpcode::RdmaRead,
            Ok(SendOp::CompareSwap { .. }) => WcOpcode::CompSwap,
            Ok(SendOp::FetchAdd { .. }) => WcOpcode::FetchAdd,
            Ok(SendOp::LocalInv(_)) => WcOpcode::LocalInv,
            Ok(SendOp::BindMw(_)) => WcOpcode::BindMw,
            Ok(SendOp::FastRegister(_)) => WcOpcode::RegMr,
            _ => WcOpcode::Send,
        }
    }

    /// Its completion, at the queue pair `qp`.
    pub(super) fn completion(&self, qp: QpId, config: &QpConfig, status: WcStatus) -> Event {
        Event::Completion(Completion {
            cq: config.send_cq,
            qp,
            handle: config.handle,
            side: Side::Send,
            srq: None,
            token: self.work.token,
            signaled: config.signal_all || self.work.flags.contains(SendFlags::SIGNALED),
            status,
            opcode: self.opcode(),
            byte_len: self.length,
            imm: None,
            invalidated: None,
            solicited: false,
            source: None,
            psns: self.psns,
            local: matches!(self.kind, Kind::Local | Kind::Datagram),
        })
    }

    /// Packets, or responses, that it takes.
    pub(super) fn count(&self) -> u32 {
        steps(self.psns.first, self.psns.next)
    }
}

/// Sequence numbers from `from` up to `to`, modulo 2^24.
pub(super) fn steps(from: Psn, to: Psn) -> u32 {
    to.get().wrapping_sub(from.get()) & Psn::MAX.get()
}
