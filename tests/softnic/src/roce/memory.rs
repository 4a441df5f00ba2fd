//! Memory keys: regions and windows, what they cover and allow, and the copies through them.

use directverbs::verbs::{AccessFlags, BindMw, FastRegister, MwType, PageTable, PdId, QpId};

use super::ids::Table;
use crate::bus::Bus;
use crate::device::{DeviceError, Memory, MrConfig, MrKind};

/// An access that a key does not allow: no such key, another protection domain, out of bounds, a missing right, or
/// memory that the bus does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied;

/// Entries of a list of page addresses that is itself named by a list: one page of 8-byte addresses.
const LIST_ENTRIES: usize = 512;
/// Bits of a page address that are flags.
const PAGE_FLAGS: u64 = 0xfff;

/// On whose behalf memory is accessed.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Protection domain of the queue pair.
    pub pd: PdId,
    /// The queue pair.
    pub qp: QpId,
}

#[derive(Debug)]
enum Kind {
    Region {
        memory: Memory,
        /// Windows bound to it.
        windows: u32,
        /// Pages that a fast-register may list; 0 for a region that is registered once and for all.
        max_pages: u32,
    },
    Window {
        mw_type: MwType,
        /// Index of the region under it, while bound.
        region: u32,
        /// Queue pair that it is bound to, for type 2.
        qp: QpId,
    },
}

#[derive(Debug)]
struct Entry {
    key: u32,
    pd: PdId,
    kind: Kind,
    /// Address of the first byte, as requests name it.
    addr: u64,
    length: u64,
    access: AccessFlags,
    /// A fast-register region or window that is not set up has a key that opens nothing.
    valid: bool,
}

impl Entry {
    /// Offset of `addr` in the entry, if `len` bytes from there lie within.
    fn offset(&self, addr: u64, len: u64) -> Option<u64> {
        let base = if self.access.contains(AccessFlags::ZERO_BASED) { 0 } else { self.addr };
        let offset = addr.checked_sub(base)?;
        (offset <= self.length && len <= self.length - offset).then_some(offset)
    }
}

/// All memory keys of a device.
#[derive(Debug)]
pub struct MemoryTable {
    entries: Table<Entry>,
    /// Key that stands for all host memory, for local use.
    all: Option<u32>,
}

impl MemoryTable {
    /// No keys but `all`.
    pub fn new(all: Option<u32>) -> Self {
        Self { entries: Table::new("memory key", 1, 0xff_ffff), all }
    }

    /// Adds a region or window and returns its key.
    ///
    /// # Errors
    /// The key is taken, or the range leaves the address space.
    pub fn create(&mut self, config: &MrConfig) -> Result<u32, DeviceError> {
        if config.addr.checked_add(config.length).is_none() {
            return Err(DeviceError::Invalid("memory region: address and length leave the address space"));
        }
        let (kind, valid) = match &config.kind {
            MrKind::Region(memory) => {
                (Kind::Region { memory: memory.clone(), windows: 0, max_pages: 0 }, true)
            }
            MrKind::FastRegister { max_pages } => {
                let memory = Memory::Host(0);
                (Kind::Region { memory, windows: 0, max_pages: (*max_pages).max(1) }, false)
            }
            MrKind::WindowType1 => (window(MwType::Type1), false),
            MrKind::WindowType2 => (window(MwType::Type2), false),
        };
        let entry = Entry {
            key: 0,
            pd: config.pd,
            kind,
            addr: config.addr,
            length: config.length,
            access: config.access,
            valid,
        };
        let index = self.entries.insert(config.key.map(|key| key >> 8), entry)?;
        let key = config.key.unwrap_or(index << 8);
        self.entries.get_mut(index)?.key = key;
        Ok(key)
    }

    /// Removes a region or window; returns its protection domain.
    ///
    /// # Errors
    /// There is none with this index, or windows are bound to it.
    pub fn destroy(&mut self, key: u32) -> Result<PdId, DeviceError> {
        let index = key >> 8;
        if let Kind::Region { windows: 1.., .. } = self.entries.get(index)?.kind {
            return Err(self.entries.in_use(index));
        }
        self.unbind(index);
        Ok(self.entries.remove(index)?.pd)
    }

    /// Frees the region under window `index`, if that is a bound window.
    fn unbind(&mut self, index: u32) {
        let Some(entry) = self.entries.find_mut(index) else { return };
        let Kind::Window { region, .. } = entry.kind else { return };
        let was_bound = std::mem::replace(&mut entry.valid, false);
        if was_bound
            && let Some(Entry { kind: Kind::Region { windows, .. }, .. }) = self.entries.find_mut(region)
        {
            *windows -= 1;
        }
    }

