//! Devices and queues as data, for code that posts and polls by itself.

use directverbs::ionic::cq::CqState;
use directverbs::ionic::description::{
    ContextDescription, CqDescription, Placed as PlacedAt, QpDescription, QpIdentity,
};
use directverbs::ionic::qp::SavedQp;
use directverbs::verbs::{CqId, QpType};

use super::{ClockPage, CompletionQueue, Context, Placed, QueuePair};

impl Context {
    /// Describes the device.
    pub fn describe(&self) -> ContextDescription {
        ContextDescription {
            doorbell: self.doorbell().address(),
            clock: self.clock().map_or(0, ClockPage::address),
            ..ContextDescription::new(self.caps())
        }
    }
}

impl CompletionQueue {
    /// Describes the ring on pipeline `udma` in `state`; none if there is no ring there.
    pub fn describe(&self, context: &Context, udma: u8, state: &CqState) -> Option<CqDescription> {
        let (id, memory) = self.ring(udma)?;
        let at = (memory.address(), context.doorbell().address());
        Some(CqDescription::new(context.caps(), (id, udma), self.plan(), state, at))
    }
}

impl QueuePair {
    /// Describes a queue pair of kind `qp_type` in `state`, which completes to the rings `send_cq` and `recv_cq`.
    pub fn describe(
        &self,
        context: &Context,
        (qp_type, send_cq, recv_cq): (QpType, CqId, CqId),
        state: &SavedQp,
    ) -> QpDescription {
        let of = QpIdentity { id: self.id(), qp_type, udma: self.udma(), send_cq, recv_cq };
        let placed = (&placed(self.send()), &placed(self.recv()));
        QpDescription::new(context.caps(), &of, self.plan(), state, placed, context.doorbell().address())
    }
}

fn placed(queue: &Placed) -> PlacedAt {
    let cmb = queue.cmb().map_or(0, |cmb| cmb.memory.address().as_ptr() as u64);
    PlacedAt { ring: queue.ring().address(), cmb, grant: queue.grant() }
}
