//! Pages besides doorbells: push, pacing, toggle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use directverbs::bnxt_re::doorbell::{self, Toggle};
use directverbs::bnxt_re::pacing::PacingParameters;
use directverbs::bnxt_re::push::{PUSH_BUFFERS, PushBuffer};
use directverbs::queue::DeviceMemory;
use directverbs::verbs::MemoryError;
use zerocopy::little_endian::{U32, U64};

use super::abi::{DESTROY_PAGE, NOTIFY_DRV, RELEASE_TOGGLE, alloc_page, get_toggle};
use super::context::Context;
use crate::error::{Error, Result};
use crate::objects::Handle;
use crate::uverbs::{Call, Mapping, Protection};

/// A page that the driver has allocated.
#[derive(Debug)]
struct Page {
    // Dropped in this order: unmapped, then freed.
    mapping: Mapping,
    dpi: u32,
    _handle: Handle,
}

impl Page {
    fn alloc(
        context: &Context,
        page_type: u64,
        protection: Protection,
        object: &'static str,
    ) -> Result<Self> {
        let (mut dpi, mut offset, mut length) = (U32::ZERO, U64::ZERO, U32::ZERO);
        let mut call = Call::new(&alloc_page::METHOD);
        call.new_handle(alloc_page::HANDLE)
            .constant(alloc_page::TYPE, page_type)
            .output(alloc_page::DPI, &mut dpi)
            .output(alloc_page::MMAP_OFFSET, &mut offset)
            .output(alloc_page::MMAP_LENGTH, &mut length);
        let generic = context.generic();
        let answer = generic.file().call(call)?;
        let handle = Handle::new(&generic.shared, answer.handle(alloc_page::HANDLE)?, &DESTROY_PAGE);
        let length = checked_length(context, length, object, alloc_page::METHOD.name)?;
        let mapping = generic.file().map(offset.get(), length, protection, object)?;
        Ok(Self { mapping, dpi: dpi.get(), _handle: handle })
    }
}

/// The driver's pages are one page long each, whatever it says.
fn checked_length(
    context: &Context,
    length: U32,
    object: &'static str,
    method: &'static str,
) -> Result<usize> {
    let page = context.generic().file().kernel().page_size();
    if length.get() as usize == page {
        return Ok(page);
    }
    Err(Error::Reply { object, method, what: "a length that is not one page" })
}

/// The write-combining page: small WQEs go to the device with their doorbell.
#[derive(Debug)]
pub struct PushPage {
    page: Page,
    number: doorbell::PushPage,
    /// Buffers that are claimed, a bit for each.
    claimed: AtomicU32,
}

impl PushPage {
    pub(super) fn alloc(context: &Context) -> Result<Self> {
        if !context.caps().push {
            return Err(Error::Unsupported {
                object: "push page",
                feature: "push",
                needs: "a device with it",
            });
        }
        let page = Page::alloc(context, alloc_page::WC_PAGE, Protection::Write, "push page")?;
        let number = doorbell::PushPage::new(page.dpi).map_err(|_| Error::Reply {
            object: "push page",
            method: alloc_page::METHOD.name,
            what: "a number of more than 12 bits",
        })?;
        Ok(Self { page, number, claimed: AtomicU32::new(0) })
    }

    /// Its index.
    pub fn dpi(&self) -> u32 {
        self.number.get()
    }

    /// Its address, for code on a device that pushes by itself.
    pub fn address(&self) -> u64 {
        self.page.mapping.address().as_ptr() as u64
    }

    /// One of its buffers.
    ///
    /// # Errors
    /// There is no such buffer.
    pub fn buffer(&self, index: usize) -> std::result::Result<PushBuffer<&Mapping>, MemoryError> {
        PushBuffer::new(&self.page.mapping, self.number, index)
    }
}

/// A push buffer that one queue pair has, until it is dropped.
#[derive(Debug)]
pub struct ClaimedBuffer {
    buffer: PushBuffer<PushMemory>,
    page: Arc<PushPage>,
    bit: u32,
}

/// The mapped page, held.
#[derive(Debug)]
pub struct PushMemory(Arc<PushPage>);

impl DeviceMemory for PushMemory {
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        self.0.page.mapping.store_16(offset, block);
    }

    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        self.0.page.mapping.store_64(offset, block);
    }
}

impl PushPage {
    /// A buffer that nobody else has; none if all are claimed. The first is left alone, as by the vendor's own library.
    pub fn claim(self: &Arc<Self>) -> Option<ClaimedBuffer> {
        for index in 1..PUSH_BUFFERS {
            let bit = 1 << index;
            if self.claimed.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                let page = Arc::clone(self);
                let buffer = PushBuffer::new(PushMemory(Arc::clone(self)), self.number, index).ok()?;
                return Some(ClaimedBuffer { buffer, page, bit });
            }
        }
        None
    }
}

