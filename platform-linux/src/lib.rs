//! directverbs on Linux: finds RDMA devices in sysfs and drives them through `/dev/infiniband/uverbsN`, without libibverbs.
//!
//! - [`sysfs`] finds devices, ports and GIDs, and chooses a GID that reaches a peer.
//! - [`uverbs`] is how the kernel is asked: the ABI as data, the one seam through which every system call goes, and the
//!   builder of ioctl packets. All `unsafe` code of the crate is there.
//! - [`objects`] are what the kernel keeps for a process: context, event files, protection domains, memory regions and
//!   windows, queues. Each holds what it depends on, so that nothing is destroyed before what refers to it.
//! - [`bnxt_re`] and [`ionic`] are what the drivers add to them: doorbells and other pages, queues in memory of the
//!   application or in controller memory, pipelines.
//!
//! Errors name the object, what was refused, and what would help.

pub mod bnxt_re;
pub mod error;
pub mod ionic;
pub mod objects;
pub mod sysfs;
pub mod uverbs;

pub use error::{Error, Result};
