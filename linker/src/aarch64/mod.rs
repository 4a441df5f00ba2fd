//! QEMU's machine `virt`, with `highmem=off`: registers of the bus are below 1 GiB.
//!
//! Source: QEMU's documentation of the machine, and the device tree that it makes.

mod boot;
mod clock;
mod serial;
mod traps;

use core::ops::Range;
use core::ptr::{NonNull, without_provenance_mut};

use directverbs_bare::identity::Mapped;
use directverbs_bare::mmio::Mmio;
use directverbs_bare::pci::{Ecam, Windows};

use clock::Counter;
pub use serial::Serial;

const PCI_REGISTERS: Range<u64> = 0x1000_0000..0x3eff_0000;
const ECAM: Range<usize> = 0x3f00_0000..0x4000_0000;

/// Registers of the machine.
fn registers(at: Range<usize>) -> Mmio {
    let base = NonNull::new(without_provenance_mut(at.start)).unwrap_or(NonNull::dangling());
    // SAFETY: the boot code has mapped the first GiB, where the machine has its registers, as such.
    unsafe { Mmio::new(base, at.end - at.start) }
}

/// What the image runs on.
pub struct Machine {
    clock: Counter,
    access: Ecam,
    mapped: Mapped,
}

impl Machine {
    fn new() -> Self {
        let windows = Windows { narrow: PCI_REGISTERS, wide: 0..0 };
        Self {
            clock: Counter::new(),
            access: Ecam::new(registers(ECAM)),
            mapped: Mapped { windows, distance: 0 },
        }
    }

    /// What it is called.
    pub const fn name(&self) -> &'static str {
        "aarch64"
    }

    /// The clock.
    pub const fn clock(&self) -> &Counter {
        &self.clock
    }

    /// The way to configuration space.
    pub const fn access(&self) -> &Ecam {
        &self.access
    }

    /// Where BARs can be reached.
    pub const fn mapped(&self) -> &Mapped {
        &self.mapped
    }

    /// Where BARs can be put.
    pub const fn free(&self) -> &Windows {
        &self.mapped.windows
    }
}

/// Ends the machine: by semihosting, which takes an exit status.
///
/// Source: Arm, Semihosting for AArch32 and AArch64, SYS_EXIT_EXTENDED.
pub fn exit(passed: bool) -> ! {
    const APPLICATION_EXIT: u64 = 0x2_0026;
    let block = [APPLICATION_EXIT, u64::from(!passed)];
    // SAFETY: QEMU reads the block and ends, or, if it does not know the call, an exception ends the program.
    unsafe { core::arch::asm!("hlt #0xf000", in("x0") 0x20, in("x1") block.as_ptr(), options(nostack)) };
    halt()
}

/// Stops the processor.
fn halt() -> ! {
    loop {
        // SAFETY: interrupts are off, so the processor stops here.
        unsafe { core::arch::asm!("wfi") };
    }
}

/// Where the boot code goes on.
extern "C" fn start() -> ! {
    Serial::CONSOLE.open();
    exit(crate::run::run(&Machine::new()))
}
