//! What runs jobs: both ends in this process, or one here and one at a peer.

use directverbs::verbs::Device;
use directverbs_softnic::open::Visit;
use directverbs_workload::{
    Job, JobError, PairError, Progress, Sample, StreamJob, StreamReport, run_pair, run_stream,
};

use crate::Failure;
use crate::ends::{Ends, usage};

/// Why a job failed, without the types of the devices.
pub enum Stop {
    /// The device cannot do it, or it makes no sense.
    Job(JobError),
    /// A device failed.
    Device(String),
    /// Something else: no device could be opened, or there is no peer.
    Other(Failure),
}

impl Stop {
    /// What failed on the device; all else ends the command.
    pub fn device(self) -> Result<String, Failure> {
        match self {
            Self::Job(error) => Err(usage(&error)),
            Self::Device(message) => Ok(message),
            Self::Other(failure) => Err(failure),
        }
    }
}

impl<A: core::error::Error, B: core::error::Error> From<PairError<A, B>> for Stop {
    fn from(error: PairError<A, B>) -> Self {
        error.job().map_or_else(|| Self::Device(error.to_string()), Self::Job)
    }
}

/// Runs jobs, one after the other.
pub trait Runner {
    /// Runs a job in turns; gives the bytes that were verified, by both sides if both are here.
    fn turns(&mut self, job: &Job, observe: &mut dyn FnMut(Sample)) -> Result<u64, Stop>;

    /// Runs a stream; gives what the first side has done, with the bytes that were verified.
    fn stream(&mut self, job: &StreamJob, observe: &mut dyn FnMut(Progress)) -> Result<StreamReport, Stop>;

    /// Whether there is another round of the same job: the side that began decides.
    fn again(&mut self, wanted: bool) -> Result<bool, Stop>;

    /// Whether this side measures; otherwise it serves the one that does.
    fn measures(&self) -> bool;
}

/// Both ends in this process.
pub struct Local<'a>(pub &'a Ends);

impl Runner for Local<'_> {
    fn turns(&mut self, job: &Job, observe: &mut dyn FnMut(Sample)) -> Result<u64, Stop> {
        self.0.join(Turns { job, observe }).map_err(Stop::Other)?
    }

    fn stream(&mut self, job: &StreamJob, observe: &mut dyn FnMut(Progress)) -> Result<StreamReport, Stop> {
        self.0.join(Stream { job, observe }).map_err(Stop::Other)?
    }

    fn again(&mut self, wanted: bool) -> Result<bool, Stop> {
        Ok(wanted)
    }

    fn measures(&self) -> bool {
        true
    }
}

struct Turns<'a> {
    job: &'a Job,
    observe: &'a mut dyn FnMut(Sample),
}

impl Visit for Turns<'_> {
    type Out = Result<u64, Stop>;

    fn run<A: Device + Send, B: Device + Send>(self, mut a: A, mut b: B) -> Self::Out {
        let report = run_pair(&mut a, &mut b, self.job, &mut |sample| (self.observe)(sample))?;
        Ok(report.verified_bytes())
    }
}

struct Stream<'a> {
    job: &'a StreamJob,
    observe: &'a mut dyn FnMut(Progress),
}

impl Visit for Stream<'_> {
    type Out = Result<StreamReport, Stop>;

    fn run<A: Device + Send, B: Device + Send>(self, mut a: A, mut b: B) -> Self::Out {
        let [first, second] = run_stream(&mut a, &mut b, self.job, &mut |progress| (self.observe)(progress))?;
        Ok(StreamReport { verified_bytes: first.verified_bytes + second.verified_bytes, ..first })
    }
}
