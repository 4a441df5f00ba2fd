use std::sync::Arc;

use directverbs::bnxt_re::pacing::window;
use directverbs::bnxt_re::rcfw::parameter::Congestion;

use super::backing::ContextMemory;
use super::channel::Rcfw;
use super::chip::{Chip, DOORBELLS, REGISTERS};
use super::doorbell::Halves;
use super::ethernet::Ethernet;
use super::hwrm::Hwrm;
use super::keys::Keys;
use super::queues::Objects;
use super::rings::Rings;
use crate::bnxt_re::BnxtRe;
use crate::bus::Bus;
use crate::device::NicConfig;
use crate::fabric::{Fabric, NicHandle};
use crate::pci::{CommandFaults, Function, Identity, Port, Trace};

/// Register that tells how the firmware is.
const FW_STATUS: u64 = 0x520;
/// Window to other registers.
const WINDOW: std::ops::Range<u64> = window::AT as u64..window::AT as u64 + window::BYTES as u64;
/// It is well.
const HEALTHY: u32 = 0x8000;
/// It resets itself.
const RESETTING: u32 = 0x2000;

/// A bnxt_re NIC as a PCI function.
#[derive(Debug)]
pub struct BnxtFunction {
    pub(super) chip: Chip,
    pub(super) nic: NicHandle<BnxtRe>,
    pub(super) bus: SharedBus,
    pub(super) faults: CommandFaults,
    pub(super) trace: Trace,
    pub(super) state: State,
}

/// The way to the host.
#[derive(Clone)]
pub(super) struct SharedBus(pub Arc<dyn Bus>);

impl std::fmt::Debug for SharedBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bus")
    }
}

/// What a reset forgets.
#[derive(Debug, Default)]
pub(super) struct State {
    pub hwrm: Hwrm,
    pub context: ContextMemory,
    pub ethernet: Ethernet,
    pub rings: Rings,
    pub rcfw: Rcfw,
    pub objects: Objects,
    pub keys: Keys,
    pub halves: Halves,
    /// Page of the chip's registers that is in the window.
    pub window: u32,
    /// How congestion is handled.
    pub congestion: Congestion,
    /// The firmware resets itself, until it is asked for its version again.
    pub resetting: bool,
}

impl BnxtFunction {
    /// Plugs a NIC into `fabric`, at `port`.
    pub fn new(fabric: &Fabric, chip: Chip, port: Port) -> Self {
        let config = NicConfig {
            mac: chip.mac,
            gids: Vec::new(),
            mtu: chip.mtu,
            device_memory: chip.push_bytes() as usize,
            all_memory_key: None,
        };
        let nic = fabric.attach(BnxtRe::new(chip.front_end()), config, port.bus.clone());
        Self {
            chip,
            nic,
            bus: SharedBus(port.bus),
            faults: port.faults,
            trace: port.trace,
            state: State::default(),
        }
    }

    /// The NIC, to look at in tests.
    pub const fn nic(&self) -> &NicHandle<BnxtRe> {
        &self.nic
    }

    /// Counts what the driver did wrong.
    pub(super) fn violation(&self, reason: impl std::fmt::Display) {
        self.nic.lock().front_end().report(reason);
    }

    pub(super) fn bus(&self) -> &dyn Bus {
        &*self.bus.0
    }

    /// Forgets all that the host has created and told.
    pub(super) fn forget(&mut self) {
        self.state = State::default();
        self.nic.lock().reset();
    }

    /// The firmware resets itself.
    pub(super) fn hot_reset(&mut self) {
        self.forget();
        self.state.resetting = true;
    }

    fn register(&self, offset: u64) -> u32 {
        match offset {
            FW_STATUS if self.state.resetting => RESETTING,
            FW_STATUS => HEALTHY,
            _ if WINDOW.contains(&offset) => self.window_load(offset),
            _ => 0,
        }
    }
}

impl Function for BnxtFunction {
    fn identity(&self) -> Identity {
        self.chip.identity()
    }

    fn bar_read(&mut self, bar: u8, offset: u64, bytes: &mut [u8]) {
        // Registers have 32 bits, and each is loaded once.
        let (mut known, mut word) = (u64::MAX, 0);
        for (i, byte) in bytes.iter_mut().enumerate() {
            let at = offset + i as u64;
            if bar == REGISTERS && known != at & !3 {
                known = at & !3;
                word = self.register(known);
            }
            *byte = word.to_le_bytes()[(at & 3) as usize];
        }
    }

    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) {
        match bar {
            REGISTERS => {
                // Registers have 32 bits.
                for (i, word) in bytes.chunks(4).enumerate() {
                    let mut whole = [0; 4];
                    whole[..word.len()].copy_from_slice(word);
                    self.register_store(offset + 4 * i as u64, u32::from_le_bytes(whole));
                }
            }
            DOORBELLS => self.doorbell_store(offset, bytes),
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.forget();
    }

    fn service(&mut self) -> bool {
        self.notify() | self.write_statistics()
    }
}
