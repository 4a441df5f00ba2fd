//! Memory of an object in one piece: its rings, and behind them the lists of their pages.

use directverbs::bnxt_re::pbl::{PAGE, PAGE_SHIFT, PblPlan, Use};
use directverbs::bnxt_re::rcfw::create::Listed;
use directverbs::queue::RingMemory;
use directverbs::verbs::PlanError;

use super::error::Error;
use crate::dma::{DmaMemory, Owned};
use crate::host::Host;

/// Memory that the device knows, or may know: dropped, it is abandoned.
pub(super) type Shared<H> = Owned<RingMemory<'static>, <H as Host>::Dma, 1>;

/// Memory for `bytes` bytes, in whole pages.
pub(super) fn shared<H: Host>(host: &H, bytes: u64) -> Result<Shared<H>, Error> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Owned::build([host.dma(bytes, PAGE as usize)?], |[memory]| Ok(memory))
}

/// The device's address of such memory.
pub(super) fn address<Q, D: DmaMemory>(memory: &Owned<Q, D, 1>) -> u64 {
    let [address] = memory.device_addresses();
    address
}

/// A part of an object's memory: whole pages, and the list of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    at: u64,
    list_at: u64,
    plan: PblPlan,
    kind: Use,
}

/// Lays out areas one after another.
#[derive(Debug, Default)]
pub(super) struct Areas {
    bytes: u64,
}

impl Areas {
    /// Bytes of all so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds pages without a list; gives their offset.
    pub const fn pages(&mut self, bytes: u64) -> u64 {
        let at = self.bytes;
        self.bytes += bytes.next_multiple_of(PAGE);
        at
    }

    /// Adds the list of pages at `at`.
    pub const fn list(&mut self, at: u64, bytes: u64, kind: Use) -> Result<Area, PlanError> {
        match PblPlan::new(bytes, PAGE_SHIFT) {
            Ok(plan) => {
                let list_at = self.pages(plan.bytes());
                Ok(Area { at, list_at, plan, kind })
            }
            Err(error) => Err(error),
        }
    }
}

impl Area {
    /// Writes the list into the object's memory, which the device has at `address`.
    pub fn write(&self, memory: &mut RingMemory<'_>, address: u64) -> Result<Listed, Error> {
        let root =
            self.plan.write(memory, self.list_at as usize, address + self.list_at, self.kind, |page| {
                address + self.at + u64::from(page) * PAGE
            })?;
        Ok(Listed { plan: self.plan, root })
    }

    /// Writes the list into memory of its own, which the device has at `address`, of pages that it has at `pages`.
    pub fn write_apart(
        &self,
        memory: &mut RingMemory<'_>,
        address: u64,
        pages: u64,
    ) -> Result<Listed, Error> {
        let page = |page| pages + u64::from(page) * PAGE;
        let root = self.plan.write(memory, 0, address, self.kind, page)?;
        Ok(Listed { plan: self.plan, root })
    }
}
