//! What the device keeps of each queue: how far the host and the device are.

use directverbs::verbs::CqId;

pub(super) use super::wqe::{Place, Shape};
use super::wrong::Wrong;
use crate::device::RingConfig;

/// A send or receive queue.
#[derive(Debug)]
pub(super) struct WorkQueue {
    pub ring: RingConfig,
    pub shape: Shape,
    mask: u16,
    /// Producer, as the last doorbell said.
    told: u16,
    /// Next WQE to fetch.
    next: u16,
    /// Color of the pass that `next` is in.
    color: bool,
    /// WQEs before it are completed.
    done: u16,
}

impl WorkQueue {
    /// A fresh queue; the number of entries is a power of two up to 65536.
    pub const fn new(ring: RingConfig, shape: Shape) -> Self {
        let mask = ring.entries.wrapping_sub(1) as u16;
        Self { ring, shape, mask, told: 0, next: 0, color: true, done: 0 }
    }

    /// Back to fresh.
    pub const fn reset(&mut self) {
        (self.told, self.next, self.color, self.done) = (0, 0, true, 0);
    }

    /// Takes the producer from a doorbell.
    pub fn tell(&mut self, index: u16) -> Result<(), Wrong> {
        Wrong::if_over("doorbell index", index.into(), self.mask.into())?;
        let outstanding = |at: u16| u64::from(at.wrapping_sub(self.done) & self.mask);
        if outstanding(index) < outstanding(self.told) {
            return Err(Wrong { what: "doorbell going back", got: index.into(), want: self.told.into() });
        }
        self.told = index;
        Ok(())
    }

    /// Takes the producer from an express doorbell, which moves by one WQE.
    pub fn tell_next(&mut self, index: u16) -> Result<(), Wrong> {
        let want = self.told.wrapping_add(1) & self.mask;
        Wrong::unless_equal("express doorbell index", index.into(), want.into())?;
        self.tell(index)
    }

    /// Producer after the last WQE of which the host has told.
    #[cfg(test)]
    pub const fn told(&self) -> u16 {
        self.told
    }

    /// Bits of an index.
    pub const fn mask(&self) -> u16 {
        self.mask
    }

    /// Where the next WQE is that the host has told of and the device has not fetched.
    pub const fn pending(&self) -> Option<Place> {
        if self.next == self.told { None } else { Some(Place { index: self.next, color: self.color }) }
    }

    /// The WQE at [`WorkQueue::pending`] is fetched.
    pub const fn fetched(&mut self) {
        self.next = self.next.wrapping_add(1) & self.mask;
        self.color ^= self.next == 0;
    }

    /// The WQE at `index`, and all before it, are completed.
    pub const fn completed(&mut self, index: u16) {
        self.done = index.wrapping_add(1) & self.mask;
    }
}

/// What a completion queue is armed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    Any,
    Solicited,
}

/// A completion queue.
#[derive(Debug)]
pub(super) struct CompletionQueue {
    pub id: CqId,
    pub armed: Option<Armed>,
    mask: u16,
    /// CQEs consumed, as the last doorbell said.
    consumed: u64,
    arms: [u16; 2],
    pub failed: bool,
}

impl CompletionQueue {
    /// A fresh queue; the number of entries is a power of two up to 65536.
    pub const fn new(id: CqId, entries: u32) -> Self {
        let mask = entries.wrapping_sub(1) as u16;
        Self { id, armed: None, mask, consumed: 0, arms: [0; 2], failed: false }
    }

    /// Takes the consumer from a doorbell, when `written` CQEs were ever written.
    pub fn consume(&mut self, index: u16, written: u64) -> Result<(), Wrong> {
        Wrong::if_over("doorbell index", index.into(), self.mask.into())?;
        let ahead = index.wrapping_sub(self.consumed as u16) & self.mask;
        Wrong::if_over("entries consumed", ahead.into(), written - self.consumed)?;
        self.consumed += u64::from(ahead);
        Ok(())
    }

    /// Takes an arm counter from a doorbell.
    pub fn arm(&mut self, index: u16, what: Armed) -> Result<(), Wrong> {
        self.armed = Some(what);
        let counter = &mut self.arms[usize::from(what == Armed::Solicited)];
        let want = counter.wrapping_add(1) & self.mask;
        *counter = index & self.mask;
        Wrong::unless_equal("arm counter", index.into(), want.into())
    }

    /// Whether another CQE fits behind `written` of them. The consumer index cannot tell a full ring from an empty one,
    /// so one entry stays free.
    pub fn room(&self, written: u64) -> Result<(), Wrong> {
        Wrong::if_over("unconsumed entries", written + 1 - self.consumed, self.mask.into())
    }

    /// Color of the entry behind `written` others.
    pub const fn color(&self, written: u64) -> bool {
        (written >> (self.mask as u32 + 1).trailing_zeros()) & 1 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Memory;
    use directverbs::ionic::wqe::RdmaVersion;
    use directverbs::verbs::QpType;

    fn queue(entries: u32) -> WorkQueue {
        let ring = RingConfig { memory: Memory::Host(0), entries, stride: 64 };
        let shape =
            Shape { version: RdmaVersion::V2, qp_type: QpType::Rc, stride: 64, spec: 0, express: false };
        WorkQueue::new(ring, shape)
    }

    #[test]
    fn a_doorbell_moves_forward_within_the_ring() {
        let mut queue = queue(4);
        assert_eq!(queue.tell(3), Ok(()));
        assert_eq!(queue.tell(4).unwrap_err().what, "doorbell index");
        assert_eq!(queue.tell(2).unwrap_err().what, "doorbell going back");
        queue.completed(1);
        assert_eq!(queue.tell(1), Ok(()));
        assert_eq!(queue.told(), 1);
    }

    #[test]
    fn the_color_flips_with_each_pass() {
        let mut queue = queue(2);
        for pass in [true, false, true] {
            for index in [0, 1] {
                assert_eq!(queue.tell((index + 1) & 1), Ok(()));
                assert_eq!(queue.pending(), Some(Place { index, color: pass }));
                queue.fetched();
                queue.completed(index);
                assert_eq!(queue.pending(), None);
            }
        }
    }

    #[test]
    fn a_completion_queue_keeps_one_entry_free() {
        let mut cq = CompletionQueue::new(CqId::default(), 4);
        assert!(cq.room(2).is_ok());
        assert_eq!(cq.room(3).unwrap_err().what, "unconsumed entries");
        assert_eq!(cq.consume(1, 0).unwrap_err().what, "entries consumed");
        assert_eq!(cq.consume(2, 3), Ok(()));
        assert!(cq.room(4).is_ok() && cq.room(5).is_err());
        assert_eq!([0, 3, 4, 8].map(|at| cq.color(at)), [true, true, false, true]);
    }

    #[test]
    fn arm_counters_run_apart() {
        let mut cq = CompletionQueue::new(CqId::default(), 4);
        assert_eq!(cq.arm(1, Armed::Any), Ok(()));
        assert_eq!(cq.arm(1, Armed::Solicited), Ok(()));
        assert_eq!(cq.arm(2, Armed::Any), Ok(()));
        assert_eq!(cq.arm(2, Armed::Any).unwrap_err().what, "arm counter");
    }
}
