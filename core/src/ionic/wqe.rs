//! Work queue entries: a 16-byte header and a body, in strides of at least 64 bytes.
//!
//! The first 64 bytes of a send WQE are one of [`SendWqe`], [`RdmaWqe`], [`AtomicWqeV1`], [`AtomicWqeV2`], [`RegMrWqe`] and
//! [`BindMwWqe`]; a receive WQE is a [`RecvWqe`]. SGEs go on behind them for as long as the stride allows.
//! Source: rdma-core `ionic_fw_types.h`; `reg_mr`: kernel `ionic_fw.h`.

use zerocopy::{big_endian as be, little_endian as le};

use crate::layout::{Layout, bits, layout};
use crate::verbs::AccessFlags;

/// Bytes before the payload of SEND, RDMA and receive WQEs.
pub const PAYLOAD_OFFSET: usize = 32;

/// Shortest WQE in bytes.
pub const WQE_MIN: usize = 64;

/// Bytes of the express doorbell at a WQE's end.
pub const EXPRESS_BYTES: usize = 8;

/// SGEs that fit before the list of their lengths must be there: with a spec list, SGEs begin this much later.
pub const SPEC_FIRST_SGE: u32 = 2;

/// Most lengths of a list of 32-bit ones; a longer list has 16-bit ones.
pub const SPEC32_MAX: u32 = 8;

bits! {
    /// Flags of a WQE, big-endian in memory.
    pub struct WqeFlags(u16) {
        /// Start after earlier READs and atomics have completed.
        fence: bool = 1,
        /// Wake the peer's completion queue that waits for solicited events.
        solicited: bool = 1,
        /// The payload is data instead of SGEs.
        inline: bool = 1,
        /// Produce a completion. The device always completes; the flag tells it that the host waits for it.
        signaled: bool = 1,
        /// Pass over the ring: 1 in the first, flips with every wrap.
        color: bool = 1,
        __: u8 = 7,
        /// Form of the list of SGE lengths in the first 32 bytes of the payload, see [`SpecFormat`].
        spec: u8 = 4,
    }
}

impl WqeFlags {
    /// Sets `spec`. The field's own setter would check at run time that the value fits.
    #[inline(always)]
    pub const fn with_format(self, format: SpecFormat) -> Self {
        let cleared = self.with_spec(0).into_bits();
        Self::from_bits(cleared | (format as u16) << Self::SPEC_OFFSET)
    }
}

/// Form of the list of SGE lengths in a WQE's payload. The discriminants are the values of [`WqeFlags`]'s `spec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SpecFormat {
    /// No list; SGEs begin at once.
    None = 0,
    /// Eight 32-bit lengths.
    Spec32 = 1,
    /// Sixteen 16-bit lengths.
    Spec16 = 2,
}

impl SpecFormat {
    /// The form of a `spec` field; `None` if there is no such form.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::None),
            1 => Some(Self::Spec32),
            2 => Some(Self::Spec16),
            _ => None,
        }
    }

    /// The form that a queue whose spec limit is `spec` (0: it has none) uses for `sges` SGEs.
    #[inline(always)]
    pub const fn of(spec: u32, sges: u32) -> Self {
        if spec == 0 || sges <= SPEC_FIRST_SGE {
            Self::None
        } else if sges <= SPEC32_MAX {
            Self::Spec32
        } else {
            Self::Spec16
        }
    }

    /// Offset of the first SGE in the WQE.
    #[inline(always)]
    pub const fn sge_offset(self) -> usize {
        match self {
            Self::None => PAYLOAD_OFFSET,
            Self::Spec32 | Self::Spec16 => PAYLOAD_OFFSET + SPEC_FIRST_SGE as usize * size_of::<Sge>(),
        }
    }
}

bits! {
    /// What a memory region or window is and allows, big-endian in memory.
    pub struct MrFlags(u16) {
        /// The device may write for local operations.
        local_write: bool = 1,
        /// A peer may write.
        remote_write: bool = 1,
        /// A peer may read.
        remote_read: bool = 1,
        /// A peer may do atomics.
        remote_atomic: bool = 1,
        /// A memory window may be bound to it.
        mw_bind: bool = 1,
        /// Addresses count from zero at its start.
        zero_based: bool = 1,
        /// Pages on demand.
        on_demand: bool = 1,
        /// Physical buffer list.
        pb: bool = 1,
        __: u8 = 5,
        /// The low byte of the key is the user's.
        ukey_en: bool = 1,
        /// It is a memory window.
        is_mw: bool = 1,
        /// It may be invalidated.
        inv_en: bool = 1,
    }
}

