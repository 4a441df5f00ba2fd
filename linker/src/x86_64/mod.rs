//! A PC: booted by PVH, a serial port, ports for PCI.

mod boot;
mod clock;
mod serial;
mod traps;

use directverbs_bare::identity::Mapped;
use directverbs_bare::pci::{Instructions, PortIo, Ports, Width, Windows};

use clock::Tsc;
pub use serial::Serial;

const GIB: u64 = 1 << 30;
/// Where QEMU's `isa-debug-exit` takes the exit status, if it is there: a value `v` becomes status `2 v + 1`.
const EXIT: u16 = 0xf4;
const PASSED: u32 = 16;
const FAILED: u32 = 17;

/// Addresses for BARs where no firmware gave any: free on every PC with less than 3 GiB of memory.
const FREE_BELOW: core::ops::Range<u64> = 0xc000_0000..0xe000_0000;
/// Where BARs may be below 4 GiB, when firmware gave them addresses. Above are the interrupt controllers.
const BELOW: core::ops::Range<u64> = 2 * GIB..0xfec0_0000;

/// The processor's ports.
fn ports() -> Instructions {
    // SAFETY: the program runs in ring 0, and each port has one user.
    unsafe { Instructions::new() }
}

/// What the image runs on.
pub struct Machine {
    clock: Tsc,
    access: Ports<Instructions>,
    mapped: Mapped,
    free: Windows,
}

impl Machine {
    fn new(clock: Tsc) -> Self {
        let above = 4 * GIB..boot::mapped_gib() * GIB;
        Self {
            clock,
            access: Ports::new(ports()),
            mapped: Mapped { windows: Windows { narrow: BELOW, wide: above.clone() }, distance: 0 },
            // The upper half of what is mapped, far from memory above 4 GiB.
            free: Windows { narrow: FREE_BELOW, wide: above.end / 2..above.end },
        }
    }

    /// What it is called.
    pub const fn name(&self) -> &'static str {
        "x86_64"
    }

    /// The clock.
    pub const fn clock(&self) -> &Tsc {
        &self.clock
    }

    /// The way to configuration space.
    pub const fn access(&self) -> &Ports<Instructions> {
        &self.access
    }

    /// Where BARs can be reached.
    pub const fn mapped(&self) -> &Mapped {
        &self.mapped
    }

    /// Where BARs can be put.
    pub const fn free(&self) -> &Windows {
        &self.free
    }
}

/// Ends the machine.
pub fn exit(passed: bool) -> ! {
    ports().output(EXIT, Width::Dword, if passed { PASSED } else { FAILED });
    loop {
        // SAFETY: interrupts are off, so the processor stops here.
        unsafe { core::arch::asm!("hlt") };
    }
}

/// Where the boot code goes on.
extern "C" fn start() -> ! {
    let clock = Tsc::measured();
    Serial::CONSOLE.open();
    traps::install();
    exit(crate::run::run(&Machine::new(clock)))
}
