//! The bnxt_re family: Debian's provider against the core.
//!
//! - [`mode`]: devices, and what is done with each.
//! - [`pair`]: one step on both sides, with posting in `post` and polling in `consume`; [`theirs`] and [`ours`] are the two, [`forge`] is the device between them.
//! - [`sizes`]: queues of all sizes.
//! - [`exceptions`]: known faults of the provider; [`known`] says which request will show one.

mod areas;
pub mod bell;
mod consume;
pub mod exceptions;
pub mod forge;
pub mod known;
pub mod mode;
pub mod ours;
pub mod pair;
mod post;
pub mod sizes;
pub mod theirs;

use std::rc::Rc;

use directverbs::bnxt_re::caps::DeviceCaps;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::{MemoryError, Mtu, QpCapabilities, QpId, QpType, SrqInit, StateError};

use crate::case::generate::{CONNECTION, Foul, Operation};
use crate::case::{CaseResult, Exception, Family, Profile, Rng, Temper, run_case, steps};
use crate::ibv::{self, Context, Library};
use crate::uverbs::{Config, Limits, Model};

use bell::Fifo;
use mode::{Mode, Subject};
use ours::{Ours, OursError, QpSpec};
use pair::BnxtRePair;
use theirs::Theirs;

/// A case that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library or provider failed.
    #[error("provider: {0}")]
    Theirs(#[from] ibv::Error),
    /// The core has refused to make a queue.
    #[error("core: {0}")]
    Ours(#[from] OursError),
    /// The core has refused a transition.
    #[error("core: {0}")]
    State(#[from] StateError),
    /// The core has refused memory or a state.
    #[error("core: {0}")]
    Memory(#[from] MemoryError),
}

/// The cases of the family.
#[derive(Debug)]
pub struct BnxtRe {
    library: Library,
    modes: Vec<Mode>,
    /// The device of the mode that ran last.
    open: Option<(usize, Context)>,
}

/// Address handles of datagram modes.
const HANDLES: usize = 3;

impl BnxtRe {
    /// The family over a loaded library.
    pub fn new(library: &Library) -> Self {
        Self { library: library.clone(), modes: mode::all(), open: None }
    }

    fn context(&mut self, mode: usize) -> Result<Context, Error> {
        if let Some((open, context)) = &self.open
            && *open == mode
        {
            return Ok(context.clone());
        }
        // The provider keeps sizes per device, so one is open at a time.
        self.open = None;
        let wanted = &self.modes[mode];
        let config = Config {
            limits: Limits { atomic_cap: wanted.atomics.into(), ..Limits::default() },
            ..Config::new(Model::BnxtRe(wanted.config.clone()))
        };
        let context = Context::open(&self.library, config)?;
        self.open = Some((mode, context.clone()));
        Ok(context)
    }
}

impl Family for BnxtRe {
    type Error = Error;

    fn name(&self) -> &'static str {
        "bnxt_re"
    }

    fn modes(&self) -> Vec<String> {
        self.modes.iter().map(|mode| mode.name.clone()).collect()
    }

    fn exceptions(&self) -> &'static [&'static Exception] {
        exceptions::ALL
    }

    fn run(&mut self, mode: usize, seed: u64) -> Result<CaseResult, Error> {
        let context = self.context(mode)?;
        let mode = &self.modes[mode];
        let case = format!("--mode {} --seed {seed}", mode.name);
        let mut rng = Rng::new(&mode.name, seed);
        if mode.subject == Subject::Sizes {
            return sizes::run(&context, mode, &mut rng, &case);
        }
        let (mut pair, profile) = create(&context, mode, &mut rng)?;
        for qp in 0..mode.qps {
            pair.connect(qp, 0xff_ffff - rng.below(300))?;
        }
        run_case(&mut pair, &steps(&profile, &mut rng), &case)
    }
}

/// What the core knows of a device.
pub fn caps(mode: &Mode, limits: Limits) -> DeviceCaps {
    DeviceCaps::from_context(&mode.config.reply(), limits.into())
}

/// Small queues, so that they wrap and fill.
fn capabilities(mode: &Mode, caps: &DeviceCaps, rng: &mut Rng) -> QpCapabilities {
    let (sges, inline) = match caps.wqe_mode {
        WqeMode::Static => (6, 96),
        WqeMode::Variable => (13, 208),
    };
    let few =
        |rng: &mut Rng, most: u32| if rng.once_in(2) { rng.between(1, 3) } else { rng.between(1, most) };
    QpCapabilities {
        max_send_wr: rng.between(1, 70),
        max_recv_wr: if mode.shared { 0 } else { rng.between(1, 40) },
        max_send_sge: few(rng, sges),
        max_recv_sge: few(rng, sges),
        max_inline_data: if rng.once_in(4) { 0 } else { rng.between(1, inline) },
    }
}

/// The queues of a case on both sides, and what the case may contain.
fn create<'m>(context: &Context, mode: &'m Mode, rng: &mut Rng) -> Result<(BnxtRePair<'m>, Profile), Error> {
    let caps = caps(mode, context.device().config().limits);
    let fifo = mode.config.pacing.as_ref().map(|pacing| Rc::new(Fifo::new(theirs::pacing(pacing))));
    let handles = if mode.qp_type == QpType::Ud { HANDLES } else { 0 };
    let mut theirs = Theirs::new(context, handles)?;
    let mut ours = Ours::new(caps, fifo.clone());
    for _ in 0..if mode.two_cqs { 2 } else { 1 } {
        let cqe = if rng.once_in(4) { rng.between(300, 900) } else { rng.between(6, 60) };
        let (id, _) = theirs.create_cq(cqe)?;
        ours.create_cq(id, cqe)?;
    }
    let mut shared = None;
    if mode.shared {
        let asked = SrqInit { max_wr: rng.between(1, 50), max_sge: rng.between(1, 6) };
        let plan = ours.create_srq(theirs.create_srq(&asked)?, &asked)?;
        shared = Some(SrqInit { max_wr: plan.max_wr, max_sge: plan.max_sge });
    }
    let capabilities = capabilities(mode, &caps, rng);
    for _ in 0..mode.qps {
        let mut spec = QpSpec {
            id: QpId::truncated(0),
            qp_type: mode.qp_type,
            capabilities,
            signal_all: rng.once_in(8),
            send_cq: 0,
            recv_cq: mode.two_cqs.into(),
            shared: mode.shared,
            push: mode.config.push.then(Theirs::push),
        };
        (spec.id, ..) = theirs.create_qp(&spec, mode.builder)?;
        ours.create_qp(&spec)?;
    }
    let mtu = match mode.qp_type {
        QpType::Rc => *rng.pick(&Mtu::ALL),
        _ => Mtu::default(),
    };
    let profile = Profile { shared, handles: theirs.handles(), ..profile(mode, capabilities, rng) };
    Ok((BnxtRePair::new(mode, theirs, ours, fifo, mtu), profile))
}

