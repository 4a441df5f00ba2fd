//! The serial port.
//!
//! Source: Arm PrimeCell UART (PL011) technical reference manual. QEMU's needs no setting up.

use super::{SERIAL, registers};

const DATA: usize = 0x00;
const FLAGS: usize = 0x18;
const FULL: u32 = 1 << 5;
/// Looks at a port that takes nothing, before a byte is given up.
const PATIENCE: u32 = 100_000;

/// Sends a byte.
pub fn put(byte: u8) {
    let port = registers(SERIAL);
    if (0..PATIENCE).any(|_| port.load::<u32>(FLAGS).is_some_and(|flags| flags & FULL == 0)) {
        port.store(DATA, u32::from(byte));
    }
}
