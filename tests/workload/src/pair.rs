use directverbs::verbs::Device;

use crate::{
    Contact, Error, Job, PairError, Progress, Report, Role, Sample, Side, Step, Stream, StreamJob,
    StreamReport,
};

/// One of two ends that do something together, from the exchange of [`Contact`]s on. The device is lent to each call.
pub trait Party<D: Device>: Sized {
    /// What it tells while it goes on.
    type Event;
    /// What it has done.
    type Report;

    /// What the other end needs for [`Party::connect`].
    fn contact(&self) -> Contact;

    /// Connects to the peer.
    ///
    /// # Errors
    /// The control operation or request that failed.
    fn connect(&mut self, dev: &mut D, peer: &Contact) -> Result<(), Error<D::Error>>;

    /// Whether all that [`Party::connect`] began is done: then the other end may begin.
    fn is_ready(&self) -> bool;

    /// Takes what has completed and does what is next.
    ///
    /// # Errors
    /// What went wrong. It goes no further then.
    fn step(&mut self, dev: &mut D, observe: &mut impl FnMut(Self::Event)) -> Result<Step, Error<D::Error>>;

    /// The error for an end whose devices have nothing under way.
    fn stalled(&self) -> Error<D::Error>;

    /// What was done so far.
    fn report(&self) -> Self::Report;

    /// Destroys all objects. The peer must be done too: it may still need acknowledgements.
    ///
    /// # Errors
    /// The first control operation that failed; what follows it is left to the device's end.
    fn teardown(self, dev: &mut D) -> Result<(), Error<D::Error>>;
}

/// What two sides have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairReport {
    /// The first side.
    pub first: Report,
    /// The second side.
    pub second: Report,
    /// Nanoseconds from the first post to the last completion, by the first device's clock.
    pub elapsed_ns: u64,
}

impl PairReport {
    /// Bytes that both sides have compared with what they had to be.
    pub const fn verified_bytes(&self) -> u64 {
        self.first.verified_bytes + self.second.verified_bytes
    }
}

/// Runs a job between two devices of one process, on one thread: sets both sides up, connects them, steps them in turn,
/// and tears them down. `observe` is called for each turn of the first side.
///
/// # Errors
/// The side that failed, and why.
pub fn run_pair<A: Device, B: Device>(
    a: &mut A,
    b: &mut B,
    job: &Job,
    observe: &mut impl FnMut(Sample),
) -> Result<PairReport, PairError<A::Error, B::Error>> {
    let first = Side::setup(a, job, Role::First).map_err(PairError::First)?;
    let second = Side::setup(b, job, Role::Second).map_err(PairError::Second)?;
    let (first, second, elapsed_ns) = together(a, first, b, second, observe)?;
    Ok(PairReport { first, second, elapsed_ns })
}

/// Runs a stream between two devices of one process, as [`run_pair`] runs a job. `observe` is called by the first side.
///
/// # Errors
/// The side that failed, and why.
pub fn run_stream<A: Device, B: Device>(
    a: &mut A,
    b: &mut B,
    job: &StreamJob,
    observe: &mut impl FnMut(Progress),
) -> Result<[StreamReport; 2], PairError<A::Error, B::Error>> {
    let first = Stream::setup(a, job, Role::First).map_err(PairError::First)?;
    let second = Stream::setup(b, job, Role::Second).map_err(PairError::Second)?;
    let (first, second, _) = together(a, first, b, second, observe)?;
    Ok([first, second])
}

/// Connects two ends, steps them in turn until both are done, and tears them down.
fn together<A: Device, B: Device, P: Party<A>, Q: Party<B>>(
    a: &mut A,
    mut first: P,
    b: &mut B,
    mut second: Q,
    observe: &mut impl FnMut(P::Event),
) -> Result<(P::Report, Q::Report, u64), PairError<A::Error, B::Error>> {
    use PairError::{First, Second};
    let (one, two) = (first.contact(), second.contact());
    second.connect(b, &one).map_err(Second)?;
    first.connect(a, &two).map_err(First)?;
    let began_ns = a.now_ns();
    let (mut first_is_due, mut quiet) = (true, 0);
    loop {
        let other = second.step(b, &mut |_| {}).map_err(Second)?;
        // The second side's windows must be bound before the first side invalidates one.
        let step = if second.is_ready() { first.step(a, observe).map_err(First)? } else { Step::Idle };
        match (step, other) {
            (Step::Done, Step::Done) => break,
            (Step::Busy, _) | (_, Step::Busy) => quiet = 0,
            _ => {
                // Progress may wait a moment for its own device, so the devices take turns.
                let moved = if first_is_due { a.progress() } else { b.progress() };
                first_is_due = !first_is_due;
                quiet = if moved { 0 } else { quiet + 1 };
                if quiet == 4 {
                    return Err(if step == Step::Done {
                        Second(second.stalled())
                    } else {
                        First(first.stalled())
                    });
                }
            }
        }
    }
    let elapsed_ns = a.now_ns().saturating_sub(began_ns);
    let reports = (first.report(), second.report(), elapsed_ns);
    first.teardown(a).map_err(First)?;
    second.teardown(b).map_err(Second)?;
    Ok(reports)
}

/// Runs one connected side to its end. The other is run elsewhere; neither may be torn down before both are done, or
/// the last acknowledgements are lost. Since the peer may post at any time, only the time limit ends a wait in vain.
///
/// # Errors
/// What went wrong.
pub fn run_side<D: Device>(
    side: &mut Side<D>,
    dev: &mut D,
    observe: &mut impl FnMut(Sample),
) -> Result<Report, Error<D::Error>> {
    loop {
        match side.step(dev, observe)? {
            Step::Done => return Ok(side.report()),
            Step::Busy => {}
            Step::Idle => {
                dev.progress();
            }
        }
    }
}

/// As the inherent methods of the same names.
impl<D: Device> Party<D> for Side<D> {
    type Event = Sample;
    type Report = Report;

    fn contact(&self) -> Contact {
        Side::contact(self)
    }

    fn connect(&mut self, dev: &mut D, peer: &Contact) -> Result<(), Error<D::Error>> {
        Side::connect(self, dev, peer)
    }

    fn is_ready(&self) -> bool {
        Side::is_ready(self)
    }

    fn step(&mut self, dev: &mut D, observe: &mut impl FnMut(Sample)) -> Result<Step, Error<D::Error>> {
        Side::step(self, dev, observe)
    }

    fn stalled(&self) -> Error<D::Error> {
        Side::stalled(self)
    }

    fn report(&self) -> Report {
        Side::report(self)
    }

    fn teardown(self, dev: &mut D) -> Result<(), Error<D::Error>> {
        Side::teardown(self, dev)
    }
}
