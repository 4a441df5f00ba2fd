//! What is known beforehand of a request: whether provider and core will treat it differently.

use directverbs::bnxt_re::plan::SendPlan;
use directverbs::bnxt_re::psn::Retransmit;
use directverbs::bnxt_re::send::SendState;
use directverbs::bnxt_re::wqe::{HEADER_SLOTS, MAX_MESSAGE, SLOT_BYTES, STATIC_SLOTS, WqeMode};
use directverbs::verbs::{QpType, SendOp};

use super::exceptions::{LENGTH_WRAPS, NO_LOCAL_OPERATIONS, TWO_GIGABYTES, UNCHECKED};
use crate::case::{Exception, Send};

/// A known difference.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// The provider refuses what we post.
    TheyRefuse(&'static Exception),
    /// The provider posts what we refuse.
    TheyPost(&'static Exception),
}

/// The known difference of a request, if there is one.
pub fn known(request: &Send, qp_type: QpType, atomics: bool) -> Option<Known> {
    let (length, inline, pieces) = (request.length(), request.inline(), request.pieces());
    let connected = qp_type == QpType::Rc;
    match request.op {
        SendOp::LocalInv(_) | SendOp::BindMw(_) | SendOp::FastRegister(_) => {
            return Some(Known::TheyRefuse(&NO_LOCAL_OPERATIONS));
        }
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => {
            let posted = atomics && pieces <= 1;
            let right = connected && pieces == 1 && length == 8 && !inline;
            return (posted && !right).then_some(Known::TheyPost(&UNCHECKED));
        }
        SendOp::Read(_) if inline => return Some(Known::TheyPost(&UNCHECKED)),
        SendOp::Read(_) | SendOp::Write(_) | SendOp::WriteImm(..) if !connected => {
            return Some(Known::TheyPost(&UNCHECKED));
        }
        _ => {}
    }
    if inline {
        return None;
    }
    if length == u64::from(MAX_MESSAGE) {
        return Some(Known::TheyRefuse(&TWO_GIGABYTES));
    }
    // The sum is an int; a negative one is refused.
    let wraps = length > u64::from(u32::MAX) && (length as u32 as i32) >= 0;
    wraps.then_some(Known::TheyPost(&LENGTH_WRAPS))
}

/// Where a request's WQE and retransmit entry are.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Slot.
    pub slot: u32,
    /// Slots.
    pub slots: u32,
    /// Entry of the retransmit table.
    pub entry: u32,
}

/// Where requests go that are posted to a queue in this state.
pub fn place(plan: &SendPlan, qp_type: QpType, before: &SendState, requests: &[Send]) -> Vec<Placed> {
    let (mut slot, mut index, mut msn) = (before.tail, before.next, before.msn);
    let mut all = Vec::new();
    for request in requests {
        let used = used_slots(request);
        let (slots, doorbell_index) = match plan.mode {
            WqeMode::Static => (STATIC_SLOTS, index),
            WqeMode::Variable => (used, slot),
        };
        let entry = if plan.retransmit == Retransmit::Msn { msn } else { doorbell_index };
        all.push(Placed { slot, slots, entry });
        slot = (slot + slots) % plan.slots;
        index = (index + 1) % plan.records;
        if qp_type == QpType::Rc && plan.msn_modulus != 0 {
            msn = (msn + 1) % plan.msn_modulus;
        }
    }
    all
}

/// Slots that a request's WQE uses.
pub fn used_slots(request: &Send) -> u32 {
    let data = match request.inline() {
        true => (request.length() as u32).div_ceil(SLOT_BYTES),
        false => request.pieces() as u32,
    };
    HEADER_SLOTS + data
}
