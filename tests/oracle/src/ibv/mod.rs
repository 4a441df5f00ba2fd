//! libibverbs from Rust: its types declared by hand, the library loaded at run time, and owned wrappers of its objects.
//!
//! A wrapper keeps alive what it was made of, so objects are destroyed in the order that the library wants. The
//! requests of the core ([`directverbs::verbs::SendRequest`]) become the library's by [`SendList`] and [`RecvList`], or
//! calls of `ibv_wr_*` by [`Qp::post_wr`]; completions of both sides become [`Completion`].

mod ah;
mod bind;
mod completion;
mod context;
mod cq;
mod error;
mod library;
mod memory;
mod pd;
mod qp;
mod requests;
mod srq;
pub mod sys;
mod wr;

pub use ah::Ah;
pub use completion::Completion;
pub use context::Context;
pub use cq::{Cq, CqInit, Extended};
pub use error::{Error, PostError, Result};
pub use library::Library;
pub use memory::{Channel, Mr, Mw};
pub use pd::Pd;
pub use qp::{ALL_SEND_OPS, Qp};
pub use requests::{RecvList, SendList, Unsupported};
pub use srq::Srq;
pub use wr::Pieces;
