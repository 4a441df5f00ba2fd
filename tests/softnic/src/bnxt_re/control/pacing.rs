//! The doorbell FIFO, as far as drivers see it.

use directverbs::bnxt_re::hwrm::pacing::FuncDbrPacingQcfgOutput;
use directverbs::bnxt_re::pacing::window;
use zerocopy::little_endian as le;

use super::function::BnxtFunction;

/// Address of the FIFO's register in the chip, and its address space.
const REGISTER: u32 = 0x31_01b4;
const SPACE_GRC: u32 = 1;
/// First bit of the room in it.
const SHIFT: u8 = 15;

impl BnxtFunction {
    /// Doorbells that the FIFO holds.
    fn fifo_depth(&self) -> u32 {
        if self.chip.is_p7() { 0x8000 } else { 0x2c00 }
    }

    /// How doorbells are to be paced: not at all if the chip has no pacing.
    pub(super) fn pacing(&self) -> FuncDbrPacingQcfgOutput {
        if !self.chip.pacing {
            return FuncDbrPacingQcfgOutput::ZERO;
        }
        let depth = self.fifo_depth();
        FuncDbrPacingQcfgOutput {
            dbr_stat_db_fifo_reg: le::U32::new(REGISTER | SPACE_GRC),
            dbr_stat_db_fifo_reg_fifo_room_mask: le::U32::new(((depth + 1).next_power_of_two() - 1) << SHIFT),
            dbr_stat_db_fifo_reg_fifo_room_shift: SHIFT,
            dbr_stat_db_max_fifo_depth: le::U32::new(depth),
            ..FuncDbrPacingQcfgOutput::ZERO
        }
    }

    /// A load through the window.
    pub(super) fn window_load(&self, offset: u64) -> u32 {
        let address = self.state.window | offset as u32 & (window::BYTES - 1);
        if !self.chip.pacing || address != REGISTER {
            return 0;
        }
        let filled = self.nic.lock().front_end().take_from_fifo();
        (self.fifo_depth() - filled.min(self.fifo_depth())) << SHIFT
    }
}
