//! Doorbell pacing: when the device's doorbell FIFO fills up, posters wait.
//!
//! Only arithmetic: the caller reads the parameter page and the FIFO register (32 bits wide), waits, and notifies the
//! kernel driver. A device without pacing has no [`Pacing`], and costs nothing.
//!
//! ```
//! use directverbs::bnxt_re::pacing::{Pace, Pacing, PacingParameters};
//! # let (read_register, notify_driver, wait_us) = (|| 0xffff, || {}, |_: u32| {});
//! let page = [0xffff, 0x100, 0x200, 0x2c00, 0x7fff, 0, 0x1b4];
//! let mut pacing = Pacing::new(PacingParameters::from_page(&page), 9);
//! if pacing.wants_pacing() {
//!     let mut wait = pacing.wait();
//!     while let Pace::Wait { micros, notify } = wait.step(read_register()) {
//!         if notify {
//!             notify_driver();
//!         }
//!         wait_us(micros);
//!     }
//! }
//! ```

use super::caps::Generation;
use super::hwrm::pacing::FuncDbrPacingQcfgOutput;

/// The longest range a wait is drawn from, in microseconds.
const MAX_RANGE: u32 = 128;

/// What the kernel driver publishes on the pacing page. Chips differ; nothing here is a constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacingParameters {
    /// How many of 65536 doorbells are paced.
    pub do_pacing: u32,
    /// Occupancy above which posters wait.
    pub pacing_th: u32,
    /// Occupancy above which the kernel driver is notified; 0 never.
    pub alarm_th: u32,
    /// Depth of the FIFO.
    pub fifo_max_depth: u32,
    /// Bits of the register that hold the room left.
    pub fifo_room_mask: u32,
    /// First of these bits.
    pub fifo_room_shift: u32,
    /// Offset of the register; its page is mapped, so only the part below the page size counts.
    pub grc_reg_offset: u32,
}

/// Address space of a register, bits 0 and 1: that of the chip.
const SPACE: u32 = 3;
const SPACE_GRC: u32 = 1;

impl PacingParameters {
    /// [`Self::do_pacing`] as long as there is no congestion.
    pub const NO_CONGESTION: u32 = 0x7f;
    /// [`Self::do_pacing`] of all doorbells.
    pub const ALL: u32 = 0x1_0000;

    /// Reads the first words of the pacing page.
    pub const fn from_page(words: &[u32; 7]) -> Self {
        let [do_pacing, pacing_th, alarm_th, fifo_max_depth, fifo_room_mask, fifo_room_shift, grc_reg_offset] =
            *words;
        Self {
            do_pacing,
            pacing_th,
            alarm_th,
            fifo_max_depth,
            fifo_room_mask,
            fifo_room_shift,
            grc_reg_offset,
        }
    }

    /// What the device itself says, to a driver that has the hardware to itself and asks nobody. One of 512 doorbells is paced
    /// as long as there is no congestion, as under Linux. `None` if the register is none of the chip's.
    pub const fn from_query(told: &FuncDbrPacingQcfgOutput, generation: Generation) -> Option<Self> {
        let place = told.dbr_stat_db_fifo_reg.get();
        let fifo_room_mask = told.dbr_stat_db_fifo_reg_fifo_room_mask.get();
        let fifo_room_shift = told.dbr_stat_db_fifo_reg_fifo_room_shift;
        if place & SPACE != SPACE_GRC || fifo_room_mask == 0 || fifo_room_shift >= 32 {
            return None;
        }
        let fifo_max_depth = match (told.dbr_stat_db_max_fifo_depth.get(), generation) {
            (0, Generation::P7) => 0x8000,
            (0, _) => 0x2c00,
            (depth, _) => depth,
        };
        Some(Self {
            do_pacing: Self::NO_CONGESTION,
            pacing_th: 250,
            alarm_th: 0,
            fifo_max_depth,
            fifo_room_mask,
            fifo_room_shift: fifo_room_shift as u32,
            grc_reg_offset: place & !SPACE,
        })
    }

    /// Doorbells in the FIFO, from the register.
    pub const fn occupancy(&self, register: u32) -> u32 {
        let room = match (register & self.fifo_room_mask).checked_shr(self.fifo_room_shift) {
            Some(room) => room,
            None => 0,
        };
        self.fifo_max_depth.saturating_sub(room)
    }
}

