//! A vendor-neutral RoCEv2 engine: queue pairs, memory keys, packets. It knows no queue format: work comes decoded
//! ([`SendWork`], [`RecvWork`]) and goes back as [`Event`]s.

mod engine;
mod event;
mod work;

pub(crate) use engine::Engine;
pub use event::{Completion, DatagramSource, Event, Side};
pub use work::{Payload, PsnRange, RecvWork, SendWork};
