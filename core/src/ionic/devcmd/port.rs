//! Commands about the port. Source: Linux `ionic_if.h`.

use zerocopy::little_endian as le;

use super::command::Command;
use super::opcode::Opcode;
use crate::layout::{Layout, layout, nested};

/// Version of the port's identity that is asked for.
pub const PORT_IDENTITY_VERSION: u8 = 1;

layout! {
    /// How a port shall be, or is.
    pub struct PortConfig: "ionic" "ionic_port_config", 256 {
        /// Speed in Mb/s.
        speed: le::U32 = 0,
        /// Longest frame without its Ethernet header.
        mtu: le::U32 = 4,
        /// See [`PortState`].
        state: u8 = 8,
        /// 1 negotiates.
        an_enable: u8 = 9,
        /// Forward error correction.
        fec_type: u8 = 10,
        /// Flow control.
        pause_type: u8 = 11,
        /// Loopback; 0 is none.
        loopback_mode: u8 = 12,
        /// As long as the structure is.
        rest: [u8; 243] = 13,
    }
}

layout! {
    /// What a port can do.
    pub struct PortIdentity: "ionic" "ionic_port_identity", 1912 {
        /// Version of the identity.
        version: u8 = 0,
        /// Kind of port.
        r#type: u8 = 1,
        /// Lanes.
        num_lanes: u8 = 2,
        /// 1 if it can negotiate.
        autoneg: u8 = 3,
        /// Shortest frame.
        min_frame_size: le::U32 = 4,
        /// Longest frame.
        max_frame_size: le::U32 = 8,
        /// Forward error corrections that it has.
        fec_type: [u8; 4] = 12,
        /// Flow controls that it has.
        pause_type: [u8; 2] = 16,
        /// Loopbacks that it has.
        loopback_mode: [u8; 2] = 18,
        /// Speeds that it has, in Mb/s.
        speeds: [le::U32; 16] = 20,
        /// Reserved.
        rsvd2: [u8; 44] = 84,
        /// How it is.
        config: PortConfig = 128,
        /// As long as the data window is.
        rest: [u8; 1528] = 384,
    }
}

layout! {
    /// Asks what a port is. A [`PortIdentity`] comes back.
    pub struct PortIdentifyCmd: "ionic" "ionic_port_identify_cmd", 64 {
        /// [`Opcode::PORT_IDENTIFY`].
        opcode: u8 = 0,
        /// The port.
        index: u8 = 1,
        /// Highest version of the identity that the driver knows.
        ver: u8 = 2,
        /// Reserved.
        rsvd: [u8; 61] = 3,
    }
}

layout! {
    /// The port is identified.
    pub struct PortIdentifyComp: "ionic" "ionic_port_identify_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Version of the identity that came back.
        ver: u8 = 1,
        /// Reserved.
        rsvd: [u8; 14] = 2,
    }
}

layout! {
    /// Configures a port. A [`PortConfig`] goes with it.
    pub struct PortInitCmd: "ionic" "ionic_port_init_cmd", 64 {
        /// [`Opcode::PORT_INIT`].
        opcode: u8 = 0,
        /// The port.
        index: u8 = 1,
        /// Reserved.
        rsvd: [u8; 6] = 2,
        /// Where the device keeps what there is to know about the port: a [`PortConfig`], a [`PortStatus`], and statistics.
        info_pa: le::U64 = 8,
        /// Reserved.
        rsvd2: [u8; 48] = 16,
    }
}

layout! {
    /// The port is configured.
    pub struct PortInitComp: "ionic" "ionic_port_init_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: [u8; 15] = 1,
    }
}

layout! {
    /// Resets a port.
    pub struct PortResetCmd: "ionic" "ionic_port_reset_cmd", 64 {
        /// [`Opcode::PORT_RESET`].
        opcode: u8 = 0,
        /// The port.
        index: u8 = 1,
        /// Reserved.
        rsvd: [u8; 62] = 2,
    }
}

layout! {
    /// The port is reset.
    pub struct PortResetComp: "ionic" "ionic_port_reset_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: [u8; 15] = 1,
    }
}

layout! {
    /// Reads an attribute of a port.
    pub struct PortGetAttrCmd: "ionic" "ionic_port_getattr_cmd", 64 {
        /// [`Opcode::PORT_GETATTR`].
        opcode: u8 = 0,
        /// The port.
        index: u8 = 1,
        /// See [`PortAttr`].
        attr: u8 = 2,
        /// Reserved.
        rsvd: [u8; 61] = 3,
    }
}

layout! {
    /// An attribute of a port.
    pub struct PortGetAttrComp: "ionic" "ionic_port_getattr_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: [u8; 3] = 1,
        /// The attribute.
        value: [u8; 11] = 4,
        /// Pass over the ring, if the command went through one.
        color: u8 = 15,
    }
}

layout! {
    /// Sets an attribute of a port.
    pub struct PortSetAttrCmd: "ionic" "ionic_port_setattr_cmd", 64 {
        /// [`Opcode::PORT_SETATTR`].
        opcode: u8 = 0,
        /// The port.
        index: u8 = 1,
        /// See [`PortAttr`].
        attr: u8 = 2,
        /// Reserved.
        rsvd: u8 = 3,
        /// The attribute.
        value: [u8; 60] = 4,
    }
}

