//! The NICs: each is brought up by the driver of its family, and the workload runs on every two of them.

use core::fmt::Display;
use core::net::Ipv4Addr;

use directverbs::verbs::{self, Gid};
use directverbs_bare::ionic;
use directverbs_bare::pci::{Access, Config, Function};
use directverbs_bare::{Clock, Host};
use directverbs_workload::{Job, Op, run_pair};

use crate::report::Report;

/// Vendor and devices that the ionic driver knows.
const IONIC: (u16, [u16; 2]) = (0x1dd8, [0x1002, 0x1003]);

/// Turns of each side.
const ITERATIONS: u64 = 4;

/// A NIC that is up.
pub enum Nic<H: Host> {
    /// AMD Pensando.
    Ionic(ionic::Device<H>),
}

/// Whether there is a driver for a function.
pub fn is_known<A: Access>(function: &Function<'_, A>) -> bool {
    function.id().is_some_and(|(vendor, device)| vendor == IONIC.0 && IONIC.1.contains(&device))
}

/// The address of the `nth` NIC of this machine.
fn gid(nth: u8) -> Gid {
    Gid::v4(Ipv4Addr::new(10, 0, 0, nth))
}

impl<H: Host> Nic<H> {
    /// Brings a NIC up, the `nth` of this machine.
    pub fn open(host: H, nth: u8) -> Result<Self, ionic::Error> {
        let mut device = ionic::Device::open(host, ionic::Config::default())?;
        device.add_gid(gid(nth))?;
        Ok(Self::Ionic(device))
    }

    /// Takes it down.
    pub fn close(self) -> Result<(), ionic::Error> {
        match self {
            Self::Ionic(device) => device.close(),
        }
    }
}

/// Runs each operation of the workload between two NICs.
pub fn workload<H: Host>(report: &mut Report, clock: &impl Clock, a: &mut Nic<H>, b: &mut Nic<H>) {
    match (a, b) {
        (Nic::Ionic(a), Nic::Ionic(b)) => every_op(report, clock, a, b),
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
