//! The 64-bit doorbell word.
//!
//! One little-endian 64-bit store to the start of a doorbell page. Every part of the word is a type of its own, and
//! only checked constructors make one, so an index cannot stand where an id is meant, and nothing spills into its
//! neighbour:
//!
//! ```
//! use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
//! use directverbs::queue::WqeIdx;
//! use directverbs::verbs::QpId;
//! let (index, qp) = (DbIndex::wqe(WqeIdx(5)).unwrap(), Xid::qp(QpId::truncated(9)).unwrap());
//! let word = DbWord::ring(DbType::SQ, qp, index, Epoch(false), Toggle::ZERO);
//! assert_eq!(word.to_u64(), 0x0400_0009_0000_0005);
//! ```
//! ```compile_fail
//! # use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
//! # use directverbs::queue::WqeIdx;
//! # use directverbs::verbs::QpId;
//! # let (index, qp) = (DbIndex::wqe(WqeIdx(5)).unwrap(), Xid::qp(QpId::truncated(9)).unwrap());
//! let word = DbWord::ring(DbType::SQ, index, qp, Epoch(false), Toggle::ZERO);
//! ```

use zerocopy::little_endian as le;

use crate::layout::{bits, layout};
use crate::queue::{SlotIdx, WqeIdx};
use crate::verbs::{CqId, QpId, SrqId, Text};

bits! {
    /// Low half of a doorbell.
    pub struct DbIndexWord(u32) {
        /// Producer index (SQ, RQ, SRQ), consumer index (CQ, NQ), or limit (SRQ_ARM).
        index: u32 = 24,
        /// Parity of the index's wraps.
        epoch: bool = 1,
        /// Counts arms; an arm with a stale value is ignored.
        toggle: u8 = 2,
        __: u8 = 5,
    }
}
bits! {
    /// High half of a doorbell.
    pub struct DbTypeWord(u32) {
        /// Number of the queue pair, completion queue, shared receive queue or ring.
        xid: u32 = 20,
        __: u8 = 4,
        /// Path: 0 RoCE, 1 L2, 2 engine.
        path: u8 = 2,
        /// The device takes the doorbell.
        valid: bool = 1,
        /// The device traces the doorbell.
        debug_trace: bool = 1,
        /// Type, see [`DbType`].
        db_type: u8 = 4,
    }
}
bits! {
    /// Low half of a push doorbell.
    pub struct DbPushIndexWord(u32) {
        /// Producer index before (START) or after (END) the pushed WQE.
        index: u32 = 24,
        /// Push page, bits 0 to 7.
        page_low: u8 = 8,
    }
}
bits! {
    /// High half of a push doorbell.
    pub struct DbPushTypeWord(u32) {
        /// Number of the queue pair.
        xid: u32 = 20,
        /// Push page, bits 8 to 11.
        page_high: u8 = 4,
        /// Path: 0 RoCE.
        path: u8 = 2,
        /// The device takes the doorbell.
        valid: bool = 1,
        /// The device traces the doorbell.
        debug_trace: bool = 1,
        /// Type, see [`DbType`].
        db_type: u8 = 4,
    }
}

layout! {
    /// Doorbell. Source: `bnxt_hsi.h`.
    pub struct DbcDbc: "bnxt_re" "dbc_dbc", 8 {
        /// Index, epoch and toggle.
        index: le::U32 as DbIndexWord = 0,
        /// Type, path and id.
        type_path_xid: le::U32 as DbTypeWord = 4,
    }
}
layout! {
    /// Doorbell before and after a pushed WQE. Source: `bnxt_hsi.h`, and rdma-core `db.c` for path and valid.
    pub struct DbcPush: "bnxt_re" "db_push_start", 8 {
        /// Index and push page.
        index_page: le::U32 as DbPushIndexWord = 0,
        /// Type, path, push page and id.
        type_path_page_xid: le::U32 as DbPushTypeWord = 4,
    }
}