impl MrFlags {
    /// The access part; what the device has no flag for is dropped, as relaxed ordering is a matter of registration.
    pub const fn from_access(access: AccessFlags) -> Self {
        Self::new()
            .with_local_write(access.contains(AccessFlags::LOCAL_WRITE))
            .with_remote_write(access.contains(AccessFlags::REMOTE_WRITE))
            .with_remote_read(access.contains(AccessFlags::REMOTE_READ))
            .with_remote_atomic(access.contains(AccessFlags::REMOTE_ATOMIC))
            .with_mw_bind(access.contains(AccessFlags::MW_BIND))
            .with_zero_based(access.contains(AccessFlags::ZERO_BASED))
    }

    /// The access part in the field's terms.
    pub fn access(self) -> AccessFlags {
        let pairs = [
            (self.local_write(), AccessFlags::LOCAL_WRITE),
            (self.remote_write(), AccessFlags::REMOTE_WRITE),
            (self.remote_read(), AccessFlags::REMOTE_READ),
            (self.remote_atomic(), AccessFlags::REMOTE_ATOMIC),
            (self.mw_bind(), AccessFlags::MW_BIND),
            (self.zero_based(), AccessFlags::ZERO_BASED),
        ];
        pairs.iter().filter(|(set, _)| *set).fold(AccessFlags::empty(), |all, (_, flag)| all | *flag)
    }
}

layout! {
    /// Scatter/gather element.
    pub struct Sge: "ionic" "ionic_sge", 16 {
        /// Address.
        va: be::U64 = 0,
        /// Length in bytes.
        len: be::U32 = 8,
        /// Key.
        lkey: be::U32 = 12,
    }
}

layout! {
    /// Header of every WQE.
    pub struct BaseHeader: "ionic" "ionic_v1_base_hdr", 16 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation, see [`SqOp`]; 0 in a receive WQE.
        op: u8 = 8,
        /// Number of SGEs, or low 8 bits of the new key of a memory window.
        num_sge_key: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Immediate data, key to invalidate, key of the memory window, or total length of a receive WQE.
        imm_data_key: be::U32 = 12,
    }
}

layout! {
    /// SEND of a datagram, and of a connected queue pair with the first three words zero.
    pub struct SendWqe: "ionic" "ionic_v1_wqe", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation.
        op: u8 = 8,
        /// Number of SGEs.
        num_sge: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Immediate data, or key to invalidate.
        imm_data_key: be::U32 = 12,
        /// Address handle.
        ah_id: be::U32 = 16,
        /// Destination queue pair.
        dest_qpn: be::U32 = 20,
        /// Its queue key.
        dest_qkey: be::U32 = 24,
        /// Length of the message in bytes.
        length: be::U32 = 28,
        /// SGEs, a list of lengths, or data.
        payload: [u8; 32] = 32,
    }
}

layout! {
    /// RDMA READ and WRITE.
    pub struct RdmaWqe: "ionic" "ionic_v1_wqe", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation.
        op: u8 = 8,
        /// Number of SGEs.
        num_sge: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Immediate data.
        imm_data: be::U32 = 12,
        /// Peer's address, bits 63:32.
        remote_va_high: be::U32 = 16,
        /// Peer's address, bits 31:0.
        remote_va_low: be::U32 = 20,
        /// Peer's key.
        remote_rkey: be::U32 = 24,
        /// Length of the message in bytes.
        length: be::U32 = 28,
        /// SGEs, a list of lengths, or data.
        payload: [u8; 32] = 32,
    }
}

layout! {
    /// Atomic, rdma version 1: the local memory is an SGE.
    pub struct AtomicWqeV1: "ionic" "ionic_v1_wqe", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation.
        op: u8 = 8,
        /// Number of SGEs, 1.
        num_sge: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Unused.
        imm_data_key: be::U32 = 12,
        /// Peer's address, bits 63:32.
        remote_va_high: be::U32 = 16,
        /// Peer's address, bits 31:0.
        remote_va_low: be::U32 = 20,
        /// Peer's key.
        remote_rkey: be::U32 = 24,
        /// Value to store or add, bits 63:32.
        swap_add_high: be::U32 = 28,
        /// Value to store or add, bits 31:0.
        swap_add_low: be::U32 = 32,
        /// Value to compare with, bits 63:32.
        compare_high: be::U32 = 36,
        /// Value to compare with, bits 31:0.
        compare_low: be::U32 = 40,
        /// Reserved.
        rsvd: [u8; 4] = 44,
        /// Local address.
        va: be::U64 = 48,
        /// Local length, 8.
        len: be::U32 = 56,
        /// Local key.
        lkey: be::U32 = 60,
    }
}

