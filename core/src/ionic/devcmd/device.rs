//! Commands about the whole device. Source: Linux `ionic_if.h`.

use zerocopy::little_endian as le;

use super::command::{Command, Completion};
use super::opcode::Opcode;
use crate::layout::{Layout, layout, nested};

/// Version of the identities that is asked for.
pub const IDENTITY_VERSION: u8 = 2;

layout! {
    /// Does nothing.
    pub struct NopCmd: "ionic" "ionic_nop_cmd", 64 {
        /// [`Opcode::NOP`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: [u8; 63] = 1,
    }
}

layout! {
    /// Asks what the device is. A [`DrvIdentity`] goes with it, a [`DevIdentity`] comes back.
    pub struct DevIdentifyCmd: "ionic" "ionic_dev_identify_cmd", 64 {
        /// [`Opcode::IDENTIFY`].
        opcode: u8 = 0,
        /// Highest version of the identities that the driver knows: [`IDENTITY_VERSION`].
        ver: u8 = 1,
        /// Reserved.
        rsvd: [u8; 62] = 2,
    }
}

layout! {
    /// The device is identified.
    pub struct DevIdentifyComp: "ionic" "ionic_dev_identify_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Version of the identity that came back.
        ver: u8 = 1,
        /// Reserved.
        rsvd: [u8; 14] = 2,
    }
}

layout! {
    /// What the driver is.
    pub struct DrvIdentity: "ionic" "ionic_drv_identity", 1912 {
        /// Operating system, see [`OsType`].
        os_type: le::U32 = 0,
        /// Distribution, a number of its own for each.
        os_dist: le::U32 = 4,
        /// Distribution, text.
        os_dist_str: [u8; 128] = 8,
        /// Version of the operating system.
        kernel_ver: le::U32 = 136,
        /// Version of the operating system, text.
        kernel_ver_str: [u8; 32] = 140,
        /// Version of the driver, text.
        driver_ver_str: [u8; 32] = 172,
        /// As long as the data window is.
        rest: [u8; 1708] = 204,
    }
}

layout! {
    /// What the device is.
    pub struct DevIdentity: "ionic" "ionic_dev_identity", 1912 {
        /// Version of the identity.
        version: u8 = 0,
        /// Kind of device.
        r#type: u8 = 1,
        /// Reserved.
        rsvd: [u8; 2] = 2,
        /// Ports.
        nports: u8 = 4,
        /// Reserved.
        rsvd2: [u8; 3] = 5,
        /// Logical interfaces.
        nlifs: le::U32 = 8,
        /// Interrupts.
        nintrs: le::U32 = 12,
        /// Doorbell pages of a logical interface.
        ndbpgs_per_lif: le::U32 = 16,
        /// Coalescing ticks are microseconds times this,
        intr_coal_mult: le::U32 = 20,
        /// divided by this.
        intr_coal_div: le::U32 = 24,
        /// Event queues of the Ethernet part.
        eq_count: le::U32 = 28,
        /// Bits that the device clock counts in.
        hwstamp_mask: le::U64 = 32,
        /// Nanoseconds are ticks times this,
        hwstamp_mult: le::U32 = 40,
        /// shifted right by this.
        hwstamp_shift: le::U32 = 44,
        /// What the device has, see [`DevCapabilities`].
        capabilities: le::U64 = 48,
        /// As long as the data window is.
        rest: [u8; 1856] = 56,
    }
}

layout! {
    /// Initialises the device.
    pub struct DevInitCmd: "ionic" "ionic_dev_init_cmd", 64 {
        /// [`Opcode::INIT`].
        opcode: u8 = 0,
        /// 0.
        r#type: u8 = 1,
        /// Reserved.
        rsvd: [u8; 62] = 2,
    }
}

layout! {
    /// The device is initialised.
    pub struct DevInitComp: "ionic" "ionic_dev_init_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: [u8; 15] = 1,
    }
}

layout! {
    /// Resets the device: everything that was created is gone.
    pub struct DevResetCmd: "ionic" "ionic_dev_reset_cmd", 64 {
        /// [`Opcode::RESET`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: [u8; 63] = 1,
    }
}

layout! {
    /// The device is reset.
    pub struct DevResetComp: "ionic" "ionic_dev_reset_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: [u8; 15] = 1,
    }
}

layout! {
    /// Asks where controller memory is. A [`CmbIdentity`] comes back. Only with [`DevCapabilities::DISC_CMB`].
    pub struct DiscoverCmbCmd: "ionic" "ionic_discover_cmb_cmd", 64 {
        /// [`Opcode::DISCOVER_CMB`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: [u8; 63] = 1,
    }
}

layout! {
    /// Controller memory is told.
    pub struct DiscoverCmbComp: "ionic" "ionic_discover_cmb_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: [u8; 15] = 1,
    }
}

layout! {
    /// A part of controller memory.
    pub struct CmbRegion: "ionic" "ionic_cmb_region", 16 {
        /// Which mapping of controller memory; there is but one.
        bar_num: u8 = 0,
        /// What it is for, see [`CmbKind`].
        cmb_type: u8 = 1,
        /// Reserved.
        rsvd: [u8; 6] = 2,
        /// Where in the BAR, in units of 64 KiB.
        offset: le::U32 = 8,
        /// How long, in units of 64 KiB.
        length: le::U32 = 12,
    }
}

