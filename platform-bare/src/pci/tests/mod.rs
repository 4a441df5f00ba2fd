//! PCI over a made-up machine.

mod assigning;
mod listing;
pub mod machine;
mod resetting;
mod walking;
