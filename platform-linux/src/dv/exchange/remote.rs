//! One end here, and one at the peer.

use directverbs::verbs::Device;
use directverbs_workload::{
    Contact, Error, Job, Party, Progress, Role, Sample, Side, Step, Stream, StreamJob, StreamReport,
};

use super::error::ExchangeError;
use super::link::Link;
use super::message::{Message, Reach, compare, stream, turns};
use crate::runner::{Runner, Stop};

/// Idle steps between two looks at the peer.
const LOOK: u32 = 512;

/// An end of a job whose other end is at the peer.
pub struct Remote<D> {
    device: D,
    link: Link,
    role: Role,
}

impl From<ExchangeError> for Stop {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Peer(_) => Self::Device(error.to_string()),
            error => Self::Other(error.into()),
        }
    }
}

impl<E: core::error::Error> From<Error<E>> for Stop {
    fn from(error: Error<E>) -> Self {
        match error {
            Error::Job(error) => Self::Job(error),
            error => Self::Device(error.to_string()),
        }
    }
}

impl Stop {
    fn told(&self) -> String {
        match self {
            Self::Job(error) => error.to_string(),
            Self::Device(message) => message.clone(),
            Self::Other(failure) => failure.to_string(),
        }
    }
}

impl<D: Device> Remote<D> {
    /// A device, and a peer that has been greeted.
    pub const fn new(device: D, link: Link, role: Role) -> Self {
        Self { device, link, role }
    }

    /// Runs an end of a job from its comparison to its teardown, and gives what both sides have verified. A failure is told
    /// to the peer.
    fn run<P: Party<D>>(
        &mut self,
        job: Vec<(String, String)>,
        setup: impl FnOnce(&mut D, Role) -> Result<P, Error<D::Error>>,
        observe: &mut impl FnMut(P::Event),
        verified: impl FnOnce(&P::Report) -> u64,
    ) -> Result<(P::Report, u64), Stop> {
        let outcome = self.try_run(job, setup, observe, verified);
        if let Err(stop) = &outcome {
            // The peer may be gone already; then there is nobody to tell.
            let _ = self.link.send(&Message::Failed(stop.told()));
        }
        outcome
    }

    fn try_run<P: Party<D>>(
        &mut self,
        job: Vec<(String, String)>,
        setup: impl FnOnce(&mut D, Role) -> Result<P, Error<D::Error>>,
        observe: &mut impl FnMut(P::Event),
        verified: impl FnOnce(&P::Report) -> u64,
    ) -> Result<(P::Report, u64), Stop> {
        let theirs = self.swap(&Message::Job(job.clone()), "a job", |message| match message {
            Message::Job(theirs) => Ok(theirs),
            other => Err(other),
        })?;
        compare(&job, &theirs)?;
        let mut party = setup(&mut self.device, self.role)?;
        let ours = Message::Contact(Box::new(Reach::from(&party.contact())));
        let reach = self.swap(&ours, "a contact", |message| match message {
            Message::Contact(reach) => Ok(reach),
            other => Err(other),
        })?;
        party.connect(&mut self.device, &Contact::try_from(&*reach)?)?;
        while !party.is_ready() {
            party.step(&mut self.device, observe)?;
            self.device.progress();
        }
        self.swap(&Message::Ready, "readiness", |message| match message {
            Message::Ready => Ok(()),
            other => Err(other),
        })?;
        let mut idle = 0u32;
        loop {
            match party.step(&mut self.device, observe)? {
                Step::Done => break,
                Step::Busy => idle = 0,
                Step::Idle => {
                    self.device.progress();
                    idle += 1;
                    if idle.is_multiple_of(LOOK) {
                        self.link.look("the end")?;
                    }
                }
            }
        }
        let report = party.report();
        let here = verified(&report);
        let there =
            self.swap(&Message::Done { verified_bytes: here }, "the end", |message| match message {
                Message::Done { verified_bytes } => Ok(verified_bytes),
                other => Err(other),
            })?;
        party.teardown(&mut self.device)?;
        Ok((report, here.saturating_add(there)))
    }

    /// Sends a message, and takes the peer's of the same kind.
    fn swap<T>(
        &mut self,
        message: &Message,
        waiting: &'static str,
        take: impl FnOnce(Message) -> Result<T, Message>,
    ) -> Result<T, ExchangeError> {
        self.link.send(message)?;
        take(self.link.receive(waiting)?)
            .map_err(|other| ExchangeError::Unexpected { waiting, found: other.name() })
    }
}

impl<D: Device> Runner for Remote<D> {
    fn turns(&mut self, job: &Job, observe: &mut dyn FnMut(Sample)) -> Result<u64, Stop> {
        let setup = |device: &mut D, role| Side::setup(device, job, role);
        let (_, bytes) =
            self.run(turns(job), setup, &mut |sample| observe(sample), |report| report.verified_bytes)?;
        Ok(bytes)
    }

    fn stream(&mut self, job: &StreamJob, observe: &mut dyn FnMut(Progress)) -> Result<StreamReport, Stop> {
        let setup = |device: &mut D, role| Stream::setup(device, job, role);
        let (report, bytes) =
            self.run(stream(job), setup, &mut |progress| observe(progress), |report| report.verified_bytes)?;
        Ok(StreamReport { verified_bytes: bytes, ..report })
    }

    fn again(&mut self, wanted: bool) -> Result<bool, Stop> {
        if self.role == Role::First {
            self.link.send(&Message::Again(wanted))?;
            return Ok(wanted);
        }
        let waiting = "another round";
        match self.link.receive(waiting)? {
            Message::Again(wanted) => Ok(wanted),
            other => Err(ExchangeError::Unexpected { waiting, found: other.name() }.into()),
        }
    }

    fn measures(&self) -> bool {
        self.role == Role::First
    }
}
