//! Memory regions and windows.

use directverbs::ionic::admin::{ANY_TABLE, CreateMrCmd, DestroyMrCmd, PagePlan};
use directverbs::ionic::wqe::MrFlags;
use directverbs::verbs::{AccessFlags, MwType, RKey};

use super::device::{Device, ProtectionDomain};
use super::error::{Cause, Error, On};
use crate::dma::DmaMemory;
use crate::host::Host;
use crate::lease::Lease;
use crate::region::Region;

/// Alignment of registered memory.
const ALIGN: usize = 4096;

impl<H: Host> Device<H> {
    pub(super) fn make_region(
        &mut self,
        pd: u32,
        len: usize,
        access: AccessFlags,
    ) -> Result<Region<'static, H::Dma>, Cause> {
        let block = self.session.link.host.dma(len, ALIGN)?;
        let addr = block.device_address();
        // A region has at least one byte.
        let bytes = len.max(1) as u64;
        let plan = PagePlan::contiguous(self.identity.page_sizes, addr, addr, bytes)?;
        match self.tell_region(pd, (addr, bytes), &plan, plan.addresses(addr), access) {
            Ok(key) => Ok(Region::new(block, len, key, Lease::default())),
            Err(cause) => {
                if !cause.is_harmless() {
                    block.abandon();
                }
                Err(cause)
            }
        }
    }

    /// Registers memory by its pages: `len` bytes that requests name from `va` on, in `pages` of 2^`page_log2` bytes, whose
    /// bus addresses are given. The first byte is as far into the first page as `va` is into a page.
    ///
    /// # Safety
    /// The pages are memory that the device may reach, and write to as `access` says, until the key is given back with
    /// [`Device::deregister`], or the device is closed.
    ///
    /// # Errors
    /// The device has no such pages, too few of them were given, or it refuses.
    pub unsafe fn register(
        &mut self,
        pd: &ProtectionDomain,
        va: u64,
        len: u64,
        page_log2: u8,
        pages: &[u64],
        access: AccessFlags,
    ) -> Result<RKey, Error> {
        PagePlan::listed(self.identity.page_sizes, va, len, page_log2, pages.len() as u64)
            .map_err(Cause::from)
            .and_then(|plan| self.tell_region(pd.id, (va, len), &plan, pages.iter().copied(), access))
            .map(RKey::truncated)
            .on("memory region", None)
    }

    /// Takes back what [`Device::register`] did.
    ///
    /// # Errors
    /// There is no such key, or the device refuses.
    pub fn deregister(&mut self, key: RKey) -> Result<(), Error> {
        self.forget_key(key.get()).on("memory region", key.get())
    }

    fn tell_region(
        &mut self,
        pd: u32,
        (va, length): (u64, u64),
        plan: &PagePlan,
        mut pages: impl Iterator<Item = u64>,
        access: AccessFlags,
    ) -> Result<u32, Cause> {
        self.objects.pds.check(pd)?;
        let limit = self.identity.page_table_entries;
        if plan.count > limit {
            return Err(Cause::Plan(directverbs::verbs::PlanError::OverDevice {
                what: "pages",
                asked: plan.count.into(),
                max: limit.into(),
            }));
        }
        let mut first = 0;
        let mut list = None;
        if plan.list_bytes() == 0 {
            first = pages.next().unwrap_or_default();
        } else {
            let mut block = self.session.link.host.dma(plan.list_bytes(), 8)?;
            for (i, page) in pages.enumerate() {
                if !block.store(i * 8, &page.to_le_bytes()) {
                    return Err(Cause::NoSuch);
                }
            }
            list = Some(block);
        }
        let list_at = list.as_ref().map_or(0, DmaMemory::device_address);
        let cmd = CreateMrCmd {
            va: va.into(),
            length: length.into(),
            map_count: plan.count.into(),
            dma_addr: plan.dma_addr(first, list_at).into(),
            dbid_flags: MrFlags::from_access(access).into_bits().into(),
            page_size_log2: plan.page_size_log2,
            ..CreateMrCmd::ZERO
        };
        let made = self.make_key(pd, cmd);
        // The device has read the list when it has answered.
        match (list, &made) {
            (Some(list), Err(cause)) if !cause.is_harmless() => list.abandon(),
            _ => {}
        }
        made
    }

    pub(super) fn make_window(&mut self, pd: u32, mw_type: MwType) -> Result<RKey, Cause> {
        self.objects.pds.check(pd)?;
        let flags = MrFlags::new().with_is_mw(true).with_ukey_en(true);
        let flags = flags.with_inv_en(mw_type == MwType::Type2);
        let cmd = CreateMrCmd { dbid_flags: flags.into_bits().into(), ..CreateMrCmd::ZERO };
        self.make_key(pd, cmd).map(RKey::truncated)
    }

    fn make_key(&mut self, pd: u32, cmd: CreateMrCmd) -> Result<u32, Cause> {
        let key = self.objects.take_key(pd)?;
        let cmd = CreateMrCmd { pd_id: pd.into(), id_ver: key.into(), tbl_index: ANY_TABLE.into(), ..cmd };
        match self.session.rdma(&cmd) {
            Ok(_) => Ok(key),
            Err(cause) => {
                if cause.is_harmless() {
                    self.objects.give_key(key);
                }
                Err(cause)
            }
        }
    }

    pub(super) fn forget_key(&mut self, key: u32) -> Result<(), Cause> {
        self.objects.keys.check(key >> 8)?;
        self.session.rdma(&DestroyMrCmd { mr_id: key.into() })?;
        self.objects.give_key(key);
        Ok(())
    }
}
