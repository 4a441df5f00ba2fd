//! Queues of all sizes: what the provider asks of the kernel and maps, against our plans.

use directverbs::bnxt_re::caps::DeviceCaps;
use directverbs::bnxt_re::plan::{CqPlan, QpPlan, SrqPlan};
use directverbs::bnxt_re::wqe::{SLOT_BYTES, WqeMode};
use directverbs::verbs::{QpCapabilities, QpId, QpType, SrqInit};

use super::exceptions::{EMPTY_RECV_QUEUE, RECV_WITHOUT_SGE, SRQ_SGES, STATIC_SGES, TOO_MANY_SLOTS};
use super::mode::Mode;
use super::ours::QpSpec;
use super::theirs::Theirs;
use crate::case::{Allowance, Allowed, CaseResult, Exception, Observed, Outcome, Report, Rng, judge};
use crate::ibv::Context;
use preload::anonymous_bytes;

/// Bytes that the provider remembers of a request.
const RECORD_BYTES: u64 = 40;
/// Most of what the provider's own structures take in the memory of a queue pair or shared receive queue.
const STRUCTURES: u64 = 4096;
/// SGEs and inline bytes of a WQE in static mode.
const STATIC: (u32, u32) = (6, 96);
/// SGEs of a shared receive request.
const SHARED_SGES: u32 = 6;

/// Runs a case: a completion queue, a shared receive queue and a queue pair of random sizes.
pub fn run(context: &Context, mode: &Mode, rng: &mut Rng, case: &str) -> Result<CaseResult, super::Error> {
    let limits = context.device().config().limits;
    let caps = super::caps(mode, limits);
    let mut result = CaseResult::default();
    let mut theirs = Theirs::new(context, 0)?;
    completion_queue(&mut theirs, &caps, rng).take(&mut result, case);
    if result.report.is_none() {
        shared_queue(&mut theirs, &caps, rng).take(&mut result, case);
    }
    if result.report.is_none() {
        queue_pair(&mut theirs, &caps, rng)?.take(&mut result, case);
    }
    Ok(result)
}

/// One creation on both sides.
#[derive(Default)]
struct Created {
    asked: String,
    theirs: Observed,
    ours: Observed,
    allowances: Vec<Allowance>,
}

impl Created {
    fn allow(&mut self, exception: &'static Exception, allowed: Allowed) {
        self.allowances.push(Allowance { exception, allowed });
    }

    /// The provider creates what we refuse.
    fn allow_refusal(&mut self, exception: &'static Exception) {
        let outcome = Allowed::Outcome { theirs: Outcome::Done, ours: Outcome::Failed };
        self.allow(exception, outcome);
        self.theirs.values.clear();
    }

    fn take(self, result: &mut CaseResult, case: &str) {
        let judgement = judge(&self.theirs, &self.ours, &[], &self.allowances);
        for exception in judgement.used {
            if !result.used.contains(&exception) {
                result.used.push(exception);
            }
        }
        if !judgement.differences.is_empty() {
            let text = format!("{}: {:?}\n", self.asked, judgement.differences);
            result.report = Some(Report { case: case.to_owned(), text });
        }
    }
}

/// A number up to `most`, small ones as likely as large ones, and sometimes one too many.
fn any(rng: &mut Rng, most: u32) -> u32 {
    match rng.below(12) {
        0 => most,
        1 => most + 1 + rng.below(3),
        _ => {
            let bits = rng.below(u32::BITS - most.leading_zeros() + 1);
            rng.below(1 << bits).min(most)
        }
    }
}

/// Runs `f`, and counts the bytes of memory that the provider maps in it.
fn mapping<T>(f: impl FnOnce() -> T) -> (T, u64) {
    let before = anonymous_bytes();
    let made = f();
    (made, (anonymous_bytes() - before) as u64)
}

fn outcome<T, E>(result: &Result<T, E>) -> Outcome {
    if result.is_ok() { Outcome::Done } else { Outcome::Failed }
}

fn completion_queue(theirs: &mut Theirs, caps: &DeviceCaps, rng: &mut Rng) -> Created {
    let cqe = any(rng, caps.max_cqe).max(1);
    let mut created = Created { asked: format!("completion queue of {cqe}"), ..Created::default() };
    let (made, mapped) = mapping(|| theirs.create_cq(cqe));
    let plan = CqPlan::new(caps, cqe);
    created.theirs.outcome = outcome(&made);
    created.ours.outcome = outcome(&plan);
    if let Ok((_, cqe)) = made {
        created.theirs.values = vec![("cqe", cqe.into()), ("ring bytes", mapped)];
    }
    if let Ok(plan) = plan {
        created.ours.values = vec![("cqe", plan.cqe.into()), ("ring bytes", plan.bytes.into())];
    }
    // A queue for the queue pair, if that was none.
    if created.theirs.outcome != Outcome::Done {
        let _ = theirs.create_cq(1);
    }
    created
}

