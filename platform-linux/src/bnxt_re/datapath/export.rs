//! Queues as data, for code that goes on where this process has stopped.

use directverbs::bnxt_re::description::{CqDescription, QpDescription};

use super::queue::{CompletionQueue, QueuePair};
use crate::bnxt_re::Context;
use crate::error::Result;

impl CompletionQueue {
    /// Describes it as it is now: whoever is told polls it from here on.
    ///
    /// # Errors
    /// As for [`crate::bnxt_re::CompletionQueue::describe`].
    pub fn describe(&self, context: &Context) -> Result<CqDescription> {
        self.control().describe(context, &self.queue.cq.state())
    }
}

impl QueuePair {
    /// Describes it as it is now: whoever is told posts to it from here on.
    ///
    /// # Errors
    /// As for [`crate::bnxt_re::QueuePair::describe`].
    pub fn describe(&self, context: &Context) -> Result<QpDescription> {
        self.control().describe(context, &self.queue.qp.save())
    }
}
