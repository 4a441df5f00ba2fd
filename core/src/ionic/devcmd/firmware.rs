//! Firmware of the device: a new one is brought over in parts, and installed. Source: DPDK `drivers/net/ionic/ionic_if.h`
//! (BSD); that there is a second pair of opcodes for the same commands: Linux `ionic_if.h`.

use zerocopy::little_endian as le;

use super::command::{Command, Completion};
use super::opcode::Opcode;
use crate::layout::{Layout, layout};

layout! {
    /// Brings a part of a firmware image to the device.
    pub struct FwDownloadCmd: "ionic" "", 64 {
        /// [`Opcode::FW_DOWNLOAD_V1`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: [u8; 3] = 1,
        /// Where in the image the part begins.
        offset: le::U32 = 4,
        /// Where it is.
        addr: le::U64 = 8,
        /// Its bytes.
        length: le::U32 = 16,
        /// As long as a command is.
        rest: [u8; 44] = 20,
    }
}

layout! {
    /// Does something with firmware.
    pub struct FwControlCmd: "ionic" "ionic_fw_control_cmd", 64 {
        /// [`Opcode::FW_CONTROL_V1`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: [u8; 3] = 1,
        /// See [`FwOperation`].
        oper: u8 = 4,
        /// Slot to activate.
        slot: u8 = 5,
        /// Reserved.
        rsvd1: [u8; 58] = 6,
    }
}

layout! {
    /// It is done.
    pub struct FwControlComp: "ionic" "ionic_fw_control_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Position of the command in its queue.
        comp_index: le::U16 = 2,
        /// Slot that the firmware was installed in.
        slot: u8 = 4,
        /// Reserved.
        rsvd1: [u8; 10] = 5,
        /// Pass over the ring.
        color: u8 = 15,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 3] = [FwDownloadCmd::LAYOUT, FwControlCmd::LAYOUT, FwControlComp::LAYOUT];

/// `oper` of [`FwControlCmd`]. Open: there are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FwOperation(pub u8);

impl FwOperation {
    /// Start the firmware again.
    pub const RESET: Self = Self(0);
    /// Install what was brought over.
    pub const INSTALL: Self = Self(1);
    /// Have a slot's firmware started next time.
    pub const ACTIVATE: Self = Self(2);
}

impl Command for FwDownloadCmd {
    const OPCODE: Opcode = Opcode::FW_DOWNLOAD_V1;
    type Completion = Completion;
}

impl Command for FwControlCmd {
    const OPCODE: Opcode = Opcode::FW_CONTROL_V1;
    type Completion = FwControlComp;
}

impl FwDownloadCmd {
    /// The part of `length` bytes at `addr` that begins at `offset` of the image.
    pub const fn new(offset: u32, addr: u64, length: u32) -> Self {
        Self {
            opcode: Opcode::FW_DOWNLOAD_V1.0,
            offset: le::U32::new(offset),
            addr: le::U64::new(addr),
            length: le::U32::new(length),
            ..Self::ZERO
        }
    }
}

impl FwControlCmd {
    /// Does `oper`, with `slot` where that needs one.
    pub const fn new(oper: FwOperation, slot: u8) -> Self {
        Self { opcode: Opcode::FW_CONTROL_V1.0, oper: oper.0, slot, ..Self::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_by_offset_address_and_length() {
        let bytes = FwDownloadCmd::new(0x1000, 0x2_0000, 0x300).to_bytes();
        assert_eq!(bytes[..8], [254, 0, 0, 0, 0, 0x10, 0, 0]);
        assert_eq!(bytes[8..20], [0, 0, 2, 0, 0, 0, 0, 0, 0, 3, 0, 0]);
        assert_eq!(FwControlCmd::new(FwOperation::ACTIVATE, 1).to_bytes()[..6], [255, 0, 0, 0, 2, 1]);
        let done = FwControlCmd::completion(&[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(done.map(|done| done.slot), Ok(3));
    }
}
