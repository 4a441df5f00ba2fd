//! The seams between a driver and a software NIC in process, proven by the simplest device that does DMA.

use std::time::Duration;

use directverbs::queue::barrier;
use directverbs_bare::host::ResetError;
use directverbs_bare::pci::{Command, Config, capability, command};
use directverbs_bare::{Caching, Clock, Deadline, DmaError, DmaMemory, Host, MapError, Registers, Timeout};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::{AccessFault, CommandFault, Copier, ModelRegisters, Slot, Trace};

const LIMIT: Duration = Duration::from_secs(5);
const GONE: u64 = u64::MAX;

fn slot() -> Slot {
    Slot::plug(&Fabric::new(FabricOptions::default()), Trace::default(), |port| Box::new(Copier::new(port)))
}

/// A driver of the copier.
struct Driver<H: Host> {
    host: H,
    registers: H::Bar,
}

impl<H: Host> Driver<H> {
    fn open(host: H) -> Self {
        command::enable(host.config(), Command::MEMORY | Command::BUS_MASTER);
        let registers = host.map_bar(0, 0, 4096, Caching::Uncached).expect("a BAR");
        Self { host, registers }
    }

    fn start(&self, from: u64, to: u64, len: usize, number: u64) {
        self.registers.write64(Copier::SOURCE, from);
        self.registers.write64(Copier::DESTINATION, to);
        self.registers.write64(Copier::LENGTH, len as u64);
        barrier::to_device();
        self.registers.write64(Copier::DOORBELL, number);
    }

    fn copy(&self, bytes: &[u8], number: u64) -> Result<Vec<u8>, Timeout> {
        let mut from = self.host.dma(bytes.len(), 64).expect("memory");
        let to = self.host.dma(bytes.len() + 8, 64).expect("memory");
        assert!(from.write(0, bytes));
        self.start(from.device_address(), to.device_address(), bytes.len(), number);
        Deadline::after(&self.host, LIMIT).wait(&self.host, || {
            let mut out = vec![0; bytes.len()];
            let done = to.load::<u64>(bytes.len()) == Some(number.to_le());
            Ok::<_, Timeout>((done && to.read(0, &mut out)).then_some(out))
        })
    }
}

#[test]
fn a_driver_copies_through_the_device() {
    let slot = slot();
    let driver = Driver::open(slot.clone());
    assert_eq!(slot.id(), Some((Copier::VENDOR, Copier::DEVICE)));
    assert_eq!(driver.copy(b"directverbs", 7).as_deref(), Ok(&b"directverbs"[..]));
    assert_eq!(driver.registers.read64(Copier::COPIES), 1);
    assert_eq!(slot.violations(), 0);
    assert_eq!(slot.memory().allocated(), 0, "blocks are freed");
    let counts = slot.counts();
    assert_eq!((counts.loads, counts.stores, counts.memory), (1, 4, 8192));
}

#[test]
fn device_addresses_are_not_those_of_the_process() {
    let slot = slot();
    for align in [1, 4096, 1 << 21] {
        let block = slot.dma(100, align).expect("memory");
        assert_ne!(block.device_address(), block.base().as_ptr() as u64);
        assert!(block.device_address().is_multiple_of(align as u64));
        assert!(block.base().as_ptr().addr().is_multiple_of(align));
    }
    let driver = Driver::open(slot.clone());
    let block = slot.dma(100, 1).expect("memory");
    driver.start(block.base().as_ptr() as u64, block.device_address(), 8, 1);
    assert_eq!((slot.violations(), driver.registers.read64(Copier::COPIES)), (1, 0));
}

#[test]
fn dma_outside_of_what_is_shared_is_counted() {
    let slot = slot();
    let driver = Driver::open(slot.clone());
    let block = slot.dma(4096, 1).expect("memory");
    let at = block.device_address();
    driver.start(at, at + 4080, 16, 1);
    assert_eq!(slot.violations(), 1, "the number behind the bytes is outside");
    drop(block);
    driver.start(at, at, 16, 2);
    assert_eq!(slot.violations(), 2, "freed memory");
    let block = slot.dma(4096, 1).expect("memory");
    command::disable(&slot, Command::BUS_MASTER);
    driver.start(block.device_address(), block.device_address(), 16, 3);
    assert_eq!(slot.violations(), 3, "no bus mastering");
}

