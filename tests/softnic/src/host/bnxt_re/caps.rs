use directverbs::bnxt_re::caps::{DeviceCaps, Generation, Limits};
use directverbs::bnxt_re::plan::SendPlan;
use directverbs::bnxt_re::wqe::{SLOT_BYTES, STATIC_SGES, WqeMode};
use directverbs::verbs::{DeviceAttributes, QpCapabilities};

use crate::bus::PAGE;

/// SGEs of a WQE in variable mode.
const VARIABLE_SGES: u32 = 13;
/// READs and atomics outstanding at a queue pair.
const MAX_RD_ATOMIC: u8 = 126;

/// What a software NIC of `generation` is capable of.
pub fn caps(generation: Generation, wqe_mode: WqeMode) -> DeviceCaps {
    let max_sge = match wqe_mode {
        WqeMode::Static => STATIC_SGES,
        WqeMode::Variable => VARIABLE_SGES,
    };
    let limits =
        Limits { max_qp_wr: 0xff7f, max_sge, max_srq_wr: 0xffff, max_srq_sge: STATIC_SGES, atomics: true };
    DeviceCaps {
        generation,
        wqe_mode,
        msn_table: generation == Generation::P7,
        // One of each kind, so that both are exercised.
        pow2_disabled: generation == Generation::P7,
        push: false,
        pacing: false,
        rate_limit: false,
        page_size: PAGE as u32,
        cqe_bytes: 32,
        max_cqe: 0x3_ffff,
        limits,
    }
}

/// The same in the terms of the traits.
pub fn attributes(caps: &DeviceCaps) -> DeviceAttributes {
    let max_sge = caps.limits.max_sge;
    let max_inline_data = match caps.wqe_mode {
        WqeMode::Static => max_sge / 2 * 2 * SLOT_BYTES,
        WqeMode::Variable => max_sge * SLOT_BYTES,
    };
    DeviceAttributes {
        family: match caps.generation {
            Generation::P7 => "bnxt_re",
            Generation::Legacy | Generation::P5 => "bnxt_re-p5",
        },
        max_qp: QpCapabilities {
            max_send_wr: SendPlan::max_send_wr(caps, max_sge, max_inline_data),
            max_recv_wr: caps.limits.max_qp_wr,
            max_send_sge: max_sge,
            max_recv_sge: max_sge,
            max_inline_data,
        },
        max_cqe: caps.max_cqe,
        max_srq_wr: caps.limits.max_srq_wr,
        max_rd_atomic: MAX_RD_ATOMIC,
        atomics: caps.limits.atomics,
        memory_windows: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use directverbs::bnxt_re::plan::QpPlan;

    #[test]
    fn what_is_advertised_is_granted() {
        for generation in [Generation::P5, Generation::P7] {
            for mode in [WqeMode::Static, WqeMode::Variable] {
                let caps = caps(generation, mode);
                let plan = QpPlan::new(&caps, &attributes(&caps).max_qp, false);
                assert!(plan.is_ok(), "{generation:?} {mode:?}: {plan:?}");
            }
        }
    }
}
