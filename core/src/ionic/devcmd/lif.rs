//! Commands about a logical interface (LIF), and what one can do. Source: Linux `ionic_if.h`.

use zerocopy::{FromBytes, little_endian as le};

use super::command::Command;
use super::opcode::Opcode;
use crate::layout::{Layout, layout, nested};
use crate::verbs::Mac;

/// Version of the LIF's identity that is asked for.
pub const LIF_IDENTITY_VERSION: u8 = 1;
/// The only type of LIF.
pub const LIF_TYPE_CLASSIC: u8 = 0;

layout! {
    /// How a LIF is configured.
    pub struct LifConfig: "ionic" "ionic_lif_config", 256 {
        /// 1 enabled, 0 not.
        state: u8 = 0,
        /// Reserved.
        rsvd: [u8; 3] = 1,
        /// Name of the interface, text.
        name: [u8; 16] = 4,
        /// MTU.
        mtu: le::U32 = 20,
        /// Ethernet address.
        mac: [u8; 6] = 24,
        /// Default VLAN.
        vlan: le::U16 = 30,
        /// What is switched on of its features.
        features: le::U64 = 32,
        /// Queues of each kind, see [`super::QueueKind`].
        queue_count: [le::U32; 16] = 40,
        /// As long as the structure is.
        rest: [u8; 152] = 104,
    }
}

layout! {
    /// A kind of queue of the RDMA part.
    pub struct LogicalQtype: "ionic" "ionic_lif_logical_qtype", 12 {
        /// Its doorbell register, 0 to 7.
        qtype: u8 = 0,
        /// Reserved.
        rsvd: [u8; 3] = 1,
        /// Number of queues.
        qid_count: le::U32 = 4,
        /// Number of the first one.
        qid_base: le::U32 = 8,
    }
}

layout! {
    /// What a LIF can do.
    pub struct LifIdentity: "ionic" "ionic_lif_identity", 1912 {
        /// See [`LifCapabilities`].
        capabilities: le::U64 = 0,
        /// Version of the Ethernet part.
        eth_version: u8 = 8,
        /// Reserved.
        eth_rsvd: [u8; 3] = 9,
        /// Unicast addresses that can be filtered.
        max_ucast_filters: le::U32 = 12,
        /// Multicast addresses that can be filtered.
        max_mcast_filters: le::U32 = 16,
        /// Entries of the table that spreads received frames over queues.
        rss_ind_tbl_sz: le::U16 = 20,
        /// Shortest frame.
        min_frame_size: le::U32 = 22,
        /// Longest frame.
        max_frame_size: le::U32 = 26,
        /// Reserved.
        rsvd2: [u8; 2] = 30,
        /// Time stamps for frames sent.
        hwstamp_tx_modes: le::U64 = 32,
        /// Time stamps for frames received.
        hwstamp_rx_filters: le::U64 = 40,
        /// Reserved.
        rsvd3: [u8; 88] = 48,
        /// How it is configured.
        config: LifConfig = 136,
        /// Version of the RDMA part.
        rdma_version: u8 = 392,
        /// Opcodes of queue pairs: those below.
        qp_opcodes: u8 = 393,
        /// Opcodes of admin queues: those below.
        admin_opcodes: u8 = 394,
        /// Minor version of the RDMA part.
        minor_version: u8 = 395,
        /// Page table entries.
        npts_per_lif: le::U32 = 396,
        /// Memory regions and windows.
        nmrs_per_lif: le::U32 = 400,
        /// Address handles.
        nahs_per_lif: le::U32 = 404,
        /// Longest WQE, base-two logarithm of its bytes.
        max_stride: u8 = 408,
        /// Cache line, base-two logarithm of its bytes.
        cl_stride: u8 = 409,
        /// Page table entry, base-two logarithm of its bytes.
        pte_stride: u8 = 410,
        /// Entry of a queue of outstanding READs as requester, base-two logarithm of its bytes.
        rrq_stride: u8 = 411,
        /// Entry of a queue of READs being answered, base-two logarithm of its bytes.
        rsq_stride: u8 = 412,
        /// Profiles of congestion control.
        dcqcn_profiles: u8 = 413,
        /// Bit of queue numbers that names the pipeline.
        udma_shift: u8 = 414,
        /// Reserved.
        rsvd_dimensions: u8 = 415,
        /// Page sizes, a bit for each; counts from version 2.1 on.
        page_size_cap: le::U64 = 416,
        /// Admin queues.
        aq_qtype: LogicalQtype = 424,
        /// Send queues.
        sq_qtype: LogicalQtype = 436,
        /// Receive queues.
        rq_qtype: LogicalQtype = 448,
        /// Completion queues.
        cq_qtype: LogicalQtype = 460,
        /// Event queues.
        eq_qtype: LogicalQtype = 472,
        /// Which statistics there are.
        stats_type: le::U16 = 484,
        /// Reserved.
        rdma_rsvd: u8 = 486,
        /// Bit of a completion's length that is a sign.
        rcq_sign_bit: u8 = 487,
        /// Reserved.
        rsvd1: [u8; 160] = 488,
        /// As long as the data window is.
        rest: [u8; 1264] = 648,
    }
}

