//! Posting and polling: [`Device`] implements `directverbs::verbs::Device`.
//!
//! The queues are those of `directverbs::bnxt_re` over memory of this process and the mapped doorbell page. Rings are handed
//! to the kernel as buffers of exact size where it takes them, and by their addresses in the driver's part of the request
//! where it does not.

mod device;
mod export;
mod page;
mod queue;

#[cfg(test)]
mod tests;

pub use device::{Device, Settings};
pub use queue::{CompletionQueue, QueuePair, SharedReceiveQueue};
