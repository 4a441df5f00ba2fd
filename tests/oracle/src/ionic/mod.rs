//! libionic against the core: the same requests and CQEs go to both.
//!
//! [`modes`] says what there is, [`theirs`] and [`ours`] are the two sides, [`device`] and [`senseless`] write CQEs in the
//! device's place, [`pair`] plays a step on both, with what [`quirks`] knows of the provider's faults, which
//! [`exceptions`] names. [`sizes`] compares what is asked of the kernel.

mod describe;
mod device;
mod exceptions;
mod memory;
mod modes;
mod ours;
mod pair;
mod quirks;
mod senseless;
mod sizes;
mod theirs;

use directverbs::ionic::caps::{Caps, ContextReply};
use directverbs::ionic::clock::{Clock, ClockInfo};
use directverbs::ionic::plan::{CqPlan, QpPlan};
use directverbs::verbs::{CqId, MwType, QpCapabilities, QpId, QpType, RKey, SendOp};
use zerocopy::{FromBytes, IntoBytes};

use self::modes::{MODES, Mode, grant};
use self::ours::{Ours, QPS, Setup};
use self::pair::{Both, Nature, Poll};
pub use self::theirs::Error;
use self::theirs::{Theirs, Wanted};
use crate::case::generate::Operation;
use crate::case::{
    CaseResult, Event, Exception, Family, Interface, Payload, Profile, Rng, Step, Temper, generate, run_case,
    steps,
};
use crate::ibv::Library;
use crate::uverbs::Ids;
use crate::uverbs::ionic::Config;

/// Cases of libionic.
#[derive(Debug)]
pub struct Ionic {
    library: Library,
}

impl Ionic {
    /// Cases of the provider that `library` has loaded.
    pub const fn new(library: Library) -> Self {
        Self { library }
    }
}

impl Family for Ionic {
    type Error = Error;

    fn name(&self) -> &'static str {
        "ionic"
    }

    fn modes(&self) -> Vec<String> {
        MODES.iter().map(|mode| mode.name.to_owned()).collect()
    }

    fn exceptions(&self) -> &'static [&'static Exception] {
        exceptions::ALL
    }

    fn run(&mut self, mode: usize, seed: u64) -> Result<CaseResult, Error> {
        let mode = &MODES[mode];
        let mut rng = Rng::new(mode.name, seed);
        let case = format!("--mode {} --seed {seed}", mode.name);
        if mode.sizes {
            sizes::run(&self.library, mode, &mut rng, &case)
        } else {
            self.play(mode, &mut rng, &case)
        }
    }
}

/// What the device is, as the core learns it.
fn caps(config: &Config) -> Caps {
    let reply = config.reply();
    let reply = ContextReply::read_from_bytes(reply.as_bytes()).expect("the same structure");
    Caps::from_reply(&reply).expect("a device that both drivers take")
}

/// The clock page, as the core reads it.
fn clock(info: crate::uverbs::ionic::ClockInfo) -> Clock {
    Clock::from_info(&ClockInfo::read_from_bytes(info.as_bytes()).expect("the same structure"))
}

impl Ionic {
    fn play(&self, mode: &Mode, rng: &mut Rng, case: &str) -> Result<CaseResult, Error> {
        let wanted = Wanted {
            config: mode.config(rng),
            ids: ids(rng),
            // Each store is a trap.
            trap_cmb: rng.once_in(12),
            udma_mask: mode.udma_mask,
            place: mode.place,
            lock_free: rng.once_in(4),
            extended: mode.poll == Poll::Extended,
            qp_type: mode.qp_type,
            capabilities: mode.capabilities(rng),
            signal_all: rng.once_in(5),
            qps: if rng.once_in(2) { 1 } else { rng.between(2, QPS as u32) as usize },
            cqe: if rng.once_in(4) { rng.between(30, 600) } else { rng.between(1, 28) },
            two_cqs: rng.once_in(3),
        };
        let caps = caps(&wanted.config);
        let theirs = Theirs::new(&self.library, &wanted)?;
        let plan = QpPlan::new(&caps, &wanted.capabilities, wanted.place)?;
        let cq_plan = CqPlan::new(&caps, wanted.cqe)?;
        let created = sizes::created(&theirs, &plan, &cq_plan, &wanted);
        if created.report.is_some() {
            return Ok(created.told(case));
        }
        let reply = theirs.qp_reply(0);
        // Near the end of the 24 bits, mostly; the provider begins at 0 and compares modulo the depth.
        let depth = plan.sq.ring.depth();
        let setup = Setup {
            caps,
            clock: wanted.config.clock.map(clock),
            qp_type: wanted.qp_type,
            plan,
            cq_plan,
            grants: [grant(reply.sq_cmb), grant(reply.rq_cmb)],
            log_cmb: wanted.trap_cmb,
            udma: reply.udma_idx,
            udma_mask: wanted.udma_mask,
            signal_all: wanted.signal_all,
            qps: theirs.qps.iter().map(|qp| qp.id()).collect(),
            cqs: theirs.cq_ids().into_iter().map(|ids| ids.map(CqId::truncated)).collect(),
            first_message: if rng.once_in(3) { 0 } else { (1 << 24) - depth * rng.between(1, 2) },
        };
        let nature = Nature { careful: !rng.once_in(6), poll: mode.poll, noise: rng.long() };
        let profile = profile(mode, &setup, &wanted, &nature, theirs.handles(), rng);
        let mut steps = steps(&profile, rng);
        adapt(&mut steps, &setup, &nature, rng);
        let ours = Ours::new(&setup)?;
        let mut both = Both::new(setup, theirs, ours, nature);
        run_case(&mut both, &steps, case)
    }
}

