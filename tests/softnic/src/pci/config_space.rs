use super::function::{Bar, Identity};

/// Bytes of configuration space of a PCI Express function.
pub const BYTES: usize = 4096;

const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const BAR0: usize = 0x10;
const POWER: usize = 0x40;
const MSIX: usize = 0x50;
const EXPRESS: usize = 0x70;
/// Device control and status of PCI Express.
const EXPRESS_CONTROL: usize = EXPRESS + 0x08;

/// Switches that a store may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// The function answers memory accesses.
    pub memory: bool,
    /// The function may access memory.
    pub master: bool,
    /// MSI-X is on.
    pub msix: bool,
    /// All its vectors are masked.
    pub msix_masked: bool,
}

/// Configuration space of an endpoint: header, power management, MSI-X and PCI Express with function level reset.
///
/// Source: PCI Express Base Specification, chapter 7; PCI Local Bus Specification 3.0, chapter 6.
#[derive(Clone, Debug)]
pub struct ConfigSpace {
    identity: Identity,
    bytes: Vec<u8>,
    /// Bits that take stores.
    writable: Vec<u8>,
}

impl ConfigSpace {
    /// As after power-on.
    pub fn new(identity: Identity) -> Self {
        let mut new = Self { identity, bytes: Vec::new(), writable: Vec::new() };
        new.reset();
        new
    }

    /// As after power-on again: nothing is enabled, BARs have no address.
    pub fn reset(&mut self) {
        self.bytes = vec![0; BYTES];
        self.writable = vec![0; BYTES];
        let identity = self.identity.clone();
        self.put(0x00, &identity.vendor.to_le_bytes());
        self.put(0x02, &identity.device.to_le_bytes());
        self.open(COMMAND, &0x0546u16.to_le_bytes());
        self.put(STATUS, &0x0010u16.to_le_bytes());
        self.put(0x08, &(identity.class << 8 | u32::from(identity.revision)).to_le_bytes());
        self.open(0x0c, &[0xff]);
        self.put(0x2c, &identity.subsystem_vendor.to_le_bytes());
        self.put(0x2e, &identity.subsystem.to_le_bytes());
        self.put(0x34, &[POWER as u8]);
        self.open(0x3c, &[0xff]);
        for bar in &identity.bars {
            let flags = u64::from(bar.wide) << 2 | u64::from(bar.prefetchable) << 3;
            let len = if bar.wide { 8 } else { 4 };
            let at = BAR0 + usize::from(bar.index) * 4;
            self.put(at, &flags.to_le_bytes()[..len]);
            self.open(at, &(!(bar.len - 1)).to_le_bytes()[..len]);
        }
        // Power management, version 3: a return to full power forgets nothing.
        let next = if identity.msix.is_some() { MSIX } else { EXPRESS };
        self.put(POWER, &[0x01, next as u8, 0x03, 0x00, 0x08, 0x00]);
        self.open(POWER + 4, &[0x03]);
        if let Some(msix) = identity.msix {
            self.put(MSIX, &[0x11, EXPRESS as u8]);
            self.put(MSIX + 2, &(msix.vectors - 1).to_le_bytes());
            self.open(MSIX + 2, &0xc000u16.to_le_bytes());
            self.put(MSIX + 4, &(msix.table | u32::from(msix.bar)).to_le_bytes());
            self.put(MSIX + 8, &(msix.pending | u32::from(msix.bar)).to_le_bytes());
        }
        // An endpoint, version 2. Capabilities: function level reset, role-based errors, extended tags, 512 bytes of payload.
        self.put(EXPRESS, &[0x10, 0x00, 0x02, 0x00]);
        self.put(EXPRESS + 4, &0x1000_8022u32.to_le_bytes());
        self.put(EXPRESS_CONTROL, &0x2810u16.to_le_bytes());
        self.open(EXPRESS_CONTROL, &0x7fffu16.to_le_bytes());
        // Sixteen lanes, fourth generation, as capability and as status.
        self.put(EXPRESS + 0x0c, &0x0000_0104u32.to_le_bytes());
        self.put(EXPRESS + 0x12, &0x1104u16.to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn open(&mut self, at: usize, bits: &[u8]) {
        self.writable[at..at + bits.len()].copy_from_slice(bits);
    }

    /// Loads; what lies behind the end reads as zeros.
    pub fn read(&self, offset: u16, bytes: &mut [u8]) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = self.bytes.get(usize::from(offset) + i).copied().unwrap_or_default();
        }
    }

    /// Stores what takes stores. `true` if it starts a function level reset, which is the caller's to do.
    #[must_use]
    pub fn write(&mut self, offset: u16, bytes: &[u8]) -> bool {
        let offset = usize::from(offset);
        for (i, byte) in bytes.iter().enumerate() {
            let (Some(old), Some(mask)) = (self.bytes.get_mut(offset + i), self.writable.get(offset + i))
            else {
                continue;
            };
            *old = *old & !mask | byte & mask;
        }
        let flr = EXPRESS_CONTROL + 1;
        offset.checked_sub(flr).is_none() && bytes.get(flr - offset).is_some_and(|high| high & 0x80 != 0)
            || offset == flr && bytes.first().is_some_and(|high| high & 0x80 != 0)
    }

    /// What the switches say now.
    pub fn switches(&self) -> Switches {
        let command = self.bytes[COMMAND];
        let msix = if self.identity.msix.is_some() { self.bytes[MSIX + 3] } else { 0 };
        Switches {
            memory: command & 2 != 0,
            master: command & 4 != 0,
            msix: msix & 0x80 != 0,
            msix_masked: msix & 0x40 != 0,
        }
    }

    /// The BAR of this number.
    pub fn bar(&self, index: u8) -> Option<&Bar> {
        self.identity.bars.iter().find(|bar| bar.index == index)
    }

    /// What it tells.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }
}
