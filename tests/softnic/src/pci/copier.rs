use std::sync::Arc;

use super::function::{Bar, Function, Identity, MsixPlace, Port};
use super::trace::Trace;
use crate::bus::Bus;
use crate::pci::CommandFaults;
use crate::pci::fault::CommandFault;

/// The simplest device that does DMA: it copies host memory and says so. It proves a host, in process or in a guest, before
/// any NIC does.
///
/// BAR 0, 64-bit registers: source, destination and length of a copy; a doorbell, whose store starts it and is the number that
/// the device writes behind the copied bytes, as 8 bytes; and the copies so far. Vector 0 is raised after each. BAR 2 is
/// memory of the device.
pub struct Copier {
    bus: Arc<dyn Bus>,
    faults: CommandFaults,
    trace: Trace,
    registers: [u64; 5],
    memory: Vec<u8>,
}

impl Copier {
    /// Vendor id, of QEMU's own devices.
    pub const VENDOR: u16 = 0x1234;
    /// Device id, that none of them has.
    pub const DEVICE: u16 = 0xd1ab;
    /// Offset of the register with the source's address.
    pub const SOURCE: usize = 0;
    /// Offset of the register with the destination's address.
    pub const DESTINATION: usize = 8;
    /// Offset of the register with the length in bytes, at most [`Self::MOST`].
    pub const LENGTH: usize = 16;
    /// Offset of the doorbell.
    pub const DOORBELL: usize = 24;
    /// Offset of the register that counts copies.
    pub const COPIES: usize = 32;
    /// Most bytes of a copy.
    pub const MOST: u64 = 1 << 16;
    /// Bytes of BAR 2.
    pub const MEMORY: u64 = 1 << 16;

    /// A device at `port`.
    pub fn new(port: Port) -> Self {
        Self {
            bus: port.bus,
            faults: port.faults,
            trace: port.trace,
            registers: [0; 5],
            memory: vec![0; Self::MEMORY as usize],
        }
    }

    fn copy(&mut self, number: u64) {
        let [source, destination, length, ..] = self.registers;
        self.trace
            .say(|| format!("copy {length} bytes from {source:#x} to {destination:#x}, number {number}"));
        if let Some(CommandFault::Silent | CommandFault::Refused) = self.faults.next() {
            return;
        }
        let mut bytes = vec![0; length.min(Self::MOST) as usize];
        let copied = self.bus.read(source, &mut bytes).is_ok() && {
            bytes.extend(number.to_le_bytes());
            self.bus.publish(destination, &bytes).is_ok()
        };
        if copied {
            self.registers[Self::COPIES / 8] += 1;
            self.bus.interrupt(0);
        }
    }
}

impl Function for Copier {
    fn identity(&self) -> Identity {
        Identity {
            vendor: Self::VENDOR,
            device: Self::DEVICE,
            subsystem_vendor: Self::VENDOR,
            subsystem: Self::DEVICE,
            // A system peripheral of no better known kind.
            class: 0x08_8000,
            revision: 1,
            bars: vec![Bar::wide(0, 1 << 16), Bar::wide(2, Self::MEMORY)],
            msix: Some(MsixPlace { bar: 0, vectors: 2, table: 0x8000, pending: 0xc000 }),
        }
    }

    fn bar_read(&mut self, bar: u8, offset: u64, bytes: &mut [u8]) {
        let registers = self.registers.map(u64::to_le_bytes);
        let from = if bar == 2 { self.memory.as_slice() } else { registers.as_flattened() };
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = from.get(offset as usize + i).copied().unwrap_or_default();
        }
    }

    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) {
        if bar == 2 {
            self.memory.iter_mut().skip(offset as usize).zip(bytes).for_each(|(to, byte)| *to = *byte);
            return;
        }
        for (i, byte) in bytes.iter().enumerate() {
            let at = offset as usize + i;
            if let Some(register) = self.registers.get_mut(at / 8).filter(|_| at < Self::COPIES) {
                let shift = at % 8 * 8;
                *register = *register & !(0xff << shift) | u64::from(*byte) << shift;
            }
        }
        let doorbell = Self::DOORBELL as u64;
        if offset <= doorbell && doorbell < offset + bytes.len() as u64 {
            self.copy(self.registers[Self::DOORBELL / 8]);
        }
    }

    fn reset(&mut self) {
        self.registers = [0; 5];
        self.memory.fill(0);
    }
}
