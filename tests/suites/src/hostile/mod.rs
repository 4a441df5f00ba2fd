//! Hostile devices, drivers and peers: the bodies of the fuzz targets, and what replays them without a fuzzer.
//!
//! Each body takes arbitrary bytes, makes queues, rings and frames of them, and asserts what must hold whatever they
//! are: no panic, no write outside, no more completions than asked for, and a queue that goes on or says that it failed.

mod bench;
mod bnxt_re_nic;
mod bnxt_re_queues;
mod frames;
mod guarded;
mod input;
mod ionic_nic;
mod ionic_queues;
mod ledger;

pub use bnxt_re_nic::bnxt_re_decode;
pub use bnxt_re_queues::bnxt_re_poll;
pub use frames::roce_frame;
pub use input::Input;
pub use ionic_nic::ionic_decode;
pub use ionic_queues::ionic_poll;
