//! Errors of callers, and faults of devices.

use super::{CqId, QpState, QpType, Text, WcOpcode};

/// A number as it is in an error, which is small: `u32::MAX` stands for all that is larger.
pub const fn shown(number: u64) -> u32 {
    if number > u32::MAX as u64 { u32::MAX } else { number as u32 }
}

/// A work request that cannot be posted. Nothing was written and nothing rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The queue has no room. Poll completions, then post again.
    #[error("queue full: {needed} entries needed, {free} free")]
    QueueFull {
        /// Entries (slots of 16 bytes for bnxt_re, WQEs for ionic) that the request takes.
        needed: u32,
        /// Entries free.
        free: u32,
    },
    /// More SGEs than were granted.
    #[error("{given} SGEs, {max} granted")]
    TooManySges {
        /// SGEs of the request.
        given: usize,
        /// SGEs granted at creation.
        max: u32,
    },
    /// More inline bytes than were granted.
    #[error("{given} inline bytes, {max} granted")]
    InlineTooLong {
        /// Bytes of the request.
        given: u64,
        /// Bytes granted at creation.
        max: u32,
    },
    /// The operation cannot carry inline data.
    #[error("{0:?} cannot carry inline data")]
    InlineNotAllowed(WcOpcode),
    /// A message longer than the operation allows.
    #[error("message of {given} bytes, at most {max}")]
    MessageTooLong {
        /// Bytes of the request.
        given: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// An atomic takes exactly one SGE of 8 bytes.
    #[error("an atomic takes one SGE of 8 bytes")]
    AtomicSge,
    /// The queue pair's kind, version or capabilities do not have the operation.
    #[error("{op:?} is not an operation of this {qp_type:?} queue pair")]
    NotSupported {
        /// Operation asked for.
        op: WcOpcode,
        /// Kind of the queue pair.
        qp_type: QpType,
    },
    /// A flag that the operation does not take.
    #[error("{0:?} does not take one of the flags")]
    FlagNotAllowed(WcOpcode),
    /// Only a memory window of type 1 is unbound by a bind of length zero.
    #[error("a bind of length zero, and the window is not of type 1")]
    EmptyBind,
    /// A field of the request is wider than the WQE's.
    #[error("{field} {value:#x} does not fit {bits} bits")]
    OutOfRange {
        /// The field.
        field: Text,
        /// Its value.
        value: u64,
        /// Bits there are.
        bits: u32,
    },
    /// The queue pair's state does not allow posting.
    #[error("queue pair is in state {0:?}")]
    BadState(QpState),
    /// The queue pair has no such queue (its receives come from a shared one, say).
    #[error("the queue pair has no such queue")]
    NoQueue,
    /// The completion queue given is not the one the queue completes to.
    #[error("completion queue {given} given, the queue completes to {attached}")]
    WrongCq {
        /// The one given.
        given: CqId,
        /// The one attached.
        attached: CqId,
    },
}

/// The request of a batch that cannot be posted. The whole batch was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request {index}: {error}")]
pub struct BatchError {
    /// Position in the batch.
    pub index: usize,
    /// Why.
    #[source]
    pub error: PostError,
}

/// A transition that cannot be made. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The state diagram has no such edge.
    #[error("no transition from {from:?} to {to:?}")]
    NoSuchTransition {
        /// State now.
        from: QpState,
        /// State asked for.
        to: QpState,
    },
    /// An attribute that the transition needs is missing.
    #[error("{from:?} to {to:?} needs {attribute}")]
    Missing {
        /// State now.
        from: QpState,
        /// State asked for.
        to: QpState,
        /// Name of the attribute.
        attribute: Text,
    },
    /// An attribute is out of range.
    #[error("{attribute} {value} is over {max}")]
    OutOfRange {
        /// Name of the attribute.
        attribute: Text,
        /// Its value.
        value: u32,
        /// The largest allowed.
        max: u32,
    },
}

/// Capabilities that no queue can be planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// More than the device has.
    #[error("{what}: {asked} asked for, the device has {max}")]
    OverDevice {
        /// The capability.
        what: Text,
        /// Asked for, as [`shown`].
        asked: u32,
        /// The device's maximum, as [`shown`].
        max: u32,
    },
    /// A combination that the device or its mode does not have.
    #[error("{0}")]
    Unsupported(Text),
}

/// Memory that does not fit a plan. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Too short.
    #[error("{what}: {given} bytes or entries, {needed} needed")]
    TooShort {
        /// Which memory.
        what: Text,
        /// There are, as [`shown`].
        given: u32,
        /// There must be, as [`shown`].
        needed: u32,
    },
    /// Not aligned.
    #[error("{what}: address {past:#x} past a multiple of {align}")]
    Misaligned {
        /// Which memory.
        what: Text,
        /// How far its address is past a multiple.
        past: u32,
        /// What it must be a multiple of.
        align: u32,
    },
    /// Two rings share memory.
    #[error("{0} and {1} overlap")]
    Overlap(Text, Text),
    /// An id or key is wider than the device's field.
    #[error("{what} {value:#x} does not fit {bits} bits")]
    OutOfRange {
        /// The id.
        what: Text,
        /// Its value.
        value: u32,
        /// Bits there are.
        bits: u32,
    },
    /// A completion queue, clock or placement that does not go with the queue.
    #[error("{0}")]
    Mismatch(Text),
}

impl MemoryError {
    /// Memory of `given` bytes or entries, where there must be `needed`.
    pub const fn too_short(what: Text, given: usize, needed: usize) -> Self {
        Self::TooShort { what, given: shown(given as u64), needed: shown(needed as u64) }
    }

    /// Memory at `address`, which must be a multiple of `align`.
    pub const fn misaligned(what: Text, address: u64, align: u64) -> Self {
        let past = match address.checked_rem(align) {
            Some(past) => past,
            None => address,
        };
        Self::Misaligned { what, past: shown(past), align: shown(align) }
    }
}

impl PlanError {
    /// `asked` of something of which the device has `max`.
    pub const fn over_device(what: Text, asked: u64, max: u64) -> Self {
        Self::OverDevice { what, asked: shown(asked), max: shown(max) }
    }
}

/// What is wrong with a CQE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// It names a queue pair that is not there. The CQE was skipped.
    #[error("no queue pair with key {0:#x}")]
    UnknownQp(u64),
    /// It names a shared receive queue's entry, or a queue, that is not there. The CQE was skipped.
    #[error("no outstanding request {index} of queue pair {qp}")]
    BadIndex {
        /// The queue pair.
        qp: u32,
        /// The index that the CQE names.
        index: u32,
    },
    /// Its type is none that the driver knows. The CQE was skipped.
    #[error("unknown CQE type {0:#x}")]
    UnknownType(u8),
    /// A type that makes no sense here: a receive on a queue without receives, a cut-off without a resize. Skipped.
    #[error("CQE type {0:#x} makes no sense here")]
    Unexpected(u8),
    /// The device wrote over CQEs that were not consumed. The completion queue is failed.
    #[error("completion queue overrun")]
    Overrun,
    /// The completion queue failed earlier.
    #[error("completion queue has failed")]
    Failed,
}

/// A CQE that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("completion queue {cq}, entry {entry}: {kind}")]
pub struct CqFault {
    /// The completion queue.
    pub cq: CqId,
    /// Index of the entry.
    pub entry: u32,
    /// What is wrong.
    #[source]
    pub kind: FaultKind,
    /// The CQE as read.
    pub cqe: [u8; 32],
}