#[test]
fn a_silent_device_ends_in_a_timeout_and_a_short_test() {
    let slot = slot();
    let driver = Driver::open(slot.clone());
    slot.command_faults().strike(1, CommandFault::Silent);
    assert!(driver.copy(b"first", 1).is_ok());
    let (before, began) = (slot.now_ns(), std::time::Instant::now());
    assert_eq!(driver.copy(b"second", 2), Err(Timeout { limit: LIMIT }));
    assert!(slot.now_ns() - before >= LIMIT.as_nanos() as u64);
    assert!(began.elapsed() < LIMIT, "the time was virtual");
    assert!(driver.copy(b"third", 3).is_ok());
    assert_eq!(slot.command_faults().commands(), 3);
}

#[test]
fn one_access_or_all_after_it_fail() {
    let slot = slot();
    let driver = Driver::open(slot.clone());
    let load = || driver.registers.read64(Copier::SOURCE);
    driver.registers.write64(Copier::SOURCE, 5);

    slot.access_faults().strike(1, AccessFault::Ones);
    assert_eq!([load(), load(), load()], [5, GONE, 5]);
    slot.access_faults().strike(0, AccessFault::Lost);
    driver.registers.write64(Copier::SOURCE, 6);
    assert_eq!((load(), slot.access_faults().accesses()), (5, 2));

    slot.access_faults().strike(1, AccessFault::Hung);
    driver.registers.write64(Copier::SOURCE, 7);
    driver.registers.write64(Copier::SOURCE, 8);
    slot.access_faults().clear();
    driver.registers.write64(Copier::SOURCE, 9);
    assert_eq!(load(), 7, "nothing arrives until a reset");
    assert_eq!(slot.reset(), Ok(()));
    let driver = Driver::open(slot.clone());
    driver.registers.write64(Copier::SOURCE, 9);
    assert_eq!(driver.registers.read64(Copier::SOURCE), 9);
}

#[test]
fn a_function_that_was_pulled_out_reads_as_ones_and_comes_back_when_plugged_in() {
    let slot = slot();
    let driver = Driver::open(slot.clone());
    slot.access_faults().strike(2, AccessFault::Removed);
    let timeout = driver.copy(b"gone", 1);
    assert_eq!(timeout, Err(Timeout { limit: LIMIT }));
    assert_eq!(driver.registers.read64(Copier::COPIES), GONE);
    assert_eq!(slot.id(), None);
    assert_eq!(slot.reset(), Err(ResetError::Gone));
    assert_eq!(slot.quiesce(), Ok(()));
    slot.replug();
    assert!(Driver::open(slot.clone()).copy(b"back", 1).is_ok());
}

#[test]
fn a_reset_forgets_all_but_the_addresses_of_bars() {
    let slot = slot();
    let bars = || [0x10, 0x14, 0x18, 0x1c].map(|at| slot.read32(at));
    let before = bars();
    let driver = Driver::open(slot.clone());
    driver.registers.write64(Copier::SOURCE, 5);
    assert_eq!(slot.reset(), Ok(()));
    assert_eq!(bars(), before);
    assert_eq!(driver.registers.read64(Copier::SOURCE), GONE, "memory accesses are off");
    command::enable(&slot, Command::MEMORY);
    assert_eq!(driver.registers.read64(Copier::SOURCE), 0);
}

#[test]
fn abandoned_memory_stays_until_the_device_is_off_the_bus() {
    let slot = slot();
    let driver = Driver::open(slot.clone());
    let block = slot.dma(4096, 1).expect("memory");
    let at = block.device_address();
    block.abandon();
    driver.start(at, at + 64, 16, 1);
    assert_eq!((slot.violations(), slot.abandoned()), (0, 4096));
    assert_eq!(slot.quiesce(), Ok(()));
    assert_eq!((slot.abandoned(), slot.memory().allocated()), (0, 0));
    assert!(!command::get(&slot).contains(Command::BUS_MASTER));
}

