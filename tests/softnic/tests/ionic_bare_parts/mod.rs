//! What the tests of ionic without an operating system have in common, and those of what goes wrong.

mod bad_input;
mod faults;
mod objects;
pub mod placement;
pub mod rig;
