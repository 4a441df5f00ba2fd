//! The doorbell page and the controller memory of a NIC, as a processor sees them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use directverbs::ionic::cmb::Mapping;
use directverbs::ionic::doorbell::{DbRing, DoorbellWord};
use directverbs::queue::{DeviceMemory, Doorbell, barrier};

use crate::fabric::NicHandle;
use crate::fault::Random;
use crate::ionic::Ionic;

/// Buffers that a processor combines stores in before they leave.
const BUFFERS: usize = 12;

/// Write-combining buffers: stores wait in them and leave in any order, unless they are flushed. So a driver that
/// forgets to flush is found out.
#[derive(Debug)]
struct Combining {
    lines: Vec<(u64, [u8; 64])>,
    random: Random,
}

impl Combining {
    fn put(&mut self, offset: u64, line: [u8; 64]) -> Option<(u64, [u8; 64])> {
        if let Some(same) = self.lines.iter_mut().find(|(at, _)| *at == offset) {
            same.1 = line;
            return None;
        }
        self.lines.push((offset, line));
        (self.lines.len() > BUFFERS).then(|| self.take()).flatten()
    }

    fn take(&mut self) -> Option<(u64, [u8; 64])> {
        let at = self.random.below(self.lines.len() as u64) as usize;
        (!self.lines.is_empty()).then(|| self.lines.swap_remove(at))
    }
}

/// A processor's way to a NIC: the doorbell page of a process, and the write-combining buffers before its memory.
#[derive(Clone, Debug)]
pub struct Port {
    nic: NicHandle<Ionic>,
    page: u32,
    combining: Arc<Mutex<Combining>>,
    lost: Arc<Mutex<Lost>>,
}

/// Doorbells that did not arrive. The driver of the real device rings again from time to time, as some chips miss
/// doorbells; so does [`Port::replay`].
#[derive(Debug, Default)]
struct Lost(Vec<(usize, u64)>);

impl Lost {
    /// A doorbell that says what an earlier one of the same queue and ring said has taken its place. Arms are counted,
    /// so that none can be left out.
    fn replaced_by(&mut self, register: usize, value: u64) {
        let word = DoorbellWord::from_bits(value);
        if word.ring() == DbRing::Index as u8 {
            let same = |old: u64| DoorbellWord::from_bits(old).with_index(word.index()) == word;
            self.0.retain(|(r, v)| *r != register || !same(*v));
        }
    }
}

impl Port {
    pub(super) fn new(nic: NicHandle<Ionic>, page: u32, seed: u64) -> Self {
        let combining = Combining { lines: Vec::new(), random: Random::new(seed) };
        Self { nic, page, combining: Arc::new(Mutex::new(combining)), lost: Arc::default() }
    }

    /// Rings the doorbells that were lost once more; `true` if there were any.
    pub(super) fn replay(&self) -> bool {
        let lost = std::mem::take(&mut lock(&self.lost).0);
        for (register, value) in &lost {
            self.store(*register, *value);
        }
        !lost.is_empty()
    }

    /// The NIC's memory from `base` on, mapped in one of two ways.
    pub(super) fn window(&self, base: u64, mapping: Mapping) -> Window {
        Window { port: self.clone(), base, mapping }
    }

    fn flush(&self) {
        let mut combining = lock(&self.combining);
        while let Some((offset, line)) = combining.take() {
            self.nic.lock().device_store(offset, &line);
        }
    }
}

impl Doorbell for Port {
    fn store(&self, register: usize, value: u64) {
        let mut lost = lock(&self.lost);
        lost.replaced_by(register, value);
        if !self.nic.lock().doorbell(self.page, register, value) {
            lost.0.push((register, value));
        }
    }

    fn wc_start(&self) {
        barrier::wc_start();
        self.flush();
    }

    fn wc_flush(&self) {
        barrier::wc_flush();
        self.flush();
    }
}

/// A ring's place in controller memory.
#[derive(Debug)]
pub struct Window {
    port: Port,
    base: u64,
    mapping: Mapping,
}

impl DeviceMemory for Window {
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        self.port.flush();
        self.port.nic.lock().device_store(self.base + offset as u64, block);
    }

    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        let at = self.base + offset as u64;
        let leaves = match self.mapping {
            Mapping::Uncached => Some((at, *block)),
            Mapping::WriteCombined => lock(&self.port.combining).put(at, *block),
        };
        if let Some((at, line)) = leaves {
            self.port.nic.lock().device_store(at, &line);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::NicConfig;
    use crate::fabric::{Fabric, FabricOptions};
    use crate::host::Host;
    use crate::ionic::IonicConfig;
    use directverbs::ionic::wqe::RdmaVersion;
    use directverbs::verbs::{Mac, Mtu};

    fn port(seed: u64) -> Port {
        let fabric = Fabric::new(FabricOptions::default());
        let config = NicConfig {
            mac: Mac::default(),
            gids: Vec::new(),
            mtu: Mtu::B1024,
            device_memory: 4096,
            all_memory_key: None,
        };
        let ionic = Ionic::new(IonicConfig::new(RdmaVersion::V2));
        Port::new(Host::attach(&fabric, ionic, config).nic().clone(), 0, seed)
    }

    fn memory(port: &Port) -> Vec<u8> {
        port.nic.lock().hardware().device_memory().to_vec()
    }

    #[test]
    fn combined_stores_wait_for_the_flush() {
        let port = port(1);
        let window = port.window(64, Mapping::WriteCombined);
        window.store_64(64, &[7; 64]);
        assert_eq!(memory(&port)[128], 0);
        port.wc_flush();
        assert_eq!(memory(&port)[64 + 64..64 + 128], [7; 64]);
        port.window(0, Mapping::Uncached).store_64(0, &[9; 64]);
        assert_eq!(memory(&port)[..64], [9; 64]);
    }

    #[test]
    fn combined_stores_leave_in_any_order() {
        // More stores than there are buffers push some out; which ones, nobody may count on.
        let order = |seed| {
            let port = port(seed);
            let window = port.window(0, Mapping::WriteCombined);
            (0..=BUFFERS).for_each(|i| window.store_64(64 * i, &[1; 64]));
            memory(&port).chunks(64).position(|line| line[0] == 1)
        };
        let first: Vec<_> = (0..20).map(order).collect();
        assert!(first.iter().all(Option::is_some));
        assert!(first.iter().any(|at| *at != first[0]), "{first:?}");
    }
}
