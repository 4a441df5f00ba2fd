//! Posting and polling: [`Device`] implements `directverbs::verbs::Device`.
//!
//! The queues are those of `directverbs::ionic` over memory of this process, mapped controller memory where it was granted,
//! and the mapped doorbell page.

mod device;
mod export;
mod queue;

#[cfg(test)]
mod tests;

pub use device::{Device, Settings};
pub use queue::{CompletionQueue, QueuePair};
