//! Entries of the ring of completions.

use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::message::{
    CQ_ERROR, Command, CreqBase, CreqCqErrorNotification, CreqDone, CreqFuncEvent, CreqQpErrorNotification,
    CreqType, FUNC_EVENT, QP_ERROR, QP_EVENT, UNIT,
};
use super::opcode::Opcode;

/// Status of a command. Open: any value is representable. Source: `roce_hsi.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// Done.
    pub const SUCCESS: Self = Self(0);
    /// Failed, for no other reason.
    pub const FAIL: Self = Self(1);
    /// No such resources left.
    pub const RESOURCES: Self = Self(2);
    /// The command makes no sense now.
    pub const INVALID_CMD: Self = Self(3);
    /// The device has no such command.
    pub const NOT_IMPLEMENTED: Self = Self(4);
    /// A parameter makes no sense.
    pub const INVALID_PARAMETER: Self = Self(5);
    /// The hardware has an error.
    pub const HARDWARE_ERROR: Self = Self(6);
    /// The firmware has an error.
    pub const INTERNAL_ERROR: Self = Self(7);

    const NAMES: [&'static str; 8] = [
        "success",
        "failed",
        "out of resources",
        "invalid command",
        "not implemented",
        "invalid parameter",
        "hardware error",
        "internal error",
    ];
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match Self::NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "status {:#x}", self.0),
        }
    }
}

/// What the device has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreqEvent {
    /// A command is complete.
    Completion(Completion),
    /// A queue pair went into error.
    QpError(CreqQpErrorNotification),
    /// A completion queue went into error.
    CqError(CreqCqErrorNotification),
    /// Something about the function.
    Function(CreqFuncEvent),
    /// None that the driver knows.
    Unknown([u8; UNIT]),
}

/// A command is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Opcode.
    pub opcode: Opcode,
    /// Cookie.
    pub cookie: u16,
    /// Status.
    pub status: Status,
    /// The entry.
    pub entry: [u8; UNIT],
}

impl CreqEvent {
    /// Reads an entry.
    pub fn decode(entry: [u8; UNIT]) -> Self {
        let Ok(base) = CreqBase::read_from_bytes(&entry) else { return Self::Unknown(entry) };
        let read = match (CreqType::from_bits(base.r#type).kind(), base.event) {
            (QP_EVENT, QP_ERROR) => CreqQpErrorNotification::read_from_bytes(&entry).map(Self::QpError).ok(),
            (QP_EVENT, CQ_ERROR) => CreqCqErrorNotification::read_from_bytes(&entry).map(Self::CqError).ok(),
            (QP_EVENT, opcode) => CreqDone::read_from_bytes(&entry).ok().map(|done| {
                Self::Completion(Completion {
                    opcode: Opcode(opcode),
                    cookie: done.cookie.get(),
                    status: Status(done.status),
                    entry,
                })
            }),
            (FUNC_EVENT, _) => CreqFuncEvent::read_from_bytes(&entry).map(Self::Function).ok(),
            _ => None,
        };
        read.unwrap_or(Self::Unknown(entry))
    }
}

/// A completion that is none of the command that was sent, or that says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompletionError {
    /// It is of another command.
    #[error("{opcode}: completion has cookie {seen:#x}, not {sent:#x}")]
    Cookie {
        /// Opcode of the command.
        opcode: Opcode,
        /// Cookie sent.
        sent: u16,
        /// Cookie in the completion.
        seen: u16,
    },
    /// It is of a command with another opcode.
    #[error("{opcode}: completion is of {seen}")]
    Opcode {
        /// Opcode of the command.
        opcode: Opcode,
        /// Opcode in the completion.
        seen: Opcode,
    },
    /// The device says no.
    #[error("{opcode}: {status}")]
    Refused {
        /// Opcode of the command.
        opcode: Opcode,
        /// What it says.
        status: Status,
    },
}

/// A command that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) opcode: Opcode,
    pub(super) cookie: u16,
    pub(super) units: u16,
}

impl Ticket {
    /// Opcode of the command.
    pub const fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// What came back for the command `C`.
    ///
    /// # Errors
    /// It is no completion of this command, or the device says no.
    pub fn check<C: Command>(&self, completion: &Completion) -> Result<C::Completion, CompletionError> {
        let mut done = C::Completion::new_zeroed();
        self.accept(completion, done.as_mut_bytes())?;
        Ok(done)
    }

    /// [`Ticket::check`] with the completion as bytes, which are written to `done`.
    ///
    /// # Errors
    /// The same.
    pub fn accept(&self, completion: &Completion, done: &mut [u8]) -> Result<(), CompletionError> {
        let Self { opcode, cookie: sent, .. } = *self;
        if completion.cookie != sent {
            return Err(CompletionError::Cookie { opcode, sent, seen: completion.cookie });
        }
        if completion.opcode != opcode {
            return Err(CompletionError::Opcode { opcode, seen: completion.opcode });
        }
        if completion.status != Status::SUCCESS {
            return Err(CompletionError::Refused { opcode, status: completion.status });
        }
        for (to, from) in done.iter_mut().zip(completion.entry) {
            *to = from;
        }
        Ok(())
    }
}