layout! {
    /// Atomic, rdma version 2: room for an express doorbell is left at the end.
    pub struct AtomicWqeV2: "ionic" "", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation.
        op: u8 = 8,
        /// Number of SGEs, 1.
        num_sge: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Unused.
        imm_data_key: be::U32 = 12,
        /// Peer's address, bits 63:32.
        remote_va_high: be::U32 = 16,
        /// Peer's address, bits 31:0.
        remote_va_low: be::U32 = 20,
        /// Peer's key.
        remote_rkey: be::U32 = 24,
        /// Value to store or add, bits 63:32.
        swap_add_high: be::U32 = 28,
        /// Value to store or add, bits 31:0.
        swap_add_low: be::U32 = 32,
        /// Value to compare with, bits 63:32.
        compare_high: be::U32 = 36,
        /// Value to compare with, bits 31:0.
        compare_low: be::U32 = 40,
        /// Local key.
        lkey: be::U32 = 44,
        /// Local address.
        local_va: be::U64 = 48,
        /// Express doorbell of a 64-byte WQE.
        express: [u8; 8] = 56,
    }
}

layout! {
    /// Registers memory.
    pub struct RegMrWqe: "ionic" "ionic_v1_wqe", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation.
        op: u8 = 8,
        /// Low 8 bits of the key.
        num_sge_key: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Key of the region.
        imm_data_key: be::U32 = 12,
        /// First address.
        va: be::U64 = 16,
        /// Length in bytes.
        length: be::U64 = 24,
        /// Offset of the first byte in the first page.
        offset: be::U64 = 32,
        /// Page table, or the memory itself if `map_count` is 1.
        dma_addr: be::U64 = 40,
        /// Number of pages.
        map_count: be::U32 = 48,
        /// What the region is and allows.
        mr_flags: be::U16 as MrFlags = 52,
        /// Directory size, base-two logarithm; 0.
        dir_size_log2: u8 = 54,
        /// Page size, base-two logarithm.
        page_size_log2: u8 = 55,
        /// Reserved.
        rsvd: [u8; 8] = 56,
    }
}

layout! {
    /// Binds a memory window. `num_sge_key` has the low 8 bits of the new key, `imm_data_key` the window's key as it is.
    pub struct BindMwWqe: "ionic" "ionic_v1_wqe", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation.
        op: u8 = 8,
        /// Low 8 bits of the new key.
        num_sge_key: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Key of the window.
        imm_data_key: be::U32 = 12,
        /// First address.
        va: be::U64 = 16,
        /// Length in bytes; 0 unbinds a window of type 1.
        length: be::U64 = 24,
        /// Key of the region.
        lkey: be::U32 = 32,
        /// What the window is and allows.
        mr_flags: be::U16 as MrFlags = 36,
        /// Reserved.
        rsvd: [u8; 26] = 38,
    }
}

layout! {
    /// Receive WQE.
    pub struct RecvWqe: "ionic" "ionic_v1_wqe", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Zero.
        op: u8 = 8,
        /// Number of SGEs.
        num_sge: u8 = 9,
        /// Only the form of the spec list.
        flags: be::U16 as WqeFlags = 10,
        /// Sum of the SGEs' lengths.
        length: be::U32 = 12,
        /// Reserved.
        rsvd: [u8; 16] = 16,
        /// SGEs, or a list of their lengths.
        payload: [u8; 32] = 32,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 9] = [
    Sge::LAYOUT,
    BaseHeader::LAYOUT,
    SendWqe::LAYOUT,
    RdmaWqe::LAYOUT,
    AtomicWqeV1::LAYOUT,
    AtomicWqeV2::LAYOUT,
    RegMrWqe::LAYOUT,
    BindMwWqe::LAYOUT,
    RecvWqe::LAYOUT,
];

/// Interface version of the device: which opcodes and atomic body it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RdmaVersion {
    /// Version 1.
    V1 = 1,
    /// Version 2.
    V2 = 2,
}

