//! What sysfs tells about RDMA devices: their names, drivers, ports and GIDs.
//!
//! Everything is read below a root that can be given, so that a test can make a tree of its own. Files that are missing,
//! too long or not what they should be are errors that name the file.

mod choice;
mod device;
mod driver;
mod gid;
mod link;
mod port;
mod read;

pub use choice::{GidWish, Lack, NoGid, Peer, choose_gid};
pub use device::{Device, Guid};
pub use driver::Driver;
pub use gid::{GidEntry, GidType, Netdev};
pub use link::{LinkError, check_link, roce_mtu};
pub use port::{LinkLayer, PortInfo, PortState};
pub use read::{Problem, Sysfs, SysfsError};

#[cfg(test)]
pub(crate) mod tree;
