//! Classes of service of the port: how traffic is told apart, scheduled and paused.
//! Source: Linux `ionic_if.h`; DPDK `drivers/net/ionic/ionic_if.h` (BSD).

use zerocopy::little_endian as le;

use super::command::{Command, Completion};
use super::opcode::Opcode;
use crate::layout::{Layout, layout, nested};

/// Classes that an identity tells of.
pub const QOS_CLASSES: usize = 7;
/// Version of the identity that is asked for.
pub const QOS_IDENTITY_VERSION: u8 = 1;

layout! {
    /// Asks which classes of service there are. A [`QosIdentity`] comes back.
    pub struct QosIdentifyCmd: "ionic" "ionic_qos_identify_cmd", 64 {
        /// [`Opcode::QOS_CLASS_IDENTIFY`].
        opcode: u8 = 0,
        /// Highest version of the identity that the driver knows.
        ver: u8 = 1,
        /// Reserved.
        rsvd: [u8; 62] = 2,
    }
}

layout! {
    /// The classes are told.
    pub struct QosIdentifyComp: "ionic" "ionic_qos_identify_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Version of the identity that came back.
        ver: u8 = 1,
        /// Reserved.
        rsvd: [u8; 14] = 2,
    }
}

layout! {
    /// A class of service.
    pub struct QosConfig: "ionic" "ionic_qos_config", 256 {
        /// See [`QosFlags`].
        flags: u8 = 0,
        /// 0 strict priority, 1 deficit weighted round robin.
        sched_type: u8 = 1,
        /// What tells its frames apart: 0 nothing, 1 the VLAN's priority, 2 the DSCP.
        class_type: u8 = 2,
        /// What pauses it: 0 nothing, 1 the link, 2 its priority.
        pause_type: u8 = 3,
        /// Its name, text.
        name: [u8; 32] = 4,
        /// Longest packet.
        mtu: le::U32 = 36,
        /// Priority that pause frames name.
        pfc_cos: u8 = 40,
        /// Nothing: the next field is aligned.
        hole: [u8; 7] = 41,
        /// Weight (the lowest byte), or rate limit of a strict priority.
        strict_rlmt: le::U64 = 48,
        /// Priority or DSCP to write into its frames.
        rw_dot1q_pcp: u8 = 56,
        /// Priority that its frames have, or number of DSCPs that follow.
        ndscp: u8 = 57,
        /// DSCPs that its frames have.
        ip_dscp: [u8; 64] = 58,
        /// As long as the structure is.
        rest: [u8; 134] = 122,
    }
}

layout! {
    /// The classes of service.
    pub struct QosIdentity: "ionic" "ionic_qos_identity", 1912 {
        /// Version of the identity.
        version: u8 = 0,
        /// Kind of system.
        r#type: u8 = 1,
        /// Reserved.
        rsvd: [u8; 62] = 2,
        /// The classes.
        config: QosConfigs = 64,
        /// As long as the data window is.
        rest: [u8; 56] = 1856,
    }
}

/// The classes of a [`QosIdentity`].
pub type QosConfigs = [QosConfig; QOS_CLASSES];

layout! {
    /// Sets a class up. A [`QosConfig`] goes with it.
    pub struct QosInitCmd: "ionic" "ionic_qos_init_cmd", 64 {
        /// [`Opcode::QOS_CLASS_INIT`].
        opcode: u8 = 0,
        /// Which class.
        group: u8 = 1,
        /// Reserved.
        rsvd: [u8; 6] = 2,
        /// Where the device tells about it.
        info_pa: le::U64 = 8,
        /// Reserved.
        rsvd1: [u8; 48] = 16,
    }
}

layout! {
    /// Takes a class back.
    pub struct QosResetCmd: "ionic" "ionic_qos_reset_cmd", 64 {
        /// [`Opcode::QOS_CLASS_RESET`].
        opcode: u8 = 0,
        /// Which class.
        group: u8 = 1,
        /// Reserved.
        rsvd: [u8; 62] = 2,
    }
}

nested!(QosConfig);

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 6] = [
    QosIdentifyCmd::LAYOUT,
    QosIdentifyComp::LAYOUT,
    QosConfig::LAYOUT,
    QosIdentity::LAYOUT,
    QosInitCmd::LAYOUT,
    QosResetCmd::LAYOUT,
];

bitflags::bitflags! {
    /// `flags` of [`QosConfig`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct QosFlags: u8 {
        /// It is on.
        const ENABLE = 1;
        /// Its frames are not dropped, but paused. An older header of DPDK has the opposite meaning here.
        const NO_DROP = 1 << 1;
        /// The VLAN's priority is written.
        const REWRITE_PCP = 1 << 2;
        /// The DSCP is written.
        const REWRITE_DSCP = 1 << 3;
        /// A change does not disturb traffic.
        const NON_DISRUPTIVE = 1 << 4;
    }
}

impl Command for QosIdentifyCmd {
    const OPCODE: Opcode = Opcode::QOS_CLASS_IDENTIFY;
    type Completion = QosIdentifyComp;
}

impl Command for QosInitCmd {
    const OPCODE: Opcode = Opcode::QOS_CLASS_INIT;
    type Completion = Completion;
}

impl Command for QosResetCmd {
    const OPCODE: Opcode = Opcode::QOS_CLASS_RESET;
    type Completion = Completion;
}

impl QosIdentifyCmd {
    /// Asks for [`QOS_IDENTITY_VERSION`].
    pub const fn new() -> Self {
        Self { opcode: Opcode::QOS_CLASS_IDENTIFY.0, ver: QOS_IDENTITY_VERSION, ..Self::ZERO }
    }
}

impl QosInitCmd {
    /// Sets class `group` up; the device tells about it at `info_pa`.
    pub const fn new(group: u8, info_pa: u64) -> Self {
        Self { opcode: Opcode::QOS_CLASS_INIT.0, group, info_pa: le::U64::new(info_pa), ..Self::ZERO }
    }
}

impl QosResetCmd {
    /// Takes class `group` back.
    pub const fn new(group: u8) -> Self {
        Self { opcode: Opcode::QOS_CLASS_RESET.0, group, ..Self::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn commands_name_their_class() {
        assert_eq!(QosIdentifyCmd::new().to_bytes()[..3], [240, 1, 0]);
        assert_eq!(QosInitCmd::new(3, 0x1_0000).to_bytes()[..12], [241, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(QosResetCmd::new(3).to_bytes()[..3], [242, 3, 0]);
    }

    #[test]
    fn a_share_is_aligned() {
        let class =
            QosConfig { flags: QosFlags::ENABLE.bits(), strict_rlmt: 0x0102.into(), ..QosConfig::ZERO };
        assert_eq!((class.as_bytes()[0], &class.as_bytes()[47..50]), (1, &[0, 2, 1][..]));
    }
}
