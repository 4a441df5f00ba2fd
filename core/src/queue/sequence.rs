//! Arithmetic of sequence numbers that wrap, and the reservation of ring entries by several posters.

use core::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire};

/// Whether `a` comes before `b`, both numbers of `BITS` bits that wrap and are less than half their range apart.
#[inline(always)]
pub const fn is_before<const BITS: u32>(a: u32, b: u32) -> bool {
    const { assert!(BITS >= 1 && BITS <= 32) };
    a.wrapping_sub(b) & (1 << (BITS - 1)) != 0
}

/// Hands out entries of one ring to several posters, never one whose last use has not completed.
///
/// Positions count from the queue's creation and wrap at 2^32.
#[derive(Debug, Default)]
pub struct Reservations {
    prod: AtomicU32,
}

impl Reservations {
    /// Reservations of a fresh queue.
    pub const fn new() -> Self {
        Self { prod: AtomicU32::new(0) }
    }

    /// Reserves `n` entries that follow each other and returns the position of the first, or `None` if they are not
    /// free: everything before `completed` has completed, and `mask` entries may be in use at once.
    pub fn reserve(&self, n: u32, completed: u32, mask: u32) -> Option<u32> {
        let reserved = self.prod.fetch_update(AcqRel, Acquire, |prod| {
            let used = prod.wrapping_sub(completed);
            (used <= mask && n <= mask - used).then(|| prod.wrapping_add(n))
        });
        reserved.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert!(is_before::<24>(0xff_fffe, 2));
        assert!(!is_before::<24>(2, 0xff_fffe));
        assert!(is_before::<16>(0xffff, 0) && !is_before::<16>(0, 0xffff));
        assert!(is_before::<32>(u32::MAX, 0) && !is_before::<32>(7, 7));
    }

    #[test]
    fn entries_in_use_are_not_handed_out() {
        let ring = Reservations::new();
        assert_eq!(ring.reserve(5, 0, 7), Some(0));
        assert_eq!(ring.reserve(3, 0, 7), None);
        assert_eq!(ring.reserve(2, 0, 7), Some(5));
        assert_eq!(ring.reserve(4, 4, 7), Some(7));
        assert_eq!(ring.reserve(u32::MAX, 11, 7), None);
    }
}
