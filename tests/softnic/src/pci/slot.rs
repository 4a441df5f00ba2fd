use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use directverbs::verbs::shown;
use directverbs_bare::host::ResetError;
use directverbs_bare::pci::{self, Config, Width};
use directverbs_bare::{Caching, Clock, DmaError, DmaMemory, Host, MapError, Timeout};

use super::endpoint::Endpoint;
use super::fault::{AccessFaults, CommandFaults};
use super::function::{Function, Port};
use super::gate::Gate;
use super::registers::ModelRegisters;
use super::trace::Trace;
use crate::bus::{HostBlock, HostMemory};
use crate::combining::{Combining, LINE};
use crate::fabric::Fabric;

/// Where "firmware" puts BARs: above 4 GiB for those that can be there, so that a half of an address that is lost is noticed.
const WIDE_BARS: u64 = 0x38_0000_0000;
const NARROW_BARS: u64 = 0xe000_0000;
const BAR0: u16 = 0x10;

/// Virtual time that passes when nothing happens: more with each time, so that long waits do not take long.
const FIRST_PAUSE_NS: u64 = 1000;
const PAUSE_DOUBLINGS: u32 = 14;

/// A PCI slot of this process with a software NIC in it: the in-process [`Host`]. Clones are the same slot.
///
/// Registers are calls of the model, DMA memory has addresses of its own, and time is the fabric's: it goes on while the
/// driver waits. Locks are held for one access only, so the NIC may run on a thread of its own.
#[derive(Clone, Debug)]
pub struct Slot(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    endpoint: Mutex<Endpoint>,
    gate: Arc<Gate>,
    access_faults: AccessFaults,
    command_faults: CommandFaults,
    fabric: Fabric,
    memory: Arc<HostMemory>,
    limit: AtomicUsize,
    most: AtomicUsize,
    abandoned: Mutex<Vec<HostBlock>>,
    combining: Mutex<Combining<(u8, u64)>>,
    idle: AtomicU32,
    loads: AtomicU64,
    stores: AtomicU64,
    config_accesses: AtomicU64,
}

/// What the driver has done with its slot so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Loads of registers.
    pub loads: u64,
    /// Stores to registers, doorbells among them. A combined line counts as one for each run of bytes.
    pub stores: u64,
    /// Accesses to configuration space.
    pub config: u64,
    /// Most bytes of DMA memory that were in use at a time.
    pub memory: usize,
}

impl Slot {
    /// Builds a function and plugs it in. Its time is that of `fabric`, where its NIC should be attached.
    pub fn plug(fabric: &Fabric, trace: Trace, build: impl FnOnce(Port) -> Box<dyn Function>) -> Self {
        let memory = HostMemory::new();
        let command_faults = CommandFaults::default();
        let mut endpoint = Endpoint::new(memory.clone(), command_faults.clone(), trace, build);
        assign_bars(&mut endpoint);
        endpoint.faults().clear();
        Self(Arc::new(Inner {
            gate: endpoint.gate().clone(),
            access_faults: endpoint.faults().clone(),
            endpoint: Mutex::new(endpoint),
            command_faults,
            fabric: fabric.clone(),
            memory,
            limit: AtomicUsize::new(usize::MAX),
            most: AtomicUsize::new(0),
            abandoned: Mutex::default(),
            combining: Mutex::new(Combining::new(0)),
            idle: AtomicU32::new(0),
            loads: AtomicU64::new(0),
            stores: AtomicU64::new(0),
            config_accesses: AtomicU64::new(0),
        }))
    }

    /// What goes wrong with accesses.
    pub fn access_faults(&self) -> &AccessFaults {
        &self.0.access_faults
    }

    /// What goes wrong with commands.
    pub fn command_faults(&self) -> &CommandFaults {
        &self.0.command_faults
    }

    /// DMA accesses of the function outside of what the driver has shared, or without bus mastering.
    pub fn violations(&self) -> u64 {
        self.0.gate.violations()
    }

    /// The host's memory, with the interrupts raised so far.
    pub fn memory(&self) -> &Arc<HostMemory> {
        &self.0.memory
    }

    /// Limits the DMA memory that the driver gets to `bytes`.
    pub fn limit_memory(&self, bytes: usize) {
        self.0.limit.store(bytes, Ordering::Release);
    }

    /// What the driver has done so far.
    pub fn counts(&self) -> Counts {
        Counts {
            loads: self.0.loads.load(Ordering::Acquire),
            stores: self.0.stores.load(Ordering::Acquire),
            config: self.0.config_accesses.load(Ordering::Acquire),
            memory: self.0.most.load(Ordering::Acquire),
        }
    }

    /// Bytes of memory that a driver has given up but the device may still know.
    pub fn abandoned(&self) -> usize {
        lock(&self.0.abandoned).iter().map(HostBlock::len).sum()
    }

    /// Plugs the function in again after it was pulled out: as after power-on, with BARs assigned.
    pub fn replug(&self) {
        let mut endpoint = lock(&self.0.endpoint);
        endpoint.replug();
        assign_bars(&mut endpoint);
    }

    pub(super) fn bar_read(&self, bar: u8, offset: u64, bytes: &mut [u8]) {
        self.0.loads.fetch_add(1, Ordering::AcqRel);
        lock(&self.0.endpoint).bar_read(bar, offset, bytes);
    }

    pub(super) fn bar_write(&self, bar: u8, offset: u64, bytes: &[u8]) {
        self.0.stores.fetch_add(1, Ordering::AcqRel);
        self.0.idle.store(0, Ordering::Release);
        lock(&self.0.endpoint).bar_write(bar, offset, bytes);
    }

