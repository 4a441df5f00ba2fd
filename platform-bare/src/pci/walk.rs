//! All functions of a machine, through its bridges.

use core::fmt;

use heapless::Vec;

use super::access::{Access, Function};
use super::address::Address;
use super::bridge::{self, Buses};
use super::config::Config;

const HEADER_TYPE: u16 = 0x0e;
const MANY_FUNCTIONS: u8 = 0x80;

/// Bridges behind one another that are followed.
pub const DEPTH: usize = 32;

/// Kind of configuration header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A function that is no bridge.
    Endpoint,
    /// A bridge to another bus.
    Bridge,
    /// Something else, which is left alone.
    Other(u8),
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint => f.write_str("endpoint"),
            Self::Bridge => f.write_str("bridge"),
            Self::Other(layout) => write!(f, "header type {layout:#x}"),
        }
    }
}

impl Header {
    /// The kind that a function tells.
    pub fn of<C: Config + ?Sized>(config: &C) -> Self {
        match config.read8(HEADER_TYPE) & !MANY_FUNCTIONS {
            0 => Self::Endpoint,
            1 => Self::Bridge,
            other => Self::Other(other),
        }
    }
}

/// What a walk comes to.
#[derive(Debug)]
pub enum Step<'a, A: ?Sized> {
    /// A function, bridges too.
    Function(Function<'a, A>, Header),
    /// What follows is behind this bridge,
    Enter(Function<'a, A>),
    /// up to here.
    Leave(Function<'a, A>),
}

/// A hierarchy that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// Too many bridges are behind one another.
    #[error("more than {DEPTH} bridges behind one another at {0}")]
    TooDeep(Address),
    /// There are no bus numbers left.
    #[error("no bus number is left for the bridge {0}")]
    NoBus(Address),
}

/// Who numbers buses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    /// Firmware has. A bridge whose numbers make no sense is not followed.
    Kept,
    /// The walk does.
    Given,
}

/// A bus that is being walked.
struct Level {
    /// The bridge before it; none before bus 0.
    bridge: Option<Address>,
    bus: u8,
    /// Next device and function, up to 256.
    next: u16,
    /// Devices on it.
    devices: u16,
}

/// Walks all functions in order of bus, device and function, those behind a bridge right after it, as far as firmware has
/// numbered buses.
///
/// # Errors
/// Those of `step`, and of a hierarchy that makes no sense.
pub fn walk<'a, A, E>(access: &'a A, mut step: impl FnMut(Step<'a, A>) -> Result<(), E>) -> Result<(), E>
where
    A: Access + ?Sized,
    E: From<WalkError>,
{
    let mut failure = None;
    walk_with(access, Numbers::Kept, &mut |at| step(at).map_err(|error| failure = Some(error)).is_ok())?;
    failure.map_or(Ok(()), Err)
}

/// Gives all buses numbers, from the start, whatever they had.
///
/// # Errors
/// There are too many, or bridges are nested too deep.
pub fn number_buses<A: Access + ?Sized>(access: &A) -> Result<(), WalkError> {
    walk_with(access, Numbers::Given, &mut |_| true)
}

/// Whether a bridge has no bus behind it: nobody has numbered them.
///
/// # Errors
/// Bridges are nested too deep.
pub fn lacks_numbers<A: Access + ?Sized>(access: &A) -> Result<bool, WalkError> {
    let mut lacks = false;
    walk(access, |step| {
        if let Step::Function(bridge, Header::Bridge) = step {
            lacks |= bridge::buses(&bridge).secondary == 0;
        }
        Ok::<_, WalkError>(())
    })?;
    Ok(lacks)
}

/// One copy of the code for all walks. A `step` that gives `false` ends it.
fn walk_with<'a, A: Access + ?Sized>(
    access: &'a A,
    numbers: Numbers,
    step: &mut dyn FnMut(Step<'a, A>) -> bool,
) -> Result<(), WalkError> {
    let at = |address| Function::new(access, address);
    let mut levels: Vec<Level, DEPTH> = Vec::new();
    // Every bus is walked once: a bridge that says another's number leads nowhere.
    let mut last_bus = 0u16;
    let _ = levels.push(Level { bridge: None, bus: 0, next: 0, devices: 256 });
    while let Some(level) = levels.last_mut() {
        if level.next >= level.devices {
            let bridge = level.bridge;
            levels.pop();
            if let Some(bridge) = bridge {
                if numbers == Numbers::Given {
                    let buses = Buses { subordinate: last_bus as u8, ..bridge::buses(&at(bridge)) };
                    bridge::set_buses(&at(bridge), buses);
                }
                if !step(Step::Leave(at(bridge))) {
                    return Ok(());
                }
            }
            continue;
        }
        let address = Address::new(level.bus, (level.next >> 3) as u8, (level.next & 7) as u8);
        let function = at(address);
        level.next += 1;
        if function.id().is_none() {
            // Without function 0 there are no others.
            if address.function() == 0 {
                level.next += 7;
            }
            continue;
        }
        if address.function() == 0 && function.read8(HEADER_TYPE) & MANY_FUNCTIONS == 0 {
            level.next += 7;
        }
        let header = Header::of(&function);
        if !step(Step::Function(function, header)) {
            return Ok(());
        }
        if header != Header::Bridge {
            continue;
        }
        if numbers == Numbers::Given {
            let secondary = last_bus + 1;
            if secondary >= access.buses().min(256) {
                return Err(WalkError::NoBus(address));
            }
            let buses = Buses { primary: address.bus(), secondary: secondary as u8, subordinate: 0xff };
            bridge::set_buses(&function, buses);
        }
        let secondary = u16::from(bridge::buses(&function).secondary);
        if secondary <= last_bus || secondary >= access.buses() {
            continue;
        }
        last_bus = secondary;
        let devices = if bridge::has_one_device(&function) { 8 } else { 256 };
        let inner = Level { bridge: Some(address), bus: secondary as u8, next: 0, devices };
        if levels.push(inner).is_err() {
            return Err(WalkError::TooDeep(address));
        }
        if !step(Step::Enter(function)) {
            return Ok(());
        }
    }
    Ok(())
}
