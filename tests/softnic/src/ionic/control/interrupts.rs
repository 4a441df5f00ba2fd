//! Interrupt control: masks, credits, and the timer that holds interrupts back.

use std::sync::Arc;

use directverbs::ionic::devcmd::registers::IntrCredits;

use super::INTERRUPTS;
use crate::bus::Bus;

/// Bytes of an interrupt's registers.
const STRIDE: usize = 32;
const WORDS: usize = STRIDE / 4;
const COAL_INIT: usize = 0;
const MASK: usize = 1;
const CREDITS: usize = 2;
const MASK_ASSERT: usize = 3;
const COAL: usize = 4;
/// A unit of the timer.
pub(super) const COAL_UNIT_NS: u64 = 1000;

#[derive(Clone, Copy, Debug, Default)]
struct Interrupt {
    /// Registers as they were stored; the credits register reads as the events not taken.
    words: [u32; WORDS],
    /// Events not taken.
    events: u16,
    /// No interrupt before this time.
    held_until: u64,
    /// An event waits for that time.
    waits: bool,
}

/// The interrupts of the device.
pub(super) struct Interrupts {
    bus: Arc<dyn Bus>,
    all: Vec<Interrupt>,
}

impl Interrupts {
    /// All are masked.
    pub fn new(bus: Arc<dyn Bus>) -> Self {
        let mut new = Self { bus, all: Vec::new() };
        new.reset();
        new
    }

    pub fn reset(&mut self) {
        let mut masked = Interrupt::default();
        masked.words[MASK] = 1;
        self.all = vec![masked; INTERRUPTS.into()];
    }

    /// Events of interrupt `index` that the host has not taken.
    pub fn pending(&self, index: u16) -> u16 {
        self.all.get(usize::from(index)).map_or(0, |intr| intr.events)
    }

    /// An event at `now`: raises the interrupt unless it is masked or held back.
    pub fn event(&mut self, index: u16, now: u64) {
        if let Some(intr) = self.all.get_mut(usize::from(index)) {
            intr.events = intr.events.saturating_add(1);
        }
        self.fire(index, now);
    }

    /// Raises what was held back until `now`; `true` if there was any.
    pub fn service(&mut self, now: u64) -> bool {
        let due = |intr: &Interrupt| intr.waits && intr.held_until <= now;
        let due: Vec<u16> =
            (0..INTERRUPTS).filter(|i| self.all.get(usize::from(*i)).is_some_and(due)).collect();
        due.iter().for_each(|index| self.fire(*index, now));
        !due.is_empty()
    }

    fn fire(&mut self, index: u16, now: u64) {
        let Some(intr) = self.all.get_mut(usize::from(index)) else { return };
        intr.waits = false;
        if intr.words[MASK] & 1 != 0 || intr.events == 0 {
            return;
        }
        if intr.held_until > now {
            intr.waits = true;
            return;
        }
        intr.words[MASK] |= intr.words[MASK_ASSERT] & 1;
        self.bus.interrupt(index);
    }

    /// The word at `offset` of interrupt control.
    pub fn read(&self, offset: usize, now: u64) -> u32 {
        let Some(intr) = self.all.get(offset / STRIDE) else { return 0 };
        match offset % STRIDE / 4 {
            CREDITS => IntrCredits::new().with_count(intr.events).into_bits(),
            COAL => intr.held_until.saturating_sub(now).div_ceil(COAL_UNIT_NS) as u32,
            word => intr.words[word],
        }
    }

    /// The host stores the word at `offset`.
    pub fn write(&mut self, offset: usize, value: u32, now: u64) {
        let index = (offset / STRIDE) as u16;
        let Some(intr) = self.all.get_mut(usize::from(index)) else { return };
        match offset % STRIDE / 4 {
            CREDITS => {
                let credits = IntrCredits::from_bits(value);
                intr.events = intr.events.saturating_sub(credits.count());
                if credits.reset_coalesce() {
                    intr.held_until = now + u64::from(intr.words[COAL_INIT]) * COAL_UNIT_NS;
                }
                if credits.unmask() {
                    intr.words[MASK] = 0;
                    self.fire(index, now);
                }
            }
            COAL => {
                intr.held_until = now + u64::from(value) * COAL_UNIT_NS;
                self.fire(index, now);
            }
            word => {
                intr.words[word] = value;
                if word == MASK {
                    self.fire(index, now);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::HostMemory;

    fn unmask(count: u16) -> u32 {
        IntrCredits::new().with_count(count).with_unmask(true).into_bits()
    }

    #[test]
    fn a_masked_interrupt_waits_and_one_that_masks_itself_comes_once() {
        let memory = HostMemory::new();
        let mut interrupts = Interrupts::new(memory.clone());
        interrupts.event(3, 0);
        assert_eq!(memory.take_interrupts(), [0u16; 0]);
        interrupts.write(3 * 32 + 12, 1, 0);
        interrupts.write(3 * 32 + 8, unmask(0), 0);
        assert_eq!(memory.take_interrupts(), [3]);
        interrupts.event(3, 0);
        assert_eq!((memory.take_interrupts().len(), interrupts.pending(3)), (0, 2));
        interrupts.write(3 * 32 + 8, unmask(2), 0);
        assert_eq!((memory.take_interrupts().len(), interrupts.pending(3)), (0, 0));
        interrupts.event(3, 0);
        assert_eq!((memory.take_interrupts(), interrupts.read(3 * 32 + 4, 0)), (vec![3], 1));
        interrupts.event(INTERRUPTS, 0);
        assert_eq!(interrupts.read(usize::from(INTERRUPTS) * 32, 0), 0);
    }

    #[test]
    fn the_timer_holds_an_interrupt_back() {
        let memory = HostMemory::new();
        let mut interrupts = Interrupts::new(memory.clone());
        interrupts.write(0, 5, 0);
        let again = IntrCredits::new().with_unmask(true).with_reset_coalesce(true).into_bits();
        interrupts.write(8, again, 100);
        interrupts.event(0, 200);
        assert_eq!((memory.take_interrupts().len(), interrupts.read(16, 200)), (0, 5));
        assert!(!interrupts.service(5099) && interrupts.service(5100));
        assert_eq!((memory.take_interrupts(), interrupts.read(16, 5100)), (vec![0], 0));
        assert!(!interrupts.service(6000));
    }
}
