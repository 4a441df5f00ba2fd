//! The host of a unikernel: memory and registers are where the bus says, or at a fixed distance from it.

mod extents;
mod host;
mod memory;
#[cfg(test)]
mod tests;

pub use extents::GRANULE;
pub use host::{Identity, Mapped};
pub use memory::{Block, Memory};
