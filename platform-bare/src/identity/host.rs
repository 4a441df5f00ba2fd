use core::ops::Range;
use core::ptr::NonNull;

use super::memory::{Block, Memory};
use crate::clock::{Clock, Timeout};
use crate::dma::DmaError;
use crate::host::{Host, ResetError};
use crate::mmio::Mmio;
use crate::pci::bar::{self, BarError};
use crate::pci::{Access, Bar, Function, Windows, reset};
use crate::registers::{Caching, MapError};

/// Registers as the processor reaches them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Addresses of the bus that are mapped.
    pub windows: Windows,
    /// How far the processor's addresses are from those of the bus, wrapping: 0 where they are the same.
    pub distance: usize,
}

impl Mapped {
    fn holds(&self, bar: &Bar) -> bool {
        let inside = |window: &Range<u64>| {
            let end = bar.address.checked_add(bar.len);
            window.start <= bar.address && end.is_some_and(|end| end <= window.end)
        };
        bar.address != 0 && (inside(&self.windows.narrow) || inside(&self.windows.wide))
    }
}

/// One function of a machine without an operating system, as its driver's [`Host`].
///
/// It changes no page tables: BARs are mapped before it is made, and uncached, so that no store is ever combined.
#[derive(Debug)]
pub struct Identity<'m, A: ?Sized, T: ?Sized, const N: usize> {
    function: Function<'m, A>,
    clock: &'m T,
    memory: &'m Memory<N>,
    mapped: &'m Mapped,
    bars: [Option<Bar>; 6],
}

impl<A: ?Sized, T: ?Sized, const N: usize> Clone for Identity<'_, A, T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: ?Sized, T: ?Sized, const N: usize> Copy for Identity<'_, A, T, N> {}

impl<'m, A: Access + ?Sized, T: Clock + ?Sized, const N: usize> Identity<'m, A, T, N> {
    /// A host for the driver of `function`, whose BARs are assigned; one that is not in `mapped` is not there. `memory` may
    /// serve several.
    ///
    /// # Safety
    /// All of `mapped` is mapped for ever as it says, uncached, and is no memory that the program uses. Nobody else uses the
    /// function. `memory`'s device addresses are those of this function's bus.
    ///
    /// # Errors
    /// A BAR makes no sense.
    pub unsafe fn new(
        function: Function<'m, A>,
        clock: &'m T,
        memory: &'m Memory<N>,
        mapped: &'m Mapped,
    ) -> Result<Self, BarError> {
        let bars = bar::all(&function, 6)?;
        Ok(Self { function, clock, memory, mapped, bars })
    }

    /// The memory that blocks come from.
    pub const fn memory(&self) -> &'m Memory<N> {
        self.memory
    }

    fn bar(&self, index: u8) -> Option<&Bar> {
        let bar = self.bars.get(usize::from(index))?.as_ref();
        bar.filter(|bar| self.mapped.holds(bar))
    }
}

impl<A: ?Sized, T: Clock + ?Sized, const N: usize> Clock for Identity<'_, A, T, N> {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn relax(&self) {
        self.clock.relax();
    }
}

// SAFETY: blocks are pieces of memory given for DMA, which stay where they are; abandoned ones are freed only in `quiesce`,
// after bus mastering is gone; the function is this host's alone and BARs are mapped, by the contract of `new`.
unsafe impl<'m, A: Access + ?Sized, T: Clock + ?Sized, const N: usize> Host for Identity<'m, A, T, N> {
    type Config = Function<'m, A>;
    type Bar = Mmio;
    type Dma = Block<'m, N>;

    fn config(&self) -> &Function<'m, A> {
        &self.function
    }

    fn bar_len(&self, bar: u8) -> u64 {
        self.bar(bar).map_or(0, |bar| bar.len)
    }

    fn map_bar(&self, bar: u8, offset: u64, len: usize, _: Caching) -> Result<Mmio, MapError> {
        let known = self.bar(bar).ok_or(MapError::Missing { bar })?;
        MapError::check(bar, known.len, offset, len)?;
        let outside = MapError::outside(bar, known.len, offset, len);
        // A part that is not aligned for the widest registers cannot be reached.
        let at = known.address.checked_add(offset).filter(|at| at.is_multiple_of(8));
        let at = at.and_then(|at| usize::try_from(at).ok()).ok_or(outside)?;
        let address = at.wrapping_add(self.mapped.distance);
        if address.checked_add(len).is_none() {
            return Err(outside);
        }
        let base = NonNull::new(core::ptr::with_exposed_provenance_mut(address)).ok_or(outside)?;
        // SAFETY: the BAR is mapped there for ever by the contract of `new`, and the part lies in it.
        Ok(unsafe { Mmio::new(base, len) })
    }

    fn dma(&self, bytes: usize, align: usize) -> Result<Block<'m, N>, DmaError> {
        self.memory.take(bytes, align, self.function.address().bits())
    }

    fn reset(&self) -> Result<(), ResetError> {
        reset::function_level(&self.function, self.clock)
    }

    fn quiesce(&self) -> Result<(), Timeout> {
        reset::quiesce(&self.function, self.clock)?;
        self.memory.reclaim(self.function.address().bits());
        Ok(())
    }
}
