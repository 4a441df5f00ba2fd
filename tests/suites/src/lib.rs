//! Helpers that the suites share.

pub mod ionic;

pub mod hostile;