fn shared_queue(theirs: &mut Theirs, caps: &DeviceCaps, rng: &mut Rng) -> Created {
    let limits = &caps.limits;
    // The kernel checks the number of requests, not the provider.
    let asked = SrqInit { max_wr: any(rng, limits.max_srq_wr - 4).max(1), max_sge: any(rng, SHARED_SGES) };
    let mut created = Created { asked: format!("{asked:?}"), ..Created::default() };
    let (made, mapped) = mapping(|| theirs.create_srq(&asked));
    let plan = SrqPlan::new(caps, &asked);
    created.theirs.outcome = outcome(&made);
    created.ours.outcome = outcome(&plan);
    if let Ok(plan) = plan {
        let ours = u64::from(plan.bytes) + u64::from(plan.entries) * RECORD_BYTES;
        created.theirs.values = vec![("structure pages", rest(mapped, ours))];
        created.ours.values = vec![("structure pages", 1)];
    }
    if asked.max_sge > SHARED_SGES {
        created.allow_refusal(&SRQ_SGES);
    }
    created
}

/// Pages of `mapped` that are neither ring nor records; 1 if the provider's structures are all that is left.
fn rest(mapped: u64, ours: u64) -> u64 {
    match mapped.checked_sub(ours) {
        Some(rest) if rest <= STRUCTURES + 4096 => 1,
        Some(rest) => rest.div_ceil(4096) + 1,
        None => 0,
    }
}

fn queue_pair(theirs: &mut Theirs, caps: &DeviceCaps, rng: &mut Rng) -> Result<Created, super::Error> {
    let limits = &caps.limits;
    let asked = QpCapabilities {
        max_send_wr: any(rng, limits.max_qp_wr),
        max_recv_wr: any(rng, limits.max_qp_wr),
        max_send_sge: any(rng, limits.max_sge),
        max_recv_sge: any(rng, limits.max_sge),
        max_inline_data: any(rng, limits.max_sge * SLOT_BYTES),
    };
    let qp_type = *rng.pick(&[QpType::Rc, QpType::Ud]);
    let mut created = Created { asked: format!("{qp_type:?} {asked:?}"), ..Created::default() };
    let spec = QpSpec {
        id: QpId::truncated(0),
        qp_type,
        capabilities: asked,
        signal_all: false,
        send_cq: 0,
        recv_cq: 0,
        shared: false,
        push: None,
    };
    let (made, mapped) = mapping(|| theirs.create_qp(&spec, false));
    let plan = QpPlan::new(caps, &asked, false);
    created.theirs.outcome = outcome(&made);
    created.ours.outcome = outcome(&plan);
    let variable = caps.wqe_mode == WqeMode::Variable;
    if let Ok((_, request, _)) = &made {
        // The receive ring follows the send ring.
        created.theirs.values = vec![
            ("sq_slots", request.sq_slots.into()),
            ("receive queue", u64::from(request.qprva != 0)),
            ("send bytes", request.qprva.saturating_sub(request.qpsva)),
        ];
    }
    if let Ok(plan) = &plan {
        let send = &plan.send;
        created.ours.values = vec![
            ("sq_slots", if variable { send.slots.into() } else { 0 }),
            ("receive queue", plan.recv.is_some().into()),
            ("send bytes", send.bytes.into()),
        ];
        let of_recv = |wqe_slots: Option<u32>| match &plan.recv {
            Some(recv) => {
                let slots = u64::from(recv.wqes) * u64::from(wqe_slots.unwrap_or(recv.wqe_slots));
                (slots * u64::from(SLOT_BYTES)).next_multiple_of(4096) + u64::from(recv.wqes) * RECORD_BYTES
            }
            None => 4096 + RECORD_BYTES,
        };
        let of_send = u64::from(send.bytes) + u64::from(send.records) * RECORD_BYTES;
        let pages = rest(mapped, of_send + of_recv(None));
        created.theirs.values.push(("structure pages", pages));
        created.ours.values.push(("structure pages", 1));
        if plan.recv.is_none() {
            created.allow(&EMPTY_RECV_QUEUE, Allowed::Value { name: "receive queue", theirs: 1, ours: 0 });
        } else if variable && asked.max_recv_sge == 0 && rest(mapped, of_send + of_recv(Some(2))) == 1 {
            created
                .allow(&RECV_WITHOUT_SGE, Allowed::Value { name: "structure pages", theirs: pages, ours: 1 });
        }
    }
    if created.ours.outcome == Outcome::Failed && made.is_ok() {
        let over = asked.max_send_sge.max(asked.max_recv_sge) > STATIC.0 || asked.max_inline_data > STATIC.1;
        let slots = made.as_ref().map_or(0, |(_, request, _)| request.sq_slots);
        if !variable && over {
            created.allow_refusal(&STATIC_SGES);
        } else if slots > 1 << 16 {
            created.allow_refusal(&TOO_MANY_SLOTS);
        }
    }
    Ok(created)
}
