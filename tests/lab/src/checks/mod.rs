//! Checks that are not Rust tests.

pub mod bare;
