//! The clock page: device ticks to nanoseconds.
//!
//! Completions carry the device's clock. A page that the kernel writes, and the process maps read-only, tells what one
//! moment of that clock was in nanoseconds and how fast it runs. Source: kernel `ib_user_verbs.h`.

use zerocopy::little_endian as le;

use crate::layout::layout;
use crate::queue::barrier;

layout! {
    /// The clock page.
    pub struct ClockInfo: "ionic" "ib_uverbs_clock_info", 56 {
        /// Odd while the page is being written; changes with every write.
        sign: le::U32 = 0,
        /// Reserved.
        resv: le::U32 = 4,
        /// Nanoseconds at `cycles`.
        nsec: le::U64 = 8,
        /// Device clock then.
        cycles: le::U64 = 16,
        /// Fraction of a nanosecond then, in units of 2^-`shift`.
        frac: le::U64 = 24,
        /// Nanoseconds of a tick, in units of 2^-`shift`.
        mult: le::U32 = 32,
        /// See `mult`.
        shift: le::U32 = 36,
        /// Bits that the device clock has.
        mask: le::U64 = 40,
        /// Nanoseconds after which the page is stale.
        overflow_period: le::U64 = 48,
    }
}

/// The page was being written each time it was looked at. Try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clock page is being written")]
pub struct ClockBusy;

/// A consistent copy of the clock page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    nsec: u64,
    cycles: u64,
    frac: u64,
    mult: u64,
    shift: u32,
    mask: u64,
}

impl Clock {
    /// Tries to copy the page this many times.
    pub const TRIES: usize = 10;

    /// Copies the page. `load` copies all of it, and every call anew: the word `sign` in one piece.
    ///
    /// # Errors
    /// It was being written each time.
    pub fn read(mut load: impl FnMut() -> ClockInfo) -> Result<Self, ClockBusy> {
        for _ in 0..Self::TRIES {
            let sign = load().sign.get();
            if sign & 1 != 0 {
                continue;
            }
            barrier::from_device();
            let info = load();
            barrier::from_device();
            if load().sign.get() == sign {
                return Ok(Self::from_info(&info));
            }
        }
        Err(ClockBusy)
    }

    /// The clock of a page that nobody writes.
    pub const fn from_info(info: &ClockInfo) -> Self {
        Self {
            nsec: info.nsec.get(),
            cycles: info.cycles.get(),
            frac: info.frac.get(),
            mult: info.mult.get() as u64,
            shift: info.shift.get(),
            mask: info.mask.get(),
        }
    }

    /// Nanoseconds at `ticks`, which may lie before or after the moment of the page by up to half the clock's range.
    pub const fn ns(&self, ticks: u64) -> u64 {
        let after = ticks.wrapping_sub(self.cycles) & self.mask;
        let sign = self.mask ^ (self.mask >> 1);
        if after & sign == 0 {
            let sum = after.wrapping_mul(self.mult).wrapping_add(self.frac);
            self.nsec.wrapping_add(self.scale(sum))
        } else {
            let before = after.wrapping_neg() & self.mask;
            let sum = before.wrapping_mul(self.mult).wrapping_sub(self.frac);
            self.nsec.wrapping_sub(self.scale(sum))
        }
    }

    const fn scale(&self, sum: u64) -> u64 {
        if self.shift < u64::BITS { sum >> self.shift } else { 0 }
    }

    /// Ticks of a millisecond, rounded; `None` if the page has no speed.
    pub const fn khz(&self) -> Option<u64> {
        if self.mult == 0 || self.shift >= 44 {
            return None;
        }
        Some(((1_000_000 << self.shift) + (self.mult >> 1)) / self.mult)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> ClockInfo {
        ClockInfo {
            sign: 4.into(),
            nsec: 1_000_000.into(),
            cycles: 0xffff_ffff_fff0.into(),
            frac: 3.into(),
            mult: 8.into(),
            shift: 2.into(),
            mask: 0xffff_ffff_ffff.into(),
            ..ClockInfo::ZERO
        }
    }

    #[test]
    fn ticks_before_and_after_the_page_are_told() {
        let clock = Clock::from_info(&info());
        assert_eq!(clock.ns(0xffff_ffff_fff0), 1_000_000);
        assert_eq!(clock.ns(0xffff_ffff_fff1), 1_000_002);
        assert_eq!(clock.ns(0x4), 1_000_040, "the clock wraps at its mask");
        assert_eq!(clock.ns(0xffff_ffff_ffee), 1_000_000 - 3);
        assert_eq!(clock.khz(), Some(500_000));
    }

    #[test]
    fn a_page_that_is_being_written_is_read_again() {
        let mut signs = [3, 4, 4, 6, 6, 6, 6].into_iter();
        let clock = Clock::read(|| ClockInfo { sign: signs.next().unwrap_or(6).into(), ..info() });
        assert_eq!(clock, Ok(Clock::from_info(&info())));
        assert_eq!(signs.next(), None, "one odd sign, one that changed, one that stayed");
        assert_eq!(Clock::read(|| ClockInfo { sign: 1.into(), ..info() }), Err(ClockBusy));
    }

    #[test]
    fn a_senseless_page_does_no_harm() {
        let bad = ClockInfo { shift: 64.into(), mult: 0.into(), mask: u64::MAX.into(), ..info() };
        let clock = Clock::from_info(&bad);
        assert_eq!((clock.ns(0), clock.khz()), (1_000_000, None));
    }
}
