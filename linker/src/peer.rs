//! The same program on another machine: the two tell each other what they must know by the second serial port, and the rest is
//! between their NICs.

use core::fmt;
use core::time::Duration;

use directverbs::verbs::{Device, Mac};
use directverbs_bare::{Clock, Deadline, Timeout};
use directverbs_workload::{Contact, Job, Role, Side, run_side};

use crate::arch::Serial;
use crate::report::Report;

/// How long the other may take to come to the same point; at first it boots.
const LIMIT: Duration = Duration::from_secs(60);

/// The other machine.
#[derive(Debug)]
pub struct Peer<'c, C> {
    clock: &'c C,
}

/// Why an operation failed. `E` is the device's error.
pub enum Error<E: core::error::Error> {
    /// The other says nothing.
    Silent(Timeout),
    /// What the other says makes no sense.
    Senseless,
    /// This end.
    Workload(directverbs_workload::Error<E>),
}

impl<E: core::error::Error> From<Timeout> for Error<E> {
    fn from(error: Timeout) -> Self {
        Self::Silent(error)
    }
}

impl<E: core::error::Error> From<directverbs_workload::Error<E>> for Error<E> {
    fn from(error: directverbs_workload::Error<E>) -> Self {
        Self::Workload(error)
    }
}

impl<E: core::error::Error> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(timeout) => write!(f, "the other machine says nothing: {timeout}"),
            Self::Senseless => f.write_str("what the other machine says makes no sense"),
            Self::Workload(error) => error.fmt(f),
        }
    }
}

impl<'c, C: Clock> Peer<'c, C> {
    /// The machine at the other end of the second serial port.
    pub fn open(clock: &'c C) -> Self {
        Serial::PEER.open();
        Self { clock }
    }

    /// Sends bytes, and takes as many of the other's.
    fn swap<const N: usize>(&self, own: &[u8; N]) -> Result<[u8; N], Timeout> {
        own.iter().for_each(|byte| Serial::PEER.put(*byte));
        let deadline = Deadline::after(self.clock, LIMIT);
        let mut theirs = [0; N];
        for byte in &mut theirs {
            *byte = deadline.wait(self.clock, || Ok::<_, Timeout>(Serial::PEER.get()))?;
        }
        Ok(theirs)
    }

    /// Waits until the other is at the same point.
    fn meet<E: core::error::Error>(&self, point: &[u8; 4]) -> Result<(), Error<E>> {
        if self.swap(point)? == *point { Ok(()) } else { Err(Error::Senseless) }
    }

    /// Runs a job with the other. The one with the lower Ethernet address begins.
    pub fn run<D: Device>(
        &self,
        report: &mut Report<'_>,
        device: &mut D,
        job: &Job,
        own: Mac,
    ) -> Result<(), Error<D::Error>> {
        let role = if own.0 < self.swap(&own.0)? { Role::First } else { Role::Second };
        let mut side = Side::setup(device, job, role)?;
        let theirs = self.swap(&side.contact().to_bytes())?;
        side.connect(device, &Contact::from_bytes(&theirs).ok_or(Error::Senseless)?)?;
        while !side.is_ready() {
            side.step(device, &mut |_| {})?;
            device.progress();
        }
        self.meet(b"up  ")?;
        run_side(&mut side, device, &mut |_| report.verified())?;
        report.verified();
        // Until the other is done, it may need acknowledgements.
        self.meet(b"done")?;
        Ok(side.teardown(device)?)
    }
}
