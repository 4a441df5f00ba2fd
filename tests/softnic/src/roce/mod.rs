//! A vendor-neutral RoCEv2 engine: queue pairs, memory keys, packets. It knows no queue format: work comes decoded
//! ([`SendWork`], [`RecvWork`]) and goes back as [`Event`]s.

mod answers;
mod context;
mod datagram;
mod engine;
mod entry;
mod event;
mod frame;
mod headers;
mod icrc;
mod ids;
mod memory;
mod opcode;
mod qp;
mod requester;
mod responder;
mod responses;
mod sges;
mod syndrome;
mod timers;
mod work;

pub use context::Counters;
pub use engine::Engine;
pub use event::{Completion, DatagramSource, Event, Side};
pub use frame::{FrameError, Packet};
pub use icrc::icrc;
pub use work::{Payload, PsnRange, RecvWork, SendWork};
