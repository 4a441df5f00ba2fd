//! The front end of Broadcom bnxt_re NICs: doorbells and WQEs in, CQEs out.
//!
//! It is strict, because it judges drivers: whatever real hardware could not carry out, or would only find out in a rare
//! case (a wrong entry of the retransmit table, a WQE changed while it is outstanding), is refused and counted as a
//! [`Violation`].

pub mod control;
mod cq;
mod cqe;
mod front_end;
mod nq;
mod position;
mod push;
mod qp;
mod retransmit;
mod rq;
mod sq;
mod srq;
mod violation;
mod wqe;

pub use cq::CqError;
pub use front_end::{BnxtRe, Config};
pub use position::{Position, Stray};
pub use retransmit::{Entry, TableError};
pub use rq::RqError;
pub use sq::SqError;
pub use violation::{Object, Violation, Violations};
pub use wqe::WqeError;
