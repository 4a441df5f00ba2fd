//! A made-up machine: functions with bytes that take stores or do not, bridges that pass on accesses as their numbers say.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::vec::Vec;

use crate::clock::Clock;
use crate::pci::{Access, Address, Width};

/// One function.
#[derive(Clone)]
pub struct Fake {
    pub bytes: Vec<u8>,
    pub writable: Vec<u8>,
    /// What is behind it, if it is a bridge: device and function, and the function there.
    pub behind: BTreeMap<(u8, u8), Fake>,
}

impl Fake {
    fn new(header: u8) -> Self {
        let mut new = Self { bytes: std::vec![0; 256], writable: std::vec![0; 256], behind: BTreeMap::new() };
        new.put(0, &[0x34, 0x12, 0x78, 0x56]);
        new.put(0x0e, &[header]);
        new.open(4, &[0x47, 0x05]);
        new
    }

    /// An endpoint without BARs.
    pub fn endpoint() -> Self {
        Self::new(0)
    }

    /// A bridge with a 64-bit prefetchable window.
    pub fn bridge(behind: impl IntoIterator<Item = ((u8, u8), Self)>) -> Self {
        let mut new = Self::new(1);
        new.open(0x18, &[0xff; 4]);
        new.open(0x20, &[0xf0, 0xff, 0xf0, 0xff, 0xf0, 0xff, 0xf0, 0xff]);
        new.put(0x24, &[1, 0, 1, 0]);
        new.open(0x28, &[0xff; 8]);
        new.behind = behind.into_iter().collect();
        new
    }

    /// The same with bytes in place that take no stores.
    pub fn with(mut self, at: usize, bytes: &[u8]) -> Self {
        self.put(at, bytes);
        self
    }

    /// The same with a memory BAR.
    pub fn with_bar(mut self, index: usize, len: u64, wide: bool, prefetchable: bool) -> Self {
        let size = if wide { 8 } else { 4 };
        let flags = u8::from(wide) << 2 | u8::from(prefetchable) << 3;
        self.put(0x10 + index * 4, &[flags]);
        self.open(0x10 + index * 4, &(!(len - 1)).to_le_bytes()[..size]);
        self
    }

    /// The same with capabilities: id, where it is, and its bytes after the first two.
    pub fn with_capabilities(mut self, list: &[(u8, u8, &[u8])]) -> Self {
        self.put(6, &[0x10]);
        let mut link = 0x34;
        for (id, at, rest) in list {
            self.put(link, &[*at]);
            self.put((*at).into(), &[*id, 0]);
            self.put(usize::from(*at) + 2, rest);
            link = usize::from(*at) + 1;
        }
        self
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn open(&mut self, at: usize, bits: &[u8]) {
        self.writable[at..at + bits.len()].copy_from_slice(bits);
    }
}

/// All functions.
pub struct Machine {
    root: RefCell<BTreeMap<(u8, u8), Fake>>,
    pub buses: u16,
    pub accesses: Cell<u64>,
    pub now: Cell<u64>,
    /// Called for each store.
    pub hook: RefCell<Option<Hook>>,
}

type Hook = std::boxed::Box<dyn FnMut(&mut Fake, u16, u32)>;

impl Machine {
    pub fn new(root: impl IntoIterator<Item = ((u8, u8), Fake)>) -> Self {
        Self {
            root: RefCell::new(root.into_iter().collect()),
            buses: 256,
            accesses: Cell::new(0),
            now: Cell::new(0),
            hook: RefCell::default(),
        }
    }

    /// One function on bus 0, which is at 00:01.0.
    pub fn of(function: Fake) -> Self {
        Self::new([((1, 0), function)])
    }

    /// The function at 00:01.0.
    pub fn only(&self) -> crate::pci::Function<'_, Self> {
        crate::pci::Function::new(self, Address::new(0, 1, 0))
    }

    fn with<R>(&self, address: Address, then: impl FnOnce(&mut Fake) -> R) -> Option<R> {
        self.accesses.set(self.accesses.get() + 1);
        assert!(self.accesses.get() < 10_000_000, "an endless walk");
        let mut root = self.root.borrow_mut();
        let mut bus = &mut *root;
        if address.bus() != 0 {
            bus = find_bus(bus, address.bus())?;
        }
        bus.get_mut(&(address.device(), address.function())).map(then)
    }
}

/// The bus that a number leads to.
fn find_bus(on: &mut BTreeMap<(u8, u8), Fake>, number: u8) -> Option<&mut BTreeMap<(u8, u8), Fake>> {
    let passes = |bridge: &&mut Fake| {
        bridge.bytes[0x0e] & 0x7f == 1 && (bridge.bytes[0x19]..=bridge.bytes[0x1a]).contains(&number)
    };
    let bridge = on.values_mut().find(passes)?;
    if bridge.bytes[0x19] == number {
        return Some(&mut bridge.behind);
    }
    find_bus(&mut bridge.behind, number)
}

impl Access for Machine {
    fn buses(&self) -> u16 {
        self.buses
    }

    fn read(&self, address: Address, offset: u16, width: Width) -> u32 {
        let at = usize::from(offset);
        let read = self.with(address, |function| {
            let mut value = [0; 4];
            let len = usize::from(width.bytes());
            value[..len].copy_from_slice(&function.bytes[at..at + len]);
            u32::from_le_bytes(value)
        });
        read.unwrap_or(width.mask())
    }

    fn write(&self, address: Address, offset: u16, width: Width, value: u32) {
        let at = usize::from(offset);
        self.with(address, |function| {
            for i in 0..usize::from(width.bytes()) {
                let (byte, mask) = (value.to_le_bytes()[i], function.writable[at + i]);
                function.bytes[at + i] = function.bytes[at + i] & !mask | byte & mask;
            }
            if let Some(hook) = self.hook.borrow_mut().as_mut() {
                hook(function, offset, value);
            }
        });
    }
}

impl Clock for Machine {
    fn now_ns(&self) -> u64 {
        self.now.get()
    }

    fn relax(&self) {
        self.now.set(self.now.get() + 1_000_000);
    }
}
