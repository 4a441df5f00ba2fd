//! Memory regions.

use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use directverbs::verbs::{AccessFlags, LKey, RKey};
use zerocopy::little_endian::U32;

use super::context::CoreSupport;
use super::handle::Handle;
use super::protection_domain::ProtectionDomain;
use crate::error::{Error, Result};
use crate::uverbs::abi::command::{REG_MR, RegMr, RegMrReply};
use crate::uverbs::abi::methods::{destroy, reg_dmabuf_mr};
use crate::uverbs::{Call, Pages, Uhw};

const OBJECT: &str = "memory region";

/// Memory that the device may reach. It holds its protection domain, and the pages if they are [`Pages`].
#[derive(Debug)]
pub struct MemoryRegion {
    // Dropped in this order: the device lets go of the memory before it is unmapped.
    handle: Handle,
    pages: Option<Arc<Pages>>,
    _pd: ProtectionDomain,
    iova: u64,
    length: u64,
    lkey: LKey,
    rkey: RKey,
}

impl MemoryRegion {
    /// Registers `range` of `pages`. Requests name it by the process's own addresses.
    ///
    /// # Errors
    /// The range is empty or not in the pages, the access makes no sense, or the kernel refuses.
    pub fn register(
        pd: &ProtectionDomain,
        pages: &Arc<Pages>,
        range: Range<usize>,
        access: AccessFlags,
    ) -> Result<Self> {
        if range.start >= range.end || range.end > pages.len() {
            return Err(Error::Value {
                object: OBJECT,
                attribute: "range",
                what: "is empty or not in the memory",
            });
        }
        let start = pages.address() + range.start as u64;
        let length = (range.end - range.start) as u64;
        // SAFETY: the region holds the pages until it is destroyed, and nobody holds references into them.
        let mut region = unsafe { Self::register_raw(pd, start, length, start, access) }?;
        region.pages = Some(Arc::clone(pages));
        Ok(region)
    }

    /// Registers `length` bytes of this process at the address `start`. Requests name them by addresses from `iova` on.
    ///
    /// # Errors
    /// The access makes no sense, `iova` and `start` are not at the same place in a page, or the kernel refuses.
    ///
    /// # Safety
    /// The memory stays mapped until the region is destroyed, and as long as the access lets the device write, nobody holds
    /// references into it while requests are under way.
    pub unsafe fn register_raw(
        pd: &ProtectionDomain,
        start: u64,
        length: u64,
        iova: u64,
        access: AccessFlags,
    ) -> Result<Self> {
        let shared = pd.handle.context();
        same_place(shared.file().kernel().page_size(), start, iova)?;
        let access = checked_access(access, shared.support())?;
        check_length(length, shared.limits().max_mr_size.get())?;
        let core = RegMr {
            start: start.into(),
            length: length.into(),
            hca_va: iova.into(),
            pd_handle: pd.handle().into(),
            access_flags: access.into(),
            ..RegMr::ZERO
        };
        let mut reply = RegMrReply::ZERO;
        shared.file().ask(&REG_MR, &core, &mut reply, Uhw::none())?;
        Ok(Self {
            handle: Handle::new(shared, reply.mr_handle.get(), &destroy::MR),
            pages: None,
            _pd: pd.clone(),
            iova,
            length,
            lkey: LKey::truncated(reply.lkey.get()),
            rkey: RKey::truncated(reply.rkey.get()),
        })
    }

    /// Registers `length` bytes at `offset` of a dma-buf. Requests name them by addresses from `iova` on. The kernel holds
    /// the dma-buf: the descriptor may be closed.
    ///
    /// # Errors
    /// The access makes no sense, `iova` and `offset` are not at the same place in a page, or the kernel refuses.
    pub fn register_dmabuf(
        pd: &ProtectionDomain,
        dmabuf: BorrowedFd<'_>,
        offset: u64,
        length: u64,
        iova: u64,
        access: AccessFlags,
    ) -> Result<Self> {
        let shared = pd.handle.context();
        same_place(shared.file().kernel().page_size(), offset, iova)?;
        let access = checked_access(access, shared.support())?;
        check_length(length, shared.limits().max_mr_size.get())?;
        let (mut lkey, mut rkey) = (U32::ZERO, U32::ZERO);
        let mut call = Call::new(&reg_dmabuf_mr::METHOD);
        call.new_handle(reg_dmabuf_mr::HANDLE)
            .handle(reg_dmabuf_mr::PD_HANDLE, pd.handle())
            .value(reg_dmabuf_mr::OFFSET, offset.into())
            .value(reg_dmabuf_mr::LENGTH, length.into())
            .value(reg_dmabuf_mr::IOVA, iova.into())
            .value(reg_dmabuf_mr::FD, dmabuf.as_raw_fd().cast_unsigned().into())
            .value(reg_dmabuf_mr::ACCESS_FLAGS, access.into())
            .output(reg_dmabuf_mr::RESP_LKEY, &mut lkey)
            .output(reg_dmabuf_mr::RESP_RKEY, &mut rkey);
        let number = shared.file().call(call)?.handle(reg_dmabuf_mr::HANDLE)?;
        Ok(Self {
            handle: Handle::new(shared, number, &destroy::MR),
            pages: None,
            _pd: pd.clone(),
            iova,
            length,
            lkey: LKey::truncated(lkey.get()),
            rkey: RKey::truncated(rkey.get()),
        })
    }

    /// Address of the first byte in requests.
    pub fn iova(&self) -> u64 {
        self.iova
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Local key.
    pub fn lkey(&self) -> LKey {
        self.lkey
    }

    /// Remote key.
    pub fn rkey(&self) -> RKey {
        self.rkey
    }

    /// The pages, if it was registered from some.
    pub fn pages(&self) -> Option<&Arc<Pages>> {
        self.pages.as_ref()
    }

    /// Deregisters it.
    ///
    /// # Errors
    /// The kernel refuses: a memory window is bound to it.
    pub fn destroy(mut self) -> Result<()> {
        self.handle.destroy()
    }
}

/// A device maps whole pages, so both addresses of a byte must be at the same place in theirs.
fn same_place(page: usize, start: u64, iova: u64) -> Result<()> {
    if (start ^ iova) & (page as u64 - 1) == 0 {
        return Ok(());
    }
    Err(Error::Value {
        object: OBJECT,
        attribute: "iova",
        what: "is not at the same place in a page as the memory is",
    })
}

fn check_length(length: u64, max: u64) -> Result<()> {
    super::handle::within(OBJECT, "length", length, 1, max)
}

/// Checks what the specification says about access, and leaves out what a kernel may ignore but this one does not know.
fn checked_access(access: AccessFlags, support: CoreSupport) -> Result<u32> {
    let writes = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_ATOMIC;
    if access.intersects(writes) && !access.contains(AccessFlags::LOCAL_WRITE) {
        return Err(Error::Value {
            object: OBJECT,
            attribute: "access",
            what: "lets a peer write, which needs LOCAL_WRITE, too",
        });
    }
    if !(access - AccessFlags::all()).is_empty() {
        return Err(Error::Value {
            object: OBJECT,
            attribute: "access",
            what: "has flags that are not known",
        });
    }
    let optional = support.contains(CoreSupport::OPTIONAL_MR_ACCESS);
    Ok(if optional { access } else { access - AccessFlags::RELAXED_ORDERING }.bits())
}
