//! Descriptors and completions of the Ethernet part's queues, in version 0 of both: a ring of descriptors, a ring of
//! completions, and a ring of scatter/gather lists beside the descriptors.
//! Source: DPDK `drivers/net/ionic/ionic_if.h` (BSD), Linux `ionic_if.h`.

use zerocopy::little_endian as le;

use crate::layout::{Layout, bits, layout};

/// Bytes of a descriptor.
pub const ETH_DESC_BYTES: usize = 16;
/// Bytes of a completion.
pub const ETH_COMP_BYTES: usize = 16;
/// Elements of a scatter/gather list.
pub const SG_ELEMENTS: usize = 8;
/// Bytes from one scatter/gather list to the next.
pub const SG_LIST_BYTES: usize = SG_ELEMENTS * size_of::<SgElem>();

bits! {
    /// `cmd` of [`TxqDesc`].
    pub struct TxqCmd(u64) {
        /// Bit 0: insert `vlan_tci`; bit 1: encapsulated. The others depend on the opcode.
        flags: u8 = 4,
        /// See [`TxqOpcode`].
        opcode: u8 = 4,
        /// Elements of the scatter/gather list that follow the first buffer.
        num_sg: u8 = 4,
        /// Where the first buffer is.
        addr: u64 = 52,
    }
}

layout! {
    /// A frame to send, or its first part.
    pub struct TxqDesc: "ionic" "ionic_txq_desc", 16 {
        /// What to do, and where the first buffer is.
        cmd: le::U64 as TxqCmd = 0,
        /// Bytes of the first buffer.
        len: le::U16 = 8,
        /// VLAN tag to insert.
        vlan_tci: le::U16 = 10,
        /// Where the checksum begins to count.
        csum_start: le::U16 = 12,
        /// Where the checksum goes, from there.
        csum_offset: le::U16 = 14,
    }
}

layout! {
    /// A frame is sent.
    pub struct TxqComp: "ionic" "ionic_txq_comp", 16 {
        /// How it ended, see [`super::Status`].
        status: u8 = 0,
        /// Reserved.
        rsvd: u8 = 1,
        /// Position of the descriptor in its queue.
        comp_index: le::U16 = 2,
        /// Reserved.
        rsvd2: [u8; 11] = 4,
        /// Pass over the ring.
        color: u8 = 15,
    }
}

layout! {
    /// Room for a frame.
    pub struct RxqDesc: "ionic" "ionic_rxq_desc", 16 {
        /// 0: one buffer; 1: a scatter/gather list goes on after it.
        opcode: u8 = 0,
        /// Reserved.
        rsvd: [u8; 5] = 1,
        /// Bytes of the first buffer.
        len: le::U16 = 6,
        /// Where the first buffer is.
        addr: le::U64 = 8,
    }
}

layout! {
    /// A frame has come.
    pub struct RxqComp: "ionic" "ionic_rxq_comp", 16 {
        /// How it ended, see [`super::Status`].
        status: u8 = 0,
        /// Elements of the scatter/gather list that were used.
        num_sg_elems: u8 = 1,
        /// Position of the descriptor in its queue.
        comp_index: le::U16 = 2,
        /// Hash that spreads frames.
        rss_hash: le::U32 = 4,
        /// Sum of what follows the Ethernet header.
        csum: le::U16 = 8,
        /// VLAN tag that was taken out.
        vlan_tci: le::U16 = 10,
        /// Bytes of the frame, without its checksum.
        len: le::U16 = 12,
        /// What was checked.
        csum_flags: u8 = 14,
        /// Kind of frame, and pass over the ring (bit 7).
        pkt_type_color: u8 = 15,
    }
}

layout! {
    /// An element of a scatter/gather list.
    pub struct SgElem: "ionic" "ionic_txq_sg_elem", 16 {
        /// Where it is.
        addr: le::U64 = 0,
        /// Its bytes.
        len: le::U16 = 8,
        /// Reserved.
        rsvd: [le::U16; 3] = 10,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 5] =
    [TxqDesc::LAYOUT, TxqComp::LAYOUT, RxqDesc::LAYOUT, RxqComp::LAYOUT, SgElem::LAYOUT];

/// What is to be done with a frame that is sent. Open: there are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TxqOpcode(pub u8);

impl TxqOpcode {
    /// Send it as it is.
    pub const PLAIN: Self = Self(0);
    /// Compute one checksum.
    pub const CSUM_PARTIAL: Self = Self(1);
    /// Compute the checksums of its headers.
    pub const CSUM_HW: Self = Self(2);
    /// Cut it into segments.
    pub const TSO: Self = Self(3);
}

bitflags::bitflags! {
    /// What the Ethernet part may be asked for, as the LIF's attribute FEATURES.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct EthFeatures: u64 {
        /// VLAN tags are inserted.
        const VLAN_TX_TAG = 1;
        /// VLAN tags are taken out.
        const VLAN_RX_STRIP = 1 << 1;
        /// Frames are filtered by VLAN.
        const VLAN_RX_FILTER = 1 << 2;
        /// Received frames are spread by a hash.
        const RX_HASH = 1 << 3;
        /// Checksums of received frames are told.
        const RX_CSUM = 1 << 4;
        /// Frames are sent from several buffers.
        const TX_SG = 1 << 5;
        /// Frames are received into several buffers.
        const RX_SG = 1 << 6;
        /// Checksums of frames sent are computed.
        const TX_CSUM = 1 << 7;
        /// Frames are cut into TCP segments, IPv4.
        const TSO = 1 << 8;
        /// The same, IPv6.
        const TSO_IPV6 = 1 << 9;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn the_address_of_a_frame_begins_at_bit_12() {
        let cmd = TxqCmd::new().with_opcode(1).with_flags(2).with_num_sg(3).with_addr(0x12_3456_7000);
        assert_eq!(cmd.into_bits(), 0x0001_2345_6700_0312);
        let desc = TxqDesc { cmd: cmd.into_bits().into(), len: 0x5ea.into(), ..TxqDesc::ZERO };
        assert_eq!(desc.as_bytes()[8..10], [0xea, 5]);
        assert_eq!(SG_LIST_BYTES, 128);
    }
}
