//! Work completions.

use super::{Imm, QpId, RKey};

/// Status of a completion. The discriminants are those of `ibv_wc_status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u8)]
#[non_exhaustive]
pub enum WcStatus {
    /// The request completed.
    #[default]
    #[error("success")]
    Success = 0,
    /// The message does not fit the local buffers or the maximum length.
    #[error("local length error")]
    LocLen = 1,
    /// The work request or queue pair state is wrong.
    #[error("local QP operation error")]
    LocQpOp = 2,
    /// A local key does not cover the memory, or does not allow the access.
    #[error("local protection error")]
    LocProt = 4,
    /// Flushed: the queue pair was in error, or went into it, before the request was carried out.
    #[error("work request flushed")]
    WrFlush = 5,
    /// Binding a memory window, or another memory management operation, failed.
    #[error("memory window bind error")]
    MwBind = 6,
    /// The peer answered with something that makes no sense.
    #[error("bad response")]
    BadResp = 7,
    /// An incoming RDMA WRITE with immediate data violated access rights.
    #[error("local access error")]
    LocAccess = 8,
    /// The peer refused the request as invalid.
    #[error("remote invalid request")]
    RemInvReq = 9,
    /// The peer's key does not cover the memory, or does not allow the access.
    #[error("remote access error")]
    RemAccess = 10,
    /// The peer could not carry out the request.
    #[error("remote operation error")]
    RemOp = 11,
    /// The peer did not answer.
    #[error("transport retry count exceeded")]
    RetryExceeded = 12,
    /// The peer had no receive request ready.
    #[error("RNR retry count exceeded")]
    RnrRetryExceeded = 13,
    /// The device failed.
    #[error("fatal error")]
    Fatal = 19,
    /// A status that the driver does not know; the raw code is in `vendor_err`.
    #[error("general error")]
    General = 21,
}

/// Operation that completed. The discriminants are those of `ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum WcOpcode {
    /// SEND of any kind.
    #[default]
    Send = 0,
    /// RDMA WRITE of any kind.
    RdmaWrite = 1,
    /// RDMA READ.
    RdmaRead = 2,
    /// Compare and swap.
    CompSwap = 3,
    /// Fetch and add.
    FetchAdd = 4,
    /// Memory window bound.
    BindMw = 5,
    /// Local key invalidated.
    LocalInv = 6,
    /// Memory registered through the send queue.
    RegMr = 8,
    /// Message received.
    Recv = 128,
    /// RDMA WRITE with immediate data received.
    RecvRdmaWithImm = 129,
}

bitflags::bitflags! {
    /// What a completion carries. The bit values are those of `ibv_wc_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WcFlags: u8 {
        /// The first 40 bytes of the buffer hold a GRH, or room for it.
        const GRH = 1;
        /// `imm_or_rkey` is immediate data.
        const WITH_IMM = 1 << 1;
        /// `imm_or_rkey` is the key that was invalidated.
        const WITH_INV = 1 << 3;
    }
}

/// A work completion. `byte_len`, `opcode` and what follows are valid when `status` is success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WorkCompletion {
    /// Number given at post.
    pub wr_id: u64,
    /// Device clock when it completed, in ticks; 0 if the device gives none.
    pub timestamp: u64,
    /// Bytes received, read, or written by the peer's atomic.
    pub byte_len: u32,
    /// The device's own status code; 0 for success, and for requests that the driver flushed.
    pub vendor_err: u32,
    /// Queue pair the request belonged to.
    pub qp: QpId,
    /// Sender's queue pair, of a datagram.
    pub src_qp: QpId,
    /// Immediate data or invalidated key in host order, see [`WorkCompletion::imm`] and [`WorkCompletion::invalidated`].
    pub imm_or_rkey: u32,
    /// Outcome.
    pub status: WcStatus,
    /// Operation.
    pub opcode: WcOpcode,
    /// What is valid.
    pub flags: WcFlags,
    /// Service level of a datagram, as the vendor's provider reports it.
    pub sl: u8,
}

impl WorkCompletion {
    /// Immediate data, if the completion carries any.
    pub fn imm(&self) -> Option<Imm> {
        self.flags.contains(WcFlags::WITH_IMM).then(|| Imm::truncated(self.imm_or_rkey))
    }

    /// The key of ours that the peer invalidated, if it did.
    pub fn invalidated(&self) -> Option<RKey> {
        self.flags.contains(WcFlags::WITH_INV).then(|| RKey::truncated(self.imm_or_rkey))
    }
}