/// Type of a doorbell. Open: any value of four bits is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DbType(u8);

impl DbType {
    /// Send queue: producer index.
    pub const SQ: Self = Self(0x0);
    /// Receive queue: producer index in WQEs.
    pub const RQ: Self = Self(0x1);
    /// Shared receive queue: producer index.
    pub const SRQ: Self = Self(0x2);
    /// Shared receive queue: asks for the limit event; the index is the limit.
    pub const SRQ_ARM: Self = Self(0x3);
    /// Completion queue: consumer index, without arming.
    pub const CQ: Self = Self(0x4);
    /// Completion queue: consumer index, and an event at the next solicited completion or error.
    pub const CQ_ARMSE: Self = Self(0x5);
    /// Completion queue: consumer index, and an event at the next completion.
    pub const CQ_ARMALL: Self = Self(0x6);
    /// Completion queue: lets it be armed; once after creation, and after each event.
    pub const CQ_ARMENA: Self = Self(0x7);
    /// Shared receive queue: lets it be armed; once after creation.
    pub const SRQ_ARMENA: Self = Self(0x8);
    /// Completion queue: the cut-off CQE of a resize was consumed.
    pub const CQ_CUTOFF_ACK: Self = Self(0x9);
    /// Notification queue: consumer index, interrupts off.
    pub const NQ: Self = Self(0xa);
    /// Notification queue: consumer index, interrupts on.
    pub const NQ_ARM: Self = Self(0xb);
    /// Before a pushed WQE.
    pub const PUSH_START: Self = Self(0xc);
    /// After a pushed WQE.
    pub const PUSH_END: Self = Self(0xd);
    /// Notification queue: consumer index, interrupts off (P7).
    pub const NQ_MASK: Self = Self(0xe);
    /// No doorbell.
    pub const NULL: Self = Self(0xf);

    /// The type with this code; the lowest four bits count.
    pub const fn from_code(code: u8) -> Self {
        Self(code & 0xf)
    }

    /// The code, 4 bits.
    pub const fn code(self) -> u8 {
        self.0
    }
}

/// A part that is wider than its field in the doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:#x} does not fit {bits} bits of a doorbell")]
pub struct DbError {
    /// The part.
    pub what: Text,
    /// Its value.
    pub value: u32,
    /// Bits there are.
    pub bits: u32,
}

impl From<DbError> for crate::verbs::MemoryError {
    fn from(e: DbError) -> Self {
        Self::OutOfRange { what: e.what, value: e.value, bits: e.bits }
    }
}

const fn fits(what: Text, value: u32, bits: u32) -> Result<u32, DbError> {
    if value >> bits == 0 { Ok(value) } else { Err(DbError { what, value, bits }) }
}

/// Id field of a doorbell, 20 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xid(u32);

impl Xid {
    /// Id of a queue pair.
    ///
    /// # Errors
    /// The id takes more than 20 bits.
    pub const fn qp(id: QpId) -> Result<Self, DbError> {
        Self::checked(text!("queue pair"), id.get())
    }

    /// Id of a completion queue.
    ///
    /// # Errors
    /// The id takes more than 20 bits.
    pub const fn cq(id: CqId) -> Result<Self, DbError> {
        Self::checked(text!("completion queue"), id.get())
    }

    /// Id of a shared receive queue.
    ///
    /// # Errors
    /// The id takes more than 20 bits.
    pub const fn srq(id: SrqId) -> Result<Self, DbError> {
        Self::checked(text!("shared receive queue"), id.get())
    }

    /// Id of a ring that the firmware allocated (NQ, CREQ).
    pub const fn ring(ring_id: u16) -> Self {
        Self(ring_id as u32)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    const fn checked(what: Text, value: u32) -> Result<Self, DbError> {
        match fits(what, value, 20) {
            Ok(value) => Ok(Self(value)),
            Err(e) => Err(e),
        }
    }
}

/// Index field of a doorbell, 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbIndex(u32);

impl DbIndex {
    /// Zero: for [`DbType::CQ_ARMENA`], [`DbType::SRQ_ARMENA`] and a fresh ring.
    pub const ZERO: Self = Self(0);

