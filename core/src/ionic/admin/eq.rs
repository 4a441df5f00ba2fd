//! Event queues: entries of 4 bytes with a color. The device is not told what was consumed: credits are given back through
//! interrupt control. Source: Linux `ionic_fw.h`, `ionic_admin.c`.

use zerocopy::big_endian as be;

use crate::layout::{Layout, bits, layout};
use crate::queue::RingMemory;
use crate::verbs::MemoryError;

/// Bytes of an entry.
pub const EQE_BYTES: usize = 4;
/// Base-two logarithm of [`EQE_BYTES`].
pub const EQE_LOG2: u8 = 2;
/// Most entries, base-two logarithm.
const DEPTH_MAX_LOG2: u8 = 16;

bits! {
    /// An event, big-endian in memory.
    pub struct Event(u32) {
        /// Pass over the ring: 1 in the first, flips with every wrap.
        color: bool = 1,
        /// What it is about, see [`EventType`].
        event_type: u8 = 3,
        /// What has happened, see [`EventCode`].
        code: u8 = 4,
        /// Completion queue or queue pair.
        qid: u32 = 24,
    }
}

layout! {
    /// An entry of an event queue.
    pub struct Eqe: "ionic" "ionic_v1_eqe", 4 {
        /// The event.
        evt: be::U32 as Event = 0,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 1] = [Eqe::LAYOUT];

/// What an event is about. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventType(pub u8);

impl EventType {
    /// A ring of a completion queue.
    pub const CQ: Self = Self(0);
    /// A queue pair.
    pub const QP: Self = Self(1);
}

/// What has happened. Open: there may be others; the numbers mean different things for each [`EventType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventCode(pub u8);

impl EventCode {
    /// Completion queue: it was armed, and has a completion.
    pub const CQ_NOTIFY: Self = Self(0);
    /// Completion queue: it failed.
    pub const CQ_ERROR: Self = Self(8);
    /// Queue pair: the send queue is drained.
    pub const QP_DRAINED: Self = Self(1);
    /// Queue pair: the connection is established.
    pub const QP_ESTABLISHED: Self = Self(2);
    /// Queue pair: the last WQE is reached.
    pub const QP_LAST_WQE: Self = Self(3);
    /// Queue pair: it failed.
    pub const QP_ERROR: Self = Self(8);
    /// Queue pair: it failed for a request that makes no sense.
    pub const QP_REQUEST: Self = Self(9);
    /// Queue pair: it failed for an access that is not allowed.
    pub const QP_ACCESS: Self = Self(10);
}

/// The driver's side of an event queue.
#[derive(Debug)]
pub struct EventQueue<'m> {
    memory: RingMemory<'m>,
    mask: u32,
    next: u32,
}

impl<'m> EventQueue<'m> {
    /// A queue of 2^`depth_log2` entries, whose memory is filled with zeros.
    ///
    /// # Errors
    /// Memory that is too short or not aligned, or more than 2^16 entries.
    pub fn new(memory: RingMemory<'m>, depth_log2: u8) -> Result<Self, MemoryError> {
        let mut memory = memory;
        if depth_log2 > DEPTH_MAX_LOG2 {
            return Err(MemoryError::OutOfRange {
                what: text!("event queue"),
                value: depth_log2.into(),
                bits: 5,
            });
        }
        memory.check(text!("event queue"), EQE_BYTES << depth_log2, EQE_BYTES)?;
        memory.zero();
        Ok(Self { memory, mask: (1 << depth_log2) - 1, next: 0 })
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<Event> {
        let at = (self.next & self.mask) as usize * EQE_BYTES;
        let word = self.memory.load_valid(at)?;
        let event = Event::from_bits(u32::from_be_bytes(word.to_ne_bytes()));
        let color = self.next & (self.mask + 1) == 0;
        if event.color() != color {
            return None;
        }
        self.next = self.next.wrapping_add(1);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(4096))]
    struct Page([u8; 4096]);

    #[test]
    fn the_word_has_qid_code_type_and_color() {
        let event = Event::from_bits(0x0102_0383);
        assert_eq!((event.qid(), event.code(), event.event_type(), event.color()), (0x01_0203, 8, 1, true));
    }

    #[test]
    fn events_are_taken_over_several_laps_and_old_ones_are_not() {
        let mut page = Page([0xff; 4096]);
        let mut queue = EventQueue::new(RingMemory::new(&mut page.0), 2).unwrap();
        for position in 0..11u32 {
            assert_eq!(queue.poll(), None);
            let event = Event::new().with_color((position / 4) % 2 == 0).with_qid(position);
            let entry = Eqe { evt: event.into_bits().into() };
            assert!(queue.memory.store((position % 4) as usize * EQE_BYTES, &entry));
            assert_eq!(queue.poll(), Some(event));
        }
    }

    #[test]
    fn a_ring_that_does_not_fit_is_refused() {
        let mut page = Page([0; 4096]);
        assert!(EventQueue::new(RingMemory::new(&mut page.0), 11).is_err());
        assert!(EventQueue::new(RingMemory::new(&mut page.0), 17).is_err());
        assert!(EventQueue::new(RingMemory::new(&mut page.0), 10).is_ok());
    }
}
