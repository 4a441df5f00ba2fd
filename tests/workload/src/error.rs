use core::fmt;

use directverbs::verbs::{BatchError, CqFault, QpId, WcOpcode, WcStatus};

use crate::{JobError, WrId};

/// What was found where something else was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A byte of the message.
    #[error("byte {offset} is {found:#04x}, expected {expected:#04x}")]
    Byte {
        /// Offset in the message.
        offset: u64,
        /// What it must be.
        expected: u8,
        /// What it is.
        found: u8,
    },
    /// A byte near the message that the device must not touch.
    #[error("byte {offset} of SGE {sge}, behind its end, was overwritten with {found:#04x}")]
    Guard {
        /// Which SGE.
        sge: usize,
        /// Offset in it.
        offset: usize,
        /// What it is.
        found: u8,
    },
    /// A number in the completion or in memory.
    #[error("{what} is {found:#x}, expected {expected:#x}")]
    Value {
        /// Which.
        what: &'static str,
        /// What it must be.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// Something in the completion that is there and must not be, or the other way round.
    #[error("{0}")]
    Completion(&'static str),
    /// Memory that cannot be reached: the memory region is smaller than it was asked to be.
    #[error("memory region refuses offset {offset}")]
    Memory {
        /// Offset in the region.
        offset: usize,
    },
}

/// The requests that a side waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Completions of send requests that are awaited.
    pub sends: usize,
    /// The first of them.
    pub first_send: Option<WrId>,
    /// Receive requests that are posted and not consumed.
    pub receives: u32,
    /// The first of them.
    pub first_receive: Option<WrId>,
}

impl fmt::Display for Outstanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let both = [(self.sends as u64, self.first_send), (u64::from(self.receives), self.first_receive)];
        let mut written = false;
        for (count, first) in both {
            if let Some(first) = first {
                f.write_str(if written { ", " } else { "" })?;
                write!(f, "{first}")?;
                if count > 1 {
                    write!(f, " and {} more", count - 1)?;
                }
                written = true;
            }
        }
        if written { Ok(()) } else { f.write_str("no request") }
    }
}

/// Why a side ended without having verified everything. `E` is the device's error.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E: core::error::Error> {
    /// The job makes no sense, or the device cannot do it. Nothing was done.
    #[error(transparent)]
    Job(JobError),
    /// A control operation failed.
    #[error("{doing}: {error}")]
    Device {
        /// What the workload was doing.
        doing: &'static str,
        /// The device's error.
        error: E,
    },
    /// A request was refused.
    #[error("queue pair {qp}, {wr}: not posted: {error}")]
    Post {
        /// Queue pair.
        qp: QpId,
        /// Request.
        wr: WrId,
        /// Why.
        error: BatchError,
    },
    /// A request failed.
    #[error("queue pair {qp}, {wr}: {status} (vendor code {vendor_err:#x})")]
    Status {
        /// Queue pair.
        qp: QpId,
        /// Request.
        wr: WrId,
        /// Status.
        status: WcStatus,
        /// The device's own code.
        vendor_err: u32,
    },
    /// The device wrote a completion that makes no sense.
    #[error("queue pair {qp}, awaiting {outstanding}: {fault}")]
    Fault {
        /// Queue pair.
        qp: QpId,
        /// What is awaited.
        outstanding: Outstanding,
        /// The fault.
        fault: CqFault,
    },
    /// A completion that no request waits for.
    #[error("queue pair {qp}, {wr}: completed ({opcode:?}), while awaiting {outstanding}")]
    Unexpected {
        /// Queue pair that the completion names.
        qp: QpId,
        /// Request that the completion names.
        wr: WrId,
        /// Operation that the completion names.
        opcode: WcOpcode,
        /// What is awaited.
        outstanding: Outstanding,
    },
    /// A request completed with success, and what it did is wrong.
    #[error("queue pair {qp}, {wr}: {error}")]
    Data {
        /// Queue pair.
        qp: QpId,
        /// Request.
        wr: WrId,
        /// What is wrong.
        error: DataError,
    },
    /// The devices have nothing under way, and requests are outstanding.
    #[error("queue pair {qp}: stalled, nothing is under way; awaiting {outstanding}")]
    Stalled {
        /// Queue pair.
        qp: QpId,
        /// What is awaited.
        outstanding: Outstanding,
    },
    /// Nothing completed within the limit.
    #[error("queue pair {qp}: nothing completed in {waited_ns} ns; awaiting {outstanding}")]
    TimedOut {
        /// Queue pair.
        qp: QpId,
        /// What is awaited.
        outstanding: Outstanding,
        /// Nanoseconds waited, by the device's clock.
        waited_ns: u64,
    },
}

impl<E: core::error::Error> Error<E> {
    /// Whether the caller asked for something that cannot be, rather than a device failing.
    pub const fn is_job(&self) -> bool {
        matches!(self, Self::Job(_))
    }

    /// Whether the request only shares the fate of another one.
    pub const fn is_flush(&self) -> bool {
        matches!(self, Self::Status { status: WcStatus::WrFlush, .. })
    }
}

impl<E: core::error::Error> From<JobError> for Error<E> {
    fn from(error: JobError) -> Self {
        Self::Job(error)
    }
}

/// The side that failed, and why.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PairError<A: core::error::Error, B: core::error::Error> {
    /// The first.
    #[error("first side: {0}")]
    First(Error<A>),
    /// The second.
    #[error("second side: {0}")]
    Second(Error<B>),
}

impl<A: core::error::Error, B: core::error::Error> PairError<A, B> {
    /// See [`Error::is_job`].
    pub const fn is_job(&self) -> bool {
        match self {
            Self::First(e) => e.is_job(),
            Self::Second(e) => e.is_job(),
        }
    }

    /// The error of the job, if it is one.
    pub const fn job(&self) -> Option<JobError> {
        match self {
            Self::First(Error::Job(e)) | Self::Second(Error::Job(e)) => Some(*e),
            _ => None,
        }
    }
}
