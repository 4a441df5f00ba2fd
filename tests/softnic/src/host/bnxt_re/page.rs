use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use directverbs::bnxt_re::attached;
use directverbs::bnxt_re::doorbell::{DbType, DbWord, Toggle};
use directverbs::queue::{DeviceMemory, Doorbell};

use crate::bnxt_re::BnxtRe;
use crate::fabric::NicHandle;

/// The doorbell page of a process. Clones share it.
///
/// A bus loses no stores, but the chip's doorbell FIFO does when it overruns. The chip then raises an event, and the
/// driver stores the last doorbell of each object again; those that had arrived say nothing new. The fault plan's lost
/// doorbells are that overrun, and [`super::BnxtReDevice`] stores them again with its next step.
#[derive(Clone, Debug)]
pub struct Page {
    nic: NicHandle<BnxtRe>,
    number: u32,
    lost: Arc<Mutex<BTreeMap<Slot, u64>>>,
}

/// Doorbells that replace one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    kind: u8,
    xid: u32,
}

impl Slot {
    fn of(word: DbWord) -> Self {
        // A plain consumer doorbell says no more than an arming one.
        let kind = match word.db_type() {
            DbType::CQ_ARMSE | DbType::CQ_ARMALL => DbType::CQ,
            other => other,
        };
        Self { kind: kind.code(), xid: word.xid().get() }
    }
}

impl Page {
    pub(super) fn new(nic: NicHandle<BnxtRe>, number: u32) -> Self {
        Self { nic, number, lost: Arc::default() }
    }

    /// Stores the doorbells that were lost once more; `true` if there were any.
    pub(super) fn replay(&self) -> bool {
        let lost = std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner));
        for value in lost.values() {
            self.store(0, *value);
        }
        !lost.is_empty()
    }
}

impl Doorbell for Page {
    fn store(&self, register: usize, value: u64) {
        let arrived = self.nic.lock().doorbell(self.number, register, value);
        let slot = Slot::of(DbWord::from_u64(value));
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if register == 0 && !arrived {
            lost.insert(slot, value);
        } else {
            lost.remove(&slot);
        }
    }
}

/// The word that the kernel driver shares with a process for each completion queue and shared receive queue: the toggle
/// for the next arm.
#[derive(Clone, Debug, Default)]
pub(super) struct TogglePage(Arc<AtomicU32>);

impl TogglePage {
    pub fn set(&self, toggle: u8) {
        self.0.store(toggle.into(), Ordering::Release);
    }

    pub fn get(&self) -> Toggle {
        Toggle::truncated(self.0.load(Ordering::Acquire))
    }
}

/// The pages of a queue.
#[derive(Clone, Debug)]
pub struct Pages {
    pub(super) doorbell: Page,
    pub(super) toggle: TogglePage,
}

impl Doorbell for Pages {
    fn store(&self, register: usize, value: u64) {
        self.doorbell.store(register, value);
    }
}

impl attached::Page for Pages {
    fn toggle(&self) -> Toggle {
        self.toggle.get()
    }
}

/// A push page: write-combining memory of the device.
#[derive(Clone, Debug)]
pub struct PushMemory {
    nic: NicHandle<BnxtRe>,
    base: u64,
}

impl PushMemory {
    /// The push page at `base` of the device's memory.
    pub const fn new(nic: NicHandle<BnxtRe>, base: u64) -> Self {
        Self { nic, base }
    }
}

impl DeviceMemory for PushMemory {
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        self.nic.lock().device_store(self.base + offset as u64, block);
    }

    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        self.nic.lock().device_store(self.base + offset as u64, block);
    }
}
