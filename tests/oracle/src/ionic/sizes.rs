//! What the provider asks of the kernel, against our plans.

use directverbs::ionic::caps::Caps;
use directverbs::ionic::cmb::CmbPreference;
use directverbs::ionic::plan::{CqPlan, MAX_CQE, MAX_WR, Placement, QpPlan, RingPlan};
use directverbs::verbs::{PlanError, QpCapabilities, QpType};

use super::exceptions::{self as known};
use super::modes::{Mode, grant};
use super::theirs::{Error, Theirs, Wanted};
use crate::case::{Allowance, Allowed, CaseResult, Difference, Exception, Observed, Report, Rng, judge};
use crate::ibv::{self, Library};
use crate::uverbs::ionic::Qdesc;

type Values = Vec<(&'static str, u64)>;

fn ring(values: &mut Values, names: [&'static str; 4], ring: &Qdesc) {
    let numbers = [ring.size.into(), ring.mask.into(), ring.depth_log2.into(), ring.stride_log2.into()];
    values.extend(names.into_iter().zip(numbers));
}

fn planned(ring: RingPlan) -> Qdesc {
    let RingPlan { depth_log2, stride_log2 } = ring;
    Qdesc { addr: 0, size: ring.bytes() as u32, mask: ring.mask(), depth_log2, stride_log2 }
}

const SQ: [&str; 4] = ["send ring bytes", "send ring mask", "send ring depth", "send ring stride"];
const RQ: [&str; 4] =
    ["receive ring bytes", "receive ring mask", "receive ring depth", "receive ring stride"];
const CQ: [[&str; 4]; 2] = [
    [
        "completion ring 0 bytes",
        "completion ring 0 mask",
        "completion ring 0 depth",
        "completion ring 0 stride",
    ],
    [
        "completion ring 1 bytes",
        "completion ring 1 mask",
        "completion ring 1 depth",
        "completion ring 1 stride",
    ],
];

fn granted(values: &mut Values, caps: &QpCapabilities) {
    values.extend([
        ("max_send_wr", caps.max_send_wr.into()),
        ("max_recv_wr", caps.max_recv_wr.into()),
        ("max_send_sge", caps.max_send_sge.into()),
        ("max_recv_sge", caps.max_recv_sge.into()),
        ("max_inline_data", caps.max_inline_data.into()),
    ]);
}

/// All numbers of what was created. Reserved bytes are left out: libionic does not clear those of its request.
fn compared(theirs: &Theirs, plan: &QpPlan, cq_plan: &CqPlan, wanted: &Wanted) -> (Observed, Observed) {
    let (mut a, mut b) = (Values::new(), Values::new());
    let request = theirs.qp_request(0);
    ring(&mut a, SQ, &request.sq);
    ring(&mut b, SQ, &planned(plan.sq.ring));
    ring(&mut a, RQ, &request.rq);
    ring(&mut b, RQ, &planned(plan.rq.ring));
    a.extend([
        ("send spec", request.sq_spec.into()),
        ("receive spec", request.rq_spec.into()),
        ("send cmb", request.sq_cmb.into()),
        ("receive cmb", request.rq_cmb.into()),
        ("queue pair pipelines", request.udma_mask.into()),
    ]);
    b.extend([
        ("send spec", plan.sq.spec.into()),
        ("receive spec", plan.rq.spec.into()),
        ("send cmb", plan.sq.cmb.to_abi().into()),
        ("receive cmb", plan.rq.cmb.to_abi().into()),
        ("queue pair pipelines", wanted.udma_mask.into()),
    ]);
    let cq = theirs.cq_request(0);
    a.push(("completion queue pipelines", cq.udma_mask.into()));
    b.push(("completion queue pipelines", wanted.udma_mask.into()));
    for (udma, names) in CQ.into_iter().enumerate() {
        ring(&mut a, names, &cq.cq[udma]);
        let there = wanted.udma_mask >> udma & 1 != 0;
        ring(&mut b, names, &if there { planned(cq_plan.ring) } else { Qdesc::default() });
    }
    let reply = theirs.qp_reply(0);
    let express = [reply.sq_cmb, reply.rq_cmb].map(|bits| grant(bits).express());
    granted(&mut a, &theirs.qps[0].capabilities());
    granted(&mut b, &plan.granted(express[0], express[1]));
    (Observed { values: a, ..Observed::default() }, Observed { values: b, ..Observed::default() })
}

/// A comparison whose case is not written down yet.
pub(super) struct Created {
    /// What differs.
    pub report: Option<String>,
    used: Vec<&'static Exception>,
}

impl Created {
    /// As the result of a case.
    pub fn told(self, case: &str) -> CaseResult {
        let report = self.report.map(|text| Report { case: case.to_owned(), text });
        CaseResult { used: self.used, report }
    }
}

fn judged(theirs: &Observed, ours: &Observed, allowances: &[Allowance], wanted: &Wanted) -> Created {
    let judgement = judge(theirs, ours, &[], allowances);
    let one = |difference: &Difference| match difference {
        Difference::Value { name, theirs, ours } => {
            format!(" {name}: theirs {theirs:?}, ours {ours:?}\n")
        }
        other => format!(" {other:?}\n"),
    };
    let text: String = judgement.differences.iter().map(one).collect();
    let report = (!text.is_empty()).then(|| format!("{wanted:?}\n{text}"));
    Created { report, used: judgement.used }
}

/// Compares what was created with the plans.
pub(super) fn created(theirs: &Theirs, plan: &QpPlan, cq_plan: &CqPlan, wanted: &Wanted) -> Created {
    let (theirs, ours) = compared(theirs, plan, cq_plan, wanted);
    judged(&theirs, &ours, &[], wanted)
}

fn preference(rng: &mut Rng) -> CmbPreference {
    CmbPreference { enable: !rng.once_in(3), express: rng.once_in(2), require: rng.once_in(4) }
}

/// A number up to `max`, small ones and those around powers of two more often, and a few beyond.
fn number(rng: &mut Rng, max: u32) -> u32 {
    match rng.below(12) {
        0 => max,
        1 => max + rng.between(1, 4),
        2 => 0,
        3 | 4 => rng.below(max + 1),
        _ => {
            let bits = max.ilog2();
            ((1u32 << rng.below(bits + 1)) + rng.below(3)).saturating_sub(1).min(max)
        }
    }
}

fn plans(caps: &Caps, wanted: &Wanted) -> Result<(QpPlan, CqPlan), PlanError> {
    let qp = QpPlan::new(caps, &wanted.capabilities, wanted.place)?;
    Ok((qp, CqPlan::new(caps, wanted.cqe)?))
}

/// Why the core refuses what the provider takes.
fn refused(caps: &Caps, wanted: &Wanted) -> &'static Exception {
    let Placement { sq, rq } = wanted.place;
    let place =
        Placement { sq: CmbPreference { require: false, ..sq }, rq: CmbPreference { require: false, ..rq } };
    if wanted.capabilities.max_send_wr.max(wanted.capabilities.max_recv_wr) > MAX_WR {
        &known::TOO_DEEP
    } else if plans(caps, &Wanted { place, ..wanted.clone() }).is_ok() {
        &known::EXPRESS_REQUIREMENT_IS_DROPPED
    } else {
        &known::TOO_WIDE
    }
}

/// A case of sizes.
pub(super) fn run(library: &Library, mode: &Mode, rng: &mut Rng, case: &str) -> Result<CaseResult, Error> {
    let mut config = mode.config(rng);
    config.max_stride = rng.between(6, 12) as u8;
    config.max_spec = [0, 4, 8, 16, 17][rng.below(5) as usize];
    config.express_strides = rng.below(16) as u8;
    config.express_queues = rng.below(4) as u8;
    let caps = super::caps(&config);
    let most = QpPlan::largest(&caps);
    let few = rng.once_in(2);
    let mut wanted = Wanted {
        config,
        ids: super::ids(rng),
        trap_cmb: false,
        udma_mask: mode.udma_mask,
        place: Placement { sq: preference(rng), rq: preference(rng) },
        lock_free: rng.once_in(4),
        extended: false,
        qp_type: if rng.once_in(3) { QpType::Ud } else { QpType::Rc },
        capabilities: QpCapabilities {
            max_send_wr: number(rng, if few { 64 } else { MAX_WR }),
            max_recv_wr: number(rng, if few { 64 } else { MAX_WR }),
            max_send_sge: number(rng, if few { most.max_send_sge.min(8) } else { most.max_send_sge }),
            max_recv_sge: number(rng, if few { most.max_recv_sge.min(8) } else { most.max_recv_sge }),
            max_inline_data: number(
                rng,
                if few { most.max_inline_data.min(64) } else { most.max_inline_data },
            ),
        },
        signal_all: rng.once_in(2),
        qps: 1,
        cqe: number(rng, if few { 300 } else { MAX_CQE }),
        two_cqs: false,
    };
    // The provider would write express doorbells into a ring of 65536 entries and never end.
    for (requests, cmb) in [
        (wanted.capabilities.max_send_wr, &mut wanted.place.sq),
        (wanted.capabilities.max_recv_wr, &mut wanted.place.rq),
    ] {
        cmb.express &= requests <= MAX_WR;
    }
    let plans = plans(&caps, &wanted);
    let theirs = match Theirs::new(library, &wanted) {
        Ok(theirs) => Some(theirs),
        Err(ibv::Error::Verb { .. }) => None,
        Err(other) => return Err(other.into()),
    };
    let made = |made: bool| Observed { values: vec![("created", made.into())], ..Observed::default() };
    let result = match (&theirs, plans) {
        (Some(theirs), Ok((plan, cq_plan))) => created(theirs, &plan, &cq_plan, &wanted),
        (Some(_), Err(_)) => {
            let exception = refused(&caps, &wanted);
            let allowed = Allowed::Value { name: "created", theirs: 1, ours: 0 };
            judged(&made(true), &made(false), &[Allowance { exception, allowed }], &wanted)
        }
        // What the device does not grant fails later at ours.
        (None, Ok((plan, _))) => judged(&made(false), &made(granted_all(&plan, mode.granted)), &[], &wanted),
        (None, Err(_)) => judged(&made(false), &made(false), &[], &wanted),
    };
    Ok(result.told(case))
}

/// Whether the core takes the answer of a device that grants the bits of `most`.
fn granted_all(plan: &QpPlan, most: u8) -> bool {
    let queue = |cmb: CmbPreference| {
        let asked = cmb.to_abi();
        cmb.granted(asked & most).is_ok()
    };
    queue(plan.sq.cmb) && queue(plan.rq.cmb)
}
