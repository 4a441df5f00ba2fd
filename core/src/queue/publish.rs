use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Publishes producer positions of several posters through one doorbell, in order.
///
/// Posters on several cores that each store their own index may store them out of order, and the index of the device
/// goes back. Here each one reports the position it has reached, counted from the queue's creation without wrapping,
/// and whoever gets to the doorbell stores only the largest. Two stores never run at the same time, and no poster
/// waits for another.
#[derive(Debug, Default)]
pub struct Publisher {
    reached: AtomicU64,
    ringing: AtomicBool,
    rung: AtomicU64,
}

impl Publisher {
    /// A publisher of a fresh queue.
    pub const fn new() -> Self {
        Self { reached: AtomicU64::new(0), ringing: AtomicBool::new(false), rung: AtomicU64::new(0) }
    }

    /// Reports that everything before `position` is written, and calls `ring` with the largest position reported, if
    /// no other poster is about to. `ring` is never called with a position that is not larger than all before.
    pub fn publish(&self, position: u64, mut ring: impl FnMut(u64)) {
        self.reached.fetch_max(position, SeqCst);
        while self.rung.load(SeqCst) < self.reached.load(SeqCst) {
            if self.ringing.swap(true, SeqCst) {
                // The poster at the doorbell looks again after its store, and finds this position.
                return;
            }
            let target = self.reached.load(SeqCst);
            if target > self.rung.load(SeqCst) {
                ring(target);
                self.rung.store(target, SeqCst);
            }
            self.ringing.store(false, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::vec::Vec;

    #[test]
    fn only_larger_positions_are_stored() {
        let publisher = Publisher::new();
        let mut stored = Vec::new();
        for position in [3, 2, 5, 5, 4] {
            publisher.publish(position, |p| stored.push(p));
        }
        assert_eq!(stored, [3, 5]);
    }

    #[test]
    fn posters_on_several_cores_never_go_back() {
        let (publisher, stored) = (Publisher::new(), Mutex::new(Vec::new()));
        std::thread::scope(|s| {
            for first in 1..=4u64 {
                let (publisher, stored) = (&publisher, &stored);
                s.spawn(move || {
                    for i in 0..500 {
                        publisher.publish(first + 4 * i, |p| stored.lock().unwrap().push(p));
                    }
                });
            }
        });
        let stored = stored.into_inner().unwrap();
        assert!(stored.is_sorted_by(|a, b| a < b));
        assert_eq!(stored.last(), Some(&2000));
    }
}
