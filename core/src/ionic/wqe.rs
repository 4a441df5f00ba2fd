//! Work queue entries: a 16-byte header and a body, in strides of at least 64 bytes.
//!
//! The first 64 bytes of a send WQE are one of [`SendWqe`], [`RdmaWqe`], [`AtomicWqeV1`], [`AtomicWqeV2`], [`RegMrWqe`] and
//! [`BindMwWqe`]; a receive WQE is a [`RecvWqe`]. SGEs go on behind them for as long as the stride allows.
//! Source: rdma-core `ionic_fw_types.h`; `reg_mr`: kernel `ionic_fw.h`.

use zerocopy::{big_endian as be, little_endian as le};

pub use super::opcode::{RdmaVersion, SqOp};
pub use super::region::{BindMwWqe, MrFlags, RegMrWqe};
use crate::layout::{Layout, bits, layout};

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

#[cfg(test)]
mod tests {
    use super::*;

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
