//! What the driver remembers of posted requests.

use core::mem::size_of;

use super::wqe::WQE_MIN;
use crate::verbs::WcOpcode;

bitflags::bitflags! {
    /// What the driver knows of a posted send request.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SqFlags: u8 {
        /// It completes by message, not by position.
        const REMOTE = 1;
        /// It has completed by position.
        const DONE = 1 << 1;
        /// It has failed.
        const FAILED = 1 << 2;
        /// Its success is reported.
        const SIGNALED = 1 << 3;
    }
}

/// What the driver remembers of a send request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SqRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Device clock when it completed.
    pub timestamp: u64,
    /// Bytes of the message, or the device's status code once it has failed.
    pub length: u32,
    /// Bytes of the WQE in this place that may be other than zero, if they are more than 64; else 0.
    pub extent: u32,
    /// Operation.
    pub opcode: WcOpcode,
    /// Flags.
    pub flags: SqFlags,
}

const _: () = assert!(size_of::<SqRecord>() == 32);

/// What the driver remembers of a receive request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RqRecord {
    /// Number given at post.
    pub wr_id: u64,
    /// Bytes of the WQE in this place that may be other than zero, if they are more than 64; else 0.
    pub extent: u32,
    /// Posted and not completed.
    pub posted: bool,
}

const _: () = assert!(size_of::<RqRecord>() == 16);

/// The extent of a WQE as a record has it: none if only its first 64 bytes may be other than zero.
#[inline(always)]
pub(super) const fn long(extent: u32) -> u32 {
    if extent > WQE_MIN as u32 { extent } else { 0 }
}
