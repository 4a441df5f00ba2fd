//! The NICs: each is brought up by the driver of its family, and the workload runs on every two of them.

use directverbs::verbs::{Gid, Mac};
use directverbs_bare::pci::Config;
use directverbs_bare::{Clock, Family, Host, bnxt_re, ionic};
use directverbs_workload::{Job, Op, run_pair};

use crate::device::Device;
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

/// Why something could not be done with a NIC.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no driver for it.
    #[error("there is no driver for it")]
    Unknown,
    /// Objects of different NICs cannot be used together.
    #[error("an object of another NIC")]
    Foreign,
    /// Broadcom.
    #[error(transparent)]
    BnxtRe(#[from] bnxt_re::Error),
    /// AMD Pensando.
    #[error(transparent)]
    Ionic(#[from] ionic::Error),
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

    /// Lends it out.
    fn device(&mut self) -> Device<'_, H> {
        match self {
            Self::BnxtRe(nic) => Device::BnxtRe(nic.device()),
            Self::Ionic(nic) => Device::Ionic(nic.device()),
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

/// What is done with an operation.
fn job(op: Op) -> Job {
    let size = if op.is_atomic() { 8 } else { 1000 };
    Job { op, size, iterations: ITERATIONS, ..Job::default() }
}

/// Runs each operation of the workload between two NICs.
pub fn between<H: Host>(report: &mut Report<'_>, a: &mut Nic<H>, b: &mut Nic<H>) {
    report.plan(Op::ALL.len());
    let (mut a, mut b) = (a.device(), b.device());
    for op in Op::ALL {
        report.check(format_args!("workload-{op}"), |report| {
            run_pair(&mut a, &mut b, &job(op), &mut |_| report.verified()).map(drop)
        });
    }
}

/// Runs each operation of the workload with the NIC of another machine.
pub fn across<H: Host>(report: &mut Report<'_>, nic: &mut Nic<H>, peer: &Peer<impl Clock>) {
    report.plan(Op::ALL.len());
    let mac = nic.mac();
    let mut device = nic.device();
    for op in Op::ALL {
        let name = format_args!("workload-{op}");
        // After a failure the two are not in step any more.
        if !report.check(name, |report| peer.run(report, &mut device, &job(op), mac)) {
            break;
        }
    }
}
