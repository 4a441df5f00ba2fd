//! A kernel RDMA subsystem that is made up, as strict as the real one: devices with the user ABI of both vendors' drivers
//! for Linux 6.12, 7.2 and 7.3, whose queues the software NICs execute in the memory of this process.
//!
//! [`Machine`] is what a process sees of the kernel: it opens, asks, writes, reads, maps and closes. Whoever wants to use
//! it in place of the real kernel puts it behind the one place where system calls are made. Nothing here knows of the
//! crate that is judged; the ABI in [`abi`] is declared a second time on purpose.
//!
//! - [`profile`]: what a device is: NIC, kernel release, place on the wire.
//! - [`schema`]: methods, attributes and the release that each came with, as data; [`packet`] checks packets by it.
//! - [`session`]: one call; [`lifecycle`], [`methods`], [`command`] and [`transition`] are what calls do in the core,
//!   [`bnxt_re`] and [`ionic`] what the drivers add.
//! - [`pages`]: doorbells and other pages. Stores into them reach the NIC through [`trap`], in order and before the next
//!   instruction; that is for x86_64 Linux only, elsewhere a page with stores cannot be mapped.
//! - [`user`]: the process's memory, copied and pinned with the kernel's checks.
//!
//! What is not like a real kernel: dma-bufs are [made](Machine::new_dmabuf) by the machine itself, a closed device file takes
//! its objects away at once, although pages are still mapped, and addresses are resolved by rule and not by asking.

#![cfg(target_os = "linux")]

pub mod abi;
pub mod bnxt_re;
pub mod census;
mod chip;
pub mod command;
pub mod device;
mod events;
mod interrupt;
pub mod ionic;
pub mod lifecycle;
pub mod machine;
pub mod methods;
pub mod objects;
pub mod packet;
pub mod pages;
pub mod profile;
pub mod schema;
pub mod session;
mod sysfs;
pub mod transition;
pub mod trap;
pub mod udata;
pub mod umem;
pub mod user;

pub use census::Census;
pub use machine::{Machine, Options};
pub use profile::{Family, Profile, Release};
pub use rustix::io::Errno;
