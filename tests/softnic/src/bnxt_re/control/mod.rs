//! A bnxt_re NIC as a PCI function: the firmware's control channels over the device API.
//!
//! Answers are such that the vendor's Linux drivers can probe it, and it is as strict as the data path: what a driver must not
//! do is refused and counted among the front end's [`super::Violations`].

mod answer;
mod backing;
mod channel;
mod chip;
mod commands;
mod doorbell;
mod ethernet;
mod function;
mod hwrm;
mod keys;
mod list;
mod pacing;
mod port;
mod queries;
mod queues;
mod rings;
mod statistics;
mod transition;

pub use chip::Chip;
pub use function::BnxtFunction;