layout! {
    /// Where controller memory is.
    pub struct CmbIdentity: "ionic" "ionic_discover_cmb_identity", 1912 {
        /// Regions told.
        num_regions: le::U32 = 0,
        /// Bit 0: express doorbells.
        flags: le::U32 = 4,
        /// The regions.
        region: CmbRegions = 8,
        /// As long as the data window is.
        rest: [u8; 1648] = 264,
    }
}

/// The regions of a [`CmbIdentity`].
pub type CmbRegions = [CmbRegion; 16];

nested!(CmbRegion);

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 13] = [
    NopCmd::LAYOUT,
    DevIdentifyCmd::LAYOUT,
    DevIdentifyComp::LAYOUT,
    DrvIdentity::LAYOUT,
    DevIdentity::LAYOUT,
    DevInitCmd::LAYOUT,
    DevInitComp::LAYOUT,
    DevResetCmd::LAYOUT,
    DevResetComp::LAYOUT,
    DiscoverCmbCmd::LAYOUT,
    DiscoverCmbComp::LAYOUT,
    CmbRegion::LAYOUT,
    CmbIdentity::LAYOUT,
];

/// `os_type` of [`DrvIdentity`]. Open: there are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OsType(pub u32);

impl OsType {
    /// Linux.
    pub const LINUX: Self = Self(1);
    /// None: a driver that the firmware does not know.
    pub const OTHER: Self = Self(0);
}

/// `cmb_type` of [`CmbRegion`]. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CmbKind(pub u8);

impl CmbKind {
    /// Plain memory.
    pub const MEMORY: Self = Self(0);
    /// Queues of WQEs of 64 bytes with express doorbells.
    pub const EXPRESS_64: Self = Self(1);
    /// The same, 128 bytes.
    pub const EXPRESS_128: Self = Self(2);
    /// The same, 256 bytes.
    pub const EXPRESS_256: Self = Self(3);
    /// The same, 512 bytes.
    pub const EXPRESS_512: Self = Self(4);

    /// The kind for WQEs of 2^`stride_log2` bytes with express doorbells.
    pub const fn express(stride_log2: u8) -> Option<Self> {
        match stride_log2 {
            6..=9 => Some(Self(stride_log2 - 5)),
            _ => None,
        }
    }
}

bitflags::bitflags! {
    /// `capabilities` of [`DevIdentity`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct DevCapabilities: u64 {
        /// Virtual functions are started and stopped by command.
        const VF_CTRL = 1;
        /// Controller memory is told by [`DiscoverCmbCmd`].
        const DISC_CMB = 1 << 1;
    }
}

impl Command for NopCmd {
    const OPCODE: Opcode = Opcode::NOP;
    type Completion = Completion;
}

impl Command for DevIdentifyCmd {
    const OPCODE: Opcode = Opcode::IDENTIFY;
    type Completion = DevIdentifyComp;
}

impl Command for DevInitCmd {
    const OPCODE: Opcode = Opcode::INIT;
    type Completion = DevInitComp;
}

impl Command for DevResetCmd {
    const OPCODE: Opcode = Opcode::RESET;
    type Completion = DevResetComp;
}

impl Command for DiscoverCmbCmd {
    const OPCODE: Opcode = Opcode::DISCOVER_CMB;
    type Completion = DiscoverCmbComp;
}

impl DevIdentifyCmd {
    /// Asks for [`IDENTITY_VERSION`].
    pub const fn new() -> Self {
        Self { opcode: Opcode::IDENTIFY.0, ver: IDENTITY_VERSION, ..Self::ZERO }
    }
}

impl DrvIdentity {
    /// A driver of no operating system that the firmware knows.
    pub fn new(name: &str, version: &str) -> Self {
        let mut identity = Self { os_type: OsType::OTHER.0.into(), ..Self::ZERO };
        put_text(&mut identity.os_dist_str, name);
        put_text(&mut identity.driver_ver_str, version);
        identity
    }
}

/// Puts as much of `text` as fits, and a zero byte, into a field.
pub fn put_text(field: &mut [u8], text: &str) {
    let room = field.len().saturating_sub(1);
    for (to, from) in field.iter_mut().zip(text.bytes().take(room)) {
        *to = from;
    }
}

/// The text of a field, up to its first zero byte. What is no text is left out.
pub fn text(field: &[u8]) -> &str {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let bytes = field.get(..end).unwrap_or_default();
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            core::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or("")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn identify_says_which_version_the_driver_knows() {
        let cmd = DevIdentifyCmd::new();
        assert_eq!((cmd.as_bytes()[..3].to_vec(), cmd.as_bytes().len()), (std::vec![1, 2, 0], 64));
    }

    #[test]
    fn express_kinds_follow_the_stride() {
        let kinds = [5, 6, 7, 8, 9, 10].map(CmbKind::express);
        let express = [CmbKind::EXPRESS_64, CmbKind::EXPRESS_128, CmbKind::EXPRESS_256, CmbKind::EXPRESS_512];
        assert_eq!((kinds[0], kinds[5]), (None, None));
        assert_eq!(kinds[1..5], express.map(Some));
    }

    #[test]
    fn text_is_cut_at_its_zero_byte_or_where_it_is_no_text() {
        let mut field = [0xffu8; 8];
        put_text(&mut field, "1.2");
        field[3] = 0;
        assert_eq!(text(&field), "1.2");
        assert_eq!(text(b"ab\xff\xfe"), "ab");
        assert_eq!(text(&[]), "");
        let mut short = [0u8; 3];
        put_text(&mut short, "long");
        assert_eq!(&short, b"lo\0");
    }
}
