//! The control front end of ionic: a PCI function with device registers, device commands, admin queues, event queues and
//! interrupt control, which ends in the NIC's device API, and the Ethernet part with its queues.
//!
//! It is the judge of the driver, as the datapath front end is: a command that a device must refuse, or something stored
//! where nothing belongs, is counted as a [`Violation`] of the NIC. What it tells is written for the vendor's Linux drivers,
//! too.

mod adminq;
mod devcmd;
mod ethernet;
mod events;
mod function;
mod identity;
mod interrupts;
mod objects;
mod port;
mod rdma;
mod refusal;

pub use function::IonicFunction;
pub use identity::{ControlConfig, Lie, Told};

use super::wrong::{QueueKind, Violation, Wrong};

/// Doorbell register of the Ethernet admin queue.
pub const ADMINQ_QTYPE: u8 = 1;
/// Doorbell register of RDMA admin queues.
pub const AQ_QTYPE: u8 = 2;
/// Doorbell register that event queues would have.
pub const EQ_QTYPE: u8 = 6;
/// Interrupts of the device.
pub const INTERRUPTS: u16 = 64;
/// Doorbell pages of the LIF.
pub const DOORBELL_PAGES: u32 = 64;
/// Bytes of a doorbell page.
pub const DOORBELL_PAGE: u64 = 4096;
