use directverbs::bnxt_re::doorbell::Toggle;

/// Something that the device tells without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An armed completion queue has a completion. [`super::CompletionQueue::acknowledge`] takes the toggle.
    Completion {
        /// Handle of the queue.
        handle: u64,
        /// Toggle of the next arm.
        toggle: Toggle,
    },
    /// A shared receive queue has fallen below its limit. [`super::SharedReceiveQueue::acknowledge`] takes the toggle.
    Limit {
        /// Handle of the queue.
        handle: u64,
        /// Toggle of the next arm.
        toggle: Toggle,
    },
    /// A queue pair went into error by itself.
    QpError {
        /// Number of the queue pair.
        qp: u32,
    },
    /// A completion queue went into error.
    CqError {
        /// Number of the completion queue.
        cq: u32,
    },
    /// The queue of doorbells has reached its threshold.
    Doorbells {
        /// Doorbell page.
        dpi: u32,
    },
}
