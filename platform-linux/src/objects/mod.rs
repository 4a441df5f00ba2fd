//! What the kernel keeps for a process. Each object holds what it depends on, and is destroyed when it is dropped and
//! nothing depends on it any more; its `destroy` says whether that went well.
//!
//! A child after fork has the objects in its memory, but they are its parent's: every call refuses, and dropping them
//! destroys nothing.

mod address_handle;
mod buffer;
mod channel;
mod completion_queue;
mod context;
mod event;
mod handle;
mod memory_region;
mod memory_window;
mod port;
mod protection_domain;
mod queue_pair;
mod shared_receive_queue;

#[cfg(test)]
mod tests;

pub use address_handle::AddressHandle;
pub use buffer::Buffer;
pub use channel::CompletionChannel;
pub use completion_queue::{CompletionQueue, CqFlags, CqInit};
pub use context::{Context, CoreSupport, DeviceLimits};
pub use event::{AsyncEvent, Element, EventKind, UserHandle};
pub(crate) use handle::{Handle, within};
pub use memory_region::MemoryRegion;
pub use memory_window::MemoryWindow;
pub use port::Port;
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{QpBuffers, QueriedQp, QueuePair};
pub use shared_receive_queue::SharedReceiveQueue;
