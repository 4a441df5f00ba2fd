//! Operations of a send queue, and their opcodes in the interface's versions. Source: rdma-core `ionic_fw_types.h`.

/// Interface version of the device: which opcodes and atomic body it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RdmaVersion {
    /// Version 1.
    V1 = 1,
    /// Version 2.
    V2 = 2,
}

/// Operations of a send queue. The discriminants are the opcodes of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SqOp {
    /// SEND.
    Send = 0,
    /// SEND that invalidates a key of the peer.
    SendInv = 1,
    /// SEND with immediate data.
    SendImm = 2,
    /// RDMA READ.
    Read = 3,
    /// RDMA WRITE.
    Write = 4,
    /// RDMA WRITE with immediate data.
    WriteImm = 5,
    /// Atomic compare and swap.
    CompareSwap = 6,
    /// Atomic fetch and add.
    FetchAdd = 7,
    /// Registers memory.
    RegMr = 8,
    /// Invalidates a local key.
    LocalInv = 9,
    /// Binds a memory window.
    BindMw = 10,
}

/// The opcode of each operation, in order of [`SqOp`]'s discriminants.
pub(super) type Opcodes = [u8; 11];

const OPCODES_V1: Opcodes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
/// Version 2 opcodes: bit 5 carries data, bit 6 immediate data, bit 7 a key to invalidate.
const OPCODES_V2: Opcodes = [0x20, 0xa0, 0x60, 0x02, 0x21, 0x61, 0x04, 0x05, 0x06, 0x07, 0x08];

impl RdmaVersion {
    /// The opcodes of the version.
    #[inline(always)]
    pub(super) const fn opcodes(self) -> &'static Opcodes {
        match self {
            Self::V1 => &OPCODES_V1,
            Self::V2 => &OPCODES_V2,
        }
    }
}

impl SqOp {
    /// All operations, in order of their discriminants.
    pub const ALL: [Self; 11] = [
        Self::Send,
        Self::SendInv,
        Self::SendImm,
        Self::Read,
        Self::Write,
        Self::WriteImm,
        Self::CompareSwap,
        Self::FetchAdd,
        Self::RegMr,
        Self::LocalInv,
        Self::BindMw,
    ];

    /// The opcode in a WQE.
    #[inline(always)]
    pub const fn opcode(self, version: RdmaVersion) -> u8 {
        version.opcodes()[self as usize]
    }

    /// The operation of an opcode in a WQE; `None` if the version has no such opcode.
    pub fn from_opcode(version: RdmaVersion, opcode: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.opcode(version) == opcode)
    }

    /// Whether the operation never leaves the device: it completes by position, not by message.
    #[inline(always)]
    pub const fn is_local(self) -> bool {
        matches!(self, Self::RegMr | Self::LocalInv | Self::BindMw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_round_trip_in_both_versions() {
        for version in [RdmaVersion::V1, RdmaVersion::V2] {
            for op in SqOp::ALL {
                assert_eq!(SqOp::from_opcode(version, op.opcode(version)), Some(op));
            }
        }
        assert_eq!(SqOp::SendImm.opcode(RdmaVersion::V2), 0x60);
        assert_eq!(SqOp::from_opcode(RdmaVersion::V1, 11), None);
        assert_eq!(SqOp::from_opcode(RdmaVersion::V2, 0), None);
    }
}
