//! What a function may do.

use super::config::{Config, register};

bitflags::bitflags! {
    /// Bits of the command register.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Command: u16 {
        /// It answers I/O accesses.
        const IO = 1;
        /// It answers memory accesses.
        const MEMORY = 1 << 1;
        /// It may access memory: DMA, and message signalled interrupts.
        const BUS_MASTER = 1 << 2;
        /// It raises no interrupt on a pin.
        const INTX_DISABLE = 1 << 10;
    }
}

/// What it may do now.
pub fn get<C: Config + ?Sized>(config: &C) -> Command {
    Command::from_bits_retain(config.read16(register::COMMAND))
}

/// Gives it `bits`; others stay as they are.
pub fn enable<C: Config + ?Sized>(config: &C, bits: Command) {
    config.write16(register::COMMAND, (get(config) | bits).bits());
}

/// Takes `bits` from it; others stay as they are.
pub fn disable<C: Config + ?Sized>(config: &C, bits: Command) {
    config.write16(register::COMMAND, (get(config) - bits).bits());
}