/// The window of the register BAR that the FIFO's register is read through by a driver that has the hardware to itself.
pub mod window {
    /// Offset of the register that says which page is in the window: its address.
    pub const SELECT: usize = 0x404;
    /// Offset of the window.
    pub const AT: usize = 0x2000;
    /// Bytes of a page, a power of two.
    pub const BYTES: u32 = 0x1000;
}

/// Random numbers (xorshift32).
#[derive(Clone, Copy, Debug)]
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        let mut x = self.0;
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.0 = x;
        x
    }
}

/// Pacing of one queue.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    parameters: PacingParameters,
    random: Random,
}

impl Pacing {
    /// Pacing by `parameters`; `seed` makes queues wait differently (the queue's number will do).
    pub const fn new(parameters: PacingParameters, seed: u32) -> Self {
        Self { parameters, random: Random(if seed == 0 { 1 } else { seed }) }
    }

    /// Takes over what the page holds now.
    pub fn update(&mut self, parameters: PacingParameters) {
        self.parameters = parameters;
    }

    /// Whether this doorbell is one of those that are paced.
    pub fn wants_pacing(&mut self) -> bool {
        self.random.next() & 0xffff < self.parameters.do_pacing
    }

    /// Begins to wait for room.
    pub fn wait(&mut self) -> PacingWait<'_> {
        PacingWait { pacing: self, range: 1 }
    }
}

/// What a poster does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Ring the doorbell.
    Ring,
    /// Wait, then read the register again.
    Wait {
        /// Microseconds to wait; 0 to 127.
        micros: u32,
        /// Notify the kernel driver first: the FIFO is close to full.
        notify: bool,
    },
}

/// A poster that waits for room in the FIFO.
#[derive(Debug)]
pub struct PacingWait<'p> {
    pacing: &'p mut Pacing,
    range: u32,
}

impl PacingWait<'_> {
    /// Decides by what the FIFO register (32 bits) holds now. Waits are random, from a range that doubles each time.
    pub fn step(&mut self, register: u32) -> Pace {
        let p = &self.pacing.parameters;
        let occupancy = p.occupancy(register);
        if occupancy <= p.pacing_th {
            return Pace::Ring;
        }
        let notify = p.alarm_th != 0 && occupancy > p.alarm_th;
        let micros = self.pacing.random.next() & (self.range - 1);
        self.range = (self.range * 2).min(MAX_RANGE);
        Pace::Wait { micros, notify }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::little_endian as le;

    #[test]
    fn a_device_says_where_its_fifo_is_and_how_deep() {
        let mut told = FuncDbrPacingQcfgOutput::ZERO;
        assert_eq!(PacingParameters::from_query(&told, Generation::P5), None);
        told.dbr_stat_db_fifo_reg = le::U32::new(0x31_01b5);
        told.dbr_stat_db_fifo_reg_fifo_room_mask = le::U32::new(0x1fff_8000);
        told.dbr_stat_db_fifo_reg_fifo_room_shift = 15;
        let p5 = PacingParameters::from_query(&told, Generation::P5).unwrap();
        assert_eq!((p5.grc_reg_offset, p5.fifo_max_depth), (0x31_01b4, 0x2c00));
        assert_eq!(
            (p5.occupancy(0x2c00 << 15), p5.occupancy(0x2b00 << 15), p5.occupancy(u32::MAX)),
            (0, 0x100, 0)
        );
        told.dbr_stat_db_max_fifo_depth = le::U32::new(0x100);
        assert_eq!(PacingParameters::from_query(&told, Generation::P7).unwrap().fifo_max_depth, 0x100);
        // In a BAR, and a shift that cannot be.
        told.dbr_stat_db_fifo_reg = le::U32::new(0x31_01b6);
        assert_eq!(PacingParameters::from_query(&told, Generation::P7), None);
        told.dbr_stat_db_fifo_reg = le::U32::new(0x31_01b5);
        told.dbr_stat_db_fifo_reg_fifo_room_shift = 32;
        assert_eq!(PacingParameters::from_query(&told, Generation::P7), None);
    }
}
