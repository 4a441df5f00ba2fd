//! Checks that are not Rust tests.

pub mod bare;
pub mod rdma_core;