/// Operations of a send queue. The discriminants are the opcodes of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SqOp {
    /// SEND.
    Send = 0,
    /// SEND that invalidates a key of the peer.
    SendInv = 1,
    /// SEND with immediate data.
    SendImm = 2,
    /// RDMA READ.
    Read = 3,
    /// RDMA WRITE.
    Write = 4,
    /// RDMA WRITE with immediate data.
    WriteImm = 5,
    /// Atomic compare and swap.
    CompareSwap = 6,
    /// Atomic fetch and add.
    FetchAdd = 7,
    /// Registers memory.
    RegMr = 8,
    /// Invalidates a local key.
    LocalInv = 9,
    /// Binds a memory window.
    BindMw = 10,
}

/// The opcode of each operation, in order of [`SqOp`]'s discriminants.
pub(super) type Opcodes = [u8; 11];

const OPCODES_V1: Opcodes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
/// Version 2 opcodes: bit 5 carries data, bit 6 immediate data, bit 7 a key to invalidate.
const OPCODES_V2: Opcodes = [0x20, 0xa0, 0x60, 0x02, 0x21, 0x61, 0x04, 0x05, 0x06, 0x07, 0x08];

impl RdmaVersion {
    /// The opcodes of the version.
    #[inline(always)]
    pub(super) const fn opcodes(self) -> &'static Opcodes {
        match self {
            Self::V1 => &OPCODES_V1,
            Self::V2 => &OPCODES_V2,
        }
    }
}

impl SqOp {
    /// All operations, in order of their discriminants.
    pub const ALL: [Self; 11] = [
        Self::Send,
        Self::SendInv,
        Self::SendImm,
        Self::Read,
        Self::Write,
        Self::WriteImm,
        Self::CompareSwap,
        Self::FetchAdd,
        Self::RegMr,
        Self::LocalInv,
        Self::BindMw,
    ];

    /// The opcode in a WQE.
    #[inline(always)]
    pub const fn opcode(self, version: RdmaVersion) -> u8 {
        version.opcodes()[self as usize]
    }

    /// The operation of an opcode in a WQE; `None` if the version has no such opcode.
    pub fn from_opcode(version: RdmaVersion, opcode: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.opcode(version) == opcode)
    }

    /// Whether the operation never leaves the device: it completes by position, not by message.
    #[inline(always)]
    pub const fn is_local(self) -> bool {
        matches!(self, Self::RegMr | Self::LocalInv | Self::BindMw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_round_trip_in_both_versions() {
        for version in [RdmaVersion::V1, RdmaVersion::V2] {
            for op in SqOp::ALL {
                assert_eq!(SqOp::from_opcode(version, op.opcode(version)), Some(op));
            }
        }
        assert_eq!(SqOp::SendImm.opcode(RdmaVersion::V2), 0x60);
        assert_eq!(SqOp::from_opcode(RdmaVersion::V1, 11), None);
        assert_eq!(SqOp::from_opcode(RdmaVersion::V2, 0), None);
    }

    #[test]
    fn flags_are_where_the_firmware_reads_them() {
        let bits = |f: WqeFlags| f.into_bits();
        assert_eq!(bits(WqeFlags::new().with_fence(true)), 1);
        assert_eq!(bits(WqeFlags::new().with_solicited(true)), 2);
        assert_eq!(bits(WqeFlags::new().with_inline(true)), 4);
        assert_eq!(bits(WqeFlags::new().with_signaled(true)), 8);
        assert_eq!(bits(WqeFlags::new().with_color(true)), 0x10);
        assert_eq!(bits(WqeFlags::new().with_format(SpecFormat::Spec32)), 1 << 12);
        assert_eq!(bits(WqeFlags::new().with_format(SpecFormat::Spec16)), 2 << 12);
        assert_eq!(MrFlags::new().with_is_mw(true).with_inv_en(true).into_bits(), 0xc000);
        assert_eq!(MrFlags::new().with_ukey_en(true).into_bits(), 1 << 13);
    }

    #[test]
    fn access_flags_round_trip() {
        let access = AccessFlags::REMOTE_READ | AccessFlags::ZERO_BASED | AccessFlags::LOCAL_WRITE;
        assert_eq!(MrFlags::from_access(access).into_bits(), 0x25);
        assert_eq!(MrFlags::from_access(access).access(), access);
    }

    #[test]
    fn a_spec_list_is_used_past_two_sges() {
        let cases = [(8, 2, 0), (8, 3, 1), (8, 8, 1), (16, 9, 2), (0, 5, 0)];
        for (spec, sges, format) in cases {
            assert_eq!(SpecFormat::of(spec, sges) as u8, format, "{spec} {sges}");
            assert_eq!(SpecFormat::from_bits(format), Some(SpecFormat::of(spec, sges)));
        }
        assert_eq!(SpecFormat::from_bits(3), None);
    }
}