impl ClaimedBuffer {
    /// The buffer.
    pub fn buffer(&self) -> &PushBuffer<PushMemory> {
        &self.buffer
    }
}

impl Drop for ClaimedBuffer {
    fn drop(&mut self) {
        self.page.claimed.fetch_and(!self.bit, Ordering::Relaxed);
    }
}

/// The pages by which doorbells are paced.
#[derive(Debug)]
pub struct PacingPages {
    register: Page,
    parameters: Page,
    context: Context,
}

impl PacingPages {
    /// Maps them; none if the device's doorbells need no pacing.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn map(context: &Context) -> Result<Option<Self>> {
        if !context.caps().pacing {
            return Ok(None);
        }
        let parameters = Page::alloc(context, alloc_page::DBR_PAGE, Protection::Read, "pacing parameters")?;
        let register = Page::alloc(context, alloc_page::DBR_BAR_PAGE, Protection::Read, "pacing register")?;
        Ok(Some(Self { register, parameters, context: context.clone() }))
    }

    /// The parameters as they are now.
    pub fn parameters(&self) -> PacingParameters {
        let word = |i: usize| self.parameters.mapping.load_u32(i * size_of::<u32>()).unwrap_or(0);
        PacingParameters::from_page(&std::array::from_fn(word))
    }

    /// The register as it is now: `parameters` say where in its page it is.
    pub fn register(&self, parameters: &PacingParameters) -> u32 {
        let page = self.register.mapping.len();
        self.register.mapping.load_u32(parameters.grc_reg_offset as usize & (page - 1)).unwrap_or(0)
    }

    /// Tells the driver that the FIFO is filling up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn notify(&self) -> Result<()> {
        self.context.generic().file().call(Call::new(&NOTIFY_DRV)).map(|_| ())
    }
}

/// A queue whose toggle page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toggled {
    /// A completion queue: its number, and the kernel's handle.
    Completion(u32, u32),
    /// A shared receive queue, likewise.
    SharedReceive(u32, u32),
}

/// The page that tells the toggle which a queue's next arm carries.
#[derive(Debug)]
pub struct TogglePage {
    mapping: Mapping,
    offset: usize,
    _handle: Handle,
}

impl TogglePage {
    /// Maps the page of a queue; none if the driver has none after all.
    pub(super) fn map(context: &Context, queue: Toggled) -> Result<Option<Self>> {
        let (kind, number, handle, attribute) = match queue {
            Toggled::Completion(number, handle) => (0, number, handle, get_toggle::CQ_HANDLE),
            Toggled::SharedReceive(number, handle) => (1, number, handle, get_toggle::SRQ_HANDLE),
        };
        let (mut page, mut offset, mut length) = (U64::ZERO, U32::ZERO, U32::ZERO);
        let mut call = Call::new(&get_toggle::METHOD);
        call.new_handle(get_toggle::HANDLE);
        if context.toggles_by_handle() {
            call.handle(attribute, handle);
        } else {
            call.constant(get_toggle::TYPE, kind).value(get_toggle::RES_ID, number.into());
        }
        call.output(get_toggle::MMAP_PAGE, &mut page)
            .output(get_toggle::MMAP_OFFSET, &mut offset)
            .output(get_toggle::MMAP_LENGTH, &mut length);
        let generic = context.generic();
        let answer = match generic.file().call(call) {
            Err(error) if error.is_absent() => return Ok(None),
            answer => answer?,
        };
        let handle = Handle::new(&generic.shared, answer.handle(get_toggle::HANDLE)?, &RELEASE_TOGGLE);
        let length = checked_length(context, length, "toggle page", get_toggle::METHOD.name)?;
        let mapping = generic.file().map(page.get(), length, Protection::Read, "toggle page")?;
        let offset = offset.get() as usize;
        if mapping.load_u32(offset).is_none() {
            let what = "a place that is not in the page";
            return Err(Error::Reply { object: "toggle page", method: get_toggle::METHOD.name, what });
        }
        Ok(Some(Self { mapping, offset, _handle: handle }))
    }

    /// Its address, for code on a device that arms by itself.
    pub fn address(&self) -> u64 {
        self.mapping.address().as_ptr() as u64 + self.offset as u64
    }

    /// The toggle now.
    pub fn toggle(&self) -> Toggle {
        Toggle::truncated(self.mapping.load_u32(self.offset).unwrap_or(0))
    }
}
