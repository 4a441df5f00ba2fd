use directverbs::bnxt_re::caps::{DeviceCaps, Generation, Limits};
use directverbs::bnxt_re::wqe::{STATIC_SGES, WqeMode};
use directverbs::verbs::DeviceAttributes;

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
    caps.attributes(MAX_RD_ATOMIC)
}

#[cfg(test)]
mod tests {
    use directverbs::bnxt_re::plan::QpPlan;

    use super::*;

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
