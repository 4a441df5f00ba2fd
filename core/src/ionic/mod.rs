//! AMD Pensando ionic, rdma versions 1 and 2.
//!
//! [`caps::Caps`] is what the device told, [`plan`] sizes queues, [`qp::QueuePair`] and [`cq::CompletionQueue`] are the
//! datapath. The layouts are in [`doorbell`], [`wqe`] and [`cqe`].

pub mod caps;
pub mod clock;
pub mod cmb;
pub mod collapsed;
mod completion;
pub mod cq;
pub mod cqe;
pub mod doorbell;
pub mod plan;
pub mod qp;
pub mod recv;
mod request;
pub mod send;
mod work;
pub mod wqe;

pub use work::{MAX_MESSAGE, QueueMemory};

use crate::layout::Layout;

/// Every layout of the family.
pub const LAYOUTS: &[Layout] = &LAYOUT_TABLE;

const LAYOUT_TABLE: [Layout; 14] = {
    let [a, b, c, d, e, f, g, h, i] = wqe::LAYOUTS;
    let [j, k, l] = cqe::LAYOUTS;
    [a, b, c, d, e, f, g, h, i, j, k, l, caps::ContextReply::LAYOUT, clock::ClockInfo::LAYOUT]
};
