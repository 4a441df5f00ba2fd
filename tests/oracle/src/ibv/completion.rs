//! Completions of both sides in one form.

use directverbs::verbs::{WcFlags, WorkCompletion};

use super::sys::ibv_wc;

/// A completion as both sides can tell it: numbers as in the library's header, immediate data and keys in host order.
///
/// The library says of `opcode` and what follows that they are valid on success only; which of them to compare is the
/// caller's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Number given at post.
    pub wr_id: u64,
    /// `enum ibv_wc_status`.
    pub status: u32,
    /// Queue pair.
    pub qp: u32,
    /// The device's own status.
    pub vendor_err: u32,
    /// `enum ibv_wc_opcode`.
    pub opcode: u32,
    /// Bytes.
    pub byte_len: u32,
    /// `enum ibv_wc_flags`.
    pub flags: u32,
    /// Immediate data or invalidated key, if the flags say so, else zero.
    pub imm_or_rkey: u32,
    /// Sender's queue pair.
    pub src_qp: u32,
    /// Service level.
    pub sl: u8,
}

impl From<&ibv_wc> for Completion {
    fn from(wc: &ibv_wc) -> Self {
        let with = |flag: WcFlags| wc.wc_flags & u32::from(flag.bits()) != 0;
        Self {
            wr_id: wc.wr_id,
            status: wc.status,
            qp: wc.qp_num,
            vendor_err: wc.vendor_err,
            opcode: wc.opcode,
            byte_len: wc.byte_len,
            flags: wc.wc_flags,
            imm_or_rkey: match () {
                () if with(WcFlags::WITH_IMM) => u32::from_be(wc.imm_or_rkey),
                () if with(WcFlags::WITH_INV) => wc.imm_or_rkey,
                () => 0,
            },
            src_qp: wc.src_qp,
            sl: wc.sl,
        }
    }
}

impl From<&WorkCompletion> for Completion {
    fn from(wc: &WorkCompletion) -> Self {
        let carries = wc.flags.intersects(WcFlags::WITH_IMM | WcFlags::WITH_INV);
        Self {
            wr_id: wc.wr_id,
            status: wc.status as u32,
            qp: wc.qp.get(),
            vendor_err: wc.vendor_err,
            opcode: wc.opcode as u32,
            byte_len: wc.byte_len,
            flags: wc.flags.bits().into(),
            imm_or_rkey: if carries { wc.imm_or_rkey } else { 0 },
            src_qp: wc.src_qp.get(),
            sl: wc.sl,
        }
    }
}
