//! Helpers that the suites share.