layout! {
    /// An attribute of a port is set.
    pub struct PortSetAttrComp: "ionic" "ionic_port_setattr_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: [u8; 14] = 1,
        /// Pass over the ring, if the command went through one.
        color: u8 = 15,
    }
}

layout! {
    /// The transceiver.
    pub struct XcvrStatus: "ionic" "ionic_xcvr_status", 260 {
        /// Whether it is there.
        state: u8 = 0,
        /// What it is.
        phy: u8 = 1,
        /// What it is for.
        pid: le::U16 = 2,
        /// Its memory.
        sprom: [u8; 256] = 4,
    }
}

layout! {
    /// How a port is.
    pub struct PortStatus: "ionic" "ionic_port_status", 320 {
        /// The port.
        id: le::U32 = 0,
        /// Speed in Mb/s; 0 if the link is down.
        speed: le::U32 = 4,
        /// See [`PortOper`].
        status: u8 = 8,
        /// How often the link went down.
        link_down_count: le::U16 = 9,
        /// Forward error correction.
        fec_type: u8 = 11,
        /// Reserved.
        rsvd: [u8; 48] = 12,
        /// The transceiver.
        xcvr: XcvrStatus = 60,
    }
}

nested!(PortConfig, XcvrStatus);

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 14] = [
    PortConfig::LAYOUT,
    PortIdentity::LAYOUT,
    PortIdentifyCmd::LAYOUT,
    PortIdentifyComp::LAYOUT,
    PortInitCmd::LAYOUT,
    PortInitComp::LAYOUT,
    PortResetCmd::LAYOUT,
    PortResetComp::LAYOUT,
    PortGetAttrCmd::LAYOUT,
    PortGetAttrComp::LAYOUT,
    PortSetAttrCmd::LAYOUT,
    PortSetAttrComp::LAYOUT,
    XcvrStatus::LAYOUT,
    PortStatus::LAYOUT,
];

/// Attribute of a port. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortAttr(pub u8);

impl PortAttr {
    /// [`PortState`], 1 byte.
    pub const STATE: Self = Self(0);
    /// Speed in Mb/s, 4 bytes.
    pub const SPEED: Self = Self(1);
    /// MTU, 4 bytes.
    pub const MTU: Self = Self(2);
    /// Negotiation, 1 byte.
    pub const AUTONEG: Self = Self(3);
}

/// State that a port is put into. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortState(pub u8);

impl PortState {
    /// None.
    pub const NONE: Self = Self(0);
    /// Down.
    pub const DOWN: Self = Self(1);
    /// Up.
    pub const UP: Self = Self(2);
}

/// `status` of [`PortStatus`], and link status of a LIF. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortOper(pub u16);

impl PortOper {
    /// Not known.
    pub const NONE: Self = Self(0);
    /// Up.
    pub const UP: Self = Self(1);
    /// Down.
    pub const DOWN: Self = Self(2);
}

impl Command for PortIdentifyCmd {
    const OPCODE: Opcode = Opcode::PORT_IDENTIFY;
    type Completion = PortIdentifyComp;
}

impl Command for PortInitCmd {
    const OPCODE: Opcode = Opcode::PORT_INIT;
    type Completion = PortInitComp;
}

impl Command for PortResetCmd {
    const OPCODE: Opcode = Opcode::PORT_RESET;
    type Completion = PortResetComp;
}

impl Command for PortGetAttrCmd {
    const OPCODE: Opcode = Opcode::PORT_GETATTR;
    type Completion = PortGetAttrComp;
}

impl Command for PortSetAttrCmd {
    const OPCODE: Opcode = Opcode::PORT_SETATTR;
    type Completion = PortSetAttrComp;
}

impl PortIdentifyCmd {
    /// Asks about port 0.
    pub const fn new() -> Self {
        Self { opcode: Opcode::PORT_IDENTIFY.0, ver: PORT_IDENTITY_VERSION, ..Self::ZERO }
    }
}

impl PortInitCmd {
    /// Configures port 0, whose information goes to `info_pa`.
    pub const fn new(info_pa: u64) -> Self {
        Self { opcode: Opcode::PORT_INIT.0, info_pa: le::U64::new(info_pa), ..Self::ZERO }
    }
}

impl PortGetAttrCmd {
    /// Reads `attr` of port 0.
    pub const fn new(attr: PortAttr) -> Self {
        Self { opcode: Opcode::PORT_GETATTR.0, attr: attr.0, ..Self::ZERO }
    }
}

impl PortSetAttrCmd {
    /// Puts port 0 into `state`.
    pub const fn state(state: PortState) -> Self {
        let mut value = [0; 60];
        value[0] = state.0;
        Self { opcode: Opcode::PORT_SETATTR.0, attr: PortAttr::STATE.0, value, ..Self::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn the_port_is_put_up_by_an_attribute() {
        let cmd = PortSetAttrCmd::state(PortState::UP);
        assert_eq!(cmd.as_bytes()[..6], [14, 0, 0, 0, 2, 0]);
        assert_eq!(PortInitCmd::new(0x12_3456_7000).as_bytes()[8..16], [0, 0x70, 0x56, 0x34, 0x12, 0, 0, 0]);
    }
}
