//! The first serial port.
//!
//! Source: National Semiconductor PC16550D data sheet.

use directverbs_bare::pci::{PortIo, Width};

use super::ports;

const PORT: u16 = 0x3f8;
const INTERRUPTS: u16 = PORT + 1;
const FIFOS: u16 = PORT + 2;
const LINE: u16 = PORT + 3;
const MODEM: u16 = PORT + 4;
const STATUS: u16 = PORT + 5;
const CAN_TAKE: u32 = 1 << 5;
/// Looks at a port that takes nothing, before a byte is given up: there may be none.
const PATIENCE: u32 = 100_000;

/// 115200 bits a second, 8 data bits, no parity, no interrupts.
pub fn open() {
    let set = |port, value| ports().output(port, Width::Byte, value);
    set(INTERRUPTS, 0);
    set(LINE, 0x80); // the next two are the divisor
    set(PORT, 1);
    set(INTERRUPTS, 0);
    set(LINE, 0x03);
    set(FIFOS, 0x07);
    set(MODEM, 0x03);
}

/// Sends a byte.
pub fn put(byte: u8) {
    let can_take = || ports().input(STATUS, Width::Byte) & CAN_TAKE != 0;
    if (0..PATIENCE).any(|_| can_take()) {
        ports().output(PORT, Width::Byte, byte.into());
    }
}
