//! Helpers that the suites share.

pub mod bnxt_re;
pub mod ionic;
pub mod jobs;

pub mod hostile;
