//! What the driver of bnxt_re adds to the kernel's objects.
//!
//! - [`Context`]: capabilities, and the pages that all queues of a context share.
//! - [`DoorbellPage`], [`DoorbellRegion`]: where doorbells go. Every queue pair may have a region of its own.
//! - [`PushPage`], [`PacingPages`], [`TogglePage`]: what newer devices have besides.
//! - [`CompletionQueue`], [`QueuePair`], [`SharedReceiveQueue`]: created with rings of the sizes that
//!   `directverbs::bnxt_re::plan` gives, in memory of their own or of the application.

pub mod abi;
mod completion_queue;
mod context;
mod doorbell;
mod pages;
mod queue_pair;
mod ring;
mod shared_receive_queue;

#[cfg(test)]
mod tests;

pub use completion_queue::{CompletionQueue, CqOptions};
pub use context::{Context, ProtectionDomain};
pub use doorbell::{DoorbellPage, DoorbellRegion};
pub use pages::{PacingPages, PushPage, TogglePage};
pub use queue_pair::{QueuePair, QueuePairInit};
pub use ring::Ring;
pub use shared_receive_queue::SharedReceiveQueue;
