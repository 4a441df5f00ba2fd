//! libc functions that the C libraries call, defined in the program so that the dynamic linker finds them before
//! libc's own. Calls that concern the made-up device end in [`crate::uverbs`]; all others go on as raw system calls.
//!
//! The functions are part of whatever links this crate: a program exports them with
//! `-Wl,--export-dynamic-symbol` (this package's `build.rs` does it for the names in `symbols.txt`), a shared library
//! exports them by itself. A program that is linked statically with this crate also calls them from Rust's standard
//! library, so nothing in here and nothing that it calls may use the standard library's files or sockets while it
//! holds a lock of [`crate::uverbs`].
//!
//! What libibverbs 65 and the two providers import from libc was read off their dynamic symbol tables. Discovery of
//! devices goes over RDMA netlink, whose socket is ours, so no device of the machine is ever seen; of sysfs only the files
//! of the made-up devices are ours.

mod files;
mod memory;
mod raw;
mod sockets;

pub use memory::anonymous_bytes;
pub(crate) use raw::{close, mmap, munmap, syscall};

/// Names the functions, so that the linker takes them from this crate. A program must call this.
pub fn link() -> usize {
    let all: [*const (); 16] = [
        files::open as *const (),
        files::open64 as *const (),
        files::openat as *const (),
        files::openat64 as *const (),
        files::__open_2 as *const (),
        files::__open64_2 as *const (),
        files::close as *const (),
        files::stat as *const (),
        files::write as *const (),
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
