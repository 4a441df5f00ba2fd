//! Function level reset, and coming to rest before it.

use core::time::Duration;

use super::capability::{self, Capability};
use super::command::{self, Command};
use super::config::{Config, register};
use crate::clock::{Clock, Deadline, Timeout};
use crate::host::ResetError;

/// Device capabilities of PCI Express, from the capability's start. Bit 28: function level reset.
const EXPRESS_DEVICE_CAPABILITIES: u16 = 0x04;
const EXPRESS_FLR: u32 = 1 << 28;
/// Device control: bit 15 starts the reset.
const EXPRESS_DEVICE_CONTROL: u16 = 0x08;
const EXPRESS_START: u16 = 1 << 15;
/// Device status: bit 5 says that transactions are under way.
const EXPRESS_DEVICE_STATUS: u16 = 0x0a;
const EXPRESS_PENDING: u16 = 1 << 5;

/// How long a function may take to end its transactions. Linux waits as long.
const REST: Duration = Duration::from_millis(1500);
/// How long nobody may look at a function after its reset began. Source: PCI Express Base Specification, 6.6.2.
const RESET: Duration = Duration::from_millis(100);
/// How long it may take to answer after that. Linux waits as long.
const RETURN: Duration = Duration::from_secs(60);

/// BARs and what else a reset forgets that the host had set: from the first BAR to the end of the header.
const KEPT: core::ops::Range<u16> = register::BAR0..0x40;
const KEPT_WORDS: usize = (KEPT.end - KEPT.start) as usize / 4;

/// Takes bus mastering from a function and waits until no transaction is under way.
///
/// # Errors
/// They stay under way.
pub fn quiesce<C: Config + ?Sized>(config: &C, clock: &(impl Clock + ?Sized)) -> Result<(), Timeout> {
    if config.id().is_none() {
        return Ok(());
    }
    command::disable(config, Command::BUS_MASTER);
    // Without the capability, or with a list that makes no sense, nobody can tell; the store that took bus mastering has
    // been answered, and nothing begins after it.
    let Ok(Some(express)) = capability::find(config, capability::id::EXPRESS) else { return Ok(()) };
    Deadline::after(clock, REST).wait(clock, || {
        let status = config.read16(express.offset + EXPRESS_DEVICE_STATUS);
        Ok((status & EXPRESS_PENDING == 0 || config.id().is_none()).then_some(()))
    })
}

/// Resets a function by FLR. BARs are as before after it; the function does nothing.
///
/// # Errors
/// It has none, or does not come back.
pub fn function_level<C: Config + ?Sized>(
    config: &C,
    clock: &(impl Clock + ?Sized),
) -> Result<(), ResetError> {
    let express = express(config)?;
    quiesce(config, clock)?;
    let mut kept = [0; KEPT_WORDS];
    let registers = || KEPT.step_by(4);
    registers().zip(&mut kept).for_each(|(at, word)| *word = config.read32(at));
    command::disable(config, Command::all());
    let control = config.read16(express.offset + EXPRESS_DEVICE_CONTROL);
    config.write16(express.offset + EXPRESS_DEVICE_CONTROL, control | EXPRESS_START);
    clock.delay(RESET);
    Deadline::after(clock, RETURN).wait(clock, || Ok::<_, Timeout>(config.id()))?;
    registers().zip(kept).for_each(|(at, word)| config.write32(at, word));
    Ok(())
}

fn express<C: Config + ?Sized>(config: &C) -> Result<Capability, ResetError> {
    if config.id().is_none() {
        return Err(ResetError::Gone);
    }
    let found = capability::find(config, capability::id::EXPRESS).ok().flatten();
    found
        .filter(|express| config.read32(express.offset + EXPRESS_DEVICE_CAPABILITIES) & EXPRESS_FLR != 0)
        .ok_or(ResetError::Unsupported)
}
