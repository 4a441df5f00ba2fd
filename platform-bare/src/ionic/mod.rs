//! ionic without an operating system: [`Nic::open`] brings a NIC up, and [`Nic::device`] lends it out as a
//! [`directverbs::verbs::Device`].
//!
//! One event queue, one admin queue of each part, and one doorbell page serve all objects; everything is polled. Queues are
//! in memory of the host, or in controller memory where [`PdConfig`] asks for it. Numbers are given by the driver, and it keeps
//! count of what refers to what, because the device does not. The device learns GIDs from the headers of each path, so the table
//! of them is the driver's alone.

mod books;
mod completion_queues;
mod config;
mod device;
mod error;
mod events;
mod link;
mod memory;
mod nic;
mod numbers;
mod paths;
mod queue_pairs;
mod queues;
mod session;

pub use config::{Config, PdConfig};
pub use device::{Device, ProtectionDomain};
pub use error::{Cause, Error, Object};
pub use events::Event;
pub use nic::Nic;
pub use queues::{CompletionQueue, QueuePair};
