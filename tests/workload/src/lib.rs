//! The workload: one job, written once against the traits in [`directverbs::verbs`], that knows neither vendor nor
//! platform and needs neither `std` nor an allocator.
//!
//! Two [`Side`]s exchange [`Contact`]s out of band, connect, and take turns. In its turn a side does the job's operation
//! towards the other, `batch` messages under one doorbell, and hands over:
//!
//! | operation | who verifies | how the other side knows that it is its turn |
//! |---|---|---|
//! | SEND (plain, with immediate data, with invalidate), datagrams | the receiver, all bytes | the messages' own completions |
//! | WRITE with immediate data | the target, all bytes | the completions of the immediate data |
//! | WRITE | the target, all bytes | an empty SEND with immediate data behind the WRITEs, under the same doorbell |
//! | READ | the reader, all bytes | an empty SEND after the reader has verified |
//! | atomics | the requester the old values, the target the new ones | an empty SEND after the requester has verified |
//!
//! A queue pair delivers in order, so the completion of the SEND behind a WRITE proves that the WRITE's bytes are placed:
//! nobody polls memory, which would lean on the order in which a device writes it.
//!
//! What a message must contain follows from seed, direction, turn and position, so stale, swapped and misplaced data
//! are found, and bytes around each buffer are checked to be untouched. A job ends with every byte verified, or with an
//! [`Error`] that names the queue pair, the work request and what is wrong. It never waits for ever: a device that
//! has nothing under way, or lets the time limit pass, is an error too.
//!
//! A [`Stream`] keeps requests outstanding in one direction instead, to see how fast that goes.
//!
//! The sides may live in one process ([`run_pair`]), in two, or in two machines ([`run_side`]).
#![no_std]

mod buffers;
mod connect;
mod contact;
mod error;
mod job;
mod pair;
mod patience;
mod pattern;
mod side;
mod step;
mod stream;
mod turn;
mod wr_id;

pub use contact::{CONTACT_BYTES, Contact};
pub use error::{DataError, Error, Outstanding, PairError};
pub use job::{BEFORE_ECHO, Job, JobError, MAX_BATCH, MAX_INLINE, MAX_SGES, MAX_SIZE, Op, UnknownOp};
pub use pair::{PairReport, Party, run_pair, run_side, run_stream};
pub use pattern::Pattern;
pub use side::{Role, Side};
pub use step::{Report, Sample, Step};
pub use stream::{MAX_DEPTH, Progress, Stream, StreamJob, StreamReport};
pub use wr_id::{WrId, WrKind};
