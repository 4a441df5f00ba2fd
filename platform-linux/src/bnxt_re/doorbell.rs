//! Where doorbells go.

use std::sync::Arc;

use directverbs::queue::Doorbell;
use directverbs::verbs::Dpi;
use zerocopy::little_endian::U64;

use super::abi::{DBR_FREE, DbRegion, dbr_alloc, get_default_dbr};
use super::context::Context;
use crate::error::{Error, Result};
use crate::objects::{self, Handle};
use crate::uverbs::{Call, Mapping, Protection};

const OBJECT: &str = "doorbell region";
/// What doorbell regions take.
const NEEDS: &str = "Linux 7.2 or newer";

/// A mapped doorbell page.
#[derive(Debug)]
pub struct DoorbellPage {
    mapping: Mapping,
    dpi: Dpi,
}

impl DoorbellPage {
    pub(super) fn map(context: &objects::Context, dpi: Dpi, offset: u64) -> Result<Self> {
        let page = context.file().kernel().page_size();
        let mapping = context.file().map(offset, page, Protection::Write, "doorbell page")?;
        Ok(Self { mapping, dpi })
    }

    /// Its index.
    pub fn dpi(&self) -> Dpi {
        self.dpi
    }

    /// Its address, for code on a device that rings by itself.
    pub fn address(&self) -> u64 {
        self.mapping.address().as_ptr() as u64
    }
}

impl Doorbell for DoorbellPage {
    #[inline]
    fn store(&self, register: usize, value: u64) {
        // A register behind the page is none: queues have 0, and push buffers up to 16.
        self.mapping.store_u64(register.saturating_mul(size_of::<u64>()), value);
    }
}

/// A doorbell region of its own. Queue pairs that ring there hold it.
#[derive(Debug)]
pub struct DoorbellRegion {
    // Dropped in this order: unmapped, then freed.
    page: DoorbellPage,
    handle: Handle,
}

impl DoorbellRegion {
    /// Allocates one.
    ///
    /// # Errors
    /// A kernel before 7.2, no region left, or an answer that makes no sense.
    pub fn alloc(context: &Context) -> Result<Arc<Self>> {
        let (mut region, mut offset) = (DbRegion::ZERO, U64::ZERO);
        let mut call = Call::new(&dbr_alloc::METHOD);
        call.new_handle(dbr_alloc::HANDLE)
            .output(dbr_alloc::ATTR, &mut region)
            .output(dbr_alloc::OFFSET, &mut offset);
        let generic = context.generic();
        let answer =
            generic.file().call(call).map_err(|e| e.or_needs(OBJECT, "a region of its own", NEEDS))?;
        let handle = Handle::new(&generic.shared, answer.handle(dbr_alloc::HANDLE)?, &DBR_FREE);
        let page = DoorbellPage::map(generic, dpi(&region, dbr_alloc::METHOD.name)?, offset.get())?;
        Ok(Arc::new(Self { page, handle }))
    }

    /// The region that all queues of a context share unless they have one of their own.
    ///
    /// # Errors
    /// The context has no protection domain yet, a kernel before 7.2, or an answer that makes no sense.
    pub fn default_of(context: &Context) -> Result<Arc<DoorbellPage>> {
        let page = context.doorbell().ok_or(Error::Value {
            object: OBJECT,
            attribute: "default",
            what: "comes with the first protection domain",
        })?;
        let mut region = DbRegion::ZERO;
        let mut call = Call::new(&get_default_dbr::METHOD);
        call.output(get_default_dbr::ATTR, &mut region);
        let file = context.generic().file();
        file.call(call).map_err(|e| e.or_needs(OBJECT, "the question for the default one", NEEDS))?;
        if dpi(&region, get_default_dbr::METHOD.name)? == page.dpi() {
            return Ok(page);
        }
        Err(Error::Reply {
            object: OBJECT,
            method: get_default_dbr::METHOD.name,
            what: "another page than is mapped",
        })
    }

    /// Its page.
    pub fn page(&self) -> &DoorbellPage {
        &self.page
    }

    /// The kernel's handle.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Frees it.
    ///
    /// # Errors
    /// A queue pair rings there: then it is freed with the last of these. Or the kernel refuses.
    pub fn free(self: Arc<Self>) -> Result<()> {
        match Arc::try_unwrap(self) {
            Ok(Self { page, mut handle }) => {
                drop(page);
                handle.destroy()
            }
            Err(shared) => Err(Error::InUse { object: OBJECT, users: Arc::strong_count(&shared) - 1 }),
        }
    }
}

fn dpi(region: &DbRegion, method: &'static str) -> Result<Dpi> {
    Dpi::new(region.dpi.get()).filter(|dpi| dpi.get() != 0).ok_or(Error::Reply {
        object: OBJECT,
        method,
        what: "a page index that there is not",
    })
}
