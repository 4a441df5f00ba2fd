//! ionic without an operating system: [`Device::open`] brings a NIC up, the device then is a [`directverbs::verbs::Device`].
//!
//! One event queue, one admin queue of each part, and one doorbell page serve all objects; everything is polled. Queues are
//! in memory of the host. Numbers are given by the driver, and it keeps count of what refers to what, because the device
//! does not. The device learns GIDs from the headers of each path, so the table of them is the driver's alone.

mod config;
mod device;
mod error;
mod events;
mod link;
mod memory;
mod objects;
mod queue_pairs;
mod queues;
mod session;

pub use config::Config;
pub use device::{Device, ProtectionDomain};
pub use error::{Cause, Error, Object};
pub use events::Event;
pub use queues::{CompletionQueue, QueuePair};