    /// A store to a write-combining mapping: it waits, unless buffers are short.
    pub(super) fn combine(&self, bar: u8, offset: u64, bytes: &[u8]) {
        let within = offset % LINE as u64;
        let leaves = lock(&self.0.combining).put((bar, offset - within), within as usize, bytes);
        if let Some(line) = leaves {
            self.leave(&line);
        }
    }

    /// Combined stores leave.
    pub(super) fn flush(&self) {
        while let Some(line) = { lock(&self.0.combining).take() } {
            self.leave(&line);
        }
    }

    fn leave(&self, line: &crate::combining::Line<(u8, u64)>) {
        let (bar, base) = line.key;
        for (offset, bytes) in line.runs() {
            self.bar_write(bar, base + offset as u64, bytes);
        }
    }
}

/// Sizes BARs and gives them addresses, as firmware does.
fn assign_bars(endpoint: &mut Endpoint) {
    let (mut wide, mut narrow) = (WIDE_BARS, NARROW_BARS);
    for bar in endpoint.identity().bars.clone() {
        let next = if bar.wide { &mut wide } else { &mut narrow };
        let address = next.next_multiple_of(bar.len);
        *next = address + bar.len;
        let at = BAR0 + u16::from(bar.index) * 4;
        let [low, high] = [address as u32, (address >> 32) as u32];
        endpoint.config_write(at, &low.to_le_bytes());
        if bar.wide {
            endpoint.config_write(at + 4, &high.to_le_bytes());
        }
    }
}

impl Config for Slot {
    fn read(&self, offset: u16, width: Width) -> u32 {
        self.0.config_accesses.fetch_add(1, Ordering::AcqRel);
        let mut bytes = [0; 4];
        let used = &mut bytes[..usize::from(width.bytes())];
        lock(&self.0.endpoint).config_read(offset, used);
        u32::from_le_bytes(bytes)
    }

    fn write(&self, offset: u16, width: Width, value: u32) {
        self.0.config_accesses.fetch_add(1, Ordering::AcqRel);
        let bytes = value.to_le_bytes();
        lock(&self.0.endpoint).config_write(offset, &bytes[..usize::from(width.bytes())]);
    }
}

impl Clock for Slot {
    fn now_ns(&self) -> u64 {
        self.0.fabric.now_ns()
    }

    fn relax(&self) {
        let served = lock(&self.0.endpoint).service();
        if self.0.fabric.step() || served {
            self.0.idle.store(0, Ordering::Release);
            return;
        }
        let idle = self.0.idle.fetch_add(1, Ordering::AcqRel);
        self.0.fabric.pass(FIRST_PAUSE_NS << idle.min(PAUSE_DOUBLINGS));
    }
}

// SAFETY: the function reaches memory only through the blocks of `memory`, by their bus addresses, which are never given
// again; blocks stay where they are until they are dropped, and abandoned ones are dropped only in `quiesce`, after bus
// mastering is gone. A slot has one function, and only tests give it to two drivers.
unsafe impl Host for Slot {
    type Config = Self;
    type Bar = ModelRegisters;
    type Dma = SharedBlock;

    fn config(&self) -> &Self {
        self
    }

    fn bar_len(&self, bar: u8) -> u64 {
        let endpoint = lock(&self.0.endpoint);
        endpoint.identity().bars.iter().find(|known| known.index == bar).map_or(0, |bar| bar.len)
    }

    fn map_bar(
        &self,
        bar: u8,
        offset: u64,
        len: usize,
        caching: Caching,
    ) -> Result<ModelRegisters, MapError> {
        MapError::check(bar, self.bar_len(bar), offset, len)?;
        Ok(ModelRegisters { slot: self.clone(), bar, base: offset, len, caching })
    }

    fn dma(&self, bytes: usize, align: usize) -> Result<SharedBlock, DmaError> {
        if !align.is_power_of_two() {
            return Err(DmaError::Alignment(align));
        }
        let memory = &self.0.memory;
        let used = memory.allocated();
        let fits = used.checked_add(bytes).is_some_and(|sum| sum <= self.0.limit.load(Ordering::Acquire));
        if !fits {
            return Err(DmaError::Exhausted { bytes, align: shown(align as u64) });
        }
        let block = memory.alloc_aligned(bytes, align);
        self.0.most.fetch_max(memory.allocated(), Ordering::AcqRel);
        Ok(SharedBlock { block, slot: self.clone() })
    }

    fn reset(&self) -> Result<(), ResetError> {
        pci::reset::function_level(self, self)
    }

    fn quiesce(&self) -> Result<(), Timeout> {
        pci::reset::quiesce(self, self)?;
        lock(&self.0.abandoned).clear();
        Ok(())
    }
}

/// DMA memory of a slot.
#[derive(Debug)]
pub struct SharedBlock {
    block: HostBlock,
    slot: Slot,
}

// SAFETY: a block is allocated memory of its own that stays where it is until it is dropped; the model accesses it by raw
// copies, and in one process everything is coherent.
unsafe impl DmaMemory for SharedBlock {
    fn base(&self) -> std::ptr::NonNull<u8> {
        self.block.base()
    }

    fn device_address(&self) -> u64 {
        self.block.addr()
    }

    fn len(&self) -> usize {
        self.block.len()
    }

    fn abandon(self) {
        let Self { block, slot } = self;
        lock(&slot.0.abandoned).push(block);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