    /// A slot: the SQ in variable mode.
    ///
    /// # Errors
    /// The index takes more than 24 bits.
    pub const fn slot(index: SlotIdx) -> Result<Self, DbError> {
        Self::checked(text!("slot index"), index.0)
    }

    /// A WQE, CQE or NQE: everything but the SQ in variable mode.
    ///
    /// # Errors
    /// The index takes more than 24 bits.
    pub const fn wqe(index: WqeIdx) -> Result<Self, DbError> {
        Self::checked(text!("WQE index"), index.0)
    }

    /// Limit of a shared receive queue, for [`DbType::SRQ_ARM`].
    ///
    /// # Errors
    /// The limit takes more than 24 bits.
    pub const fn limit(limit: u32) -> Result<Self, DbError> {
        Self::checked(text!("limit"), limit)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    const fn checked(what: Text, value: u32) -> Result<Self, DbError> {
        match fits(what, value, 24) {
            Ok(value) => Ok(Self(value)),
            Err(e) => Err(e),
        }
    }
}

/// Parity of an index's wraps. The device drops a doorbell whose epoch and index are behind the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(pub bool);

/// Toggle of an arm, 2 bits: from the object's toggle page, or from the cut-off CQE for [`DbType::CQ_CUTOFF_ACK`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toggle(u8);

impl Toggle {
    /// The toggle of a device without toggle pages.
    pub const ZERO: Self = Self(0);