layout! {
    /// Asks what a type of LIF can do. A [`LifIdentity`] comes back.
    pub struct LifIdentifyCmd: "ionic" "ionic_lif_identify_cmd", 64 {
        /// [`Opcode::LIF_IDENTIFY`].
        opcode: u8 = 0,
        /// [`LIF_TYPE_CLASSIC`].
        r#type: u8 = 1,
        /// Highest version of the identity that the driver knows.
        ver: u8 = 2,
        /// Reserved.
        rsvd: [u8; 61] = 3,
    }
}

layout! {
    /// The LIF is identified.
    pub struct LifIdentifyComp: "ionic" "ionic_lif_identify_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Version of the identity that came back.
        ver: u8 = 1,
        /// Reserved.
        rsvd2: [u8; 14] = 2,
    }
}

layout! {
    /// Initialises a LIF.
    pub struct LifInitCmd: "ionic" "ionic_lif_init_cmd", 64 {
        /// [`Opcode::LIF_INIT`].
        opcode: u8 = 0,
        /// [`LIF_TYPE_CLASSIC`].
        r#type: u8 = 1,
        /// Which LIF.
        index: le::U16 = 2,
        /// Reserved.
        rsvd: le::U32 = 4,
        /// Where the device keeps a [`super::LifInfo`].
        info_pa: le::U64 = 8,
        /// Reserved.
        rsvd2: [u8; 48] = 16,
    }
}

layout! {
    /// The LIF is initialised.
    pub struct LifInitComp: "ionic" "ionic_lif_init_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Its number among all of the device: its doorbell pages begin at this many times the pages of a LIF.
        hw_index: le::U16 = 2,
        /// Reserved.
        rsvd2: [u8; 12] = 4,
    }
}

layout! {
    /// Resets a LIF: its queues are gone.
    pub struct LifResetCmd: "ionic" "ionic_lif_reset_cmd", 64 {
        /// [`Opcode::LIF_RESET`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Which LIF.
        index: le::U16 = 2,
        /// Reserved.
        rsvd2: [le::U32; 15] = 4,
    }
}

layout! {
    /// Sets an attribute of a LIF.
    pub struct LifSetAttrCmd: "ionic" "ionic_lif_setattr_cmd", 64 {
        /// [`Opcode::LIF_SETATTR`].
        opcode: u8 = 0,
        /// See [`LifAttr`].
        attr: u8 = 1,
        /// Which LIF.
        index: le::U16 = 2,
        /// The attribute.
        value: [u8; 60] = 4,
    }
}

