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
use crate::peer::Peer;
use crate::report::Report;

/// NICs that are tried together.
const NICS: usize = 2;
/// Checks of every machine: the bus, the functions on it, their end, and that nothing is left behind.
const CHECKS: usize = 4;

/// Tries everything that is there. `true` if all held.
pub fn run(machine: &Machine) -> bool {
    // SAFETY: nobody else calls it.
    let memory = unsafe { memory::pool() };
    let free = memory.free();
    let clock = machine.clock();
    let mut report = Report::new(machine);
    // Ends the line that a boot loader may have left open: the report's lines are whole ones.
    say(format_args!("\nunikernel: {}, {} KiB for DMA", machine.name(), free.0 >> 10));
    report.plan(CHECKS);
    report.check(format_args!("pci"), |_| list(machine));
    let mut nics: Vec<_, NICS> = Vec::new();
    report.check(format_args!("functions"), |_| {
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
            let address = function.address();
            let nic = Nic::open(host).map_err(Failure::Nic)?;
            say(format_args!("{address} is {}", nic.mac()));
            nics.push(nic).map_err(|_| Failure::Many)
        })
    });
    match nics.as_mut_slice() {
        _ if !report.holds() => {}
        [a, b] => nics::between(&mut report, a, b),
        // A NIC alone has the other in another machine.
        [nic] => nics::across(&mut report, nic, &Peer::open(clock)),
        _ => {}
    }
    report.check(format_args!("close"), |_| {
        nics.into_iter().try_for_each(|nic| nic.close().map_err(Failure::Nic))
    });
    report.check(format_args!("memory"), |_| {
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
        say(format_args!("{address} {vendor:04x}:{device:04x} {header}"));
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
