//! Interrupt control: masks and credits.

use std::sync::Arc;

use directverbs::ionic::devcmd::registers::IntrCredits;

use super::INTERRUPTS;
use crate::bus::Bus;

/// Bytes of an interrupt's registers.
const STRIDE: usize = 32;
const WORDS: usize = STRIDE / 4;
const MASK: usize = 1;
const CREDITS: usize = 2;
const MASK_ASSERT: usize = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Interrupt {
    /// Registers as they were stored; the credits register reads as the events not taken.
    words: [u32; WORDS],
    /// Events not taken.
    events: u16,
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

    /// An event: raises the interrupt unless it is masked.
    pub fn event(&mut self, index: u16) {
        if let Some(intr) = self.all.get_mut(usize::from(index)) {
            intr.events = intr.events.saturating_add(1);
        }
        self.fire(index);
    }

    fn fire(&mut self, index: u16) {
        let Some(intr) = self.all.get_mut(usize::from(index)) else { return };
        if intr.words[MASK] & 1 == 0 && intr.events > 0 {
            intr.words[MASK] |= intr.words[MASK_ASSERT] & 1;
            self.bus.interrupt(index);
        }
    }

    /// The word at `offset` of interrupt control.
    pub fn read(&self, offset: usize) -> u32 {
        let Some(intr) = self.all.get(offset / STRIDE) else { return 0 };
        match offset % STRIDE / 4 {
            CREDITS => IntrCredits::new().with_count(intr.events).into_bits(),
            word => intr.words[word],
        }
    }

    /// The host stores the word at `offset`.
    pub fn write(&mut self, offset: usize, value: u32) {
        let index = (offset / STRIDE) as u16;
        let Some(intr) = self.all.get_mut(usize::from(index)) else { return };
        match offset % STRIDE / 4 {
            CREDITS => {
                let credits = IntrCredits::from_bits(value);
                intr.events = intr.events.saturating_sub(credits.count());
                if credits.unmask() {
                    intr.words[MASK] = 0;
                    self.fire(index);
                }
            }
            word => {
                intr.words[word] = value;
                if word == MASK {
                    self.fire(index);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::HostMemory;

    #[test]
    fn a_masked_interrupt_waits_and_one_that_masks_itself_comes_once() {
        let memory = HostMemory::new();
        let mut interrupts = Interrupts::new(memory.clone());
        interrupts.event(3);
        assert_eq!(memory.take_interrupts(), [0u16; 0]);
        interrupts.write(3 * 32 + 12, 1);
        interrupts.write(3 * 32 + 8, IntrCredits::new().with_unmask(true).into_bits());
        assert_eq!(memory.take_interrupts(), [3]);
        interrupts.event(3);
        assert_eq!((memory.take_interrupts().len(), interrupts.pending(3)), (0, 2));
        interrupts.write(3 * 32 + 8, IntrCredits::new().with_count(2).with_unmask(true).into_bits());
        assert_eq!((memory.take_interrupts().len(), interrupts.pending(3)), (0, 0));
        interrupts.event(3);
        assert_eq!((memory.take_interrupts(), interrupts.read(3 * 32 + 4)), (vec![3], 1));
        interrupts.event(INTERRUPTS);
        assert_eq!(interrupts.read(usize::from(INTERRUPTS) * 32), 0);
    }
}
