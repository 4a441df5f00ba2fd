//! Write-combining push: a small WQE goes to the device with its doorbell, which saves the fetch from the ring.
//!
//! The WQE is written to the ring as ever. Then: START doorbell, the WQE's slots into the push buffer, flush, END
//! doorbell. Both doorbells go to the buffer's own register.

use super::doorbell::{DbType, DbWord, PushPage};
use super::hwrm::function::{FuncQcapsOutput, FuncQcfgOutput, caps};
use super::pbl::PAGE;
use super::send::SendQueue;
use super::wqe::{HEADER_SLOTS, SLOT_BYTES, STATIC_SLOTS};
use crate::queue::{DeviceMemory, Doorbell, Store};
use crate::verbs::{Data, MemoryError, PostError, SendRequest};

/// Buffers of a push page.
pub const PUSH_BUFFERS: usize = 16;
/// Bytes of a push buffer.
pub const PUSH_BUFFER_BYTES: usize = 256;
/// Slots of the largest WQE that is pushed: header and 96 bytes.
pub const PUSH_SLOTS: u32 = STATIC_SLOTS;
/// Bytes of inline data of such a WQE.
pub const PUSH_DATA_BYTES: u32 = (PUSH_SLOTS - HEADER_SLOTS) * SLOT_BYTES;

/// Whether short requests shall be pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushPreference {
    /// Push them.
    pub enable: bool,
    /// Fail rather than do without. Means nothing without `enable`.
    pub require: bool,
}

impl PushPreference {
    /// No push.
    pub const OFF: Self = Self { enable: false, require: false };
}

/// The first two doorbell pages that are not Ethernet's: queue pairs ring in one, and push through the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushPlace {
    /// Offset of the page to ring in, in the doorbell BAR. The push page follows.
    pub offset: u64,
    /// Number of the page to ring in: a queue pair's DPI. That of the push page is the next.
    pub dpi: u32,
}

impl PushPlace {
    /// Where they are in a doorbell BAR of `bar_len` bytes, whose privileged page is at `privileged`; `None` if the function
    /// has no push.
    pub fn find(
        qcaps: &FuncQcapsOutput,
        qcfg: &FuncQcfgOutput,
        privileged: u64,
        bar_len: u64,
    ) -> Option<Self> {
        let offset = u64::from(qcfg.l2_doorbell_bar_size_kb.get()) * 1024;
        let dpi = u32::try_from(offset.checked_sub(privileged)? / PAGE).ok()?;
        let can = qcaps.flags.get() & caps::WCB_PUSH_MODE != 0;
        let fits = offset.is_multiple_of(PAGE) && offset + 2 * PAGE <= bar_len;
        (can && fits && dpi != 0 && PushPage::new(dpi + 1).is_ok()).then_some(Self { offset, dpi })
    }
}

/// Whether a request is one to push: its data is inline and short.
pub fn is_pushed(request: &SendRequest<'_>) -> bool {
    matches!(request.data, Data::Inline(_)) && request.length() <= PUSH_DATA_BYTES.into()
}

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
            return Err(MemoryError::too_short(text!("push page"), PUSH_BUFFERS, index + 1));
        }
        Ok(Self { memory, page, index })
    }

    /// Its index in the page.
    pub const fn index(&self) -> usize {
        self.index
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
            let max = PUSH_DATA_BYTES;
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

#[cfg(test)]
mod tests {
    use zerocopy::little_endian as le;

    use super::*;

    #[test]
    fn the_push_page_is_the_second_one_behind_those_of_ethernet() {
        let place = |flags, kilobytes, privileged, bar_len| {
            let qcaps = FuncQcapsOutput { flags: le::U32::new(flags), ..FuncQcapsOutput::ZERO };
            let l2_doorbell_bar_size_kb = le::U16::new(kilobytes);
            let qcfg = FuncQcfgOutput { l2_doorbell_bar_size_kb, ..FuncQcfgOutput::ZERO };
            PushPlace::find(&qcaps, &qcfg, privileged, bar_len)
        };
        let push = caps::WCB_PUSH_MODE;
        assert_eq!(place(push, 128, 0x1_0000, 1 << 20), Some(PushPlace { offset: 0x2_0000, dpi: 16 }));
        assert_eq!(place(push, 128, 0x1_0000, 0x2_2000), Some(PushPlace { offset: 0x2_0000, dpi: 16 }));
        // No push; no pages of Ethernet, or none but those; pages with numbers that doorbells do not hold.
        assert_eq!(place(caps::ROCE_V2, 128, 0x1_0000, 1 << 20), None);
        for (kilobytes, bar_len) in [(0, 1 << 20), (64, 1 << 20), (128, 0x2_1000), (0xfffc, 1 << 30)] {
            assert_eq!(place(push, kilobytes, 0x1_0000, bar_len), None, "{kilobytes} of {bar_len:#x}");
        }
    }
}
