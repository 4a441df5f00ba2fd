//! The kernel's ABI as data: structures, numbers of objects, methods and attributes. Nothing here makes a system call.
//!
//! Source: Linux `include/uapi/rdma`: `rdma_user_ioctl_cmds.h`, `ib_user_ioctl_cmds.h`, `ib_user_ioctl_verbs.h`,
//! `ib_user_verbs.h`. All of it is in the byte order of the host; only hosts with little-endian order are supported.

pub mod attribute;
pub mod command;
pub mod methods;
pub mod packet;
pub mod query;
pub mod queue_pair;

#[cfg(target_endian = "big")]
compile_error!("the layouts of the uverbs ABI are declared for little-endian hosts");

use directverbs::layout::Layout;

/// Version of the uverbs ABI as a whole; the driver's part has a version of its own.
pub const UVERBS_ABI: u32 = 6;

/// All layouts of this module.
pub const LAYOUTS: &[&[Layout]] = &[packet::LAYOUTS, command::LAYOUTS, query::LAYOUTS, queue_pair::LAYOUTS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_layout_cover_it_without_gaps() {
        for layout in LAYOUTS.iter().copied().flatten() {
            let end = layout.fields.iter().fold(0, |end, f| {
                assert_eq!(f.offset, end, "{}.{}", layout.name, f.name);
                end + f.size
            });
            assert_eq!(end, layout.size, "{}", layout.name);
        }
    }
}
