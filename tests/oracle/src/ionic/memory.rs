//! Plain memory in place of rings and controller memory.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;

use directverbs::queue::{DeviceMemory, Doorbell, RingMemory};

use crate::case::Access;

#[repr(C, align(4096))]
#[derive(Clone)]
struct Page([u8; 4096]);

/// Page-aligned memory that a queue and its device share.
pub(super) struct Pages {
    base: NonNull<u8>,
    len: usize,
    _owner: Box<[Page]>,
}

impl Pages {
    /// At least `bytes` bytes of `0xa5`.
    pub fn new(bytes: usize) -> Self {
        let mut owner = vec![Page([0xa5; 4096]); bytes.div_ceil(4096).max(1)].into_boxed_slice();
        let base = NonNull::from(&mut *owner).cast();
        Self { base, len: owner.len() * 4096, _owner: owner }
    }

    /// The memory as a ring.
    ///
    /// # Safety
    /// The pages outlive the ring, and there is one ring at a time.
    pub unsafe fn ring(&self) -> RingMemory<'static> {
        // SAFETY: the box owns so many bytes; nobody else makes references to them.
        unsafe { RingMemory::from_raw(self.base, self.len) }
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= self.len);
        let mut bytes = vec![0; len];
        // SAFETY: in bounds; a queue only stores while it is called.
        unsafe { self.base.add(offset).as_ptr().copy_to_nonoverlapping(bytes.as_mut_ptr(), len) };
        bytes
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        // SAFETY: as in `read`.
        unsafe { self.base.add(offset).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

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
