//! The context.

use std::path::Path;
use std::sync::Arc;

use directverbs::ionic::caps::{Caps, ContextReply};

use super::abi::ContextRequest;
use super::clock::ClockPage;
use super::doorbell::DoorbellPage;
use crate::error::{Error, Result};
use crate::objects;
use crate::sysfs::{Device, Driver};
use crate::uverbs::{Fd, Kernel, Protection, Uhw};

const OBJECT: &str = "device";

/// An opened device. Clones share it.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    doorbell: DoorbellPage,
    clock: Option<ClockPage>,
    caps: Caps,
    generic: objects::Context,
}

impl Context {
    /// Opens a device that was found in sysfs.
    ///
    /// # Errors
    /// Another driver's device, an ABI that is not supported, no permission, or a device that makes no sense.
    pub fn open(kernel: Arc<dyn Kernel>, device: &Device) -> Result<Self> {
        check_driver(device)?;
        Self::open_path(kernel, &device.path())
    }

    /// Opens a device's file.
    ///
    /// # Errors
    /// As for [`Context::open`].
    pub fn open_path(kernel: Arc<dyn Kernel>, path: &Path) -> Result<Self> {
        let (generic, reply) = open(kernel, path)?;
        Self::new(generic, &reply)
    }

    /// Takes a context that another library has opened of `device`, by its file. The file stays open when the last object is
    /// gone. What the driver has told the other library, it tells this one in a second context, which is closed at once.
    ///
    /// # Errors
    /// As for [`Context::open`], or it is not an opened device.
    pub fn import(kernel: Arc<dyn Kernel>, device: &Device, file: Fd) -> Result<Self> {
        check_driver(device)?;
        let (_, reply) = open(Arc::clone(&kernel), &device.path())?;
        Self::import_as(kernel, file, &reply)
    }

    /// The same, with what the driver has told the other library.
    ///
    /// # Errors
    /// It is not an opened device, or one that makes no sense.
    pub fn import_as(kernel: Arc<dyn Kernel>, file: Fd, reply: &ContextReply) -> Result<Self> {
        Self::new(objects::Context::import(kernel, file, Driver::Ionic.id())?, reply)
    }

    fn new(generic: objects::Context, reply: &ContextReply) -> Result<Self> {
        let caps = Caps::from_reply(reply).map_err(|error| Error::Device { object: OBJECT, error })?;
        let senseless = |what| Error::Reply { object: OBJECT, method: "GET_CONTEXT", what };
        let page = generic.file().kernel().page_size();
        if page != 1 << caps.page_shift {
            return Err(senseless("a page size that is not this machine's"));
        }
        let mask = page as u64 - 1;
        let offset = reply.dbell_offset.get();
        let mapping = generic.file().map(offset & !mask, page, Protection::Write, "doorbell page")?;
        let doorbell = DoorbellPage::new(mapping, (offset & mask) as usize)
            .ok_or_else(|| senseless("doorbells that end behind their page"))?;
        let clock = match reply.phc_offset.get() {
            0 => None,
            offset => {
                let mapping = generic.file().map(offset, page, Protection::Read, "clock page")?;
                Some(ClockPage::new(mapping))
            }
        };
        Ok(Self { inner: Arc::new(Inner { doorbell, clock, caps, generic }) })
    }

    /// What the device can do.
    pub fn caps(&self) -> &Caps {
        &self.inner.caps
    }

    /// What every driver has.
    pub fn generic(&self) -> &objects::Context {
        &self.inner.generic
    }

    /// The doorbell page.
    pub fn doorbell(&self) -> &DoorbellPage {
        &self.inner.doorbell
    }

    /// The clock page. It takes Linux 7.3, and a device with a clock.
    pub fn clock(&self) -> Option<&ClockPage> {
        self.inner.clock.as_ref()
    }

    /// Pipelines.
    pub fn udma_count(&self) -> u8 {
        self.inner.caps.udma_count
    }

    /// A bit for each pipeline.
    pub fn udma_mask(&self) -> u8 {
        self.inner.caps.udma_mask()
    }
}

fn check_driver(device: &Device) -> Result<()> {
    device.check_abi()?;
    if device.driver == Driver::Ionic {
        return Ok(());
    }
    Err(Error::Value { object: OBJECT, attribute: "driver", what: "is not ionic" })
}

/// Opens a context, with what the driver says to it.
fn open(kernel: Arc<dyn Kernel>, path: &Path) -> Result<(objects::Context, ContextReply)> {
    let (request, mut reply) = (ContextRequest::ZERO, ContextReply::ZERO);
    let uhw = Uhw::new(&request, &mut reply);
    let generic = objects::Context::open_path(kernel, path, Driver::Ionic.id(), uhw)?;
    Ok((generic, reply))
}
