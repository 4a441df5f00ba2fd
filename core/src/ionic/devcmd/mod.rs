//! Device commands and the Ethernet admin queue: how a device is brought up.
//!
//! [`registers`] says where things are in BAR 0. Each command is a [`Command`], whose bytes go to the window there, or, once
//! the device has an admin queue, into an [`AdminQueue`]. What comes back is typed, too; a status is a [`CommandError`]. What
//! the device tells of itself is checked by [`RdmaIdentity::new`] before anything is computed from it.
//!
//! The usual order: RESET, IDENTIFY, LIF_IDENTIFY, INIT, PORT_IDENTIFY, PORT_INIT, PORT_SETATTR, LIF_INIT and Q_INIT as
//! device commands; RDMA_RESET_LIF, RDMA_CREATE_EQ, RDMA_CREATE_CQ and RDMA_CREATE_ADMINQ in the admin queue.

mod adminq;
mod command;
mod device;
mod ethernet;
mod filter;
mod firmware;
mod identity;
mod info;
mod lif;
mod memory;
mod notify;
mod opcode;
mod port;
mod port_stats;
mod qos;
mod queue;
pub mod registers;

pub use adminq::{AdminFault, AdminQueue, AdminQueueConfig, Completed, QueueFull};
pub use command::{AdminCmd, Command, CommandError, CompColor, Completion};
pub use device::*;
pub use ethernet::*;
pub use filter::*;
pub use firmware::*;
pub use identity::{IdentityError, RdmaIdentity};
pub use info::{LifInfo, LifStats, LifStatus};
pub use lif::*;
pub use memory::{CmbArea, ControllerMemory};
pub use notify::*;
pub use opcode::{Opcode, Status};
pub use port::*;
pub use port_stats::{PortInfo, PortStats};
pub use qos::*;
pub use queue::*;

use crate::layout::{Layout, joined};

/// Every layout of the device commands and of the Ethernet admin queue.
pub const LAYOUTS: &[Layout] = &LAYOUT_TABLE;

const LAYOUT_TABLE: [Layout; 79] = joined(&[
    &registers::LAYOUTS,
    &command::LAYOUTS,
    &device::LAYOUTS,
    &port::LAYOUTS,
    &port_stats::LAYOUTS,
    &lif::LAYOUTS,
    &info::LAYOUTS,
    &queue::LAYOUTS,
    &filter::LAYOUTS,
    &notify::LAYOUTS,
    &ethernet::LAYOUTS,
    &firmware::LAYOUTS,
    &qos::LAYOUTS,
]);
