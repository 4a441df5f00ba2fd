//! Memory regions.

use directverbs::bnxt_re::pbl::{PAGE, PblPlan, Use};
use directverbs::bnxt_re::rcfw::create::{Listed, RegionKey};
use directverbs::bnxt_re::rcfw::function::caps;
use directverbs::bnxt_re::rcfw::mr::{CmdqAllocateMrw, CmdqDeallocateKey, CmdqRegisterMr};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::verbs::{AccessFlags, RKey};

use super::area::{Areas, address, shared};
use super::device::{Device, ProtectionDomain};
use super::error::Error;
use crate::dma::DmaMemory;
use crate::host::Host;
use crate::ledger::{Kind, Object};
use crate::region::Region;

/// Which region a key is of; the lowest byte may change.
const fn region(key: u32) -> Object {
    (Kind::Region, key >> 8)
}

impl<'n, H: Host> Device<'n, H> {
    pub(super) fn new_mr(
        &mut self,
        pd: &ProtectionDomain<'_>,
        len: usize,
        access: AccessFlags,
    ) -> Result<Region<'n, H::Dma>, Error> {
        self.check_pd(pd)?;
        self.check_room()?;
        let bytes = len.max(1) as u64;
        let mut areas = Areas::default();
        let at = areas.pages(bytes);
        let area = areas.list(at, bytes, Use::Memory)?;
        // The list is the device's only during the command.
        let data = self.nic.host.dma(len, PAGE as usize)?;
        let mut lists = shared(&self.nic.host, areas.bytes() - bytes.next_multiple_of(PAGE))?;
        let (list_address, va) = (address(&lists), data.device_address());
        let listed = area.write_apart(&mut lists, list_address, va)?;
        let registered = self.tell_region(pd, access, va, bytes, listed);
        match registered {
            Ok(key) => {
                lists.release();
                Ok(Region::new(data, len, key, self.lease))
            }
            Err(error) => {
                if error.is_refusal() {
                    lists.release();
                } else {
                    data.abandon();
                }
                Err(error)
            }
        }
    }

    fn tell_region(
        &mut self,
        pd: &ProtectionDomain<'_>,
        access: AccessFlags,
        va: u64,
        bytes: u64,
        pages: Listed,
    ) -> Result<u32, Error> {
        let allocates = self.told.func.dev_cap_flags.get() & caps::MR_REGISTER_ALLOC != 0;
        let (brought, host) = self.nic.brought()?;
        let key = if allocates {
            RegionKey::New(pd.id)
        } else {
            RegionKey::Allocated(brought.command(host, &CmdqAllocateMrw::region(pd.id))?.xid.get())
        };
        let command = CmdqRegisterMr::new(key, access, va, bytes, pages);
        let key = match (brought.command(host, &command), key) {
            (Ok(done), RegionKey::New(_)) => done.xid.get(),
            (Ok(_), RegionKey::Allocated(key)) => key,
            (Err(error), RegionKey::Allocated(key)) if error.is_refusal() => {
                // The key opens nothing; without it the device is as before.
                brought.command(host, &CmdqDeallocateKey::region(key))?;
                return Err(error);
            }
            (Err(error), _) => return Err(error),
        };
        self.nic.created(Opcode::REGISTER_MR, region(key), key, &[pd.object()])?;
        Ok(key)
    }

    /// Registers memory by its pages: `len` bytes that requests name from `va` on, in `pages` of 2^`page_log2` bytes, whose
    /// bus addresses are given. The first byte is as far into the first page as `va` is into a page.
    ///
    /// # Safety
    /// The pages are memory that the device may reach, and write to as `access` says, until the key is given back with
    /// [`Device::deregister`], or the NIC is closed or reset.
    ///
    /// # Errors
    /// Pages of a size that there is not, not as many as the region takes, or not aligned; the device has no room, or
    /// refuses.
    pub unsafe fn register(
        &mut self,
        pd: &ProtectionDomain<'_>,
        va: u64,
        len: u64,
        page_log2: u8,
        pages: &[u64],
        access: AccessFlags,
    ) -> Result<RKey, Error> {
        self.check_pd(pd)?;
        self.check_room()?;
        let first = va & (1u64.checked_shl(page_log2.into()).unwrap_or(0).wrapping_sub(1));
        let plan = PblPlan::new(first.saturating_add(len), page_log2)?;
        if pages.len() as u64 != u64::from(plan.pages) || len == 0 {
            return Err(Error::Pages { given: pages.len(), needed: plan.pages });
        }
        // The list is the device's only during the command.
        let mut lists = shared(&self.nic.host, plan.bytes())?;
        let at = address(&lists);
        let page = |i: u32| pages.get(i as usize).copied().unwrap_or_default();
        let root = match plan.write(&mut lists, 0, at, Use::Memory, page) {
            Ok(root) => root,
            Err(error) => {
                // The device does not know it yet.
                lists.release();
                return Err(error.into());
            }
        };
        match self.tell_region(pd, access, va, len, Listed { plan, root }) {
            Ok(key) => {
                lists.release();
                Ok(RKey::truncated(key))
            }
            Err(error) => {
                if error.is_refusal() {
                    lists.release();
                }
                Err(error)
            }
        }
    }

    /// Takes back what [`Device::register`] did.
    ///
    /// # Errors
    /// There is no such key, or the device refuses.
    pub fn deregister(&mut self, key: RKey) -> Result<(), Error> {
        self.forget_region(key.get())
    }

    /// Takes a region's key back.
    pub(super) fn forget_region(&mut self, key: u32) -> Result<(), Error> {
        self.check_unused(region(key))?;
        let (brought, host) = self.nic.brought()?;
        brought.command(host, &CmdqDeallocateKey::region(key))?;
        self.nic.destroyed(region(key));
        Ok(())
    }
}
