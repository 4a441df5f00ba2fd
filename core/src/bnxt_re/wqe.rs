//! Send and receive WQEs. Source of all layouts: `roce_hsi.h`.
//!
//! The header takes two slots of 16 bytes. SGEs follow, one slot each, or inline data, padded to whole slots.

use zerocopy::little_endian as le;

use crate::layout::{bits, layout};
use crate::verbs::{AccessFlags, Sge, WcOpcode};

pub use super::flags::SqFlags;

/// Bytes of a slot, the unit of a ring.
pub const SLOT_BYTES: u32 = 16;
/// Slots of every header.
pub const HEADER_SLOTS: u32 = 2;
/// Slots of every WQE in static mode.
pub const STATIC_SLOTS: u32 = 8;
/// SGEs of a WQE in static mode.
pub const STATIC_SGES: u32 = 6;
/// The longest message: 2 GiB.
pub const MAX_MESSAGE: u32 = 1 << 31;

/// What a WQE does. Open: any byte is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WqeType(pub u8);

impl WqeType {
    /// SEND, and raw Ethernet frames.
    pub const SEND: Self = Self(0x00);
    /// SEND with immediate data.
    pub const SEND_IMM: Self = Self(0x01);
    /// SEND that invalidates a key of the peer.
    pub const SEND_INV: Self = Self(0x02);
    /// RDMA WRITE.
    pub const WRITE: Self = Self(0x04);
    /// RDMA WRITE with immediate data.
    pub const WRITE_IMM: Self = Self(0x05);
    /// RDMA READ.
    pub const READ: Self = Self(0x06);
    /// Compare and swap.
    pub const ATOMIC_CS: Self = Self(0x08);
    /// Fetch and add.
    pub const ATOMIC_FA: Self = Self(0x0b);
    /// Invalidates a local key.
    pub const LOCAL_INV: Self = Self(0x0c);
    /// Registers memory.
    pub const FR_PMR: Self = Self(0x0d);
    /// Binds a memory window.
    pub const BIND: Self = Self(0x0e);
    /// Receive request.
    pub const RECV: Self = Self(0x80);
}

bits! {
    /// Destination queue pair.
    pub struct DstQpWord(u32) {
        /// Number.
        dst_qp: u32 = 24,
        __: u8 = 8,
    }
}
bits! {
    /// Address handle.
    pub struct AvidWord(u32) {
        /// Number.
        avid: u32 = 20,
        __: u16 = 12,
    }
}
bits! {
    /// Time stamp.
    pub struct TimestampWord(u32) {
        /// Ticks.
        timestamp: u32 = 24,
        __: u8 = 8,
    }
}
bits! {
    /// What peers and local operations may do.
    pub struct AccessCntl(u8) {
        /// Local operations may write.
        local_write: bool = 1,
        /// Peers may read.
        remote_read: bool = 1,
        /// Peers may write.
        remote_write: bool = 1,
        /// Peers may do atomics.
        remote_atomic: bool = 1,
        /// Memory windows may be bound.
        window_bind: bool = 1,
        __: u8 = 3,
    }
}

impl AccessCntl {
    /// The bits for access flags.
    pub const fn from_access(access: AccessFlags) -> Self {
        Self::new()
            .with_local_write(access.contains(AccessFlags::LOCAL_WRITE))
            .with_remote_read(access.contains(AccessFlags::REMOTE_READ))
            .with_remote_write(access.contains(AccessFlags::REMOTE_WRITE))
            .with_remote_atomic(access.contains(AccessFlags::REMOTE_ATOMIC))
            .with_window_bind(access.contains(AccessFlags::MW_BIND))
    }
}

bits! {
    /// Page size of a fast-registered region.
    pub struct FrPageSize(u8) {
        /// Base-two logarithm of the page size, minus 12.
        page_size_log: u8 = 5,
        /// Addresses count from zero.
        zero_based: bool = 1,
        __: u8 = 2,
    }
}
bits! {
    /// Page list of a fast-registered region.
    pub struct FrPageList(u8) {
        /// Base-two logarithm of the page size of the list, minus 12.
        pbl_page_size_log: u8 = 5,
        __: bool = 1,
        /// 0 contiguous, 1 a list, 2 a list of lists.
        numlevels: u8 = 2,
    }
}
bits! {
    /// Kind of a memory window.
    pub struct BindKind(u8) {
        /// Addresses count from zero.
        zero_based: bool = 1,
        /// Type 2 instead of type 1.
        mw_type2: bool = 1,
        __: u8 = 6,
    }
}
bits! {
    /// Number that a receive WQE is found again by.
    pub struct RqTag(u32) {
        /// Comes back in the CQE.
        wr_id: u32 = 20,
        __: u16 = 12,
    }
}

