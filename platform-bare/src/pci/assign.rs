//! Addresses for BARs where no firmware gave them any.

use core::ops::Range;

use super::access::{Access, Function};
use super::address::Address;
use super::bar::{self, BarError};
use super::bridge;
use super::command::{self, Command};
use super::config::Config;
use super::walk::{self, DEPTH, Header, Step, WalkError};

/// Addresses that PCI may use, as the machine's documents or its device tree say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Below 4 GiB, for all BARs.
    pub narrow: Range<u64>,
    /// Above 4 GiB, for prefetchable 64-bit BARs; may be empty.
    pub wide: Range<u64>,
}

/// Why addresses could not be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignError {
    /// The hierarchy makes no sense.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// A BAR makes no sense.
    #[error("{address}: {cause}")]
    Bar {
        /// The function.
        address: Address,
        /// What is wrong with it.
        cause: BarError,
    },
    /// There are no addresses left.
    #[error("{address}: no addresses are left for BAR {bar} of {len:#x} bytes")]
    Exhausted {
        /// The function.
        address: Address,
        /// Number of the BAR.
        bar: u8,
        /// Its length.
        len: u64,
    },
    /// There are no addresses left for a bridge to begin with.
    #[error("{0}: no addresses are left for what is behind the bridge")]
    Full(Address),
}

/// A range of addresses, given out from its start.
#[derive(Clone, Debug)]
struct Cursor {
    next: u64,
    end: u64,
}

impl Cursor {
    const fn new(range: &Range<u64>) -> Self {
        // Address 0 says that a BAR has none.
        let next = if range.start == 0 { bridge::GRANULE } else { range.start };
        Self { next, end: range.end }
    }

    fn take(&mut self, len: u64) -> Option<u64> {
        let at = self.next.checked_next_multiple_of(len)?;
        let end = at.checked_add(len).filter(|end| *end <= self.end)?;
        self.next = end;
        Some(at)
    }

    /// Goes on to where a bridge's window can begin or end.
    fn align(&mut self) -> Option<u64> {
        self.next = self.next.checked_next_multiple_of(bridge::GRANULE).filter(|next| *next <= self.end)?;
        Some(self.next)
    }
}

/// A bridge that the walk is behind.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    narrow: u64,
    wide: u64,
    /// It, and all before it, can have a window above 4 GiB.
    has_wide: bool,
}

/// Gives every memory BAR an address, and every bridge the windows that are needed. All addresses that were there are lost;
/// memory accesses of functions are off while it lasts, and stay off; bridges are switched on.
///
/// # Errors
/// The first thing that cannot be done. What was done before it stays.
pub fn assign<A: Access + ?Sized>(access: &A, windows: &Windows) -> Result<(), AssignError> {
    let mut narrow = Cursor::new(&windows.narrow);
    let mut wide = Cursor::new(&windows.wide);
    let mut bridges: heapless::Vec<Behind, DEPTH> = heapless::Vec::new();
    let root_is_wide = !windows.wide.is_empty();
    walk::walk(access, |step| {
        match step {
            Step::Function(function, header) => {
                let has_wide = bridges.last().map_or(root_is_wide, |bridge| bridge.has_wide);
                place_all(&function, header, has_wide, &mut narrow, &mut wide)
            }
            Step::Enter(bridge) => {
                let full = AssignError::Full(bridge.address());
                let has_wide = bridges.last().map_or(root_is_wide, |outer| outer.has_wide)
                    && bridge::has_wide_window(&bridge);
                let narrow = narrow.align().ok_or(full)?;
                let wide = if has_wide { wide.align().ok_or(full)? } else { wide.next };
                // The walk goes no deeper than there is room for.
                let _ = bridges.push(Behind { narrow, wide, has_wide });
                Ok(())
            }
            Step::Leave(bridge) => {
                let full = AssignError::Full(bridge.address());
                let begun = bridges.pop().unwrap_or_default();
                let narrow = begun.narrow..narrow.align().ok_or(full)?;
                let wide = if begun.has_wide { begun.wide..wide.align().ok_or(full)? } else { 0..0 };
                bridge::set_windows(&bridge, &narrow, &wide);
                command::enable(&bridge, Command::MEMORY | Command::BUS_MASTER);
                Ok(())
            }
        }
    })
}

fn place_all<A: Access + ?Sized>(
    function: &Function<'_, A>,
    header: Header,
    has_wide: bool,
    narrow: &mut Cursor,
    wide: &mut Cursor,
) -> Result<(), AssignError> {
    let count = match header {
        Header::Endpoint => 6,
        Header::Bridge => 2,
        Header::Other(_) => return Ok(()),
    };
    let address = function.address();
    command::disable(function, Command::MEMORY | Command::IO);
    let bars = bar::all(function, count).map_err(|cause| AssignError::Bar { address, cause })?;
    for bar in bars.iter().flatten() {
        let exhausted = AssignError::Exhausted { address, bar: bar.index, len: bar.len };
        let cursor = if has_wide && bar.wide && bar.prefetchable { &mut *wide } else { &mut *narrow };
        bar::place(function, bar, cursor.take(bar.len).ok_or(exhausted)?);
    }
    Ok(())
}

/// Whether a memory BAR has no address: no firmware gave them any.
///
/// # Errors
/// A BAR or the hierarchy makes no sense.
pub fn lacks_addresses<A: Access + ?Sized>(access: &A) -> Result<bool, AssignError> {
    let mut lacks = false;
    walk::walk(access, |step| {
        if let Step::Function(function, Header::Endpoint) = step {
            let address = function.address();
            let bars = bar::all(&function, 6).map_err(|cause| AssignError::Bar { address, cause })?;
            lacks |= bars.iter().flatten().any(|bar| bar.address == 0);
        }
        Ok::<_, AssignError>(())
    })?;
    Ok(lacks)
}

/// Numbers buses and gives BARs addresses, each if nobody has.
///
/// # Errors
/// What makes no sense, or is used up.
pub fn configure<A: Access + ?Sized>(access: &A, windows: &Windows) -> Result<(), AssignError> {
    let renumbered = walk::lacks_numbers(access)?;
    if renumbered {
        walk::number_buses(access)?;
    }
    if renumbered || lacks_addresses(access)? {
        assign(access, windows)?;
    }
    Ok(())
}

/// Whether a function is there whose vendor and device `wanted` takes: the first in order.
///
/// # Errors
/// The hierarchy makes no sense before it is found.
pub fn find<'a, A: Access + ?Sized>(
    access: &'a A,
    mut wanted: impl FnMut(u16, u16) -> bool,
) -> Result<Option<Function<'a, A>>, WalkError> {
    /// Ends the walk.
    enum End {
        Found,
        Wrong(WalkError),
    }
    impl From<WalkError> for End {
        fn from(error: WalkError) -> Self {
            Self::Wrong(error)
        }
    }
    let mut found = None;
    let walked = walk::walk(access, |step| {
        if let Step::Function(function, Header::Endpoint) = step
            && function.id().is_some_and(|(vendor, device)| wanted(vendor, device))
        {
            found = Some(function);
            return Err(End::Found);
        }
        Ok(())
    });
    match walked {
        Err(End::Wrong(error)) => Err(error),
        Ok(()) | Err(End::Found) => Ok(found),
    }
}