#[test]
fn combined_stores_leave_with_the_flush() {
    let slot = slot();
    let uncached = Driver::open(slot.clone()).host.map_bar(2, 0, 8192, Caching::Uncached).unwrap();
    let combined: ModelRegisters = slot.map_bar(2, 4096, 4096, Caching::WriteCombining).unwrap();
    combined.write_64(64, &[7; 64]);
    combined.write_16(0, &[9; 16]);
    assert_eq!((uncached.read64(4096), uncached.read64(4096 + 64)), (0, 0));
    combined.wc_flush();
    let value = |byte| u64::from_ne_bytes([byte; 8]);
    assert_eq!([4096, 4104, 4112].map(|at| uncached.read64(at)), [value(9), value(9), 0]);
    assert_eq!([4160, 4216].map(|at| uncached.read64(at)), [value(7); 2]);
}

#[test]
fn what_is_not_there_cannot_be_mapped_or_had() {
    let slot = slot();
    let map = |bar, offset, len| slot.map_bar(bar, offset, len, Caching::Uncached).map(|mapped| mapped.len());
    assert_eq!(map(1, 0, 1), Err(MapError::Missing { bar: 1 }));
    let outside = MapError::Outside { bar: 0, has: 1 << 16, offset: 0xf000, len: 0x1001 };
    assert_eq!(map(0, 0xf000, 0x1001), Err(outside));
    assert_eq!(map(0, 0xf000, 0x1000), Ok(0x1000));
    let part = slot.map_bar(0, 0, 16, Caching::Uncached).unwrap();
    command::enable(&slot, Command::MEMORY);
    assert_eq!((part.read32(16), part.read64(usize::MAX - 7)), (u32::MAX, u64::MAX));

    slot.limit_memory(8192);
    let first = slot.dma(8192, 1).expect("within the limit");
    let refused = |bytes, align| slot.dma(bytes, align).map(|block| block.len());
    assert_eq!(refused(1, 1), Err(DmaError::Exhausted { bytes: 1, align: 1 }));
    assert_eq!(refused(1, 3), Err(DmaError::Alignment(3)));
    drop(first);
    assert_eq!(refused(1, 1), Ok(4096));
}

#[test]
fn interrupts_come_through_the_table_that_the_host_programs() {
    let slot = slot();
    let driver = Driver::open(slot.clone());
    let table = slot.map_bar(0, 0x8000, 0x1000, Caching::Uncached).unwrap();
    let msix = capability::find(&slot, capability::id::MSIX).unwrap().expect("a capability").offset;
    assert_eq!(slot.read16(msix + 2) & 0x7ff, 1, "two vectors");
    assert!(driver.copy(b"masked", 1).is_ok());
    assert_eq!(slot.memory().take_interrupts(), []);

    slot.write16(msix + 2, 0x8000);
    assert!(driver.copy(b"pending", 2).is_ok());
    table.write32(12, 0);
    assert_eq!(slot.memory().take_interrupts(), [0]);
    assert!(driver.copy(b"raised", 3).is_ok());
    assert_eq!(slot.memory().take_interrupts(), [0]);
}

#[test]
fn each_command_is_traced() {
    let (sender, lines) = std::sync::mpsc::channel();
    let trace = Trace::to(move |line| sender.send(line.to_owned()).expect("a receiver"));
    let fabric = Fabric::new(FabricOptions::default());
    let slot = Slot::plug(&fabric, trace, |port| Box::new(Copier::new(port)));
    assert!(Driver::open(slot).copy(b"abc", 9).is_ok());
    let line = lines.try_recv().expect("a line");
    assert!(line.starts_with("copy 3 bytes from 0x12") && line.ends_with("number 9"), "{line}");
}