layout! {
    /// What all send WQEs begin with.
    pub struct SqBase: "bnxt_re" "sq_base", 8 {
        /// Operation, see [`WqeType`].
        wqe_type: u8 = 0,
        /// The rest depends on the operation.
        unused_0: [u8; 7] = 1,
    }
}
layout! {
    /// Scatter/gather element.
    pub struct SqSge: "bnxt_re" "sq_sge", 16 {
        /// Address.
        va_or_pa: le::U64 = 0,
        /// Local key.
        l_key: le::U32 = 8,
        /// Length in bytes.
        size: le::U32 = 12,
    }
}
layout! {
    /// Header of SEND, SEND_IMM and SEND_INV, connected and datagram.
    pub struct SqSendHdr: "bnxt_re" "sq_send_hdr", 32 {
        /// Operation.
        wqe_type: u8 = 0,
        /// Flags.
        flags: u8 as SqFlags = 1,
        /// Slots in use, header included.
        wqe_size: u8 = 2,
        /// Zero.
        reserved8_1: u8 = 3,
        /// Immediate data, or the peer's key to invalidate.
        inv_key_or_imm_data: le::U32 = 4,
        /// Length of the message in bytes.
        length: le::U32 = 8,
        /// Queue key of a datagram.
        q_key: le::U32 = 12,
        /// Destination queue pair of a datagram.
        dst_qp: le::U32 as DstQpWord = 16,
        /// Address handle of a datagram.
        avid: le::U32 as AvidWord = 20,
        /// Zero.
        reserved32: le::U32 = 24,
        /// Time stamp.
        timestamp: le::U32 as TimestampWord = 28,
    }
}
layout! {
    /// Header of a raw Ethernet frame.
    pub struct SqRawHdr: "bnxt_re" "sq_send_raweth_qp1_hdr", 32 {
        /// Operation, SEND.
        wqe_type: u8 = 0,
        /// Flags.
        flags: u8 as SqFlags = 1,
        /// Slots in use, header included.
        wqe_size: u8 = 2,
        /// Zero.
        reserved8: u8 = 3,
        /// Checksums that the device fills in; zero.
        lflags: le::U16 = 4,
        /// Flow action, zero.
        cfa_action: le::U16 = 6,
        /// Length of the frame in bytes.
        length: le::U32 = 8,
        /// Zero.
        reserved32_1: le::U32 = 12,
        /// What the flow action is about, zero.
        cfa_meta: le::U32 = 16,
        /// Zero.
        reserved32_2: le::U32 = 20,
        /// Zero.
        reserved32_3: le::U32 = 24,
        /// Time stamp.
        timestamp: le::U32 as TimestampWord = 28,
    }
}
layout! {
    /// Header of WRITE, WRITE_IMM and READ.
    pub struct SqRdmaHdr: "bnxt_re" "sq_rdma_hdr", 32 {
        /// Operation.
        wqe_type: u8 = 0,
        /// Flags.
        flags: u8 as SqFlags = 1,
        /// Slots in use, header included.
        wqe_size: u8 = 2,
        /// Zero.
        reserved8: u8 = 3,
        /// Immediate data.
        imm_data: le::U32 = 4,
        /// Length of the message in bytes.
        length: le::U32 = 8,
        /// Zero.
        reserved32_1: le::U32 = 12,
        /// The peer's address.
        remote_va: le::U64 = 16,
        /// The peer's key.
        remote_key: le::U32 = 24,
        /// Time stamp.
        timestamp: le::U32 as TimestampWord = 28,
    }
}
layout! {
    /// Header of compare and swap, and fetch and add. One SGE of 8 bytes follows.
    pub struct SqAtomicHdr: "bnxt_re" "sq_atomic_hdr", 32 {
        /// Operation.
        wqe_type: u8 = 0,
        /// Flags.
        flags: u8 as SqFlags = 1,
        /// Low byte: slots in use, as the vendor's provider stores it.
        reserved16: le::U16 = 2,
        /// The peer's key.
        remote_key: le::U32 = 4,
        /// The peer's address.
        remote_va: le::U64 = 8,
        /// Value to store, or to add.
        swap_data: le::U64 = 16,
        /// Value that must be there; zero for fetch and add.
        cmp_data: le::U64 = 24,
    }
}
layout! {
    /// Invalidates a local key.
    pub struct SqLocalInvalidate: "bnxt_re" "sq_localinvalidate", 128 {
        /// Operation.
        wqe_type: u8 = 0,
        /// Flags.
        flags: u8 as SqFlags = 1,
        /// Zero.
        reserved16: le::U16 = 2,
        /// The key.
        inv_l_key: le::U32 = 4,
        /// Zero.
        reserved64: le::U64 = 8,
        /// Zero.
        reserved128: [u8; 16] = 16,
        /// Not used.
        data: [le::U32; 24] = 32,
    }
}
layout! {
    /// Registers memory.
    pub struct SqFrPmr: "bnxt_re" "sq_fr_pmr", 128 {
        /// Operation.
        wqe_type: u8 = 0,
        /// Flags.
        flags: u8 as SqFlags = 1,
        /// What the region allows.
        access_cntl: u8 as AccessCntl = 2,
        /// Page size.
        zero_based_page_size_log: u8 as FrPageSize = 3,
        /// Key of the region.
        l_key: le::U32 = 4,
        /// Length in bytes, least significant byte first.
        length: [u8; 5] = 8,
        /// Zero.
        reserved8_1: u8 = 13,
        /// Zero.
        reserved8_2: u8 = 14,
        /// Levels and page size of the page list.
        numlevels_pbl_page_size_log: u8 as FrPageList = 15,
        /// Address of the page list, or of the region.
        pblptr: le::U64 = 16,
        /// Address of the first byte.
        va: le::U64 = 24,
        /// Not used.
        data: [le::U32; 24] = 32,
    }
}
layout! {
    /// Binds a memory window.
    pub struct SqBind: "bnxt_re" "sq_bind", 128 {
        /// Operation.
        wqe_type: u8 = 0,
        /// Flags.
        flags: u8 as SqFlags = 1,
        /// What peers may do.
        access_cntl: u8 as AccessCntl = 2,
        /// Zero.
        reserved8_1: u8 = 3,
        /// Kind of window.
        mw_type_zero_based: u8 as BindKind = 4,
        /// Zero.
        reserved8_2: u8 = 5,
        /// Zero.
        reserved16: le::U16 = 6,
        /// Key of the region under it.
        parent_l_key: le::U32 = 8,
        /// Key that the window shall have.
        l_key: le::U32 = 12,
        /// First byte.
        va: le::U64 = 16,
        /// Length in bytes, least significant byte first.
        length: [u8; 5] = 24,
        /// Zero.
        reserved24: [u8; 3] = 29,
        /// Not used.
        data: [le::U32; 24] = 32,
    }
}
layout! {
    /// Header of a receive request, in a receive queue or a shared one.
    pub struct RqWqeHdr: "bnxt_re" "rq_wqe_hdr", 32 {
        /// [`WqeType::RECV`].
        wqe_type: u8 = 0,
        /// Zero.
        flags: u8 = 1,
        /// Slots in use, header included.
        wqe_size: u8 = 2,
        /// Zero.
        reserved8: u8 = 3,
        /// Zero.
        reserved32: le::U32 = 4,
        /// Number that comes back in the CQE; the second word is zero.
        wr_id: [le::U32; 2] as RqTag = 8,
        /// Zero.
        reserved128: [u8; 16] = 16,
    }
}

