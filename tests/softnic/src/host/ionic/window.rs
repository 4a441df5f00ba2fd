//! The doorbell page and the controller memory of a NIC, as a processor sees them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use directverbs::ionic::cmb::Mapping;
use directverbs::ionic::doorbell::{DbRing, DoorbellWord};
use directverbs::queue::{DeviceMemory, Doorbell, barrier};

use crate::combining::{Combining, Line};
use crate::fabric::NicHandle;
use crate::ionic::Ionic;

/// A processor's way to a NIC: the doorbell page of a process, and the write-combining buffers before its memory.
#[derive(Clone, Debug)]
pub struct Port {
    nic: NicHandle<Ionic>,
    page: u32,
    combining: Arc<Mutex<Combining<u64>>>,
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
        let combining = Arc::new(Mutex::new(Combining::new(seed)));
        Self { nic, page, combining, lost: Arc::default() }
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
        while let Some(line) = combining.take() {
            self.leave(&line);
        }
    }

    /// A combined line goes to the device.
    fn leave(&self, line: &Line<u64>) {
        for (offset, bytes) in line.runs() {
            self.nic.lock().device_store(line.key + offset as u64, bytes);
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
        match self.mapping {
            Mapping::Uncached => self.port.nic.lock().device_store(at, block),
            Mapping::WriteCombined => {
                let leaves = lock(&self.port.combining).put(at, 0, block);
                leaves.iter().for_each(|line| self.port.leave(line));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combining::BUFFERS;
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
