//! Doorbells: one 64-bit little-endian word, stored to the register of the queue's type in the doorbell page.
//!
//! A queue in controller memory may carry *express doorbells* instead: the word sits in the last 8 bytes of each WQE, and
//! the device takes it when those bytes arrive.

use crate::layout::bits;
use crate::verbs::{CqId, QpId};

bits! {
    /// Doorbell word. Source: rdma-core `ionic_queue.h`, kernel `ionic_regs.h`.
    pub struct DoorbellWord(u64) {
        /// Producer, consumer or arm counter.
        index: u16 = 16,
        /// Ring, see [`DbRing`].
        ring: u8 = 3,
        __: u8 = 5,
        /// Queue pair or completion queue number.
        qid: u32 = 24,
        __: u16 = 16,
    }
}

bits! {
    /// Express doorbell word. Source: rdma-core `ionic_verbs.c` `ionic_set_cmb`.
    pub struct ExpressWord(u64) {
        /// Producer after the WQE.
        index: u16 = 16,
        /// Ring, always 0.
        ring: u8 = 3,
        /// Scheduler: 3 sets it.
        sched: u8 = 2,
        /// Producer and consumer index: 2 sets the producer.
        pici: u8 = 2,
        __: u8 = 1,
        /// Queue pair number.
        qid: u32 = 24,
        /// Queue type, the number of the doorbell register.
        qtype: u8 = 3,
        __: u16 = 13,
    }
}

/// What a doorbell's index means. The discriminants are the ring numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DbRing {
    /// Producer of a send or receive queue, consumer of a completion queue.
    Index = 0,
    /// Completion queue: an event for any completion. The index counts the arms.
    ArmAny = 1,
    /// Completion queue: an event for a solicited completion only. The index counts the arms.
    ArmSolicited = 2,
}

/// Queue type: the number of a queue kind's doorbell register, 0 to 7. The device tells which kind has which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueueType(u8);

impl QueueType {
    /// Checks the range: a doorbell page has eight registers.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 8 { Some(Self(value)) } else { None }
    }

    /// The doorbell register, counted in 8 bytes.
    #[inline(always)]
    pub const fn register(self) -> usize {
        self.0 as usize
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Position in a ring, modulo its depth: what the index field of a doorbell takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingIdx(pub u16);

/// The bits of a queue's doorbells that never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueDoorbell {
    base: u64,
    qtype: QueueType,
}

impl QueueDoorbell {
    /// Doorbells of the send or receive queue of a queue pair.
    pub const fn queue_pair(qtype: QueueType, qp: QpId) -> Self {
        Self { base: DoorbellWord::new().with_qid(qp.get()).into_bits(), qtype }
    }

    /// Doorbells of a completion queue.
    pub const fn completion_queue(qtype: QueueType, cq: CqId) -> Self {
        Self { base: DoorbellWord::new().with_qid(cq.get()).into_bits(), qtype }
    }

    /// The register that the words are stored to.
    #[inline(always)]
    pub const fn register(self) -> usize {
        self.qtype.register()
    }

    /// The doorbell that tells producer or consumer.
    #[inline(always)]
    pub const fn index(self, index: RingIdx) -> u64 {
        self.base | index.0 as u64
    }

    /// The doorbell of `ring`.
    #[inline(always)]
    pub const fn word(self, ring: DbRing, index: RingIdx) -> u64 {
        self.base | (ring as u64) << 16 | index.0 as u64
    }

    /// The express doorbell of the WQE at `position` in a ring of `mask + 1` WQEs.
    #[inline(always)]
    pub const fn express(self, position: RingIdx, mask: u16) -> u64 {
        const SET: u64 = ExpressWord::new().with_sched(3).with_pici(2).into_bits();
        let qtype = (self.qtype.0 as u64) << 48;
        qtype | self.base | SET | (position.0.wrapping_add(1) & mask) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_has_qid_ring_and_index() {
        let qtype = QueueType::new(3).unwrap();
        let db = QueueDoorbell::queue_pair(qtype, QpId::new(0xab_cdef).unwrap());
        assert_eq!(db.index(RingIdx(0x1234)), 0x0000_abcd_ef00_1234);
        assert_eq!(db.word(DbRing::ArmAny, RingIdx(1)), 0x0000_abcd_ef01_0001);
        assert_eq!(db.word(DbRing::ArmSolicited, RingIdx(0xffff)), 0x0000_abcd_ef02_ffff);
        assert_eq!(db.register(), 3);
        let word = DoorbellWord::from_bits(db.word(DbRing::ArmSolicited, RingIdx(7)));
        assert_eq!((word.qid(), word.ring(), word.index()), (0xab_cdef, 2, 7));
    }

    #[test]
    fn an_express_doorbell_tells_the_next_position() {
        let db = QueueDoorbell::queue_pair(QueueType::new(3).unwrap(), QpId::new(5).unwrap());
        assert_eq!(db.express(RingIdx(0), 63), 0x0003_0000_0558_0001);
        assert_eq!(db.express(RingIdx(63), 63), 0x0003_0000_0558_0000);
        let word = ExpressWord::from_bits(db.express(RingIdx(9), 63));
        assert_eq!((word.qtype(), word.qid(), word.sched(), word.pici(), word.index()), (3, 5, 3, 2, 10));
    }

    #[test]
    fn a_page_has_eight_registers() {
        assert_eq!(QueueType::new(8), None);
        assert_eq!(QueueType::new(7).map(QueueType::register), Some(7));
    }
}
