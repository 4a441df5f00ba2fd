//! A uverbs device that is made up: what libibverbs and a provider see of the kernel when they talk to a bnxt_re or an
//! ionic device.
//!
//! [`configure`] says what the next context of a family is like; [`Device`] is that context seen from the other side:
//! the objects that the provider has asked for with all it told ([`Objects`]), the device's pages ([`Page`]), and the
//! stores into them in order ([`Device::take_stores`]).
//!
//! The commands follow the kernel's headers; what a driver adds to them is in [`bnxt_re`] and [`ionic`].
//!
//! What one has to know about the two providers:
//! - libionic matches by driver id only, and bnxt_re's table of PCI ids lacks BCM5760x, so both are found through the
//!   driver id that RDMA netlink tells ([`preload::netlink`]).
//! - A bnxt_re provider keeps page size, CQE size and device limits per device, not per context: contexts of different
//!   configurations may follow one another, but must not be used at the same time.
//! - libionic arms a completion queue only if it has a completion channel, and in the next poll.
//! - The library waits in destroying an object until all events of it are acknowledged that the kernel says it raised.
//! - bnxt_re's resize waits, inside `ibv_resize_cq`, for a cut-off completion in the old ring: write it before the call.
//! - libionic 65 copies into CMB with MOVDIR64B where the processor has it, else in 8-byte stores.

pub mod bnxt_re;
mod command;
mod config;
mod device;
mod ioctl;
pub mod ionic;
mod lifecycle;
mod memory;
mod objects;
pub mod registry;
pub mod sysfs;
#[cfg(test)]
mod tests;
mod write;

use directverbs_fake_uverbs::abi;
pub use directverbs_fake_uverbs::trap;

pub use config::{Config, Family, Ids, Limits, Model, Transport, Traps};
pub use device::Device;
pub use memory::{Page, Store};
pub use objects::{Ah, Cq, Mr, Mw, Objects, Pd, Qp, QpCap, Srq, Udata};
pub use registry::{configure, device};

/// An errno.
pub type Errno = std::ffi::c_int;
