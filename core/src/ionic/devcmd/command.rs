//! What all commands have in common: 64 bytes that begin with an opcode, and 16 bytes back that begin with a status.

use zerocopy::{FromBytes, Immutable, IntoBytes, little_endian as le};

use super::opcode::{Opcode, Status};
use super::registers::{COMMAND_BYTES, COMPLETION_BYTES};
use crate::layout::{Layout, layout};

/// A command's bytes: one copy of the code for all commands.
fn with_opcode(opcode: Opcode, command: &[u8]) -> [u8; COMMAND_BYTES] {
    let mut bytes = [0; COMMAND_BYTES];
    for (to, from) in bytes.iter_mut().zip(command) {
        *to = *from;
    }
    bytes[0] = opcode.0;
    bytes
}

/// A command, and what comes back for it. Each can be a device command; those that name a LIF can also go through its
/// admin queue.
pub trait Command: FromBytes + IntoBytes + Immutable + Copy {
    /// What it does.
    const OPCODE: Opcode;
    /// What comes back.
    type Completion: FromBytes + IntoBytes + Immutable + Copy;

    /// The command's bytes, with its opcode.
    fn to_bytes(&self) -> [u8; COMMAND_BYTES] {
        with_opcode(Self::OPCODE, self.as_bytes())
    }

    /// The completion in `bytes`.
    ///
    /// # Errors
    /// The command failed.
    fn completion(bytes: &[u8; COMPLETION_BYTES]) -> Result<Self::Completion, CommandError> {
        const { assert!(size_of::<Self>() == COMMAND_BYTES && size_of::<Self::Completion>() == COMPLETION_BYTES) };
        CommandError::check(Self::OPCODE, bytes)?;
        let status = Status(bytes[0]);
        Self::Completion::read_from_bytes(bytes).map_err(|_| CommandError { opcode: Self::OPCODE, status })
    }
}

/// A command that the device did not carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{opcode}: {status}")]
pub struct CommandError {
    /// The command.
    pub opcode: Opcode,
    /// What the device said.
    pub status: Status,
}

impl CommandError {
    /// Whether the device has carried out a command whose completion is in `bytes`.
    ///
    /// # Errors
    /// It has not.
    pub const fn check(opcode: Opcode, bytes: &[u8; COMPLETION_BYTES]) -> Result<(), Self> {
        let status = Status(bytes[0]);
        if status.is_success() { Ok(()) } else { Err(Self { opcode, status }) }
    }
}

layout! {
    /// Any command.
    pub struct AdminCmd: "ionic" "ionic_admin_cmd", 64 {
        /// What it does.
        opcode: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// The LIF that it is about, where a command has one.
        lif_index: le::U16 = 2,
        /// Particulars.
        cmd_data: [u8; 60] = 4,
    }
}

layout! {
    /// Completion of a command that says no more than how it ended. In an admin queue, each completion ends with the color.
    pub struct Completion: "ionic" "ionic_admin_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Position of the command in its queue; nothing for a device command.
        comp_index: le::U16 = 2,
        /// Particulars.
        cmd_data: [u8; 11] = 4,
        /// Pass over the ring.
        color: u8 as CompColor = 15,
    }
}

crate::layout::bits! {
    /// Last byte of a completion in a queue.
    pub struct CompColor(u8) {
        /// Particulars of other queues.
        other: u8 = 7,
        /// 1 in the first pass over the ring; flips with every wrap.
        color: bool = 1,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 2] = [AdminCmd::LAYOUT, Completion::LAYOUT];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ionic::devcmd::{DevResetCmd, LifInitCmd};

    #[test]
    fn a_command_has_its_opcode_even_if_the_caller_left_it_out() {
        let bytes = DevResetCmd::ZERO.to_bytes();
        assert_eq!((bytes[0], bytes[1..].iter().all(|b| *b == 0)), (3, true));
    }

    #[test]
    fn a_status_is_an_error_that_names_the_command() {
        let mut bytes = [0; 16];
        bytes[2] = 7;
        assert_eq!(LifInitCmd::completion(&bytes).map(|c| c.hw_index.get()), Ok(7));
        for code in 1..=255 {
            bytes[0] = code;
            let error = LifInitCmd::completion(&bytes).unwrap_err();
            assert_eq!(error, CommandError { opcode: Opcode::LIF_INIT, status: Status(code) });
        }
    }
}
