//! Doorbell registers and controller memory that log what is stored to them.

use std::cell::RefCell;
use std::rc::Rc;

use directverbs::queue::{DeviceMemory, Doorbell};

use crate::case::{Access, Pages};

/// Accesses to a device, in order; clones share it.
#[derive(Clone, Default)]
pub(super) struct Log(Rc<RefCell<Vec<Access>>>);

impl Log {
    /// Takes what happened so far.
    pub fn take(&self) -> Vec<Access> {
        self.0.take()
    }
}

/// Kind of page of the doorbell registers in [`Access::Store`].
pub(super) const DOORBELL: &str = "doorbell";

impl Doorbell for Log {
    fn store(&self, register: usize, value: u64) {
        self.0.borrow_mut().push(Access::Store { page: DOORBELL, offset: register * 8, value });
    }
}

/// A queue in controller memory, whose stores are logged.
pub(super) struct Controller {
    /// Name in the log.
    pub name: &'static str,
    /// What was stored.
    pub pages: Rc<Pages>,
    /// Where stores are logged; `None` if they are not.
    pub log: Option<Log>,
}

impl DeviceMemory for Controller {
    fn store_16(&self, _: usize, _: &[u8; 16]) {
        unreachable!("ionic stores blocks of 64 bytes");
    }

    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        self.pages.write(offset, block);
        if let Some(log) = &self.log {
            log.0.borrow_mut().extend(words(self.name, offset, block));
        }
    }
}

/// A store of many bytes, as stores of 8: how wide the stores to controller memory are depends on the processor.
pub(super) fn words(page: &'static str, offset: usize, bytes: &[u8]) -> impl Iterator<Item = Access> {
    bytes.as_chunks::<8>().0.iter().enumerate().map(move |(i, word)| Access::Store {
        page,
        offset: offset + i * 8,
        value: u64::from_le_bytes(*word),
    })
}
