//! libc functions that C libraries and programs call, defined here so that the dynamic linker finds them before libc's
//! own. Calls that concern a made-up device end in [`Hooks`]; all others go on as raw system calls.
//!
//! As a shared library it is preloaded (`LD_PRELOAD`) by any program, and `DIRECTVERBS_FAKE` says which devices of the
//! made-up kernel the program shall have. A program that links this crate exports the functions with
//! `-Wl,--export-dynamic-symbol` for the names in `symbols.txt`, and installs hooks of its own. It also calls them from
//! Rust's standard library: see [`Hooks`] for what follows.
//!
//! What libibverbs 65 and the two providers import from libc was read off their dynamic symbol tables. Discovery of
//! devices goes over RDMA netlink, whose socket is ours, so no device of the machine is ever seen; of sysfs only the files
//! of the made-up devices are ours.

mod environment;
mod files;
mod hooks;
mod memory;
pub mod netlink;
mod raw;
mod sockets;

pub use hooks::{Errno, Hooks, Listed, install};
pub use memory::anonymous_bytes;
pub use raw::{close, mmap, munmap, open, syscall};

/// Names the functions, so that the linker takes them from this crate. A program must call this.
pub fn link() -> usize {
    let all: [*const (); 17] = [
        files::open as *const (),
        files::open64 as *const (),
        files::openat as *const (),
        files::openat64 as *const (),
        files::__open_2 as *const (),
        files::__open64_2 as *const (),
        files::close as *const (),
        files::stat as *const (),
        files::write as *const (),
        files::read as *const (),
        files::ioctl as *const (),
        memory::mmap as *const (),
        memory::mmap64 as *const (),
        memory::munmap as *const (),
        sockets::socket as *const (),
        sockets::sendmsg as *const (),
        sockets::recvmsg as *const (),
    ];
    std::hint::black_box(all).len()
}