    /// Memory and offset that `len` bytes at `addr` under `key` are at.
    fn resolve(
        &self,
        scope: Scope,
        key: u32,
        addr: u64,
        len: u64,
        access: AccessFlags,
    ) -> Result<(&Memory, u64), Denied> {
        static ALL: Memory = Memory::Host(0);
        let remote =
            AccessFlags::REMOTE_READ.union(AccessFlags::REMOTE_WRITE).union(AccessFlags::REMOTE_ATOMIC);
        let is_local = !access.intersects(remote);
        if is_local && self.all == Some(key) {
            return Ok((&ALL, addr));
        }
        let entry = self.entries.find(key >> 8).ok_or(Denied)?;
        if entry.key != key || !entry.valid || entry.pd != scope.pd || !entry.access.contains(access) {
            return Err(Denied);
        }
        let offset = entry.offset(addr, len).ok_or(Denied)?;
        match &entry.kind {
            Kind::Region { memory, .. } => Ok((memory, offset)),
            Kind::Window { mw_type, region, qp } => {
                if is_local || *mw_type == MwType::Type2 && *qp != scope.qp {
                    return Err(Denied);
                }
                let under = self.entries.find(*region).ok_or(Denied)?;
                let Kind::Region { memory, .. } = &under.kind else { return Err(Denied) };
                let start = under.offset(entry.addr, entry.length).filter(|_| under.valid);
                Ok((memory, start.ok_or(Denied)? + offset))
            }
        }
    }

    /// Checks that `key` allows `access` to `len` bytes at `addr`.
    ///
    /// # Errors
    /// It does not.
    pub fn check(
        &self,
        scope: Scope,
        key: u32,
        addr: u64,
        len: u64,
        access: AccessFlags,
    ) -> Result<(), Denied> {
        self.resolve(scope, key, addr, len, access).map(drop)
    }

