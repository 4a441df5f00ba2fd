//! Registers of BAR 0: what the device is, the window for device commands, and interrupt control.
//! Source: Linux `ionic_if.h`, `ionic_regs.h`; how they are used: `ionic_dev.c`.

use zerocopy::little_endian as le;

use crate::layout::{Layout, bits, layout, nested};

/// Least bytes of BAR 0.
pub const BAR0_BYTES: usize = 0x8000;
/// Where [`DevInfoRegs`] are.
pub const DEV_INFO: usize = 0;
/// Where [`DevCmdRegs`] are.
pub const DEV_CMD: usize = 0x800;
/// Write [`GO`] here to have the command carried out.
pub const DEV_CMD_DOORBELL: usize = DEV_CMD;
/// Bit 0 says that the command is done. Write 0 before the doorbell.
pub const DEV_CMD_DONE: usize = DEV_CMD + 4;
/// The command.
pub const DEV_CMD_COMMAND: usize = DEV_CMD + 8;
/// Its completion.
pub const DEV_CMD_COMPLETION: usize = DEV_CMD + 0x48;
/// Data beside the command, in either direction.
pub const DEV_CMD_DATA: usize = DEV_CMD + 0x88;
/// Interrupt status: two words, a bit for each interrupt.
pub const INTR_STATUS: usize = 0x1000;
/// Interrupt control: an [`IntrRegs`] for each interrupt.
pub const INTR_CONTROL: usize = 0x2000;

/// Bytes of a command.
pub const COMMAND_BYTES: usize = 64;
/// Bytes of a completion.
pub const COMPLETION_BYTES: usize = 16;
/// Bytes of the data window.
pub const DATA_BYTES: usize = 1912;

/// `signature` of the device: "DEVI".
pub const SIGNATURE: u32 = 0x4445_5649;
/// What [`DEV_CMD_DOORBELL`] takes.
pub const GO: u32 = 1;
/// Bit of [`DEV_CMD_DONE`].
pub const DONE: u32 = 1;

/// PCI vendor id of AMD Pensando.
pub const PCI_VENDOR: u16 = 0x1dd8;
/// PCI device id of a physical function.
pub const PCI_DEVICE_PF: u16 = 0x1002;
/// PCI device id of a virtual function.
pub const PCI_DEVICE_VF: u16 = 0x1003;
/// Bits of the addresses that the device can reach.
pub const ADDRESS_BITS: u32 = 52;

bits! {
    /// `fw_status` of [`DevInfoRegs`]. All ones says that the device is gone.
    pub struct FwStatus(u8) {
        /// The firmware runs; without, no command is carried out.
        running: bool = 1,
        __: u8 = 3,
        /// Changes when the firmware starts again: everything that was created is gone.
        generation: u8 = 4,
    }
}

impl FwStatus {
    /// What a device reads as that is gone.
    pub const GONE: Self = Self::from_bits(0xff);
}

layout! {
    /// What the device is.
    pub struct DevInfoRegs: "ionic" "ionic_dev_info_regs", 2048 {
        /// [`SIGNATURE`].
        signature: le::U32 = 0,
        /// Version of these registers.
        version: u8 = 4,
        /// The chip, see [`AsicType`].
        asic_type: u8 = 5,
        /// Its revision.
        asic_rev: u8 = 6,
        /// State of the firmware.
        fw_status: u8 as FwStatus = 7,
        /// Counts while the firmware is alive; stays 0 if it does not count.
        fw_heartbeat: le::U32 = 8,
        /// Version of the firmware, text.
        fw_version: [u8; 32] = 12,
        /// Serial number, text.
        serial_num: [u8; 32] = 44,
        /// Reserved.
        rsvd_pad1024: [u8; 948] = 76,
        /// The device clock.
        hwstamp: HwstampRegs = 1024,
        /// As long as the block is.
        rest: [u8; 1016] = 1032,
    }
}

