//! bnxt_re: bring-up, control channels and objects of BCM575xx (P5) and BCM5760x (P7).
//!
//! [`Nic::open`] takes a function from whatever state it is in to one whose queues can be used: it resets the function, gives
//! the firmware context memory, starts the command channel and adds GIDs. Everything is polled.
//!
//! Beside what [`directverbs::verbs::Device`] has, a [`Device`] resizes completion queues, registers the caller's own pages, adds,
//! modifies, deletes and asks for GIDs, in VLANs too, asks for queue pairs, shared receive queues and counters, handles
//! congestion, paces doorbells, pushes short requests, and gives events.
//!
//! Whatever fails, what the device was given is taken back before the error comes out: the function is reset, and memory that
//! the device may still know is given up until it cannot reach it any more. So the same host can open it again.

mod area;
mod bring_up;
mod config;
mod context;
mod device;
mod error;
mod event;
mod firmware;
mod gids;
mod memory;
mod nic;
mod objects;
mod pacing;
mod page;
mod port;
mod probe;
mod push;
mod queue;
mod rcfw;
mod resize;
mod verbs;

pub use config::Config;
pub use device::{Device, ProtectionDomain};
pub use error::Error;
pub use event::Event;
pub use nic::Nic;
pub use pacing::Pacer;
pub use page::QueuePage;
pub use probe::{is_supported, probe};
pub use queue::{CompletionQueue, QueuePair, SharedReceiveQueue};
