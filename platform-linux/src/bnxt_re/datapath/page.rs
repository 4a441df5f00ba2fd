//! What a queue rings, and what it looks at before.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use directverbs::bnxt_re::attached;
use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::bnxt_re::pacing::{Pace, Pacing};
use directverbs::queue::Doorbell;

use crate::bnxt_re::{DoorbellPage, DoorbellRegion, PacingPages, TogglePage};

/// Where the doorbells of a queue go.
#[derive(Clone, Debug)]
pub(super) enum Registers {
    /// To the page that all queues of the context share.
    Shared(Arc<DoorbellPage>),
    /// To a region of its own.
    Own(Arc<DoorbellRegion>),
}

impl Registers {
    #[inline]
    fn page(&self) -> &DoorbellPage {
        match self {
            Self::Shared(page) => page,
            Self::Own(region) => region.page(),
        }
    }
}

/// The pages of a queue.
#[derive(Debug)]
pub(crate) struct QueuePage {
    registers: Registers,
    toggle: Option<TogglePage>,
    pacer: Option<Pacer>,
}

impl QueuePage {
    /// The pages of the queue with number `seed`, which makes it wait differently than others.
    pub(super) fn new(
        registers: Registers,
        toggle: Option<TogglePage>,
        pacing: Option<&Arc<PacingPages>>,
        seed: u32,
    ) -> Self {
        Self { registers, toggle, pacer: pacing.map(|pages| Pacer::new(pages, seed)) }
    }
}

impl Doorbell for QueuePage {
    #[inline]
    fn store(&self, register: usize, value: u64) {
        if let Some(pacer) = &self.pacer {
            pacer.pace();
        }
        self.registers.page().store(register, value);
    }
}

impl attached::Page for QueuePage {
    #[inline]
    fn toggle(&self) -> Toggle {
        self.toggle.as_ref().map_or(Toggle::ZERO, TogglePage::toggle)
    }
}

/// Holds doorbells back while the device's doorbell FIFO is full.
#[derive(Debug)]
struct Pacer {
    pages: Arc<PacingPages>,
    state: Cell<Pacing>,
}

impl Pacer {
    fn new(pages: &Arc<PacingPages>, seed: u32) -> Self {
        Self { pages: Arc::clone(pages), state: Cell::new(Pacing::new(pages.parameters(), seed)) }
    }

    /// Waits until there is room, if this doorbell is one of those that are paced.
    fn pace(&self) {
        let parameters = self.pages.parameters();
        let mut pacing = self.state.get();
        pacing.update(parameters);
        if pacing.wants_pacing() {
            let mut wait = pacing.wait();
            while let Pace::Wait { micros, notify } = wait.step(self.pages.register(&parameters)) {
                if notify {
                    // A driver that cannot be told finds out by itself, later.
                    let _ = self.pages.notify();
                }
                spin(Duration::from_micros(micros.into()));
            }
        }
        self.state.set(pacing);
    }
}

/// Waits without giving up the processor: a sleep would take far longer.
fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}
