//! Commands about queues, and those that the RDMA part begins with. Source: Linux `ionic_if.h`.

use zerocopy::little_endian as le;

use super::command::{Command, Completion};
use super::opcode::Opcode;
use crate::layout::{Layout, bits, layout};

bits! {
    /// `flags` of [`QInitCmd`].
    pub struct QInitFlags(u16) {
        /// It raises an interrupt.
        irq: bool = 1,
        /// It works at once.
        ena: bool = 1,
        /// It has a ring of scatter/gather lists.
        sg: bool = 1,
        __: u16 = 13,
    }
}

layout! {
    /// Asks what a kind of queue can do. A [`QIdentity`] comes back.
    pub struct QIdentifyCmd: "ionic" "ionic_q_identify_cmd", 64 {
        /// [`Opcode::Q_IDENTIFY`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Type of the LIF.
        lif_type: le::U16 = 2,
        /// See [`QueueKind`].
        r#type: u8 = 4,
        /// Highest version that the driver knows.
        ver: u8 = 5,
        /// Reserved.
        rsvd2: [u8; 58] = 6,
    }
}

layout! {
    /// A kind of queue is identified.
    pub struct QIdentifyComp: "ionic" "ionic_q_identify_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Position of the command in its queue.
        comp_index: le::U16 = 2,
        /// Version that came back.
        ver: u8 = 4,
        /// Reserved.
        rsvd2: [u8; 11] = 5,
    }
}

layout! {
    /// What a kind of queue can do.
    pub struct QIdentity: "ionic" "ionic_q_identity", 1912 {
        /// Version of the queues.
        version: u8 = 0,
        /// Queues there are.
        supported: u8 = 1,
        /// Reserved.
        rsvd: [u8; 6] = 2,
        /// What they have.
        features: le::U64 = 8,
        /// Bytes of a descriptor.
        desc_sz: le::U16 = 16,
        /// Bytes of a completion.
        comp_sz: le::U16 = 18,
        /// Bytes of a scatter/gather list.
        sg_desc_sz: le::U16 = 20,
        /// Its elements.
        max_sg_elems: le::U16 = 22,
        /// Elements that a list is apart from the next.
        sg_desc_stride: le::U16 = 24,
        /// As long as the data window is.
        rest: [u8; 1886] = 26,
    }
}

layout! {
    /// Creates a queue.
    pub struct QInitCmd: "ionic" "ionic_q_init_cmd", 64 {
        /// [`Opcode::Q_INIT`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// The LIF that it belongs to.
        lif_index: le::U16 = 2,
        /// See [`QueueKind`].
        r#type: u8 = 4,
        /// Version of the queues.
        ver: u8 = 5,
        /// Reserved.
        rsvd1: [u8; 2] = 6,
        /// Which one of its kind.
        index: le::U32 = 8,
        /// Doorbell page that rings it.
        pid: le::U16 = 12,
        /// Interrupt.
        intr_index: le::U16 = 14,
        /// How it shall be.
        flags: le::U16 as QInitFlags = 16,
        /// Class of service.
        cos: u8 = 18,
        /// Entries, base-two logarithm.
        ring_size: u8 = 19,
        /// Where its descriptors are.
        ring_base: le::U64 = 20,
        /// Where its completions are.
        cq_ring_base: le::U64 = 28,
        /// Where its scatter/gather lists are.
        sg_ring_base: le::U64 = 36,
        /// Reserved.
        rsvd2: [u8; 12] = 44,
        /// What of its features is wanted.
        features: le::U64 = 56,
    }
}

layout! {
    /// A queue is created.
    pub struct QInitComp: "ionic" "ionic_q_init_comp", 16 {
        /// How the command ended.
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Position of the command in its queue.
        comp_index: le::U16 = 2,
        /// Its number in doorbells.
        hw_index: le::U32 = 4,
        /// Its doorbell register, 0 to 7.
        hw_type: u8 = 8,
        /// Reserved.
        rsvd2: [u8; 6] = 9,
        /// Pass over the ring.
        color: u8 = 15,
    }
}

