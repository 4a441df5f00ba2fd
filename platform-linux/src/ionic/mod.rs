//! What the driver of ionic adds to the kernel's objects.
//!
//! - [`Context`]: capabilities, the doorbell page, the clock page.
//! - [`ProtectionDomain`]: where the queues of its queue pairs shall be, and on which pipelines.
//! - [`CompletionQueue`], [`QueuePair`]: created with rings of the sizes that `directverbs::ionic::plan` gives; what the
//!   device has granted, not what was asked for, says where a queue is.
//!
//! The driver has no shared receive queues, and takes no memory of the application for a queue.

pub mod abi;
mod clock;
mod completion_queue;
mod context;
mod doorbell;
mod protection_domain;
mod queue_pair;

#[cfg(test)]
mod tests;

pub use clock::ClockPage;
pub use completion_queue::CompletionQueue;
pub use context::Context;
pub use doorbell::DoorbellPage;
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{Placed, QueuePair, QueuePairInit};
