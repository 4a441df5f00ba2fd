//! The devices that both sides have: what their kernel drivers say of them, and what follows from that.

use directverbs::bnxt_re::caps::DeviceCaps;
use directverbs::ionic::caps::{Caps, ContextReply};
use directverbs::verbs::QpCapabilities;
use directverbs::{bnxt_re as dv_bnxt_re, ionic as dv_ionic};
use oracle::uverbs::{Config, Limits, Traps, bnxt_re, ionic};
use zerocopy::{FromBytes, IntoBytes};

use crate::work::Family;

/// P7 with variable WQEs, MSN table and exact depths.
const BNXT_RE: bnxt_re::Config = bnxt_re::Config::p7();

/// The device of a family, with doorbell pages of plain memory.
pub fn config(family: Family) -> Config {
    let config: Config = match family {
        Family::BnxtRe => BNXT_RE.into(),
        Family::Ionic => ionic::Config::default().into(),
    };
    Config { traps: Traps::NONE, ..config }
}

/// What bnxt_re can do.
pub fn bnxt_re() -> DeviceCaps {
    DeviceCaps::from_context(&BNXT_RE.reply(), Limits::default().into())
}

/// What ionic can do: version 2, one pipeline.
pub fn ionic() -> Caps {
    let reply = ionic::Config::default().reply();
    let reply = ContextReply::read_from_bytes(reply.as_bytes()).expect("the same structure");
    Caps::from_reply(&reply).expect("a reply with all that the driver needs")
}

/// Sizes of the rings that both sides make, as the library plans them; the oracle shows that the providers' are equal.
#[derive(Clone, Copy, Debug)]
pub struct Rings {
    /// Modulus of send WQE indices.
    pub send_wqes: u32,
    /// Modulus of receive WQE indices.
    pub recv_wqes: u32,
    /// Entries of a completion queue.
    pub cqes: u32,
    /// Bytes of the rings of a queue pair.
    pub queue_pair_bytes: usize,
    /// Bytes of the ring of a completion queue.
    pub completion_queue_bytes: usize,
}

impl Rings {
    /// Rings of a queue pair with capabilities, and of a completion queue.
    pub fn new(family: Family, asked: &QpCapabilities, cqes: u32) -> Self {
        match family {
            Family::BnxtRe => {
                let qp = dv_bnxt_re::plan::QpPlan::new(&bnxt_re(), asked, false).expect("a plan");
                let cq = dv_bnxt_re::plan::CqPlan::new(&bnxt_re(), cqes).expect("a plan");
                let recv = qp.recv.expect("a receive queue");
                Self {
                    send_wqes: qp.send.records,
                    recv_wqes: recv.wqes,
                    cqes: cq.entries,
                    queue_pair_bytes: (qp.send.bytes + recv.bytes) as usize,
                    completion_queue_bytes: cq.bytes as usize,
                }
            }
            Family::Ionic => {
                let place = dv_ionic::plan::Placement::default();
                let qp = dv_ionic::plan::QpPlan::new(&ionic(), asked, place).expect("a plan");
                let cq = dv_ionic::plan::CqPlan::new(&ionic(), cqes).expect("a plan");
                Self {
                    send_wqes: qp.sq.ring.depth(),
                    recv_wqes: qp.rq.ring.depth(),
                    cqes: cq.ring.depth(),
                    queue_pair_bytes: qp.sq.ring.bytes() + qp.rq.ring.bytes(),
                    completion_queue_bytes: cq.ring.bytes(),
                }
            }
        }
    }
}
