//! What the image does once it runs.

use core::fmt;

use directverbs_bare::identity::Identity;
use directverbs_bare::pci::assign::AssignError;
use directverbs_bare::pci::bar::{self, BarError};
use directverbs_bare::pci::{self, Config, Header, Step, WalkError};
use heapless::Vec;

use crate::arch::Machine;
use crate::console::say;
use crate::copier;
use crate::memory;
use crate::nics::{self, Nic};
use crate::report::Report;

/// NICs that are tried together.
const NICS: usize = 2;

/// Tries everything that is there. `true` if all held.
pub fn run(machine: &Machine) -> bool {
    // SAFETY: nobody else calls it.
    let memory = unsafe { memory::pool() };
    let free = memory.free();
    let clock = machine.clock();
    let mut report = Report::default();
    say(format_args!("unikernel: {}, {} KiB for DMA", machine.name(), free.0 >> 10));
    report.check(clock, format_args!("pci"), || list(machine));
    let mut nics: Vec<_, NICS> = Vec::new();
    report.check(clock, format_args!("functions"), || {
        pci::walk(machine.access(), |step| {
            let Step::Function(function, Header::Endpoint) = step else { return Ok(()) };
            let is_copier = function.id() == Some(copier::ID);
            if !is_copier && !nics::is_known(&function) {
                return Ok(());
            }
            // SAFETY: the bus is mapped as the machine says; each function is given to one driver.
            let host = unsafe { Identity::new(function, clock, &memory, machine.mapped()) };
            let host = host.map_err(Failure::Bar)?;
            if is_copier {
                return copier::copy(&host).map_err(Failure::Copy);
            }
            let nth = nics.len() as u8 + 1;
            say(format_args!("{} is NIC {nth}", function.address()));
            nics.push(Nic::open(host, nth).map_err(Failure::Nic)?).map_err(|_| Failure::Many)
        })
    });
    if let [a, b] = nics.as_mut_slice() {
        nics::workload(&mut report, clock, a, b);
    }
    report.check(clock, format_args!("close"), || {
        nics.into_iter().try_for_each(|nic| nic.close().map_err(Failure::Nic))
    });
    report.check(clock, format_args!("memory"), || {
        let left = memory.free();
        if left == free { Ok(()) } else { Err(Failure::Lost(free.0 - left.0)) }
    });
    report.end()
}

/// Numbers and places what is on the bus, if no firmware has, and says what there is.
fn list(machine: &Machine) -> Result<(), AssignError> {
    pci::configure(machine.access(), machine.free())?;
    pci::walk(machine.access(), |step| {
        let Step::Function(function, header) = step else { return Ok(()) };
        let (address, (vendor, device)) = (function.address(), function.id().unwrap_or_default());
        say(format_args!("{address} {vendor:04x}:{device:04x} {header:?}"));
        if header != Header::Endpoint {
            return Ok(());
        }
        let bars = bar::all(&function, 6).map_err(|cause| AssignError::Bar { address, cause })?;
        for bar in bars.iter().flatten() {
            let width = if bar.wide { 64 } else { 32 };
            say(format_args!(
                "    BAR {} at {:#x}: {:#x} bytes, {width} bits",
                bar.index, bar.address, bar.len
            ));
        }
        Ok(())
    })
}

/// Why a check failed.
enum Failure {
    Walk(WalkError),
    Bar(BarError),
    Copy(copier::Error),
    Nic(nics::Error),
    Many,
    Lost(usize),
}

impl From<WalkError> for Failure {
    fn from(error: WalkError) -> Self {
        Self::Walk(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Walk(error) => error.fmt(f),
            Self::Bar(error) => error.fmt(f),
            Self::Copy(error) => error.fmt(f),
            Self::Nic(error) => error.fmt(f),
            Self::Many => write!(f, "there are more than {NICS} NICs"),
            Self::Lost(bytes) => write!(f, "{bytes} bytes for DMA did not come back"),
        }
    }
}
