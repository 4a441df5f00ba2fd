//! The judge of C providers: Debian's libibverbs and its providers run unmodified in this process, over a uverbs device
//! that is made up here, and what they do is compared with what the core does.
//!
//! - [`case`]: seeded cases, their comparison, named exceptions, and the count of it all.
//! - [`uverbs`]: the device behind those descriptors: commands, objects, pages, and a log of doorbell stores.
//! - [`ibv`]: libibverbs from Rust: its types, loading it, and owned wrappers.
//! - [`bnxt_re`], [`ionic`]: the cases of the two families.

pub mod bnxt_re;
pub mod case;
pub mod ibv;
pub mod ionic;
pub mod uverbs;