layout! {
    /// An attribute of a LIF is set.
    pub struct LifSetAttrComp: "ionic" "ionic_lif_setattr_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Position of the command in its queue.
        comp_index: le::U16 = 2,
        /// The features that are on, if they were set.
        value: [u8; 11] = 4,
        /// Pass over the ring.
        color: u8 = 15,
    }
}

layout! {
    /// Reads an attribute of a LIF.
    pub struct LifGetAttrCmd: "ionic" "ionic_lif_getattr_cmd", 64 {
        /// [`Opcode::LIF_GETATTR`].
        opcode: u8 = 0,
        /// See [`LifAttr`].
        attr: u8 = 1,
        /// Which LIF.
        index: le::U16 = 2,
        /// Reserved.
        rsvd: [u8; 60] = 4,
    }
}

layout! {
    /// An attribute of a LIF.
    pub struct LifGetAttrComp: "ionic" "ionic_lif_getattr_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Position of the command in its queue.
        comp_index: le::U16 = 2,
        /// The attribute.
        value: [u8; 11] = 4,
        /// Pass over the ring.
        color: u8 = 15,
    }
}

nested!(LifConfig, LogicalQtype);

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 12] = [
    LifConfig::LAYOUT,
    LogicalQtype::LAYOUT,
    LifIdentity::LAYOUT,
    LifIdentifyCmd::LAYOUT,
    LifIdentifyComp::LAYOUT,
    LifInitCmd::LAYOUT,
    LifInitComp::LAYOUT,
    LifResetCmd::LAYOUT,
    LifSetAttrCmd::LAYOUT,
    LifSetAttrComp::LAYOUT,
    LifGetAttrCmd::LAYOUT,
    LifGetAttrComp::LAYOUT,
];

bitflags::bitflags! {
    /// `capabilities` of [`LifIdentity`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct LifCapabilities: u64 {
        /// Ethernet.
        const ETH = 1;
        /// RDMA.
        const RDMA = 1 << 1;
    }
}

/// Attribute of a LIF. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LifAttr(pub u8);

impl LifAttr {
    /// Enabled or not, 1 byte.
    pub const STATE: Self = Self(0);
    /// Name, 16 bytes.
    pub const NAME: Self = Self(1);
    /// MTU, 4 bytes.
    pub const MTU: Self = Self(2);
    /// Ethernet address, 6 bytes.
    pub const MAC: Self = Self(3);
    /// Features, 8 bytes.
    pub const FEATURES: Self = Self(4);
    /// How received frames are spread, 56 bytes.
    pub const RSS: Self = Self(5);
    /// Statistics, 1 byte.
    pub const STATS_CTRL: Self = Self(6);
}

impl Command for LifIdentifyCmd {
    const OPCODE: Opcode = Opcode::LIF_IDENTIFY;
    type Completion = LifIdentifyComp;
}

impl Command for LifInitCmd {
    const OPCODE: Opcode = Opcode::LIF_INIT;
    type Completion = LifInitComp;
}

impl Command for LifResetCmd {
    const OPCODE: Opcode = Opcode::LIF_RESET;
    type Completion = super::command::Completion;
}

impl Command for LifSetAttrCmd {
    const OPCODE: Opcode = Opcode::LIF_SETATTR;
    type Completion = LifSetAttrComp;
}

impl Command for LifGetAttrCmd {
    const OPCODE: Opcode = Opcode::LIF_GETATTR;
    type Completion = LifGetAttrComp;
}