fn profile(mode: &Mode, capabilities: QpCapabilities, rng: &mut Rng) -> Profile {
    use Temper::{Coalesced, Failing, Greedy, Steady};
    let temper = *rng.pick(&[Steady, Steady, Steady, Greedy, Greedy, Failing, Failing, Coalesced]);
    let mut profile = Profile::new(temper, mode.qp_type, capabilities);
    profile.qps = mode.qps;
    profile.steps = rng.between(40, 110);
    profile.list = 20;
    profile.foul_once_in = 50;
    // Half of the cases keep to what the provider does right, and what makes the two go apart ends a case.
    let plain = rng.once_in(2);
    let apart = !plain && rng.once_in(4);
    profile.invalidations = !plain;
    profile.source_bits = if plain { 16 } else { 24 };
    match mode.qp_type {
        QpType::Rc => {
            profile.operations = CONNECTION.repeat(5);
            if plain {
                profile.operations.retain(|operation| *operation != Operation::FetchAdd);
            } else {
                profile.operations.extend([Operation::SendInv; 4]);
                profile.fouls.extend([Foul::TwoGigabytes, Foul::TooLong]);
            }
            if !plain && rng.once_in(3) {
                profile.operations.extend([Operation::LocalInv, Operation::BindMw]);
            }
            if apart {
                profile.fouls.extend([Foul::InlineRead, Foul::AtomicSge]);
                if capabilities.max_send_sge > 1 {
                    profile.fouls.push(Foul::LengthWraps);
                }
            }
        }
        _ if apart => profile.fouls.push(Foul::WrongOperation),
        _ => {}
    }
    if mode.builder {
        profile.builder_once_in = 2;
        // A batch in static mode, and one by push, make the provider write where it must not.
        let batches = mode.config.variable_wqe && !mode.config.push;
        profile.builder_list = if batches { 3 } else { 1 };
    }
    // A doorbell that only one side rings would make the waits of pacing differ from there on.
    let paced = mode.config.pacing.is_some();
    profile.limits = !plain && !paced;
    if !paced && rng.once_in(3) {
        profile.resizes = (0..4).map(|_| rng.between(4, 600)).collect();
    }
    if !plain && !mode.shared && rng.once_in(5) {
        profile.senseless_once_in = 40;
    }
    profile.reset_once_in = if plain { 0 } else { 60 };
    profile
}
