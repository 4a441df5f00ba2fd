//! Pacing of doorbells. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{request, response};

request! {
    /// Asks how doorbells are to be paced.
    pub struct FuncDbrPacingQcfgInput: "hwrm_func_dbr_pacing_qcfg_input", 16, FUNC_DBR_PACING_QCFG => FuncDbrPacingQcfgOutput {
    }
}
response! {
    /// How doorbells are to be paced.
    pub struct FuncDbrPacingQcfgOutput: "hwrm_func_dbr_pacing_qcfg_output", 64 {
        /// 1: events are on.
        flags: u8 = 8,
        /// Zero.
        unused_0: [u8; 7] = 9,
        /// Register with the fill of the doorbell queue: address space in bits 0 and 1, address above.
        dbr_stat_db_fifo_reg: le::U32 = 16,
        /// Bits of the watermark in it.
        dbr_stat_db_fifo_reg_watermark_mask: le::U32 = 20,
        /// First of these bits.
        dbr_stat_db_fifo_reg_watermark_shift: u8 = 24,
        /// Zero.
        unused_1: [u8; 3] = 25,
        /// Bits of the free room in it.
        dbr_stat_db_fifo_reg_fifo_room_mask: le::U32 = 28,
        /// First of these bits.
        dbr_stat_db_fifo_reg_fifo_room_shift: u8 = 32,
        /// Zero.
        unused_2: [u8; 3] = 33,
        /// Register that arms the event.
        dbr_throttling_aeq_arm_reg: le::U32 = 36,
        /// Value to arm it with.
        dbr_throttling_aeq_arm_reg_val: u8 = 40,
        /// Zero.
        unused_3: [u8; 3] = 41,
        /// Room in the doorbell queue when it is empty.
        dbr_stat_db_max_fifo_depth: le::U32 = 44,
        /// Notification queue that gets the event.
        primary_nq_id: le::U32 = 48,
        /// Room below which doorbells are paced.
        pacing_threshold: le::U32 = 52,
        /// Zero.
        unused_4: [u8; 7] = 56,
        /// 1 when the response is complete; written last.
        valid: u8 = 63,
    }
}