layout! {
    /// The device clock, in ticks.
    pub struct HwstampRegs: "ionic" "ionic_hwstamp_regs", 8 {
        /// Low half. Reading it holds the high half.
        tick_low: le::U32 = 0,
        /// High half.
        tick_high: le::U32 = 4,
    }
}

layout! {
    /// The window for device commands.
    pub struct DevCmdRegs: "ionic" "ionic_dev_cmd_regs", 2048 {
        /// [`GO`] has the command carried out.
        doorbell: le::U32 = 0,
        /// [`DONE`] once it is.
        done: le::U32 = 4,
        /// The command.
        cmd: [u8; 64] = 8,
        /// Its completion.
        comp: [u8; 16] = 72,
        /// Reserved.
        rsvd: [u8; 48] = 88,
        /// Data beside the command, in either direction.
        data: [le::U32; 478] = 136,
    }
}

bits! {
    /// `credits` of [`IntrRegs`].
    pub struct IntrCredits(u32) {
        /// Events taken; the device subtracts them from those not yet taken. Two's complement in 16 bits.
        count: u16 = 16,
        /// Allow the next interrupt.
        unmask: bool = 1,
        /// Start the coalescing timer again.
        reset_coalesce: bool = 1,
        __: u16 = 14,
    }
}

layout! {
    /// Control of an interrupt.
    pub struct IntrRegs: "ionic" "ionic_intr", 32 {
        /// Coalescing timer, its start value.
        coal_init: le::U32 = 0,
        /// 1 holds the interrupt back.
        mask: le::U32 = 4,
        /// Takes events back, and unmasks.
        credits: le::U32 as IntrCredits = 8,
        /// 1 masks the interrupt when it is raised.
        mask_assert: le::U32 = 12,
        /// Coalescing timer.
        coal: le::U32 = 16,
        /// Reserved.
        rsvd: [le::U32; 3] = 20,
    }
}

nested!(HwstampRegs);

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 4] =
    [DevInfoRegs::LAYOUT, HwstampRegs::LAYOUT, DevCmdRegs::LAYOUT, IntrRegs::LAYOUT];

/// `asic_type` of [`DevInfoRegs`]. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsicType(pub u8);

impl AsicType {
    /// Capri.
    pub const CAPRI: Self = Self(1);
    /// Elba. It may miss a doorbell: the driver rings again from time to time.
    pub const ELBA: Self = Self(2);
    /// Giglio.
    pub const GIGLIO: Self = Self(3);
    /// Salina.
    pub const SALINA: Self = Self(4);

    /// Doorbells may be missed and are to be rung again.
    pub const fn may_miss_doorbells(self) -> bool {
        self.0 == 0 || self.0 == Self::ELBA.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn the_constants_are_where_the_layouts_say() {
        assert_eq!(DEV_CMD_DONE, DEV_CMD + offset_of!(DevCmdRegs, done));
        assert_eq!(DEV_CMD_COMMAND, DEV_CMD + offset_of!(DevCmdRegs, cmd));
        assert_eq!(DEV_CMD_COMPLETION, DEV_CMD + offset_of!(DevCmdRegs, comp));
        assert_eq!(DEV_CMD_DATA, DEV_CMD + offset_of!(DevCmdRegs, data));
        assert_eq!(DEV_CMD_DATA + DATA_BYTES, INTR_STATUS);
        assert_eq!(SIGNATURE.to_be_bytes(), *b"DEVI");
    }

    #[test]
    fn credits_unmask() {
        assert_eq!(IntrCredits::new().with_unmask(true).into_bits(), 0x1_0000);
        assert_eq!(IntrCredits::new().with_count(3).with_reset_coalesce(true).into_bits(), 0x2_0003);
        assert_eq!(FwStatus::from_bits(0x31).generation(), 3);
        assert!(FwStatus::from_bits(0x31).running() && FwStatus::GONE.running());
    }
}
