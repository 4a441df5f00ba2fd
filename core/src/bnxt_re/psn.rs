//! The retransmit table: one entry for each message that may have to be sent again.
//!
//! It lies right behind the slots of the send queue. Chips before P5 read entries of 8 bytes, P5 reads 16 bytes, both
//! at the doorbell index of the WQE; a device that reports the MSN table reads 8 bytes at the number of the message.

use zerocopy::little_endian as le;

use crate::layout::{bits, layout};
use crate::verbs::Psn;

bits! {
    /// First PSN of a message, and its operation.
    pub struct PsnStart(u32) {
        /// PSN of the first packet.
        start_psn: u32 = 24,
        /// Operation; rdma-core stores the `ibv_wr_opcode`.
        opcode: u8 = 8,
    }
}
bits! {
    /// First PSN behind a message.
    pub struct PsnNext(u32) {
        /// PSN after that of the last packet.
        next_psn: u32 = 24,
        /// Flags, zero.
        flags: u8 = 8,
    }
}
bits! {
    /// All of an MSN table entry.
    pub struct MsnWord(u64) {
        /// PSN of the first packet.
        start_psn: u32 = 24,
        /// PSN after that of the last packet.
        next_psn: u32 = 24,
        /// Where the WQE begins: its slot in variable mode, its WQE index in static mode.
        start_idx: u16 = 16,
    }
}

layout! {
    /// Retransmit entry of chips before P5. Source: `roce_hsi.h`.
    pub struct SqPsnSearch: "bnxt_re" "sq_psn_search", 8 {
        /// First PSN and operation.
        opcode_start_psn: le::U32 as PsnStart = 0,
        /// PSN behind the message.
        flags_next_psn: le::U32 as PsnNext = 4,
    }
}
layout! {
    /// Retransmit entry of P5. Source: `roce_hsi.h`.
    pub struct SqPsnSearchExt: "bnxt_re" "sq_psn_search_ext", 16 {
        /// First PSN and operation.
        opcode_start_psn: le::U32 as PsnStart = 0,
        /// PSN behind the message.
        flags_next_psn: le::U32 as PsnNext = 4,
        /// Where the WQE begins: its slot in variable mode, its WQE index in static mode.
        start_slot_idx: le::U16 = 8,
        /// Zero.
        reserved16: le::U16 = 10,
        /// Zero.
        reserved32: le::U32 = 12,
    }
}
layout! {
    /// Entry of the MSN table. Source: `roce_hsi.h`.
    pub struct SqMsnSearch: "bnxt_re" "sq_msn_search", 8 {
        /// PSNs and where the WQE begins.
        start_idx_next_psn_start_psn: le::U64 as MsnWord = 0,
    }
}

/// Which retransmit table a device reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retransmit {
    /// [`SqPsnSearch`], chips before P5.
    Psn,
    /// [`SqPsnSearchExt`], P5 and P7 without the MSN table.
    PsnExt,
    /// [`SqMsnSearch`].
    Msn,
}

impl Retransmit {
    /// Bytes of an entry.
    pub const fn entry_bytes(self) -> u32 {
        1 << self.log2()
    }

    /// Base-two logarithm of [`Retransmit::entry_bytes`].
    pub const fn log2(self) -> u32 {
        match self {
            Self::Psn | Self::Msn => 3,
            Self::PsnExt => 4,
        }
    }
}

impl SqPsnSearchExt {
    /// The entry of a message with PSNs from `start` up to, not including, `next`.
    #[inline(always)]
    pub const fn new(opcode: u8, start: Psn, next: Psn, start_idx: u16) -> Self {
        Self {
            opcode_start_psn: le::U32::new((opcode as u32) << 24 | start.get()),
            flags_next_psn: le::U32::new(next.get()),
            start_slot_idx: le::U16::new(start_idx),
            reserved16: le::U16::ZERO,
            reserved32: le::U32::ZERO,
        }
    }
}

impl SqPsnSearch {
    /// The entry of a message with PSNs from `start` up to, not including, `next`.
    #[inline(always)]
    pub const fn new(opcode: u8, start: Psn, next: Psn) -> Self {
        Self {
            opcode_start_psn: le::U32::new((opcode as u32) << 24 | start.get()),
            flags_next_psn: le::U32::new(next.get()),
        }
    }
}

impl SqMsnSearch {
    /// The entry of a message with PSNs from `start` up to, not including, `next`. The lowest 16 bits of
    /// `start_idx` count.
    #[inline(always)]
    pub const fn new(start: Psn, next: Psn, start_idx: u32) -> Self {
        let word = (start_idx as u64) << 48 | (next.get() as u64) << 24 | start.get() as u64;
        Self { start_idx_next_psn_start_psn: le::U64::new(word) }
    }

    /// The word inside.
    pub const fn word(&self) -> MsnWord {
        MsnWord::from_bits(self.start_idx_next_psn_start_psn.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn entries_have_the_bytes_of_the_vendor() {
        let (start, next) = (Psn::truncated(0x12_3456), Psn::truncated(0x12_3458));
        assert_eq!(SqPsnSearch::new(4, start, next).as_bytes(), [0x56, 0x34, 0x12, 4, 0x58, 0x34, 0x12, 0]);
        let ext = SqPsnSearchExt::new(4, start, next, 0xbeef);
        assert_eq!(ext.as_bytes()[..8], *SqPsnSearch::new(4, start, next).as_bytes());
        assert_eq!(ext.as_bytes()[8..], [0xef, 0xbe, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn an_msn_entry_splits_into_its_fields() {
        let word = SqMsnSearch::new(Psn::truncated(7), Psn::truncated(9), 0x8001).word();
        assert_eq!((word.start_psn(), word.next_psn(), word.start_idx()), (7, 9, 0x8001));
    }
}
