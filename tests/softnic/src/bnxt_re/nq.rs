//! Notification queue entries: events as the hardware would write them.

use directverbs::bnxt_re::cqe::{NqCn, NqEventType, NqSrqEvent, NqType, NqValid};
use zerocopy::{little_endian as le, transmute};

/// Bytes of an entry.
pub const NQE_BYTES: usize = 16;

const CQ_NOTIFICATION: u8 = 0x30;
const SRQ_EVENT: u8 = 0x32;
const SRQ_THRESHOLD: u8 = 1;

/// An armed completion queue got a completion. `toggle` is for the next arm.
pub fn completion(handle: u64, toggle: u8, phase: bool) -> [u8; NQE_BYTES] {
    let kind = NqType::new().with_nqe_type(CQ_NOTIFICATION).with_toggle(toggle);
    transmute!(NqCn {
        r#type: le::U16::new(kind.into_bits()),
        cq_handle_low: le::U32::new(handle as u32),
        v: valid(phase),
        cq_handle_high: le::U32::new((handle >> 32) as u32),
        ..NqCn::ZERO
    })
}

/// A shared receive queue fell below its limit. `toggle` is for the next arm.
pub fn srq_limit(handle: u64, toggle: u8, phase: bool) -> [u8; NQE_BYTES] {
    let kind = NqEventType::new().with_nqe_type(SRQ_EVENT).with_toggle(toggle);
    transmute!(NqSrqEvent {
        r#type: kind.into_bits(),
        event: SRQ_THRESHOLD,
        srq_handle_low: le::U32::new(handle as u32),
        v: valid(phase),
        srq_handle_high: le::U32::new((handle >> 32) as u32),
        ..NqSrqEvent::ZERO
    })
}

fn valid(phase: bool) -> le::U32 {
    le::U32::new(NqValid::new().with_v(phase).into_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_carries_handle_toggle_and_phase() {
        let cn = completion(0x1122_3344_5566_7788, 2, true);
        assert_eq!(cn, [0xb0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 1, 0, 0, 0, 0x44, 0x33, 0x22, 0x11]);
        let srq = srq_limit(7, 1, false);
        assert_eq!(srq, [0x72, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
