//! Queues as data, for code that goes on where this process has stopped.

use directverbs::ionic::description::{CqDescription, QpDescription};

use super::queue::{CompletionQueue, QueuePair};

impl CompletionQueue {
    /// Describes the ring on pipeline `udma` as it is now: whoever is told polls it from here on.
    pub fn describe(&self, udma: u8) -> Option<CqDescription> {
        let state = self.queue.ring(udma)?.state();
        self.control.describe(&self.context, udma, &state)
    }
}

impl QueuePair {
    /// Describes it as it is now: whoever is told posts to it from here on.
    pub fn describe(&self) -> QpDescription {
        let [send_cq, recv_cq] = self.cqs();
        let of = (self.queue.qp_type(), send_cq, recv_cq);
        self.control.describe(&self.context, of, &self.queue.save())
    }
}
