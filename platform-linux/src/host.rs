//! What the devices of both families have: our end of the wire, registered memory, and numbers that stand for objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use directverbs::verbs::{self, AccessFlags, AhId, Gid, LKey, Mac, MwType, PortAttributes, RKey};

use crate::error::{Error, Result};
use crate::objects::{AddressHandle, Context, MemoryRegion, MemoryWindow, ProtectionDomain};
use crate::sysfs::PortState;
use crate::uverbs::Pages;

/// Our end of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Port, from 1.
    pub port: u8,
    /// Our GID.
    pub gid: Gid,
    /// Its index in the port's table.
    pub gid_index: u8,
    /// Ethernet address of its interface; zero if it is not known. The kernel fills it in by itself.
    pub mac: Mac,
}

/// What the devices of both families have.
#[derive(Debug)]
pub(crate) struct Host {
    context: Context,
    origin: Origin,
    opened: Instant,
    handles: BTreeMap<u32, AddressHandle>,
    /// By the part of the key that a bind does not change.
    windows: BTreeMap<u32, MemoryWindow>,
}

impl Host {
    pub fn new(context: &Context, origin: Origin) -> Self {
        Self {
            context: context.clone(),
            origin,
            opened: Instant::now(),
            handles: BTreeMap::new(),
            windows: BTreeMap::new(),
        }
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// State of the port: down, if the kernel does not tell it any more.
    pub fn port(&self) -> PortAttributes {
        let Origin { port, gid, gid_index, mac } = self.origin;
        let now = self.context.query_port(port).ok();
        PortAttributes {
            active: now.is_some_and(|p| p.state == PortState::Active),
            mtu: now.and_then(|p| p.active_mtu).unwrap_or_default(),
            mac,
            gid,
            gid_index,
        }
    }

    /// Nanoseconds since the device was opened.
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Lets others run: the device works without this process.
    pub fn progress(&self) -> bool {
        self.context.file().kernel().idle()
    }

    /// READs and atomics outstanding at a queue pair.
    pub fn max_rd_atomic(&self) -> u8 {
        let base = &self.context.limits().base;
        let least = base.max_qp_rd_atom.get().min(base.max_qp_init_rd_atom.get());
        u8::try_from(least).unwrap_or(u8::MAX)
    }

    pub fn alloc_mr(&self, pd: &ProtectionDomain, len: usize, access: AccessFlags) -> Result<Region> {
        let pages = Arc::new(Pages::new(self.context.file().kernel(), len)?);
        // A region has at least one byte.
        let object = MemoryRegion::register(pd, &pages, 0..len.max(1), access)?;
        Ok(Region { object, pages, len })
    }

    pub fn alloc_mw(&mut self, pd: &ProtectionDomain, mw_type: MwType) -> Result<RKey> {
        let window = MemoryWindow::alloc(pd, mw_type)?;
        let key = window.rkey();
        self.windows.insert(key.get() >> 8, window);
        Ok(key)
    }

    pub fn dealloc_mw(&mut self, key: RKey) -> Result<()> {
        let unknown = Error::Value { object: "memory window", attribute: "key", what: "is that of none" };
        self.windows.remove(&(key.get() >> 8)).ok_or(unknown)?.destroy()
    }

    pub fn keep_ah(&mut self, (handle, id): (AddressHandle, AhId)) -> AhId {
        self.handles.insert(id.get(), handle);
        id
    }

    pub fn destroy_ah(&mut self, id: AhId) -> Result<()> {
        let unknown = Error::Value { object: "address handle", attribute: "number", what: "is that of none" };
        self.handles.remove(&id.get()).ok_or(unknown)?.destroy()
    }
}

/// Registered memory of this process.
#[derive(Debug)]
pub struct Region {
    object: MemoryRegion,
    pages: Arc<Pages>,
    len: usize,
}

impl Region {
    /// The kernel's object.
    pub fn object(&self) -> &MemoryRegion {
        &self.object
    }

    /// The memory, of which other ranges may be registered with other rights.
    pub fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// Deregisters it.
    pub(crate) fn destroy(self) -> Result<()> {
        self.object.destroy()
    }

    fn inside(&self, offset: usize, len: usize) -> bool {
        offset <= self.len && len <= self.len - offset
    }
}

impl verbs::MemoryRegion for Region {
    fn addr(&self) -> u64 {
        self.object.iova()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn lkey(&self) -> LKey {
        self.object.lkey()
    }

    fn rkey(&self) -> RKey {
        self.object.rkey()
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        self.inside(offset, bytes.len()) && self.pages.write(offset, bytes)
    }

    fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        self.inside(offset, bytes.len()) && self.pages.read(offset, bytes)
    }
}
