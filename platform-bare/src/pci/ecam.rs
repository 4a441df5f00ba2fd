use super::access::Access;
use super::address::Address;
use super::config::Width;
use crate::mmio::Mmio;

/// Bytes of a bus: 32 devices of 8 functions of 4096 bytes.
const BUS: usize = 1 << 20;

/// Configuration space as memory: 4096 bytes for each function.
#[derive(Clone, Copy, Debug)]
pub struct Ecam {
    window: Mmio,
}

impl Ecam {
    /// The mapped window of bus 0 and those behind it; its length says how many there are. Firmware tells where it is: ACPI's
    /// MCFG table, or `pci-host-ecam-generic` in a device tree.
    pub const fn new(window: Mmio) -> Self {
        Self { window }
    }

    fn at(&self, address: Address, offset: u16, width: Width) -> Option<usize> {
        let inside = offset < 4096 && offset.is_multiple_of(width.bytes());
        inside.then(|| usize::from(address.bits()) << 12 | usize::from(offset))
    }
}

impl Access for Ecam {
    fn buses(&self) -> u16 {
        (self.window.len() / BUS).min(256) as u16
    }

    fn read(&self, address: Address, offset: u16, width: Width) -> u32 {
        let Some(at) = self.at(address, offset, width) else { return width.mask() };
        match width {
            Width::Byte => self.window.load::<u8>(at).map_or(width.mask(), u32::from),
            Width::Word => self.window.load::<u16>(at).map_or(width.mask(), u32::from),
            Width::Dword => self.window.load::<u32>(at).unwrap_or(width.mask()),
        }
    }

    fn write(&self, address: Address, offset: u16, width: Width, value: u32) {
        let Some(at) = self.at(address, offset, width) else { return };
        match width {
            Width::Byte => self.window.store(at, value as u8),
            Width::Word => self.window.store(at, value as u16),
            Width::Dword => self.window.store(at, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::NonNull;
    use std::vec;

    #[test]
    fn each_function_has_4096_bytes_and_nothing_else_is_reached() {
        let mut memory = vec![0u64; 2 * BUS / 8];
        // SAFETY: the memory outlives the window, and only the window accesses it.
        let ecam = Ecam::new(unsafe { Mmio::new(NonNull::from(memory.as_mut_slice()).cast(), 2 * BUS) });
        let (there, beyond) = (Address::new(1, 2, 3), Address::new(2, 0, 0));
        assert_eq!(ecam.buses(), 2);
        ecam.write(there, 0xffc, Width::Dword, 0x0403_0201);
        ecam.write(there, 0xffe, Width::Word, 0xbbaa);
        ecam.write(there, 0xffd, Width::Byte, 0xcc);
        for (address, offset) in [(beyond, 0), (there, 4096), (there, 2)] {
            ecam.write(address, offset, Width::Dword, 0);
            assert_eq!(ecam.read(address, offset, Width::Dword), u32::MAX);
        }
        assert_eq!(ecam.read(there, 0xffc, Width::Dword), 0xbbaa_cc01);
        assert_eq!(ecam.read(there, 0xffe, Width::Word), 0xbbaa);
        assert_eq!(ecam.read(there, 0xffd, Width::Byte), 0xcc);
        assert_eq!(memory[(1 << 20 | 0x13 << 12 | 0xff8) / 8], 0xbbaa_cc01 << 32);
    }
}
