//! Notifications: entries of 64 bytes, which the device numbers instead of coloring them. Source: Linux `ionic_if.h`; that
//! only the number tells a new entry from an old one: `ionic_lif.c`.

use zerocopy::{FromBytes, little_endian as le};

use crate::layout::{Layout, layout};
use crate::queue::RingMemory;
use crate::verbs::MemoryError;

layout! {
    /// Any notification.
    pub struct NotifyEvent: "ionic" "ionic_notifyq_event", 64 {
        /// Its number, greater than that of any before.
        eid: le::U64 = 0,
        /// What it is, see [`NotifyCode`].
        ecode: le::U16 = 8,
        /// Particulars.
        data: [u8; 54] = 10,
    }
}

layout! {
    /// The link has changed.
    pub struct LinkChangeEvent: "ionic" "ionic_link_change_event", 64 {
        /// Its number.
        eid: le::U64 = 0,
        /// [`NotifyCode::LINK_CHANGE`].
        ecode: le::U16 = 8,
        /// See [`super::PortOper`].
        link_status: le::U16 = 10,
        /// Speed in Mb/s.
        link_speed: le::U32 = 12,
        /// Reserved.
        rsvd: [u8; 48] = 16,
    }
}

layout! {
    /// The device is being reset.
    pub struct ResetEvent: "ionic" "ionic_reset_event", 64 {
        /// Its number.
        eid: le::U64 = 0,
        /// [`NotifyCode::RESET`].
        ecode: le::U16 = 8,
        /// Why.
        reset_code: u8 = 10,
        /// 0 begins, 1 is done, 2 has failed.
        state: u8 = 11,
        /// Reserved.
        rsvd: [u8; 52] = 12,
    }
}

layout! {
    /// The firmware is alive.
    pub struct HeartbeatEvent: "ionic" "ionic_heartbeat_event", 64 {
        /// Its number.
        eid: le::U64 = 0,
        /// [`NotifyCode::HEARTBEAT`].
        ecode: le::U16 = 8,
        /// Reserved.
        rsvd: [u8; 54] = 10,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 4] =
    [NotifyEvent::LAYOUT, LinkChangeEvent::LAYOUT, ResetEvent::LAYOUT, HeartbeatEvent::LAYOUT];

/// `ecode` of a notification. Open: there may be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NotifyCode(pub u16);

impl NotifyCode {
    /// The link has changed: a [`LinkChangeEvent`].
    pub const LINK_CHANGE: Self = Self(1);
    /// The device is being reset: a [`ResetEvent`].
    pub const RESET: Self = Self(2);
    /// The firmware is alive.
    pub const HEARTBEAT: Self = Self(3);
    /// The firmware has written a log.
    pub const LOG: Self = Self(4);
    /// The transceiver has changed.
    pub const XCVR: Self = Self(5);
}

/// Bytes of a notification.
pub const NOTIFY_BYTES: usize = 64;

/// The driver's side of a queue of notifications.
#[derive(Debug)]
pub struct NotifyQueue<'m> {
    memory: RingMemory<'m>,
    mask: u32,
    next: u32,
    seen: u64,
}

impl<'m> NotifyQueue<'m> {
    /// A queue of 2^`depth_log2` entries, whose memory is filled with zeros.
    ///
    /// # Errors
    /// Memory that is too short, or more than 2^16 entries.
    pub fn new(memory: RingMemory<'m>, depth_log2: u8) -> Result<Self, MemoryError> {
        let mut memory = memory;
        if depth_log2 > 16 {
            return Err(MemoryError::OutOfRange {
                what: text!("notify queue"),
                value: depth_log2.into(),
                bits: 4,
            });
        }
        memory.check(text!("notify queue"), NOTIFY_BYTES << depth_log2, 8)?;
        memory.zero();
        Ok(Self { memory, mask: (1 << depth_log2) - 1, next: 0, seen: 0 })
    }

    /// Number of the last notification taken.
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// The next notification.
    pub fn poll(&mut self) -> Option<NotifyEvent> {
        let at = (self.next & self.mask) as usize * NOTIFY_BYTES;
        let eid = self.memory.load::<le::U64>(at)?.get();
        if eid <= self.seen {
            return None;
        }
        crate::queue::barrier::from_device();
        let bytes = self.memory.load::<[u8; NOTIFY_BYTES]>(at)?;
        let event = NotifyEvent::read_from_bytes(&bytes).ok()?;
        self.seen = eid;
        self.next = self.next.wrapping_add(1);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[repr(align(4096))]
    struct Page([u8; 4096]);

    #[test]
    fn only_a_greater_number_is_a_new_notification() {
        let mut page = Page([0xff; 4096]);
        let mut queue = NotifyQueue::new(RingMemory::new(&mut page.0), 1).unwrap();
        assert_eq!(queue.poll(), None);
        let event = |eid: u64| LinkChangeEvent {
            eid: eid.into(),
            ecode: NotifyCode::LINK_CHANGE.0.into(),
            link_status: 1.into(),
            ..LinkChangeEvent::ZERO
        };
        for (at, eid) in [(0, 1), (64, 2), (0, 5)] {
            assert!(queue.memory.store(at, &event(eid)));
            let got = queue.poll().map(|e| LinkChangeEvent::read_from_bytes(e.as_bytes()).unwrap());
            assert_eq!(got, Some(event(eid)));
        }
        assert!(queue.memory.store(64, &event(5)));
        assert_eq!((queue.poll(), queue.seen()), (None, 5));
    }

    #[test]
    fn a_ring_that_does_not_fit_is_refused() {
        let mut page = Page([0; 4096]);
        assert!(NotifyQueue::new(RingMemory::new(&mut page.0), 7).is_err());
        assert!(NotifyQueue::new(RingMemory::new(&mut page.0), 17).is_err());
    }
}
