//! Rings of 16-byte entries that the device marks with a phase: the notification queues, and the ring of completions of
//! [`super::rcfw`].

use zerocopy::FromBytes;

use super::cqe::{NqBase, NqCn, NqDbqEvent, NqSrqEvent};
use super::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use crate::queue::{Doorbell, PhaseRing, RingMemory};
use crate::verbs::MemoryError;

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 16;

/// Kind of a [`NqCn`].
pub const CQ_NOTIFICATION: u8 = 0x30;
/// Kind of a [`NqSrqEvent`].
pub const SRQ_EVENT: u8 = 0x32;
/// Kind of a [`NqDbqEvent`].
pub const DBQ_EVENT: u8 = 0x34;

/// A ring of events.
#[derive(Debug)]
pub struct EventRing<'m> {
    ring: PhaseRing<'m, 2>,
    id: Xid,
    epoch: bool,
}

impl<'m> EventRing<'m> {
    /// A ring of `entries` in `memory`. It has no number until the device gives it one.
    ///
    /// # Errors
    /// Memory that is too short or not aligned, or entries that are no power of two: the doorbell's index could not wrap.
    pub fn new(memory: RingMemory<'m>, entries: u32) -> Result<Self, MemoryError> {
        if !entries.is_power_of_two() || entries > 1 << 24 {
            return Err(MemoryError::Mismatch(text!("a ring of events has a power of two of entries")));
        }
        Ok(Self { ring: PhaseRing::new(memory, entries)?, id: Xid::ring(0), epoch: false })
    }

    /// Takes the number that the device has given the ring.
    pub const fn set_id(&mut self, ring_id: u16) {
        self.id = Xid::ring(ring_id);
    }

    /// The next entry, if it is new. Its bytes are copied out.
    pub fn take(&mut self, doorbell: &impl Doorbell) -> Option<[u8; ENTRY_BYTES]> {
        let entry = self.ring.entry();
        if entry.load_valid::<1>() & 1 != self.ring.phase() {
            return None;
        }
        doorbell.from_device();
        let [low, high] = entry.load().map(u64::to_le_bytes);
        if self.ring.advance() {
            self.epoch = !self.epoch;
        }
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&low);
        bytes[8..].copy_from_slice(&high);
        Some(bytes)
    }

    /// The doorbell that tells how far the ring was read: [`DbType::NQ`], or [`DbType::NQ_ARM`] to be interrupted by the
    /// next entry.
    pub const fn doorbell(&self, kind: DbType) -> DbWord {
        DbWord::ring(kind, self.id, DbIndex::ZERO, Epoch(false), Toggle::ZERO)
            .at(self.ring.head(), self.epoch)
    }
}

/// An entry of a notification queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NqEvent {
    /// An armed completion queue has a completion.
    Cq {
        /// Handle given at its creation.
        handle: u64,
        /// Toggle of the next arm.
        toggle: Toggle,
    },
    /// A shared receive queue has reached its limit.
    Srq {
        /// Handle given at its creation.
        handle: u64,
        /// Toggle of the next arm.
        toggle: Toggle,
    },
    /// The queue of doorbells has reached its threshold.
    Doorbells {
        /// Doorbell page.
        dpi: u32,
    },
    /// None that the driver knows.
    Unknown {
        /// The entry.
        entry: [u8; ENTRY_BYTES],
    },
}

impl NqEvent {
    /// Reads an entry.
    pub fn decode(entry: [u8; ENTRY_BYTES]) -> Self {
        let unknown = Self::Unknown { entry };
        let Ok(base) = NqBase::read_from_bytes(&entry) else { return unknown };
        let kind = super::cqe::NqType::from_bits(base.info10_type.get());
        let toggle = Toggle::truncated(kind.toggle().into());
        match kind.nqe_type() {
            CQ_NOTIFICATION => match NqCn::read_from_bytes(&entry) {
                Ok(cn) => {
                    let handle = u64::from(cn.cq_handle_high.get()) << 32 | u64::from(cn.cq_handle_low.get());
                    Self::Cq { handle, toggle }
                }
                Err(_) => unknown,
            },
            SRQ_EVENT => match NqSrqEvent::read_from_bytes(&entry) {
                Ok(srq) => {
                    let handle =
                        u64::from(srq.srq_handle_high.get()) << 32 | u64::from(srq.srq_handle_low.get());
                    Self::Srq { handle, toggle }
                }
                Err(_) => unknown,
            },
            DBQ_EVENT => match NqDbqEvent::read_from_bytes(&entry) {
                Ok(dbq) => Self::Doorbells { dpi: dbq.db_dpi.get() & 0xf_ffff },
                Err(_) => unknown,
            },
            _ => unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use zerocopy::IntoBytes;

    use super::*;

    #[derive(Default)]
    struct Page(Cell<u64>);

    impl Doorbell for Page {
        fn store(&self, _: usize, value: u64) {
            self.0.set(value);
        }
    }

    fn entry(kind: u8, phase: u8) -> [u8; 16] {
        [kind, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, phase, 0, 0, 0, 0x44, 0x33, 0x22, 0x11]
    }

    #[test]
    fn entries_are_new_when_their_phase_is_that_of_the_lap() {
        let mut words = [0u64; 4];
        let mut ring = EventRing::new(RingMemory::new(words.as_mut_bytes()), 2).unwrap();
        ring.set_id(0x123);
        let page = Page::default();
        let put = |ring: &mut EventRing<'_>, at: usize, bytes: [u8; 16]| {
            assert!(ring.ring.memory_mut().store_bytes(16 * at, &bytes));
        };
        assert_eq!(ring.take(&page), None);
        put(&mut ring, 0, entry(0x30, 1));
        put(&mut ring, 1, entry(0x30, 1));
        assert_eq!(ring.take(&page), Some(entry(0x30, 1)));
        assert_eq!(ring.doorbell(DbType::NQ).to_u64(), 0xa400_0123_0000_0001);
        assert!(ring.take(&page).is_some());
        assert_eq!(ring.take(&page), None, "the entry of the last lap is not new");
        assert_eq!(ring.doorbell(DbType::NQ_ARM).to_u64(), 0xb400_0123_0100_0000);
        put(&mut ring, 0, entry(0x30, 0));
        assert!(ring.take(&page).is_some());
        assert_eq!(ring.doorbell(DbType::NQ).to_u64(), 0xa400_0123_0100_0001);
    }

    #[test]
    fn every_kind_of_entry_is_read() {
        let handle = 0x1122_3344_5566_7788;
        let toggle = Toggle::truncated(2);
        assert_eq!(NqEvent::decode(entry(0xb0, 1)), NqEvent::Cq { handle, toggle });
        assert_eq!(NqEvent::decode(entry(0xb2, 1)), NqEvent::Srq { handle, toggle });
        assert_eq!(NqEvent::decode(entry(0x34, 1)), NqEvent::Doorbells { dpi: 0x6_7788 });
        for kind in [0, 0x31, 0x3f, 0x7f] {
            assert_eq!(NqEvent::decode(entry(kind, 1)), NqEvent::Unknown { entry: entry(kind, 1) });
        }
    }

    #[test]
    fn a_ring_that_cannot_wrap_is_refused() {
        for entries in [0, 3, 1 << 25] {
            assert!(EventRing::new(RingMemory::new([0u64; 8].as_mut_bytes()), entries).is_err());
        }
    }
}
