//! The context: capabilities, and what its queues share.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use directverbs::bnxt_re::caps::{self, DeviceCaps, Limits};
use directverbs::verbs::{Dpi, PdId};

use super::abi::{self, ContextReply, ContextRequest, PdReply, request_bits};
use super::doorbell::DoorbellPage;
use super::pages::PushPage;
use crate::error::{Error, Result};
use crate::objects;
use crate::sysfs::{Device, Driver};
use crate::uverbs::{Fd, Kernel, Mapping, Protection, Uhw};

/// Where the kernel writes the number of a new address handle, in the shared page.
const AVID: usize = 0x10;
const OBJECT: &str = "device";

/// An opened device. Clones share it.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The doorbell page of the context: there from the first protection domain on, until the context is closed.
    doorbell: Mutex<Option<Arc<DoorbellPage>>>,
    push: Mutex<Option<Arc<PushPage>>>,
    /// Address handles are created one at a time: their number comes in the shared page.
    shared_page: Mutex<Mapping>,
    caps: DeviceCaps,
    reply: ContextReply,
    next_handle: AtomicU32,
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
        Self::new(generic, reply)
    }

    /// Takes a context that another library has opened of `device`, by its file. The file stays open when the last object is
    /// gone.
    ///
    /// What the driver has told the other library, it tells this one in a second context, which is closed at once. It takes
    /// a library that has asked for variable WQEs and for depths that are no powers of two, as libbnxt_re does since
    /// rdma-core 54; for others there is [`Context::import_as`].
    ///
    /// # Errors
    /// As for [`Context::open`], or it is not an opened device.
    pub fn import(kernel: Arc<dyn Kernel>, device: &Device, file: Fd) -> Result<Self> {
        check_driver(device)?;
        let (_, reply) = open(Arc::clone(&kernel), &device.path())?;
        Self::import_as(kernel, file, reply)
    }

    /// The same, with what the driver has told the other library.
    ///
    /// Do not create address handles in both libraries at the same time: the driver leaves their numbers in a page that both
    /// read.
    ///
    /// # Errors
    /// It is not an opened device, or one that makes no sense.
    pub fn import_as(kernel: Arc<dyn Kernel>, file: Fd, reply: ContextReply) -> Result<Self> {
        Self::new(objects::Context::import(kernel, file, Driver::BnxtRe.id())?, reply)
    }

    fn new(generic: objects::Context, reply: ContextReply) -> Result<Self> {
        let senseless = |what| Err(Error::Reply { object: OBJECT, method: "GET_CONTEXT", what });
        let page = reply.pg_size.get() as usize;
        if page != generic.file().kernel().page_size() {
            return senseless("a page size that is not this machine's");
        }
        let base = &generic.limits().base;
        let caps = DeviceCaps::from_context(
            &caps::ContextReply {
                comp_mask: reply.comp_mask.get(),
                chip_id0: reply.chip_id0.get(),
                mode: reply.mode.get(),
                pg_size: reply.pg_size.get(),
                cqe_sz: reply.cqe_sz.get(),
                max_cqd: reply.max_cqd.get(),
            },
            Limits {
                max_qp_wr: base.max_qp_wr.get(),
                max_sge: base.max_sge.get(),
                max_srq_wr: base.max_srq_wr.get(),
                max_srq_sge: base.max_srq_sge.get(),
                atomics: base.atomic_cap.get() != 0,
            },
        );
        let shared_page = generic.file().map(0, page, Protection::ReadWrite, "shared page")?;
        let inner = Inner {
            doorbell: Mutex::new(None),
            push: Mutex::new(None),
            shared_page: Mutex::new(shared_page),
            caps,
            reply,
            next_handle: AtomicU32::new(1),
            generic,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the device can do.
    pub fn caps(&self) -> &DeviceCaps {
        &self.inner.caps
    }

    /// What the kernel has said about it.
    pub fn reply(&self) -> &ContextReply {
        &self.inner.reply
    }

    /// What every driver has.
    pub fn generic(&self) -> &objects::Context {
        &self.inner.generic
    }

    /// The context's doorbell page, if it has a protection domain.
    pub fn doorbell(&self) -> Option<Arc<DoorbellPage>> {
        self.inner.doorbell.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The context's push page: allocated when it is first asked for, then the same.
    ///
    /// # Errors
    /// The device has none, or the kernel refuses.
    pub fn push_page(&self) -> Result<Arc<PushPage>> {
        let mut slot = self.inner.push.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = &*slot {
            return Ok(Arc::clone(page));
        }
        let page = Arc::new(PushPage::alloc(self)?);
        *slot = Some(Arc::clone(&page));
        Ok(page)
    }

    /// A number that CQEs will name a queue pair by. Never zero.
    pub(super) fn next_handle(&self) -> u32 {
        loop {
            let handle = self.inner.next_handle.fetch_add(1, Ordering::Relaxed);
            if handle != 0 {
                return handle;
            }
        }
    }

    /// Whether toggle pages are named by the kernel's handles.
    pub(super) fn toggles_by_handle(&self) -> bool {
        self.inner.reply.comp_mask.get() & abi::TOGGLE_BY_HANDLE != 0
    }

    /// Creates an address handle, and tells its number on the device: the kernel leaves that in the shared page.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn create_ah(
        &self,
        pd: &ProtectionDomain,
        to: &directverbs::verbs::AddressVector,
        port: u8,
    ) -> Result<(objects::AddressHandle, directverbs::verbs::AhId)> {
        let page = self.inner.shared_page.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = objects::AddressHandle::create(pd.generic(), to, port, Uhw::none())?;
        let number = page.load_u32(AVID).and_then(directverbs::verbs::AhId::new);
        let id = number.filter(|id| id.get() >> 20 == 0).ok_or(Error::Reply {
            object: "address handle",
            method: "CREATE_AH",
            what: "a number of more than 20 bits",
        })?;
        Ok((handle, id))
    }
}

fn check_driver(device: &Device) -> Result<()> {
    device.check_abi()?;
    if device.driver == Driver::BnxtRe {
        return Ok(());
    }
    Err(Error::Value { object: OBJECT, attribute: "driver", what: "is not bnxt_re" })
}

/// Opens a context, with all that this crate can do asked for, and with what the driver says to it.
fn open(kernel: Arc<dyn Kernel>, path: &Path) -> Result<(objects::Context, ContextReply)> {
    let comp_mask = request_bits::POW2_SUPPORT | request_bits::VAR_WQE_SUPPORT;
    let request = ContextRequest { comp_mask: comp_mask.into() };
    let mut reply = ContextReply::ZERO;
    let uhw = Uhw::new(&request, &mut reply);
    let generic = objects::Context::open_path(kernel, path, Driver::BnxtRe.id(), uhw)?;
    Ok((generic, reply))
}

/// A protection domain. Clones share it.
#[derive(Clone, Debug)]
pub struct ProtectionDomain {
    generic: objects::ProtectionDomain,
    id: Option<PdId>,
    context: Context,
}

impl ProtectionDomain {
    /// Creates one. With the first one of a context comes its doorbell page.
    ///
    /// # Errors
    /// The kernel refuses, or names a doorbell page that makes no sense.
    pub fn alloc(context: &Context) -> Result<Self> {
        let mut reply = PdReply::ZERO;
        let generic = objects::ProtectionDomain::alloc(context.generic(), Uhw::reply(&mut reply))?;
        let senseless = |what| Error::Reply { object: "protection domain", method: "ALLOC_PD", what };
        let dpi =
            Dpi::new(reply.dpi.get()).ok_or_else(|| senseless("a doorbell page of more than 20 bits"))?;
        let mut slot = context.inner.doorbell.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some(page) if page.dpi() != dpi => return Err(senseless("another doorbell page than before")),
            Some(_) => {}
            None => *slot = Some(Arc::new(DoorbellPage::map(context.generic(), dpi, reply.dbr.get())?)),
        }
        drop(slot);
        let id = Some(PdId::truncated(reply.pdid.get()));
        Ok(Self { generic, id, context: context.clone() })
    }

    /// Takes one that another library has created in an imported context, by its handle. It is never destroyed here.
    pub fn import(context: &Context, handle: u32) -> Self {
        let generic = objects::ProtectionDomain::import(context.generic(), handle);
        Self { generic, id: None, context: context.clone() }
    }

    /// What every driver has.
    pub fn generic(&self) -> &objects::ProtectionDomain {
        &self.generic
    }

    /// Number on the device; none of an imported one.
    pub fn id(&self) -> Option<PdId> {
        self.id
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Destroys it.
    ///
    /// # Errors
    /// Something refers to it: then it is destroyed with the last of these. Or the kernel refuses.
    pub fn destroy(self) -> Result<()> {
        self.generic.destroy()
    }
}
