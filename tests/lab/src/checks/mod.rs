//! Checks that are not Rust tests.

pub mod bare;
pub mod bench;
pub mod dv;
pub mod fuzz;
pub mod layout;
pub mod no_panic;
pub mod oracle;
pub mod programs;
pub mod rdma_core;
pub mod tshark;
