//! The time stamp counter, measured with the interval timer.
//!
//! Source: Intel 8254 data sheet; Intel SDM volume 3, 19.17.

use core::arch::x86_64::_rdtsc;

use directverbs_bare::Clock;
use directverbs_bare::pci::{PortIo, Width};

use super::ports;

/// Counts of the timer in a second.
const TIMER_HZ: u64 = 1_193_182;
/// How long it counts: 20 ms.
const COUNTS: u64 = TIMER_HZ / 50;
const CHANNEL_2: u16 = 0x42;
const MODE: u16 = 0x43;
/// Bit 0 lets channel 2 count, bit 1 is the speaker, bit 5 says that it is done.
const CONTROL: u16 = 0x61;
const DONE: u32 = 1 << 5;
/// What is taken for its speed where there is no timer.
const USUAL_HZ: u64 = 2_000_000_000;
const PATIENCE: u32 = 10_000_000;

/// The counter: its speed, and where it was when it was measured, which is time 0.
#[derive(Clone, Copy, Debug)]
pub struct Tsc {
    hz: u64,
    zero: u64,
}

fn ticks() -> u64 {
    // SAFETY: every processor of this kind has the counter.
    unsafe { _rdtsc() }
}

impl Tsc {
    /// Measures how fast it counts.
    pub fn measured() -> Self {
        let zero = ticks();
        let (get, set) = (
            |port| ports().input(port, Width::Byte),
            |port, value| {
                ports().output(port, Width::Byte, value);
            },
        );
        set(CONTROL, get(CONTROL) & !3);
        set(MODE, 0b1011_0000); // channel 2, both bytes, one pass
        set(CHANNEL_2, (COUNTS & 0xff) as u32);
        set(CHANNEL_2, (COUNTS >> 8) as u32);
        set(CONTROL, get(CONTROL) | 1);
        let began = ticks();
        let done = (0..PATIENCE).any(|_| get(CONTROL) & DONE != 0);
        let hz = (ticks() - began) * TIMER_HZ / COUNTS;
        Self { hz: if done && hz > 0 { hz } else { USUAL_HZ }, zero }
    }
}

impl Clock for Tsc {
    fn now_ns(&self) -> u64 {
        (u128::from(ticks() - self.zero) * 1_000_000_000 / u128::from(self.hz)) as u64
    }

    fn relax(&self) {
        core::hint::spin_loop();
    }
}
