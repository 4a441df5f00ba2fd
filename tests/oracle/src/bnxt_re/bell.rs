//! Our side of the device's registers: what the core stores, in order, as the log of the made-up device has it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use directverbs::bnxt_re::attached::Page;
use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::bnxt_re::pacing::{Pace, Pacing, PacingParameters};
use directverbs::queue::{DeviceMemory, Doorbell};

use crate::case::Access;

/// Name of the doorbell page.
pub const DOORBELL: &str = "doorbell";
/// Name of the push page.
pub const PUSH: &str = "push";
/// A call that tells the driver that the FIFO is full.
pub const NOTIFY: &str = "notify";

/// Accesses of all objects of a side, in order.
pub type Log = Rc<RefCell<Vec<Access>>>;

/// The doorbell FIFO: full until the driver was notified so often.
#[derive(Debug)]
pub struct Fifo {
    parameters: PacingParameters,
    /// Notifications until it has room again.
    pub left: Cell<u32>,
}

/// What the register holds when the FIFO is full and when it is empty.
pub const fn fifo_register(parameters: &PacingParameters, full: bool) -> u32 {
    if full { 0 } else { parameters.fifo_max_depth << parameters.fifo_room_shift }
}

impl Fifo {
    /// An empty FIFO.
    pub const fn new(parameters: PacingParameters) -> Self {
        Self { parameters, left: Cell::new(0) }
    }

    fn register(&self) -> u32 {
        fifo_register(&self.parameters, self.left.get() != 0)
    }

    fn notified(&self) {
        self.left.set(self.left.get().saturating_sub(1));
    }
}

/// The doorbell page as one object sees it. It paces itself, if the device wants doorbells paced.
#[derive(Debug)]
pub struct Bell {
    log: Log,
    /// What the object's toggle page holds.
    pub toggle: Rc<Cell<u32>>,
    pacing: Option<(RefCell<Pacing>, Rc<Fifo>)>,
}

impl Bell {
    /// The page as the object with number `id` sees it.
    pub fn new(log: &Log, id: u32, fifo: Option<&Rc<Fifo>>) -> Self {
        let pacing = fifo.map(|fifo| (RefCell::new(Pacing::new(fifo.parameters, id)), Rc::clone(fifo)));
        Self { log: Rc::clone(log), toggle: Rc::default(), pacing }
    }

    fn pace(&self) {
        let Some((pacing, fifo)) = &self.pacing else { return };
        let mut pacing = pacing.borrow_mut();
        if !pacing.wants_pacing() {
            return;
        }
        let mut wait = pacing.wait();
        while let Pace::Wait { notify, .. } = wait.step(fifo.register()) {
            if notify {
                self.log.borrow_mut().push(Access::Call(NOTIFY));
                fifo.notified();
            }
        }
    }
}

impl Doorbell for Bell {
    fn store(&self, register: usize, value: u64) {
        self.pace();
        self.log.borrow_mut().push(Access::Store { page: DOORBELL, offset: register * 8, value });
    }
}

impl Page for Bell {
    fn toggle(&self) -> Toggle {
        Toggle::truncated(self.toggle.get())
    }
}

/// The push page.
#[derive(Debug)]
pub struct PushMemory(pub Log);

impl PushMemory {
    fn store(&self, offset: usize, bytes: &[u8]) {
        for (at, word) in (offset..).step_by(8).zip(bytes.as_chunks::<8>().0) {
            let value = u64::from_le_bytes(*word);
            self.0.borrow_mut().push(Access::Store { page: PUSH, offset: at, value });
        }
    }
}

impl DeviceMemory for PushMemory {
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        self.store(offset, block);
    }

    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        self.store(offset, block);
    }
}