impl SqSge {
    /// The device's form of an SGE.
    #[inline(always)]
    pub const fn new(sge: &Sge) -> Self {
        Self {
            va_or_pa: le::U64::new(sge.addr),
            l_key: le::U32::new(sge.lkey.get()),
            size: le::U32::new(sge.length),
        }
    }
}

impl WqeType {
    /// What completes when the WQE does.
    pub const fn completes_as(self) -> Option<WcOpcode> {
        Some(match self {
            Self::SEND | Self::SEND_IMM | Self::SEND_INV => WcOpcode::Send,
            Self::WRITE | Self::WRITE_IMM => WcOpcode::RdmaWrite,
            Self::READ => WcOpcode::RdmaRead,
            Self::ATOMIC_CS => WcOpcode::CompSwap,
            Self::ATOMIC_FA => WcOpcode::FetchAdd,
            Self::LOCAL_INV => WcOpcode::LocalInv,
            Self::FR_PMR => WcOpcode::RegMr,
            Self::BIND => WcOpcode::BindMw,
            Self::RECV => WcOpcode::Recv,
            _ => return None,
        })
    }
}

/// Slots of a header and `bytes` of inline data.
#[inline(always)]
pub const fn inline_slots(bytes: u32) -> u32 {
    HEADER_SLOTS + bytes.div_ceil(SLOT_BYTES)
}

/// How a queue's WQEs are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WqeMode {
    /// Every WQE takes [`STATIC_SLOTS`]; the SQ doorbell counts WQEs.
    #[default]
    Static,
    /// A WQE takes the slots that it needs; the SQ doorbell counts slots.
    Variable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_flags_change_places() {
        let access = AccessFlags::REMOTE_READ | AccessFlags::MW_BIND;
        assert_eq!(AccessCntl::from_access(access).into_bits(), 0x12);
        assert_eq!(AccessCntl::from_access(AccessFlags::REMOTE_WRITE).into_bits(), 0x04);
    }
}
