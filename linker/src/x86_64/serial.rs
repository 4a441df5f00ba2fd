//! The serial ports. Their FIFOs stay off, as after reset: to switch them on would clear what has come already.
//!
//! Source: National Semiconductor PC16550D data sheet.

use directverbs_bare::pci::{PortIo, Width};

use super::ports;

const INTERRUPTS: u16 = 1;
const LINE: u16 = 3;
const MODEM: u16 = 4;
const STATUS: u16 = 5;
const HAS_BYTE: u32 = 1;
const CAN_TAKE: u32 = 1 << 5;
/// What a port reads as that is not there.
const NOTHING: u32 = 0xff;
/// Looks at a port that takes nothing, before a byte is given up: there may be none.
const PATIENCE: u32 = 100_000;

/// A serial port.
#[derive(Clone, Copy, Debug)]
pub struct Serial(u16);

impl Serial {
    /// The first: whoever runs the image reads it.
    pub const CONSOLE: Self = Self(0x3f8);
    /// The second: another machine is at its other end.
    pub const PEER: Self = Self(0x2f8);

    fn set(self, register: u16, value: u32) {
        ports().output(self.0 + register, Width::Byte, value);
    }

    fn status(self) -> u32 {
        ports().input(self.0 + STATUS, Width::Byte)
    }

    /// 115200 bits a second, 8 data bits, no parity, no interrupts.
    pub fn open(self) {
        self.set(INTERRUPTS, 0);
        self.set(LINE, 0x80); // the next two are the divisor
        self.set(0, 1);
        self.set(INTERRUPTS, 0);
        self.set(LINE, 0x03);
        self.set(MODEM, 0x03);
    }

    /// Sends a byte.
    pub fn put(self, byte: u8) {
        if (0..PATIENCE).any(|_| self.status() & CAN_TAKE != 0) {
            self.set(0, byte.into());
        }
    }

    /// The next byte that has come.
    pub fn get(self) -> Option<u8> {
        let has = matches!(self.status(), status if status != NOTHING && status & HAS_BYTE != 0);
        has.then(|| ports().input(self.0, Width::Byte) as u8)
    }
}
