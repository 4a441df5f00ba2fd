//! How the kernel is asked.
//!
//! - [`abi`]: structures and numbers, as data.
//! - [`Kernel`]: the seam through which every system call of the crate goes; [`Linux`] is the real one, [`Fake`] a made-up
//!   one with software NICs.
//! - `Call`: a packet for `ioctl`, built from typed attributes.
//! - [`CommandFile`]: an opened device file, to which calls and commands go.
//! - [`Mapping`] and [`Pages`]: what is mapped, until it is dropped. [`RingPages`] are those of a ring.

pub mod abi;
mod call;
mod command;
mod fake;
mod file;
mod kernel;
mod linux;
mod mapping;
mod ring;

#[cfg(test)]
pub(crate) mod model;

pub(crate) use call::Call;
pub use command::Uhw;
pub use fake::Fake;
pub use file::{CommandFile, EventFile};
pub use kernel::{Fd, Kernel, MapRequest, Protection};
pub use linux::Linux;
pub use mapping::{Mapping, Pages};
pub(crate) use ring::Owned;
pub use ring::RingPages;
