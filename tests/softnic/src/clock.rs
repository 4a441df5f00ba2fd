//! Time of a fabric: virtual, moved by its steps, or real.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A clock in nanoseconds that never goes back. Clones share it.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Virtual(Arc<AtomicU64>),
    Real(Instant),
}

impl Clock {
    /// Time that stands still until it is moved.
    pub fn simulated() -> Self {
        Self(Source::Virtual(Arc::new(AtomicU64::new(0))))
    }

    /// Time that passes by itself, from now on.
    pub fn real() -> Self {
        Self(Source::Real(Instant::now()))
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Source::Virtual(now) => now.load(Ordering::Acquire),
            Source::Real(start) => u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Moves virtual time on to `to_ns`, if that is later; real time passes by itself.
    pub fn advance_to(&self, to_ns: u64) {
        if let Source::Virtual(now) = &self.0 {
            now.fetch_max(to_ns, Ordering::AcqRel);
        }
    }
}
