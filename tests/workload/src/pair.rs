use directverbs::verbs::Device;

use crate::{Error, Job, PairError, Report, Role, Sample, Side, Step};

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
    use PairError::{First, Second};
    let mut first = Side::setup(a, job, Role::First).map_err(First)?;
    let mut second = Side::setup(b, job, Role::Second).map_err(Second)?;
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
    let report = PairReport { first: first.report(), second: second.report(), elapsed_ns };
    first.teardown(a).map_err(First)?;
    second.teardown(b).map_err(Second)?;
    Ok(report)
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
