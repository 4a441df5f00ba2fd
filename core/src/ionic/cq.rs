//! The completion queue: a ring on each pipeline of the device.

use super::cq_ring::UNKNOWN;
pub use super::cq_ring::{CqRing, CqState, STALE_QID};
use super::qp::QueuePair;
use crate::queue::{DeviceMemory, Store};
use crate::verbs::{CqFault, CqId, MemoryError, Pollable};

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue<'m> {
    /// The ring on the first pipeline that it has one on.
    pub(super) front: CqRing<'m>,
    /// The ring on the second pipeline, if it has two.
    pub(super) back: Option<CqRing<'m>>,
    /// Pipeline of the front ring.
    front_udma: u8,
    /// The back ring is polled first the next time.
    pub(super) back_first: bool,
    /// There is more to poll than new CQEs of the front ring: the back ring, completions left, or a fault.
    pub(super) busy: bool,
    pub(super) fault: Option<CqFault>,
}

impl<'m> CompletionQueue<'m> {
    /// A completion queue with a ring on some of the device's `udma_count` pipelines.
    ///
    /// # Errors
    /// No ring, one on a pipeline that is not there, two with one number, or in the same memory.
    pub fn new(udma_count: u8, rings: [Option<CqRing<'m>>; 2]) -> Result<Self, MemoryError> {
        if rings[1].is_some() && udma_count < 2 {
            return Err(MemoryError::Mismatch(text!("a ring on a pipeline that the device does not have")));
        }
        let (front_udma, front, back) = match rings {
            [None, None] => {
                return Err(MemoryError::Mismatch(text!("a completion queue has at least one ring")));
            }
            [Some(a), Some(b)] if a.cqes.ring().memory().overlaps(b.cqes.ring().memory()) => {
                return Err(MemoryError::Overlap(text!("completion ring 0"), text!("completion ring 1")));
            }
            [Some(a), Some(b)] if a.id == b.id => {
                return Err(MemoryError::Mismatch(text!("two completion rings with one number")));
            }
            [Some(front), back] => (0, front, back),
            [None, Some(front)] => (1, front, None),
        };
        let busy = back.is_some() || front.left.is_some();
        Ok(Self { front, back, front_udma, back_first: false, busy, fault: None })
    }

    /// Number of its first ring.
    pub fn id(&self) -> CqId {
        self.front.id
    }

    /// Bits of the pipelines it has a ring on.
    pub fn udma_mask(&self) -> u8 {
        1 << self.front_udma | u8::from(self.back.is_some()) << 1
    }

    /// The ring on pipeline `udma`.
    pub fn ring(&self, udma: u8) -> Option<&CqRing<'m>> {
        match udma {
            _ if udma == self.front_udma => Some(&self.front),
            1 => self.back.as_ref(),
            _ => None,
        }
    }

    /// The ring on pipeline `udma`.
    #[inline(always)]
    pub fn ring_mut(&mut self, udma: u8) -> Option<&mut CqRing<'m>> {
        match udma {
            _ if udma == self.front_udma => Some(&mut self.front),
            1 => self.back.as_mut(),
            _ => None,
        }
    }

    /// The ring on the first pipeline that it has one on.
    #[inline(always)]
    pub(super) const fn front_mut(&mut self) -> &mut CqRing<'m> {
        &mut self.front
    }

    fn rings_mut(&mut self) -> impl Iterator<Item = &mut CqRing<'m>> {
        core::iter::once(&mut self.front).chain(&mut self.back)
    }

    pub(super) fn set_busy(&mut self) {
        self.busy = self.back.is_some() || self.front.left.is_some() || self.fault.is_some();
    }

    /// Asks for an event at the next completion, or the next solicited one. The doorbell is rung at the end of the
    /// next poll, or with the next post.
    pub fn arm(&mut self, solicited_only: bool) {
        for ring in self.rings_mut() {
            ring.arm(solicited_only);
        }
    }

    /// Forgets a queue pair that is about to be reset or destroyed: its CQEs that were not polled report nothing, and
    /// the credit of its outstanding requests comes back. Returns how many CQEs there were. A second time does nothing.
    pub fn forget<S: Store, M: DeviceMemory>(&mut self, qp: &mut QueuePair<'_, S, M>) -> u32 {
        let mut total = 0;
        for ring in self.rings_mut() {
            let sends = if qp.sq.cq == ring.id { qp.sq.abandon() } else { 0 };
            let receives = if qp.rq.cq == ring.id { qp.rq.abandon() } else { 0 };
            let stale = ring.neutralise(qp.key());
            ring.flush_seen = UNKNOWN;
            if ring.left == Some(qp.key()) {
                ring.left = None;
            }
            // The credit of a CQE that is in the ring comes back when it is skipped.
            let outstanding = sends.wrapping_add(receives);
            let in_ring = stale.min(outstanding);
            ring.stale = ring.stale.saturating_add(in_ring);
            ring.credit.add(outstanding.wrapping_sub(in_ring));
            total += stale;
        }
        self.set_busy();
        total
    }
}
