//! The serial ports. Their FIFOs stay off, as after reset.
//!
//! Source: Arm PrimeCell UART (PL011) technical reference manual. QEMU's have no speed.

use core::ops::Range;

use super::registers;

const DATA: usize = 0x00;
const FLAGS: usize = 0x18;
const CONTROL: usize = 0x30;
const EMPTY: u32 = 1 << 4;
const FULL: u32 = 1 << 5;
/// On, sending and receiving.
const ENABLED: u32 = 1 | 1 << 8 | 1 << 9;
/// Looks at a port that takes nothing, before a byte is given up.
const PATIENCE: u32 = 100_000;

/// A serial port.
#[derive(Clone, Copy, Debug)]
pub struct Serial(usize);

impl Serial {
    /// The first: whoever runs the image reads it.
    pub const CONSOLE: Self = Self(0x0900_0000);
    /// The second: another machine is at its other end. The machine has it if QEMU is given two.
    pub const PEER: Self = Self(0x0904_0000);

    const fn range(self) -> Range<usize> {
        self.0..self.0 + 0x1000
    }

    fn has(self, flag: u32) -> bool {
        registers(self.range()).load::<u32>(FLAGS).is_none_or(|flags| flags & flag != 0)
    }

    /// Switches it on.
    pub fn open(self) {
        registers(self.range()).store(CONTROL, ENABLED);
    }

    /// Sends a byte.
    pub fn put(self, byte: u8) {
        if (0..PATIENCE).any(|_| !self.has(FULL)) {
            registers(self.range()).store(DATA, u32::from(byte));
        }
    }

    /// The next byte that has come.
    pub fn get(self) -> Option<u8> {
        if self.has(EMPTY) { None } else { registers(self.range()).load::<u32>(DATA).map(|data| data as u8) }
    }
}