    /// Keeps the lowest two bits of what a toggle page holds.
    pub const fn truncated(value: u32) -> Self {
        Self((value & 3) as u8)
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Number of a write-combining push page (its DPI), 12 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushPage(u32);

impl PushPage {
    /// Checks the width.
    ///
    /// # Errors
    /// The number takes more than 12 bits.
    pub const fn new(dpi: u32) -> Result<Self, DbError> {
        match fits(text!("push page"), dpi, 12) {
            Ok(value) => Ok(Self(value)),
            Err(e) => Err(e),
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbWord(u64);

const VALID: u64 = 1 << (32 + 26);

impl DbWord {
    /// A doorbell that does nothing.
    pub const NULL: Self = Self::ring(DbType::NULL, Xid::ring(0), DbIndex::ZERO, Epoch(false), Toggle::ZERO);

    /// A doorbell of any type but the two of push.
    #[inline(always)]
    pub const fn ring(db_type: DbType, xid: Xid, index: DbIndex, epoch: Epoch, toggle: Toggle) -> Self {
        let high = (db_type.0 as u64) << 60 | VALID | (xid.0 as u64) << 32;
        Self(high | (toggle.0 as u64) << 25 | (epoch.0 as u64) << 24 | index.0 as u64)
    }

    /// [`DbType::PUSH_START`] or [`DbType::PUSH_END`]: the place of the epoch is taken by the push page.
    #[inline(always)]
    pub const fn push(db_type: DbType, page: PushPage, qp: Xid, index: DbIndex) -> Self {
        let high = (db_type.0 as u64) << 60 | VALID | ((page.0 & 0xf00) as u64) << 44 | (qp.0 as u64) << 32;
        Self(high | ((page.0 & 0xff) as u64) << 24 | index.0 as u64)
    }

    /// Reads a doorbell that was stored.
    pub const fn from_u64(word: u64) -> Self {
        Self(word)
    }

    /// The word to store.
    #[inline(always)]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// Low half.
    pub const fn index_word(self) -> DbIndexWord {
        DbIndexWord::from_bits(self.0 as u32)
    }

    /// High half.
    pub const fn type_word(self) -> DbTypeWord {
        DbTypeWord::from_bits((self.0 >> 32) as u32)
    }

    /// Type.
    pub const fn db_type(self) -> DbType {
        DbType(self.type_word().db_type())
    }

    /// Id.
    pub const fn xid(self) -> Xid {
        Xid(self.type_word().xid())
    }

    /// Index.
    pub const fn index(self) -> DbIndex {
        DbIndex(self.index_word().index())
    }

    /// Epoch; not of a push doorbell.
    pub const fn epoch(self) -> Epoch {
        Epoch(self.index_word().epoch())
    }

    /// Toggle; not of a push doorbell.
    pub const fn toggle(self) -> Toggle {
        Toggle(self.index_word().toggle())
    }

    /// Push page of a push doorbell.
    pub const fn push_page(self) -> PushPage {
        let low = DbPushIndexWord::from_bits(self.0 as u32).page_low() as u32;
        let high = DbPushTypeWord::from_bits((self.0 >> 32) as u32).page_high() as u32;
        PushPage(high << 8 | low)
    }

    /// The same doorbell with an index and epoch that were brought into place already.
    #[inline(always)]
    pub(crate) const fn or(self, index_and_epoch: u64) -> Self {
        Self(self.0 | index_and_epoch)
    }

    /// The same doorbell at another index: what a ring's owner stores after the type and id were checked once. Bits of
    /// `index` above 24 are dropped; a ring is never that deep.
    #[inline(always)]
    pub(crate) const fn at(self, index: u32, epoch: bool) -> Self {
        Self(self.0 | (epoch as u64) << 24 | (index & 0xff_ffff) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qp(id: u32) -> Xid {
        Xid::qp(QpId::truncated(id)).unwrap()
    }

    #[test]
    fn every_type_has_its_code() {
        let index = DbIndex::wqe(WqeIdx(0xab)).unwrap();
        let types = [
            (DbType::SQ, 0x0),
            (DbType::RQ, 0x1),
            (DbType::SRQ, 0x2),
            (DbType::SRQ_ARM, 0x3),
            (DbType::CQ, 0x4),
            (DbType::CQ_ARMSE, 0x5),
            (DbType::CQ_ARMALL, 0x6),
            (DbType::CQ_ARMENA, 0x7),
            (DbType::SRQ_ARMENA, 0x8),
            (DbType::CQ_CUTOFF_ACK, 0x9),
            (DbType::NQ, 0xa),
            (DbType::NQ_ARM, 0xb),
            (DbType::NQ_MASK, 0xe),
            (DbType::NULL, 0xf),
        ];
        for (db_type, code) in types {
            let word = DbWord::ring(db_type, qp(7), index, Epoch(true), Toggle::truncated(3));
            assert_eq!(word.to_u64(), code << 60 | 0x0400_0007_0700_00ab, "{db_type:?}");
            assert_eq!(word.db_type(), db_type);
        }
    }

    #[test]
    fn a_push_page_is_split_over_both_halves() {
        let index = DbIndex::slot(SlotIdx(0x1234)).unwrap();
        let page = PushPage::new(0xabc).unwrap();
        let start = DbWord::push(DbType::PUSH_START, page, qp(0x54321), index);
        assert_eq!(start.to_u64(), 0xc4a5_4321_bc00_1234);
        assert_eq!((start.push_page(), start.xid(), start.index()), (page, qp(0x54321), index));
        let end = DbWord::push(DbType::PUSH_END, page, qp(0x54321), index);
        assert_eq!(end.to_u64(), 0xd4a5_4321_bc00_1234);
    }

    #[test]
    fn the_checked_parts_refuse_what_is_too_wide() {
        assert_eq!(DbIndex::limit(1 << 24), Err(DbError { what: text!("limit"), value: 1 << 24, bits: 24 }));
        assert!(Xid::cq(CqId::truncated(1 << 20)).is_err());
        assert!(Xid::srq(SrqId::truncated(0xf_ffff)).is_ok());
        assert!(PushPage::new(0x1000).is_err());
    }
}
