use core::sync::atomic::{AtomicU8, Ordering};

use directverbs::bnxt_re::attached::Page;
use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::queue::Doorbell;

use crate::registers::{DoorbellPage, Registers};

/// The doorbell page of a queue, and the toggle of its next arm.
#[derive(Debug)]
pub struct QueuePage<B> {
    page: DoorbellPage<B>,
    toggle: AtomicU8,
}

impl<B: Registers> QueuePage<B> {
    pub(super) const fn new(page: DoorbellPage<B>) -> Self {
        Self { page, toggle: AtomicU8::new(0) }
    }

    pub(super) fn set_toggle(&self, toggle: Toggle) {
        self.toggle.store(toggle.get(), Ordering::Relaxed);
    }
}

impl<B: Registers> Doorbell for QueuePage<B> {
    #[inline(always)]
    fn store(&self, register: usize, value: u64) {
        self.page.store(register, value);
    }

    #[inline(always)]
    fn wc_start(&self) {
        self.page.wc_start();
    }

    #[inline(always)]
    fn wc_flush(&self) {
        self.page.wc_flush();
    }
}

impl<B: Registers> Page for QueuePage<B> {
    fn toggle(&self) -> Toggle {
        Toggle::truncated(self.toggle.load(Ordering::Relaxed).into())
    }
}
