//! The NICs: each is brought up by the driver of its family, and the workload runs on every two of them.

use core::fmt::Display;
use core::net::Ipv4Addr;

use directverbs::verbs::{self, Gid};
use directverbs_bare::pci::Config;
use directverbs_bare::{Clock, Family, Host, bnxt_re, ionic};
use directverbs_workload::{Job, Op, run_pair};

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

/// The address of the `nth` NIC of this machine.
fn gid(nth: u8) -> Gid {
    Gid::v4(Ipv4Addr::new(10, 0, 0, nth))
}

impl<H: Host> Nic<H> {
    /// Brings a NIC up, the `nth` of this machine.
    pub fn open(host: H, nth: u8) -> Result<Self, Error> {
        match family(host.config()).ok_or(Error::Unknown)? {
            Family::BnxtRe => {
                let config = bnxt_re::Config { gids: &[gid(nth)], ..bnxt_re::Config::default() };
                Ok(Self::BnxtRe(bnxt_re::Nic::open(host, &config)?))
            }
            Family::Ionic => {
                let mut nic = ionic::Nic::open(host, ionic::Config::default())?;
                nic.add_gid(gid(nth), None)?;
                Ok(Self::Ionic(nic))
            }
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
pub fn workload<H: Host>(report: &mut Report, clock: &impl Clock, a: &mut Nic<H>, b: &mut Nic<H>) {
    match (a, b) {
        (Nic::BnxtRe(a), Nic::BnxtRe(b)) => every_op(report, clock, &mut a.device(), &mut b.device()),
        (Nic::BnxtRe(a), Nic::Ionic(b)) => every_op(report, clock, &mut a.device(), &mut b.device()),
        (Nic::Ionic(a), Nic::BnxtRe(b)) => every_op(report, clock, &mut a.device(), &mut b.device()),
        (Nic::Ionic(a), Nic::Ionic(b)) => every_op(report, clock, &mut a.device(), &mut b.device()),
    }
}

fn every_op<A, B>(report: &mut Report, clock: &impl Clock, a: &mut A, b: &mut B)
where
    A: verbs::Device,
    B: verbs::Device,
    A::Error: Display,
    B::Error: Display,
{
    for op in Op::ALL {
        let size = if op.is_atomic() { 8 } else { 1000 };
        let job = Job { op, size, iterations: ITERATIONS, ..Job::default() };
        let name = format_args!("workload-{op}");
        report.check(clock, name, || run_pair(a, b, &job, &mut |_| {}).map(drop));
    }
}
