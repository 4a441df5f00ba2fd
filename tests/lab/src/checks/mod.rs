//! Checks that are not Rust tests.

pub mod bare;
pub mod no_panic;
pub mod rdma_core;
