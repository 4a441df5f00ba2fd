//! Pacing: whoever posts waits while the device's doorbell FIFO is full.

use core::time::Duration;

use directverbs::bnxt_re::hwrm::function::{FuncQcapsInput, caps_ext2};
use directverbs::bnxt_re::hwrm::message::NONE;
use directverbs::bnxt_re::pacing::{Pace, Pacing, PacingParameters, window};
use zerocopy::little_endian as le;

use super::bring_up::REGISTERS;
use super::device::Device;
use super::error::Error;
use crate::clock::{Clock, Deadline, Timeout};
use crate::host::Host;
use crate::registers::{Caching, Registers};

/// Looks at the doorbell FIFO. Each thread that posts has one of its own.
///
/// As long as there is room, one doorbell of 512 is looked at; after one that had to wait all are, then half of them, and so
/// on.
#[derive(Debug)]
pub struct Pacer<B> {
    registers: B,
    at: usize,
    parameters: PacingParameters,
    pacing: Pacing,
}

impl<B: Registers> Pacer<B> {
    /// Doorbells in the FIFO.
    pub fn occupancy(&self) -> u32 {
        self.parameters.occupancy(self.registers.read32(self.at))
    }

    /// What it goes by now.
    pub const fn parameters(&self) -> &PacingParameters {
        &self.parameters
    }

    /// Waits until there is room, if this doorbell is one of those that are looked at: to be called before a post.
    ///
    /// # Errors
    /// There is no room in `limit`.
    pub fn pace<C: Clock + ?Sized>(&mut self, clock: &C, limit: Duration) -> Result<(), Timeout> {
        if !self.pacing.wants_pacing() {
            return Ok(());
        }
        let deadline = Deadline::after(clock, limit);
        let mut do_pacing = (self.parameters.do_pacing / 2).max(PacingParameters::NO_CONGESTION);
        let mut wait = self.pacing.wait();
        while let Pace::Wait { micros, .. } = wait.step(self.registers.read32(self.at)) {
            do_pacing = PacingParameters::ALL;
            if deadline.is_over(clock) {
                return Err(deadline.timeout());
            }
            clock.delay(Duration::from_micros(micros.into()));
        }
        self.parameters.do_pacing = do_pacing;
        self.pacing.update(self.parameters);
        Ok(())
    }
}

impl<H: Host> Device<'_, H> {
    /// What paces doorbells; `None` if this device's need no pacing. `seed` makes those who post wait differently.
    ///
    /// # Errors
    /// The device does not tell, or the host does not map the register.
    pub fn pacer(&mut self, seed: u32) -> Result<Option<Pacer<H::Bar>>, Error> {
        let generation = self.told.caps.generation;
        let (brought, host) = self.nic.brought()?;
        let asked = FuncQcapsInput { fid: le::U16::new(NONE), ..FuncQcapsInput::ZERO };
        let can = brought.request(host, &asked)?.flags_ext2.get();
        if can & (caps_ext2::DBR_PACING_EXT | caps_ext2::DBR_PACING_V0) == 0 {
            return Ok(None);
        }
        let told = self.pacing()?;
        let Some(parameters) = PacingParameters::from_query(&told, generation) else { return Ok(None) };
        let len = window::AT + window::BYTES as usize;
        let registers = self.nic.host.map_bar(REGISTERS, 0, len, Caching::Uncached)?;
        let within = parameters.grc_reg_offset & (window::BYTES - 1);
        registers.write32(window::SELECT, parameters.grc_reg_offset - within);
        let at = window::AT + within as usize;
        Ok(Some(Pacer { registers, at, parameters, pacing: Pacing::new(parameters, seed) }))
    }
}
