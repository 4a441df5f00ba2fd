//! The judge of C providers.
//!
//! - [`case`]: seeded cases, their comparison, named exceptions, and the count of it all.

pub mod case;
