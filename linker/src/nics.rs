//! The NICs: each is brought up by the driver of its family, and the workload runs on every two of them.

use core::fmt::Display;

use directverbs::verbs::{self, Gid, Mac};
use directverbs_bare::pci::Config;
use directverbs_bare::{Clock, Family, Host, bnxt_re, ionic};
use directverbs_workload::{Job, Op, run_pair};

use crate::peer::Peer;
use crate::report::Report;

/// Turns of each side.
const ITERATIONS: u64 = 4;

/// A NIC that is up.
pub enum Nic<H: Host> {
    /// Broadcom.
    BnxtRe(bnxt_re::Nic<H>),
    /// AMD Pensando.
    Ionic(ionic::Nic<H>),
}

fn family(config: &impl Config) -> Option<Family> {
    Family::of(config.id()?)
}

/// Whether there is a driver for a function.
pub fn is_known(config: &impl Config) -> bool {
    family(config).is_some()
}

/// Why a NIC could not be brought up or taken down.
pub enum Error {
    /// There is no driver for it.
    Unknown,
    /// Broadcom.
    BnxtRe(bnxt_re::Error),
    /// AMD Pensando.
    Ionic(ionic::Error),
}

impl From<bnxt_re::Error> for Error {
    fn from(error: bnxt_re::Error) -> Self {
        Self::BnxtRe(error)
    }
}

impl From<ionic::Error> for Error {
    fn from(error: ionic::Error) -> Self {
        Self::Ionic(error)
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no driver for it"),
            Self::BnxtRe(error) => error.fmt(f),
            Self::Ionic(error) => error.fmt(f),
        }
    }
}

impl<H: Host> Nic<H> {
    /// Brings a NIC up. Its address is the link-local one.
    pub fn open(host: H) -> Result<Self, Error> {
        match family(host.config()).ok_or(Error::Unknown)? {
            Family::BnxtRe => Ok(Self::BnxtRe(bnxt_re::Nic::open(host, &bnxt_re::Config::default())?)),
            Family::Ionic => {
                let mut nic = ionic::Nic::open(host, ionic::Config::default())?;
                nic.add_gid(Gid::link_local(nic.mac()), None)?;
                Ok(Self::Ionic(nic))
            }
        }
    }

    /// Its Ethernet address.
    pub fn mac(&self) -> Mac {
        match self {
            Self::BnxtRe(nic) => nic.mac(),
            Self::Ionic(nic) => nic.mac(),
        }
    }

    /// Takes it down.
    pub fn close(self) -> Result<(), Error> {
        match self {
            Self::BnxtRe(nic) => Ok(nic.close()?),
            Self::Ionic(nic) => Ok(nic.close()?),
        }
    }
}

/// Runs each operation of the workload between two NICs.
pub fn between<H: Host>(report: &mut Report<'_>, a: &mut Nic<H>, b: &mut Nic<H>) {
    match (a, b) {
        (Nic::BnxtRe(a), Nic::BnxtRe(b)) => pair(report, &mut a.device(), &mut b.device()),
        (Nic::BnxtRe(a), Nic::Ionic(b)) => pair(report, &mut a.device(), &mut b.device()),
        (Nic::Ionic(a), Nic::BnxtRe(b)) => pair(report, &mut a.device(), &mut b.device()),
        (Nic::Ionic(a), Nic::Ionic(b)) => pair(report, &mut a.device(), &mut b.device()),
    }
}

/// Runs each operation of the workload with the NIC of another machine.
pub fn across<H: Host>(report: &mut Report<'_>, nic: &mut Nic<H>, peer: &Peer<impl Clock>) {
    match nic {
        Nic::BnxtRe(nic) => side(report, &mut nic.device(), peer),
        Nic::Ionic(nic) => side(report, &mut nic.device(), peer),
    }
}

/// What is done with an operation.
fn job(op: Op) -> Job {
    let size = if op.is_atomic() { 8 } else { 1000 };
    Job { op, size, iterations: ITERATIONS, ..Job::default() }
}

fn pair<A, B>(report: &mut Report<'_>, a: &mut A, b: &mut B)
where
    A: verbs::Device,
    B: verbs::Device,
    A::Error: Display,
    B::Error: Display,
{
    report.plan(Op::ALL.len());
    for op in Op::ALL {
        report.check(format_args!("workload-{op}"), |report| {
            run_pair(a, b, &job(op), &mut |_| report.verified()).map(drop)
        });
    }
}

fn side<D: verbs::Device>(report: &mut Report<'_>, device: &mut D, peer: &Peer<impl Clock>)
where
    D::Error: Display,
{
    report.plan(Op::ALL.len());
    let mac = device.port().mac;
    for op in Op::ALL {
        let name = format_args!("workload-{op}");
        // After a failure the two are not in step any more.
        if !report.check(name, |report| peer.run(report, device, &job(op), mac)) {
            break;
        }
    }
}
