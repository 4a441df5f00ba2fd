//! Which frames a LIF takes. Source: Linux `ionic_if.h`.

use zerocopy::little_endian as le;

use super::command::{Command, Completion};
use super::opcode::Opcode;
use crate::layout::{Layout, layout};
use crate::verbs::Mac;

layout! {
    /// Sets which frames a LIF takes.
    pub struct RxModeSetCmd: "ionic" "ionic_rx_mode_set_cmd", 64 {
        /// [`Opcode::RX_MODE_SET`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// The LIF.
        lif_index: le::U16 = 2,
        /// See [`RxMode`].
        rx_mode: le::U16 = 4,
        /// Reserved.
        rsvd2: [le::U16; 29] = 6,
    }
}

layout! {
    /// Adds a filter: frames that match it are taken.
    pub struct RxFilterAddCmd: "ionic" "ionic_rx_filter_add_cmd", 64 {
        /// [`Opcode::RX_FILTER_ADD`].
        opcode: u8 = 0,
        /// Kind of queue that they go to.
        qtype: u8 = 1,
        /// The LIF.
        lif_index: le::U16 = 2,
        /// Queue that they go to.
        qid: le::U32 = 4,
        /// See [`RxMatch`].
        r#match: le::U16 = 8,
        /// What to match.
        value: [u8; 54] = 10,
    }
}

layout! {
    /// A filter is added.
    pub struct RxFilterAddComp: "ionic" "ionic_rx_filter_add_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Position of the command in its queue.
        comp_index: le::U16 = 2,
        /// Its number.
        filter_id: le::U32 = 4,
        /// Reserved.
        rsvd2: [u8; 7] = 8,
        /// Pass over the ring.
        color: u8 = 15,
    }
}

layout! {
    /// Removes a filter.
    pub struct RxFilterDelCmd: "ionic" "ionic_rx_filter_del_cmd", 64 {
        /// [`Opcode::RX_FILTER_DEL`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// The LIF.
        lif_index: le::U16 = 2,
        /// The filter.
        filter_id: le::U32 = 4,
        /// Reserved.
        rsvd2: [u8; 56] = 8,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 4] =
    [RxModeSetCmd::LAYOUT, RxFilterAddCmd::LAYOUT, RxFilterAddComp::LAYOUT, RxFilterDelCmd::LAYOUT];

bitflags::bitflags! {
    /// `rx_mode` of [`RxModeSetCmd`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct RxMode: u16 {
        /// Unicast frames that a filter matches.
        const UNICAST = 1;
        /// Multicast frames that a filter matches.
        const MULTICAST = 1 << 1;
        /// Broadcast frames.
        const BROADCAST = 1 << 2;
        /// All frames.
        const PROMISCUOUS = 1 << 3;
        /// All multicast frames.
        const ALL_MULTICAST = 1 << 4;
    }
}

/// What a filter compares. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RxMatch(pub u16);

impl RxMatch {
    /// VLAN, 2 bytes.
    pub const VLAN: Self = Self(0);
    /// Ethernet address, 6 bytes.
    pub const MAC: Self = Self(1);
    /// VLAN and Ethernet address, 8 bytes.
    pub const MAC_VLAN: Self = Self(2);
}

impl Command for RxModeSetCmd {
    const OPCODE: Opcode = Opcode::RX_MODE_SET;
    type Completion = Completion;
}

impl Command for RxFilterAddCmd {
    const OPCODE: Opcode = Opcode::RX_FILTER_ADD;
    type Completion = RxFilterAddComp;
}

impl Command for RxFilterDelCmd {
    const OPCODE: Opcode = Opcode::RX_FILTER_DEL;
    type Completion = Completion;
}

impl RxModeSetCmd {
    /// LIF `lif` takes `mode`.
    pub const fn new(lif: u16, mode: RxMode) -> Self {
        let opcode = Opcode::RX_MODE_SET.0;
        Self { opcode, lif_index: le::U16::new(lif), rx_mode: le::U16::new(mode.bits()), ..Self::ZERO }
    }
}

impl RxFilterAddCmd {
    /// Frames for `mac`.
    pub fn mac(lif: u16, mac: Mac) -> Self {
        let mut cmd = Self {
            opcode: Opcode::RX_FILTER_ADD.0,
            lif_index: lif.into(),
            r#match: RxMatch::MAC.0.into(),
            ..Self::ZERO
        };
        for (to, from) in cmd.value.iter_mut().zip(mac.0) {
            *to = from;
        }
        cmd
    }
}

impl RxFilterDelCmd {
    /// Removes filter `filter`.
    pub const fn new(lif: u16, filter: u32) -> Self {
        let opcode = Opcode::RX_FILTER_DEL.0;
        Self { opcode, lif_index: le::U16::new(lif), filter_id: le::U32::new(filter), ..Self::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn a_filter_for_an_address_has_it_at_byte_ten() {
        let cmd = RxFilterAddCmd::mac(3, Mac([1, 2, 3, 4, 5, 6]));
        assert_eq!(cmd.as_bytes()[..17], [31, 0, 3, 0, 0, 0, 0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 0]);
        assert_eq!(RxFilterDelCmd::new(3, 9).as_bytes()[..8], [32, 0, 3, 0, 9, 0, 0, 0]);
    }
}
