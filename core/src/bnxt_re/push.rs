//! Write-combining push: a small WQE goes to the device with its doorbell, which saves the fetch from the ring.
//!
//! The WQE is written to the ring as ever. Then: START doorbell, the WQE's slots into the push buffer, flush, END
//! doorbell. Both doorbells go to the buffer's own register.

use super::doorbell::{DbType, DbWord, PushPage};
use super::send::SendQueue;
use super::wqe::STATIC_SLOTS;
use crate::queue::{DeviceMemory, Doorbell, Store};
use crate::verbs::{Data, MemoryError, PostError, SendRequest};

/// Buffers of a push page.
pub const PUSH_BUFFERS: usize = 16;
/// Bytes of a push buffer.
pub const PUSH_BUFFER_BYTES: usize = 256;
/// Slots of the largest WQE that is pushed: header and 96 bytes.
pub const PUSH_SLOTS: u32 = STATIC_SLOTS;

/// One buffer of a write-combining push page. A queue pair has at most one, and nobody else uses it.
#[derive(Debug)]
pub struct PushBuffer<M> {
    memory: M,
    page: PushPage,
    index: usize,
}

impl<M: DeviceMemory> PushBuffer<M> {
    /// Buffer `index` of the mapped page `memory` with number `page`.
    ///
    /// # Errors
    /// There is no such buffer.
    pub fn new(memory: M, page: PushPage, index: usize) -> Result<Self, MemoryError> {
        if index >= PUSH_BUFFERS {
            return Err(MemoryError::TooShort { what: "push page", given: PUSH_BUFFERS, needed: index + 1 });
        }
        Ok(Self { memory, page, index })
    }

    /// Register of the doorbell page that belongs to the buffer.
    pub const fn register(&self) -> usize {
        self.index + 1
    }
}

impl<S: Store> SendQueue<'_, S> {
    /// Posts one request by push.
    ///
    /// # Errors
    /// As [`super::batch::SendBatch::post`], or a WQE of more than [`PUSH_SLOTS`].
    pub fn push<M: DeviceMemory>(
        &mut self,
        request: &SendRequest<'_>,
        buffer: &PushBuffer<M>,
        doorbell: &impl Doorbell,
    ) -> Result<(), PostError> {
        let (_, used) = self.book.measure(request)?;
        if used > PUSH_SLOTS {
            let max = (PUSH_SLOTS - super::wqe::HEADER_SLOTS) * super::wqe::SLOT_BYTES;
            return Err(match request.data {
                Data::Inline(_) => PostError::InlineTooLong { given: request.length(), max },
                Data::Sges(sges) => PostError::TooManySges { given: sges.len(), max: max / 16 },
            });
        }
        let (tail, before) = (self.tail(), self.doorbell());
        let mut batch = self.batch();
        batch.post(request)?;
        let after = batch.finish();

        let word = |db_type, at: DbWord| DbWord::push(db_type, buffer.page, at.xid(), at.index()).to_u64();
        doorbell.to_device();
        doorbell.store(buffer.register(), word(DbType::PUSH_START, before));
        doorbell.wc_start();
        for ahead in 0..used {
            let slot = self.load_slot(tail, ahead).unwrap_or_default();
            buffer.memory.store_16(buffer.index * PUSH_BUFFER_BYTES + ahead as usize * 16, &slot);
        }
        doorbell.wc_flush();
        doorbell.to_device();
        doorbell.store(buffer.register(), word(DbType::PUSH_END, after));
        Ok(())
    }
}

const _: () = assert!(PUSH_SLOTS as usize * 16 <= PUSH_BUFFER_BYTES);