/// Numbers anywhere in their 24 bits.
fn ids(rng: &mut Rng) -> Ids {
    let qp = 1 + rng.below(QpId::MAX.get() - 0x1_0000);
    let cq = 1 + rng.below(CqId::MAX.get() - 0x1_0000);
    Ids { qp, cq, ah: rng.below(1 << 23), ..Ids::default() }
}

fn profile(
    mode: &Mode,
    setup: &Setup,
    wanted: &Wanted,
    nature: &Nature,
    handles: Vec<directverbs::verbs::AhId>,
    rng: &mut Rng,
) -> Profile {
    let temper = match rng.below(20) {
        0..7 => Temper::Steady,
        7..10 => Temper::Greedy,
        10..18 if !wanted.extended => Temper::Coalesced,
        10..15 => Temper::Coalesced,
        _ => Temper::Failing,
    };
    let express = setup.grants.map(|grant| grant.express());
    let capabilities = QpCapabilities {
        // Lists of more SGEs than 32 show nothing new.
        ..setup.plan.granted(express[0], express[1])
    };
    let mut operations = match wanted.qp_type {
        QpType::Ud => vec![Operation::Send, Operation::SendImm],
        _ => vec![
            Operation::Send,
            Operation::SendImm,
            Operation::SendInv,
            Operation::Write,
            Operation::Write,
            Operation::WriteImm,
            Operation::Read,
        ],
    };
    // After a local operation the provider's timestamps are wrong.
    if wanted.qp_type == QpType::Rc && (!wanted.extended || rng.once_in(3)) {
        operations.extend([Operation::LocalInv, Operation::BindMw]);
    }
    // Lengths of atomics always differ, and version 1 puts them over express doorbells.
    let covers = wanted.config.version == 1 && express[0] && setup.plan.sq.ring.stride() == 64;
    if wanted.qp_type == QpType::Rc && rng.once_in(if covers { 6 } else { 4 }) {
        operations.extend([Operation::CompareSwap, Operation::FetchAdd]);
    }
    let once_in = |n: u32| if nature.careful { 0 } else { n };
    let never = u32::MAX;
    Profile {
        temper,
        qps: wanted.qps,
        qp_type: wanted.qp_type,
        capabilities,
        shared: None,
        operations,
        fouls: vec![
            generate::Foul::TooManySges,
            generate::Foul::InlineTooLong,
            generate::Foul::InlineRead,
            generate::Foul::AtomicSge,
            generate::Foul::TwoGigabytes,
            generate::Foul::TooLong,
            generate::Foul::WrongOperation,
            generate::Foul::Solicited,
        ],
        foul_once_in: if nature.careful { never } else { 30 },
        builder_once_in: if mode.builder { 2 } else { 0 },
        abort_once_in: once_in(10),
        solicited_always: false,
        list: if rng.once_in(4) { 40 } else { 8 },
        builder_list: 12,
        handles,
        resizes: Vec::new(),
        reset_once_in: once_in(12),
        senseless_once_in: if nature.careful { 0 } else { 16 },
        invalidations: true,
        source_bits: 24,
        limits: true,
        // Long enough, now and then, for the completion ring to wrap and for credit to run out.
        steps: if rng.once_in(6) { rng.between(200, 400) } else { rng.between(20, 100) },
    }
}

/// Makes of the steps what fits this provider.
fn adapt(steps: &mut [Step], setup: &Setup, nature: &Nature, rng: &mut Rng) {
    let short = |sges: &mut [directverbs::verbs::Sge], spec: u8| {
        // More than 8 lengths have 16 bits each.
        if spec > 8 && sges.len() > 8 {
            for sge in sges {
                sge.length &= 0xffff;
            }
        }
    };
    for step in steps {
        match step {
            Step::PostSend { interface, requests, .. } => {
                for request in requests.iter_mut() {
                    if let Payload::Sges(sges) = &mut request.payload
                        && (nature.careful || !rng.once_in(8))
                    {
                        short(sges, setup.plan.sq.spec);
                    }
                }
                // Windows of type 1 have a function of their own, which also takes their binding off.
                if *interface == Interface::List
                    && let [one] = &mut requests[..]
                    && let SendOp::BindMw(bind) = &mut one.op
                    && rng.once_in(2)
                {
                    bind.mw_type = MwType::Type1;
                    bind.length = if rng.once_in(3) { 0 } else { bind.length };
                    let key = bind.mw.get();
                    let next = if bind.length == 0 { key } else { key & !0xff | key.wrapping_add(1) & 0xff };
                    bind.new_key = RKey::truncated(next);
                    one.flags -= directverbs::verbs::SendFlags::SOLICITED;
                }
            }
            // A failure without the device's word that it flushes.
            Step::Device(events) if rng.once_in(3) => {
                let failed = |e: &Event| matches!(e, Event::SendFailed { .. } | Event::RecvFailed { .. });
                if events.first().is_some_and(failed) {
                    events.truncate(1);
                }
            }
            // Little room, now and then, so that an array is just full.
            Step::Poll { budget } if rng.once_in(6) => *budget = rng.between(1, 3),
            Step::PostRecv { requests, .. } => {
                for request in requests {
                    if nature.careful || !rng.once_in(8) {
                        short(&mut request.sges, setup.plan.rq.spec);
                    }
                }
            }
            _ => {}
        }
    }
}
