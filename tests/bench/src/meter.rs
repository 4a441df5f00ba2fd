//! What is put around the calls that are measured.

use crate::valgrind;

/// Measures calls. `call` is around each call of the library; `window` around the calls of all lanes, one after the
/// other.
pub trait Meter {
    /// One call of the library.
    fn call<R>(&self, f: impl FnOnce() -> R) -> R;

    /// Calls one after the other.
    fn window(&mut self, f: impl FnOnce(&Self));
}

/// Measures nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Meter for Nothing {
    #[inline(always)]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    fn window(&mut self, f: impl FnOnce(&Self)) {
        f(self);
    }
}

/// Lets callgrind count the instructions of each call, and no others.
#[derive(Clone, Copy, Debug)]
pub struct Counter;

impl Meter for Counter {
    #[inline(always)]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        valgrind::toggle_collect();
        let result = f();
        valgrind::toggle_collect();
        result
    }

    #[inline(always)]
    fn window(&mut self, f: impl FnOnce(&Self)) {
        f(self);
    }
}

/// Reads the processor's time stamp before and after a window.
#[derive(Clone, Debug, Default)]
pub struct Timer {
    /// Ticks of each window.
    pub windows: Vec<u64>,
}

impl Timer {
    /// Mean of the quickest windows, one of `of`: neither an interrupt nor the coarse steps of the counter shows in it. 0 if
    /// there was no window.
    pub fn quickest(&mut self, of: usize) -> f64 {
        self.windows.sort_unstable();
        let quickest = &self.windows[..self.windows.len().div_ceil(of)];
        quickest.iter().sum::<u64>() as f64 / quickest.len().max(1) as f64
    }
}

impl Meter for Timer {
    #[inline(always)]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    fn window(&mut self, f: impl FnOnce(&Self)) {
        let begin = ticks();
        f(self);
        let end = ticks();
        self.windows.push(end.wrapping_sub(begin));
    }
}

/// The time stamp counter, read when all earlier instructions have been carried out and before any later one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has these instructions; neither touches memory.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// The virtual counter, read when all earlier instructions have been carried out and before any later one.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn ticks() -> u64 {
    let now: u64;
    // SAFETY: reads a register that Linux lets user space read.
    unsafe { std::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) now) };
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_which_something_else_ran_does_not_count() {
        let mut timer = Timer { windows: vec![100, 90, 1_000_000, 95, 110] };
        assert_eq!(timer.quickest(2), 95.0);
        assert_eq!(Timer::default().quickest(2), 0.0);
    }

    #[test]
    fn a_window_of_more_work_takes_more_ticks() {
        let mut timer = Timer::default();
        for work in [10u64, 100_000] {
            timer.window(|_| {
                for i in 0..work {
                    std::hint::black_box(i);
                }
            });
        }
        assert!(timer.windows[1] > timer.windows[0], "{:?}", timer.windows);
    }
}
