//! Time: a clock that the host gives, and waits that end.

use core::time::Duration;

/// A clock that never goes back, and how to wait for it.
pub trait Clock {
    /// Nanoseconds since some moment in the past.
    fn now_ns(&self) -> u64;

    /// Waits a moment between two looks at the device. Time goes on while it is called again and again: every wait of a
    /// driver ends only because it does.
    fn relax(&self);

    /// Waits for at least `time`.
    fn delay(&self, time: Duration) {
        let deadline = Deadline::after(self, time);
        while !deadline.is_over(self) {
            self.relax();
        }
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now_ns(&self) -> u64 {
        (**self).now_ns()
    }

    fn relax(&self) {
        (**self).relax();
    }
}

/// The device did not do what it was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing came in {} us", micros(*limit))]
pub struct Timeout {
    /// How long it was waited.
    pub limit: Duration,
}

/// A time as messages have it.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at_ns: u64,
    limit: Duration,
}

impl Deadline {
    /// The moment `limit` from now.
    pub fn after<C: Clock + ?Sized>(clock: &C, limit: Duration) -> Self {
        let ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Self { at_ns: clock.now_ns().saturating_add(ns), limit }
    }

    /// Whether it has come.
    pub fn is_over<C: Clock + ?Sized>(&self, clock: &C) -> bool {
        clock.now_ns() >= self.at_ns
    }

    /// The error that says that it has come.
    pub const fn timeout(&self) -> Timeout {
        Timeout { limit: self.limit }
    }

    /// Looks again and again until there is something. The last look is after the deadline, so that a processor that was
    /// away for long does not take what came in time for missing.
    ///
    /// # Errors
    /// Those of `look`, and [`Timeout`].
    pub fn wait<C, T, E>(self, clock: &C, mut look: impl FnMut() -> Result<Option<T>, E>) -> Result<T, E>
    where
        C: Clock + ?Sized,
        E: From<Timeout>,
    {
        loop {
            let over = self.is_over(clock);
            if let Some(found) = look()? {
                return Ok(found);
            }
            if over {
                return Err(self.timeout().into());
            }
            clock.relax();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[derive(Default)]
    struct Ticks(Cell<u64>);

    impl Clock for Ticks {
        fn now_ns(&self) -> u64 {
            self.0.get()
        }

        fn relax(&self) {
            self.0.set(self.0.get() + 10);
        }
    }

    #[test]
    fn a_wait_ends_with_what_came_or_with_the_deadline() {
        let clock = Ticks::default();
        let wait = |ns, comes_at: u64| {
            let look = || Ok::<_, Timeout>((clock.now_ns() >= comes_at).then_some(comes_at));
            Deadline::after(&clock, Duration::from_nanos(ns)).wait(&clock, look)
        };
        assert_eq!(wait(100, 50), Ok(50));
        assert_eq!(clock.now_ns(), 50);
        assert_eq!(wait(100, 1000), Err(Timeout { limit: Duration::from_nanos(100) }));
        assert_eq!(clock.now_ns(), 150);
    }

    #[test]
    fn the_last_look_is_after_the_deadline() {
        let clock = Ticks::default();
        let mut looks = 0;
        let late = Deadline::after(&clock, Duration::from_nanos(100)).wait(&clock, || {
            looks += 1;
            clock.0.set(1000);
            Ok::<_, Timeout>((looks == 2).then_some(looks))
        });
        assert_eq!(late, Ok(2));
    }

    #[test]
    fn a_deadline_that_never_comes_does_not_wrap() {
        let clock = Ticks(Cell::new(u64::MAX - 5));
        assert!(!Deadline::after(&clock, Duration::MAX).is_over(&clock));
    }

    #[test]
    fn a_delay_takes_its_time() {
        let clock = Ticks::default();
        clock.delay(Duration::from_nanos(95));
        assert_eq!(clock.now_ns(), 100);
    }
}
