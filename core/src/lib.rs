#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
pub mod verbs;

#[cfg(feature = "bnxt-re")]
pub mod bnxt_re;
#[cfg(feature = "capi")]
pub mod description;
#[cfg(feature = "ionic")]
pub mod ionic;
pub mod layout;
pub mod queue;
