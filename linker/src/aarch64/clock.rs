//! The generic timer's counter.
//!
//! Source: Arm Architecture Reference Manual, D12.

use core::arch::asm;

use directverbs_bare::Clock;

/// What is taken for its speed where no firmware has set it.
const USUAL_HZ: u64 = 62_500_000;

/// The counter: its speed, and where it was when it was made, which is time 0.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    hz: u64,
    zero: u64,
}

fn ticks() -> u64 {
    let count: u64;
    // SAFETY: reads a register.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack)) };
    count
}

impl Counter {
    /// Asks how fast it counts.
    pub fn new() -> Self {
        let hz: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
        Self { hz: if hz == 0 { USUAL_HZ } else { hz }, zero: ticks() }
    }
}

impl Clock for Counter {
    fn now_ns(&self) -> u64 {
        (u128::from(ticks() - self.zero) * 1_000_000_000 / u128::from(self.hz)) as u64
    }

    fn relax(&self) {
        core::hint::spin_loop();
    }
}
