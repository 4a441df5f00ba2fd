use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fault::AccessFaults;
use super::msix::{Msix, MsixOwner};
use crate::bus::{Bus, BusError};

/// The way of a function to its host: DMA and interrupts pass while the host has given bus mastering. What does not is
/// counted.
pub struct Gate {
    host: Arc<dyn Bus>,
    faults: AccessFaults,
    master: AtomicBool,
    violations: AtomicU64,
    notified: AtomicBool,
    msix: Mutex<Option<Msix>>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate")
            .field("master", &self.master)
            .field("violations", &self.violations)
            .finish_non_exhaustive()
    }
}

impl Gate {
    pub(super) fn new(host: Arc<dyn Bus>, faults: AccessFaults) -> Self {
        Self {
            host,
            faults,
            master: AtomicBool::new(false),
            violations: AtomicU64::new(0),
            notified: AtomicBool::new(false),
            msix: Mutex::new(None),
        }
    }

    /// DMA accesses so far that went to memory which the host does not share, or came while it had not given bus mastering.
    /// Those of a function that was pulled out do not count.
    pub fn violations(&self) -> u64 {
        self.violations.load(Ordering::Acquire)
    }

    /// Says who holds the MSI-X table.
    pub fn set_msix_owner(&self, owner: MsixOwner) {
        if let Some(msix) = self.msix().as_mut() {
            msix.set_owner(owner);
        }
    }

    pub(super) fn msix(&self) -> MutexGuard<'_, Option<Msix>> {
        self.msix.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_master(&self, given: bool) {
        self.master.store(given, Ordering::Release);
    }

    pub(super) fn fire(&self, vectors: Vec<u16>) {
        vectors.into_iter().for_each(|vector| self.host.interrupt(vector));
    }

    /// Whether the NIC has said since the last call that notifications wait.
    pub(super) fn take_notified(&self) -> bool {
        self.notified.swap(false, Ordering::AcqRel)
    }

    fn pass<T>(
        &self,
        addr: u64,
        len: usize,
        access: impl FnOnce(&dyn Bus) -> Result<T, BusError>,
    ) -> Result<T, BusError> {
        if self.faults.is_removed() {
            return Err(BusError { addr, len });
        }
        let passed = if self.master.load(Ordering::Acquire) {
            access(&*self.host)
        } else {
            Err(BusError { addr, len })
        };
        if passed.is_err() {
            self.violations.fetch_add(1, Ordering::AcqRel);
        }
        passed
    }
}

impl Bus for Gate {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), BusError> {
        self.pass(addr, out.len(), |host| host.read(addr, out))
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.pass(addr, bytes.len(), |host| host.write(addr, bytes))
    }

    fn publish(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.pass(addr, bytes.len(), |host| host.publish(addr, bytes))
    }

    fn interrupt(&self, vector: u16) {
        let fires = self.msix().as_mut().is_some_and(|msix| msix.raise(vector));
        if fires && self.master.load(Ordering::Acquire) && !self.faults.is_removed() {
            self.host.interrupt(vector);
        }
    }

    fn notified(&self) {
        self.notified.store(true, Ordering::Release);
        self.host.notified();
    }
}
