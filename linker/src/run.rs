//! What the image does once it runs.

use core::fmt;

use directverbs_bare::identity::Identity;
use directverbs_bare::pci::assign::AssignError;
use directverbs_bare::pci::bar::{self, BarError};
use directverbs_bare::pci::{self, Config, Header, Step, WalkError};

use crate::arch::Machine;
use crate::console::say;
use crate::copier;
use crate::memory;
use crate::report::Report;

/// Tries everything that is there. `true` if all held.
pub fn run(machine: &Machine) -> bool {
    // SAFETY: nobody else calls it.
    let memory = unsafe { memory::pool() };
    let mut report = Report::default();
    say(format_args!("unikernel: {}, {} KiB for DMA", machine.name(), memory.free().0 >> 10));
    report.check(machine.clock(), format_args!("pci"), || list(machine));
    let walked = pci::walk(machine.access(), |step| {
        let Step::Function(function, Header::Endpoint) = step else { return Ok(()) };
        if function.id() == Some(copier::ID) {
            let name = format_args!("copy-{}", function.address());
            report.check(machine.clock(), name, || {
                // SAFETY: the bus is mapped as the machine says; each function is given to one driver.
                let host = unsafe { Identity::new(function, machine.clock(), &memory, machine.mapped()) };
                copier::copy(&host.map_err(Failure::Bar)?).map_err(Failure::Copy)
            });
        }
        Ok::<_, WalkError>(())
    });
    report.check(machine.clock(), format_args!("memory"), || {
        let lost = memory.abandoned();
        if lost == 0 { Ok(()) } else { Err(Failure::Lost(lost)) }
    });
    if let Err(error) = walked {
        say(format_args!("unikernel: {error}"));
    }
    report.end() && walked.is_ok()
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
    Bar(BarError),
    Copy(copier::Error),
    Lost(usize),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bar(error) => error.fmt(f),
            Self::Copy(error) => error.fmt(f),
            Self::Lost(bytes) => write!(f, "{bytes} bytes for DMA were given up and not taken back"),
        }
    }
}
