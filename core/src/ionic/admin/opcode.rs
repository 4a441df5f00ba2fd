//! Opcodes of the RDMA admin queue, and how a command ended. Source: Linux `ionic_fw.h`.

use core::fmt;

/// What a command does. Open: devices may know others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdminOp(pub u8);

impl AdminOp {
    /// Nothing.
    pub const NOOP: Self = Self(0);
    /// Creates a ring of a completion queue.
    pub const CREATE_CQ: Self = Self(1);
    /// Creates a queue pair.
    pub const CREATE_QP: Self = Self(2);
    /// Creates a memory region or window.
    pub const CREATE_MR: Self = Self(3);
    /// Names of the device's statistics.
    pub const STATS_HDRS: Self = Self(4);
    /// Values of the device's statistics.
    pub const STATS_VALS: Self = Self(5);
    /// Destroys a memory region or window.
    pub const DESTROY_MR: Self = Self(6);
    /// Destroys a ring of a completion queue.
    pub const DESTROY_CQ: Self = Self(8);
    /// Changes a queue pair.
    pub const MODIFY_QP: Self = Self(9);
    /// Reads a queue pair.
    pub const QUERY_QP: Self = Self(10);
    /// Destroys a queue pair.
    pub const DESTROY_QP: Self = Self(11);
    /// Creates an address handle.
    pub const CREATE_AH: Self = Self(13);
    /// Reads an address handle.
    pub const QUERY_AH: Self = Self(14);
    /// Changes a profile of congestion control.
    pub const MODIFY_DCQCN: Self = Self(15);
    /// Destroys an address handle.
    pub const DESTROY_AH: Self = Self(16);
    /// Names of a queue pair's statistics.
    pub const QP_STATS_HDRS: Self = Self(17);
    /// Values of a queue pair's statistics.
    pub const QP_STATS_VALS: Self = Self(18);

    /// Its name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(op, _)| *op == self).map(|(_, name)| *name)
    }
}

const NAMES: &[(AdminOp, &str)] = &[
    (AdminOp::NOOP, "NOOP"),
    (AdminOp::CREATE_CQ, "CREATE_CQ"),
    (AdminOp::CREATE_QP, "CREATE_QP"),
    (AdminOp::CREATE_MR, "CREATE_MR"),
    (AdminOp::STATS_HDRS, "STATS_HDRS"),
    (AdminOp::STATS_VALS, "STATS_VALS"),
    (AdminOp::DESTROY_MR, "DESTROY_MR"),
    (AdminOp::DESTROY_CQ, "DESTROY_CQ"),
    (AdminOp::MODIFY_QP, "MODIFY_QP"),
    (AdminOp::QUERY_QP, "QUERY_QP"),
    (AdminOp::DESTROY_QP, "DESTROY_QP"),
    (AdminOp::CREATE_AH, "CREATE_AH"),
    (AdminOp::QUERY_AH, "QUERY_AH"),
    (AdminOp::MODIFY_DCQCN, "MODIFY_DCQCN"),
    (AdminOp::DESTROY_AH, "DESTROY_AH"),
    (AdminOp::QP_STATS_HDRS, "QP_STATS_HDRS"),
    (AdminOp::QP_STATS_VALS, "QP_STATS_VALS"),
];

impl fmt::Display for AdminOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "admin opcode {}", self.0),
        }
    }
}

/// A command that the device did not carry out. Its codes are not published; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op}: status {status}")]
pub struct AdminError {
    /// The command.
    pub op: AdminOp,
    /// What the device said.
    pub status: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn errors_name_the_command() {
        assert_eq!(AdminError { op: AdminOp(2), status: 7 }.to_string(), "CREATE_QP: status 7");
        assert_eq!(AdminError { op: AdminOp(7), status: 1 }.to_string(), "admin opcode 7: status 1");
    }
}
