//! Helpers that the suites share.

pub mod ionic;
