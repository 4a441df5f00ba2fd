//! Memory regions and windows.

use directverbs::ionic::admin::{ANY_TABLE, CreateMrCmd, DestroyMrCmd, PagePlan};
use directverbs::ionic::wqe::MrFlags;
use directverbs::text;
use directverbs::verbs::{AccessFlags, LKey, MwType, PlanError, RKey};

use super::device::{Device, MR, ProtectionDomain};
use super::error::{Cause, Error, On};
use crate::dma::DmaMemory;
use crate::host::Host;
use crate::ledger::{Kind, Object};
use crate::region::Region;

/// Alignment of registered memory.
const ALIGN: usize = 4096;

/// Which object a key is of; the lowest byte may change.
const fn region(key: u32) -> Object {
    (Kind::Region, key >> 8)
}

/// Which bytes a region has: the address that requests name the first one by, and how many there are.
#[derive(Clone, Copy)]
struct Span {
    va: u64,
    len: u64,
}

impl<'n, H: Host> Device<'n, H> {
    pub(super) fn make_region(
        &mut self,
        pd: &ProtectionDomain<'_>,
        len: usize,
        access: AccessFlags,
    ) -> Result<Region<'n, H::Dma>, Cause> {
        let block = self.host().dma(len, ALIGN)?;
        let addr = block.device_address();
        // A region has at least one byte.
        let span = Span { va: addr, len: len.max(1) as u64 };
        let plan = PagePlan::contiguous(self.identity.page_sizes, addr, addr, span.len)?;
        match self.tell_region(pd, span, &plan, plan.addresses(addr), access) {
            Ok(key) => Ok(Region::new(block, len, key, self.lease)),
            Err(cause) => {
                if !cause.is_harmless() {
                    block.abandon();
                }
                Err(cause)
            }
        }
    }

    /// Registers memory by its pages: `len` bytes that requests name from `va` on, in `pages` of 2^`page_log2` bytes, whose
    /// bus addresses are given. The first byte is as far into the first page as `va` is into a page. One page is told as it is, of
    /// more the device is given a list: these are the two forms that it has.
    ///
    /// # Safety
    /// The pages are memory that the device may reach, and write to as `access` says, until the key is given back with
    /// [`Device::deregister`], or the NIC is closed or reset.
    ///
    /// # Errors
    /// The device has no such pages, too few of them were given, or it refuses.
    pub unsafe fn register(
        &mut self,
        pd: &ProtectionDomain<'_>,
        va: u64,
        len: u64,
        page_log2: u8,
        pages: &[u64],
        access: AccessFlags,
    ) -> Result<RKey, Error> {
        PagePlan::listed(self.identity.page_sizes, va, len, page_log2, pages.len() as u64)
            .map_err(Cause::from)
            .and_then(|plan| self.tell_region(pd, Span { va, len }, &plan, pages.iter().copied(), access))
            .map(RKey::truncated)
            .on(MR, None)
    }

    /// Registers `len` bytes that are contiguous on the bus from `addr` on, and that requests name from `va` on: in the
    /// smallest pages of the device of which one is enough, or else in a list of the largest.
    ///
    /// # Safety
    /// As for [`Device::register`].
    ///
    /// # Errors
    /// There is no size of pages in which both addresses have the same offset, or the device refuses.
    pub unsafe fn register_contiguous(
        &mut self,
        pd: &ProtectionDomain<'_>,
        va: u64,
        addr: u64,
        len: u64,
        access: AccessFlags,
    ) -> Result<RKey, Error> {
        PagePlan::contiguous(self.identity.page_sizes, va, addr, len)
            .map_err(Cause::from)
            .and_then(|plan| self.tell_region(pd, Span { va, len }, &plan, plan.addresses(addr), access))
            .map(RKey::truncated)
            .on(MR, None)
    }

    /// A key for fast registration: a region of at most `pages` pages that opens nothing until a posted
    /// [`directverbs::verbs::FastRegister`] fills it, and nothing any more after a local invalidation. Its low byte may be
    /// changed with each registration. It is given back with [`Device::deregister`].
    ///
    /// That such a region is created without length and with the number of its pages is assumed, as no document says it.
    ///
    /// # Errors
    /// More pages than the device has, or it refuses.
    pub fn alloc_fast_key(&mut self, pd: &ProtectionDomain<'_>, pages: u32) -> Result<LKey, Error> {
        let flags = MrFlags::new().with_ukey_en(true).with_inv_en(true);
        let cmd = CreateMrCmd {
            map_count: pages.into(),
            dbid_flags: flags.into_bits().into(),
            page_size_log2: 12,
            ..CreateMrCmd::ZERO
        };
        let key = self.check_pages(pages).and_then(|()| self.make_key(pd, Kind::Region, cmd));
        key.map(LKey::truncated).on(MR, None)
    }

    /// Takes back a key of [`Device::register`], [`Device::register_contiguous`] or [`Device::alloc_fast_key`]. Its low byte does
    /// not count.
    ///
    /// # Errors
    /// There is no such key, or the device refuses.
    pub fn deregister(&mut self, key: RKey) -> Result<(), Error> {
        self.forget_key(region(key.get()), key.get()).on(MR, key.get())
    }

    fn check_pages(&self, count: u32) -> Result<(), Cause> {
        let max = self.identity.page_table_entries;
        if count == 0 || count > max {
            let over = PlanError::over_device(text!("pages"), count.into(), max.into());
            return Err(over.into());
        }
        Ok(())
    }

    fn tell_region(
        &mut self,
        pd: &ProtectionDomain<'_>,
        span: Span,
        plan: &PagePlan,
        mut pages: impl Iterator<Item = u64>,
        access: AccessFlags,
    ) -> Result<u32, Cause> {
        self.check_pages(plan.count)?;
        let mut first = 0;
        let mut list = None;
        if plan.list_bytes() == 0 {
            first = pages.next().unwrap_or_default();
        } else {
            let mut block = self.host().dma(plan.list_bytes(), 8)?;
            for (i, page) in pages.enumerate() {
                if !block.store(i * 8, &page.to_le_bytes()) {
                    return Err(Cause::NoSuch);
                }
            }
            list = Some(block);
        }
        let list_at = list.as_ref().map_or(0, DmaMemory::device_address);
        let cmd = CreateMrCmd {
            va: span.va.into(),
            length: span.len.into(),
            map_count: plan.count.into(),
            dma_addr: plan.dma_addr(first, list_at).into(),
            dbid_flags: MrFlags::from_access(access).into_bits().into(),
            page_size_log2: plan.page_size_log2,
            ..CreateMrCmd::ZERO
        };
        let made = self.make_key(pd, Kind::Region, cmd);
        // The device has read the list when it has answered.
        match (list, &made) {
            (Some(list), Err(cause)) if !cause.is_harmless() => list.abandon(),
            _ => {}
        }
        made
    }

    pub(super) fn make_window(&mut self, pd: &ProtectionDomain<'_>, mw_type: MwType) -> Result<RKey, Cause> {
        let flags = MrFlags::new().with_is_mw(true).with_ukey_en(true);
        let flags = flags.with_inv_en(mw_type == MwType::Type2);
        let cmd = CreateMrCmd { dbid_flags: flags.into_bits().into(), ..CreateMrCmd::ZERO };
        self.make_key(pd, Kind::Window(mw_type), cmd).map(RKey::truncated)
    }

    fn make_key(&mut self, pd: &ProtectionDomain<'_>, kind: Kind, cmd: CreateMrCmd) -> Result<u32, Cause> {
        self.check_own(pd.lease)?;
        self.check_room()?;
        let key = self.nic.free_key()?;
        let cmd = CreateMrCmd { pd_id: pd.id.into(), id_ver: key.into(), tbl_index: ANY_TABLE.into(), ..cmd };
        self.nic.session.rdma(&cmd)?;
        self.nic.created((kind, key >> 8), &[pd.object()]);
        Ok(key)
    }

    pub(super) fn forget_window(&mut self, key: u32) -> Result<(), Cause> {
        let mw_type = self.books.as_ref().and_then(|books| books.ledger.window(key >> 8));
        self.forget_key((Kind::Window(mw_type.ok_or(Cause::NoSuch)?), key >> 8), key)
    }

    fn forget_key(&mut self, object: Object, key: u32) -> Result<(), Cause> {
        self.check_unused(object)?;
        self.nic.session.rdma(&DestroyMrCmd { mr_id: key.into() })?;
        self.nic.destroyed(object);
        Ok(())
    }
}