impl LifIdentifyCmd {
    /// Asks for [`LIF_IDENTITY_VERSION`].
    pub const fn new() -> Self {
        let opcode = Opcode::LIF_IDENTIFY.0;
        Self { opcode, r#type: LIF_TYPE_CLASSIC, ver: LIF_IDENTITY_VERSION, ..Self::ZERO }
    }
}

impl LifInitCmd {
    /// Initialises LIF `index`, whose information goes to `info_pa`.
    pub const fn new(index: u16, info_pa: u64) -> Self {
        Self {
            opcode: Opcode::LIF_INIT.0,
            r#type: LIF_TYPE_CLASSIC,
            index: le::U16::new(index),
            info_pa: le::U64::new(info_pa),
            ..Self::ZERO
        }
    }
}

impl LifResetCmd {
    /// Resets LIF `index`.
    pub const fn new(index: u16) -> Self {
        Self { opcode: Opcode::LIF_RESET.0, index: le::U16::new(index), ..Self::ZERO }
    }
}

impl LifSetAttrCmd {
    fn new(index: u16, attr: LifAttr, bytes: &[u8]) -> Self {
        let mut cmd = Self { opcode: Opcode::LIF_SETATTR.0, attr: attr.0, index: index.into(), ..Self::ZERO };
        for (to, from) in cmd.value.iter_mut().zip(bytes) {
            *to = *from;
        }
        cmd
    }

    /// Sets the MTU.
    pub fn mtu(index: u16, mtu: u32) -> Self {
        Self::new(index, LifAttr::MTU, &mtu.to_le_bytes())
    }

    /// Sets the Ethernet address.
    pub fn mac(index: u16, mac: Mac) -> Self {
        Self::new(index, LifAttr::MAC, &mac.0)
    }

    /// Asks for features.
    pub fn features(index: u16, features: u64) -> Self {
        Self::new(index, LifAttr::FEATURES, &features.to_le_bytes())
    }
}

impl LifGetAttrCmd {
    /// Reads `attr` of LIF `index`.
    pub const fn new(index: u16, attr: LifAttr) -> Self {
        let opcode = Opcode::LIF_GETATTR.0;
        Self { opcode, attr: attr.0, index: le::U16::new(index), ..Self::ZERO }
    }
}

impl LifSetAttrComp {
    /// The features that are on, after [`LifSetAttrCmd::features`].
    pub fn features(&self) -> u64 {
        le::U64::read_from_prefix(&self.value).map_or(0, |(features, _)| features.get())
    }
}

impl LifGetAttrComp {
    /// The Ethernet address, if that was asked for.
    pub fn mac(&self) -> Mac {
        self.value.first_chunk().map_or_else(Mac::default, |mac| Mac(*mac))
    }

    /// The MTU, if that was asked for.
    pub fn mtu(&self) -> u32 {
        le::U32::read_from_prefix(&self.value).map_or(0, |(mtu, _)| mtu.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn attributes_begin_at_the_fifth_byte() {
        let mac = LifSetAttrCmd::mac(1, Mac([2, 4, 6, 8, 10, 12]));
        assert_eq!(mac.as_bytes()[..11], [24, 3, 1, 0, 2, 4, 6, 8, 10, 12, 0]);
        assert_eq!(LifSetAttrCmd::mtu(0, 9000).as_bytes()[..8], [24, 2, 0, 0, 0x28, 0x23, 0, 0]);
        assert_eq!(LifGetAttrCmd::new(0, LifAttr::MAC).as_bytes()[..4], [23, 3, 0, 0]);
    }

    #[test]
    fn attributes_are_read_from_a_completion() {
        let value = [0x28, 0x23, 0, 0, 5, 6, 0, 0, 0, 0, 0];
        let comp = LifGetAttrComp { value, ..LifGetAttrComp::ZERO };
        assert_eq!((comp.mtu(), comp.mac()), (9000, Mac([0x28, 0x23, 0, 0, 5, 6])));
        assert_eq!(LifSetAttrComp { value, ..LifSetAttrComp::ZERO }.features(), 0x0605_0000_2328);
    }

    #[test]
    fn lif_init_names_the_page() {
        let bytes = LifInitCmd::new(0, 0x1234_5000).to_bytes();
        assert_eq!((bytes[0], &bytes[8..16]), (21, &[0, 0x50, 0x34, 0x12, 0, 0, 0, 0][..]));
    }
}