layout! {
    /// Starts or stops a queue.
    pub struct QControlCmd: "ionic" "ionic_q_control_cmd", 64 {
        /// [`Opcode::Q_CONTROL`].
        opcode: u8 = 0,
        /// See [`QueueKind`].
        r#type: u8 = 1,
        /// The LIF that it belongs to.
        lif_index: le::U16 = 2,
        /// Which one of its kind.
        index: le::U32 = 4,
        /// See [`QOperation`].
        oper: u8 = 8,
        /// Reserved.
        rsvd: [u8; 55] = 9,
    }
}

layout! {
    /// Resets the RDMA part of a LIF: its objects are gone.
    pub struct RdmaResetCmd: "ionic" "ionic_rdma_reset_cmd", 64 {
        /// [`Opcode::RDMA_RESET_LIF`].
        opcode: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// The LIF.
        lif_index: le::U16 = 2,
        /// Reserved.
        rsvd2: [u8; 60] = 4,
    }
}

layout! {
    /// Creates an event queue, or an admin queue or its completion queue.
    pub struct RdmaQueueCmd: "ionic" "ionic_rdma_queue_cmd", 64 {
        /// Which of the three.
        opcode: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// The LIF.
        lif_index: le::U16 = 2,
        /// Number to give it.
        qid_ver: le::U32 = 4,
        /// Of an event queue, its interrupt; of a completion queue, its event queue; of an admin queue, its completion queue.
        cid: le::U32 = 8,
        /// Doorbell page that rings it.
        dbid: le::U16 = 12,
        /// Entries, base-two logarithm.
        depth_log2: u8 = 14,
        /// Bytes of an entry, base-two logarithm.
        stride_log2: u8 = 15,
        /// Where the ring is.
        dma_addr: le::U64 = 16,
        /// Reserved.
        rsvd2: [u8; 40] = 24,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 8] = [
    QIdentifyCmd::LAYOUT,
    QIdentifyComp::LAYOUT,
    QIdentity::LAYOUT,
    QInitCmd::LAYOUT,
    QInitComp::LAYOUT,
    QControlCmd::LAYOUT,
    RdmaResetCmd::LAYOUT,
    RdmaQueueCmd::LAYOUT,
];

/// Kind of a queue of the Ethernet part. Open: there are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueKind(pub u8);

impl QueueKind {
    /// Admin queue.
    pub const ADMINQ: Self = Self(0);
    /// Queue of notifications.
    pub const NOTIFYQ: Self = Self(1);
    /// Receive queue.
    pub const RXQ: Self = Self(2);
    /// Transmit queue.
    pub const TXQ: Self = Self(3);
}

/// `oper` of [`QControlCmd`]. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QOperation(pub u8);

impl QOperation {
    /// Stop.
    pub const DISABLE: Self = Self(0);
    /// Start.
    pub const ENABLE: Self = Self(1);
}

impl Command for QIdentifyCmd {
    const OPCODE: Opcode = Opcode::Q_IDENTIFY;
    type Completion = QIdentifyComp;
}

impl Command for QInitCmd {
    const OPCODE: Opcode = Opcode::Q_INIT;
    type Completion = QInitComp;
}

impl Command for QControlCmd {
    const OPCODE: Opcode = Opcode::Q_CONTROL;
    type Completion = Completion;
}

impl Command for RdmaResetCmd {
    const OPCODE: Opcode = Opcode::RDMA_RESET_LIF;
    type Completion = Completion;
}

impl QIdentifyCmd {
    /// Asks about queues of `kind`, of which the driver knows the versions up to `version`.
    pub const fn new(kind: QueueKind, version: u8) -> Self {
        Self { opcode: Opcode::Q_IDENTIFY.0, r#type: kind.0, ver: version, ..Self::ZERO }
    }
}

impl QControlCmd {
    /// Starts or stops queue `index` of `kind`.
    pub const fn new(lif: u16, kind: QueueKind, index: u32, oper: QOperation) -> Self {
        Self {
            opcode: Opcode::Q_CONTROL.0,
            r#type: kind.0,
            lif_index: le::U16::new(lif),
            index: le::U32::new(index),
            oper: oper.0,
            ..Self::ZERO
        }
    }
}

impl RdmaResetCmd {
    /// Resets the RDMA part of LIF `lif`.
    pub const fn new(lif: u16) -> Self {
        Self { opcode: Opcode::RDMA_RESET_LIF.0, lif_index: le::U16::new(lif), ..Self::ZERO }
    }
}

/// What a ring of an RDMA control queue is created from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaRing {
    /// Number to give it.
    pub id: u32,
    /// What it reports to, see [`RdmaQueueCmd::cid`].
    pub to: u32,
    /// Doorbell page that rings it.
    pub dbid: u16,
    /// Entries, base-two logarithm.
    pub depth_log2: u8,
    /// Bytes of an entry, base-two logarithm.
    pub stride_log2: u8,
    /// Where it is.
    pub addr: u64,
}

impl RdmaQueueCmd {
    const fn new(opcode: Opcode, lif: u16, ring: &RdmaRing) -> Self {
        Self {
            opcode: opcode.0,
            lif_index: le::U16::new(lif),
            qid_ver: le::U32::new(ring.id),
            cid: le::U32::new(ring.to),
            dbid: le::U16::new(ring.dbid),
            depth_log2: ring.depth_log2,
            stride_log2: ring.stride_log2,
            dma_addr: le::U64::new(ring.addr),
            ..Self::ZERO
        }
    }
}

/// Creates an event queue of a LIF's RDMA part.
pub type CreateEqCmd = RdmaCreate<51>;
/// Creates a completion queue for an admin queue.
pub type CreateAdminCqCmd = RdmaCreate<52>;
/// Creates an admin queue.
pub type CreateAdminQCmd = RdmaCreate<53>;

/// An [`RdmaQueueCmd`] with a fixed opcode.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct RdmaCreate<const OPCODE: u8>(pub RdmaQueueCmd);

impl<const OPCODE: u8> RdmaCreate<OPCODE> {
    /// Creates `ring` for LIF `lif`.
    pub const fn new(lif: u16, ring: &RdmaRing) -> Self {
        Self(RdmaQueueCmd::new(Opcode(OPCODE), lif, ring))
    }
}

impl<const OPCODE: u8> Command for RdmaCreate<OPCODE> {
    const OPCODE: Opcode = Opcode(OPCODE);
    type Completion = Completion;
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn an_rdma_queue_is_described_once_for_all_three_kinds() {
        let ring = RdmaRing { id: 5, to: 7, dbid: 0, depth_log2: 9, stride_log2: 2, addr: 0xa_bcde_f000 };
        let cmd = CreateEqCmd::new(0, &ring);
        let want = [51, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 9, 2, 0, 0xf0, 0xde, 0xbc, 0xa, 0, 0, 0];
        assert_eq!(cmd.as_bytes()[..24], want);
        assert_eq!(CreateAdminCqCmd::OPCODE, Opcode::RDMA_CREATE_CQ);
        assert_eq!(CreateAdminQCmd::new(0, &ring).as_bytes()[0], 53);
        assert_eq!(CreateEqCmd::OPCODE, Opcode::RDMA_CREATE_EQ);
    }

    #[test]
    fn flags_of_a_queue_are_the_low_bits() {
        assert_eq!(QInitFlags::new().with_irq(true).with_ena(true).into_bits(), 3);
        assert_eq!(QInitFlags::new().with_sg(true).into_bits(), 4);
    }
}