    /// Copies memory at `addr` under `key` into `out`.
    ///
    /// # Errors
    /// The access is denied; `out` may be partly filled.
    pub fn read(
        &self,
        bus: &dyn Bus,
        scope: Scope,
        key: u32,
        addr: u64,
        out: &mut [u8],
        access: AccessFlags,
    ) -> Result<(), Denied> {
        let (memory, offset) = self.resolve(scope, key, addr, out.len() as u64, access)?;
        let mut done = 0;
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let (at, len) = memory.locate(offset + done as u64, rest.len()).map_err(|_| Denied)?;
            bus.read(at, rest.get_mut(..len).ok_or(Denied)?).map_err(|_| Denied)?;
            done += len;
        }
        Ok(())
    }

    /// Copies `bytes` to `addr` under `key`.
    ///
    /// # Errors
    /// The access is denied; bytes may be partly written if pages are missing from the bus.
    pub fn write(
        &self,
        bus: &dyn Bus,
        scope: Scope,
        key: u32,
        addr: u64,
        bytes: &[u8],
        access: AccessFlags,
    ) -> Result<(), Denied> {
        let (memory, offset) = self.resolve(scope, key, addr, bytes.len() as u64, access)?;
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            let (at, len) = memory.locate(offset + done as u64, rest.len()).map_err(|_| Denied)?;
            bus.write(at, rest.get(..len).ok_or(Denied)?).map_err(|_| Denied)?;
            done += len;
        }
        Ok(())
    }

    /// Closes the key of a fast-register region or a type 2 window of this queue pair.
    ///
    /// # Errors
    /// It is no such key, or closed already.
    pub fn invalidate(&mut self, scope: Scope, key: u32) -> Result<(), Denied> {
        let index = key >> 8;
        let entry = self.entries.find_mut(index).ok_or(Denied)?;
        if entry.key != key || !entry.valid || entry.pd != scope.pd {
            return Err(Denied);
        }
        match entry.kind {
            Kind::Region { windows: 0, max_pages: 1.., .. } => entry.valid = false,
            Kind::Window { mw_type: MwType::Type2, qp, .. } if qp == scope.qp => self.unbind(index),
            _ => return Err(Denied),
        }
        Ok(())
    }

    /// Binds a memory window, or unbinds one of type 1 when the length is 0.
    ///
    /// # Errors
    /// The keys do not belong together, the region does not allow windows, or the window is bound already (type 2).
    pub fn bind(&mut self, scope: Scope, bind: &BindMw) -> Result<(), Denied> {
        let (index, new_key) = (bind.mw.get() >> 8, bind.new_key.get());
        let entry = self.entries.find(index).ok_or(Denied)?;
        let Kind::Window { mw_type, .. } = entry.kind else { return Err(Denied) };
        let fits = mw_type == bind.mw_type && new_key >> 8 == index && entry.pd == scope.pd;
        // A family whose request names only the new key gives it for both.
        let is_current = entry.key == bind.mw.get() || bind.mw == bind.new_key;
        if !fits || !is_current || (mw_type == MwType::Type2 && entry.valid) {
            return Err(Denied);
        }
        let region = bind.region.get() >> 8;
        if bind.length == 0 && mw_type == MwType::Type1 {
            self.unbind(index);
        } else {
            let under = self.entries.find(region).ok_or(Denied)?;
            let writes = bind.access.intersects(AccessFlags::REMOTE_WRITE.union(AccessFlags::REMOTE_ATOMIC));
            let needs = if writes { AccessFlags::LOCAL_WRITE } else { AccessFlags::empty() };
            let allowed = under.access.contains(AccessFlags::MW_BIND.union(needs));
            let is_region = matches!(under.kind, Kind::Region { .. });
            let is_there = under.key == bind.region.get() && under.valid && under.pd == scope.pd;
            if !allowed || !is_region || !is_there || under.offset(bind.addr, bind.length).is_none() {
                return Err(Denied);
            }
            self.unbind(index);
            if let Kind::Region { windows, .. } = &mut self.entries.find_mut(region).ok_or(Denied)?.kind {
                *windows += 1;
            }
        }
        let entry = self.entries.find_mut(index).ok_or(Denied)?;
        entry.key = new_key;
        entry.kind = Kind::Window { mw_type, region, qp: scope.qp };
        entry.addr = bind.addr;
        entry.length = bind.length;
        entry.access = bind.access;
        entry.valid = bind.length != 0 || mw_type == MwType::Type2;
        Ok(())
    }

    /// Sets up a fast-register region.
    ///
    /// # Errors
    /// The key is none of a closed fast-register region, the list is too long or too short, or not on the bus.
    pub fn fast_register(
        &mut self,
        bus: &dyn Bus,
        scope: Scope,
        register: &FastRegister,
    ) -> Result<(), Denied> {
        let index = register.key.get() >> 8;
        let entry = self.entries.find_mut(index).ok_or(Denied)?;
        let Kind::Region { memory, max_pages, .. } = &mut entry.kind else { return Err(Denied) };
        if *max_pages == 0 || entry.valid || entry.pd != scope.pd || register.pages > *max_pages {
            return Err(Denied);
        }
        let page = 1u64.checked_shl(register.page_shift.into()).ok_or(Denied)?;
        let first = register.addr & (page - 1);
        let covered = u64::from(register.pages).checked_mul(page).ok_or(Denied)?;
        let ends = register.addr.checked_add(register.length).is_some();
        if !ends || register.length > covered.checked_sub(first).ok_or(Denied)? {
            return Err(Denied);
        }
        let count = register.pages as usize;
        *memory = match register.table {
            PageTable::Contiguous(at) => Memory::Host((at & !(page - 1)) + first),
            PageTable::Level1(list) => {
                Memory::Pages { shift: register.page_shift, first, pages: list_at(bus, list, count)?.into() }
            }
            PageTable::Level2(lists) => {
                let mut pages = Vec::with_capacity(count);
                for list in list_at(bus, lists, count.div_ceil(LIST_ENTRIES))? {
                    let part = (count - pages.len()).min(LIST_ENTRIES);
                    pages.extend(list_at(bus, list, part)?);
                }
                Memory::Pages { shift: register.page_shift, first, pages: pages.into() }
            }
        };
        entry.key = register.key.get();
        entry.addr = register.addr;
        entry.length = register.length;
        entry.access = register.access;
        entry.valid = true;
        Ok(())
    }
}

fn window(mw_type: MwType) -> Kind {
    Kind::Window { mw_type, region: 0, qp: QpId::default() }
}

/// A list of `count` page addresses in host memory at `at`.
fn list_at(bus: &dyn Bus, at: u64, count: usize) -> Result<Vec<u64>, Denied> {
    let mut bytes = vec![0; count * 8];
    bus.read(at, &mut bytes).map_err(|_| Denied)?;
    let word = |w: &[u8]| w.try_into().map_or(0, u64::from_le_bytes) & !PAGE_FLAGS;
    Ok(bytes.chunks_exact(8).map(word).collect())
}
