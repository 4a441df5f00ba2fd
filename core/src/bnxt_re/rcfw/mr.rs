//! Memory regions and windows. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqXid, command, completion};

/// Kinds of key.
pub mod kind {
    /// Region.
    pub const MR: u8 = 0;
    /// Region that a posted request fills.
    pub const PMR: u8 = 1;
    /// Window of type 1.
    pub const MW_TYPE1: u8 = 2;
    /// Window of type 2A.
    pub const MW_TYPE2A: u8 = 3;
    /// Window of type 2B.
    pub const MW_TYPE2B: u8 = 4;
}

/// Bit of the flags of [`CmdqRegisterMr`]: allocate the key; `key` is the protection domain.
pub const ALLOC_MR: u16 = 1;
/// Bit of the flags of [`CmdqRegisterMr`]: relaxed ordering.
pub const ENABLE_RO: u16 = 4;
/// Bit of [`CmdqAllocateMrw::access`]: the low byte of the key is the owner's.
pub const CONSUMER_OWNED_KEY: u8 = 0x20;

command! {
    /// Creates a key.
    pub struct CmdqAllocateMrw: "cmdq_allocate_mrw", 32, ALLOCATE_MRW => CreqXid {
        /// Handle.
        mrw_handle: le::U64 = 16,
        /// Kind in bits 0 to 3, see [`kind`].
        mrw_flags: u8 = 24,
        /// What is allowed.
        access: u8 = 25,
        /// Steering tag.
        steering_tag: le::U16 = 26,
        /// Protection domain.
        pd_id: le::U32 = 28,
    }
}
command! {
    /// Destroys a key.
    pub struct CmdqDeallocateKey: "cmdq_deallocate_key", 24, DEALLOCATE_KEY => CreqDeallocateKeyResp {
        /// Kind in bits 0 to 3, see [`kind`].
        mrw_flags: u8 = 16,
        /// Zero.
        unused24: [u8; 3] = 17,
        /// Key.
        key: le::U32 = 20,
    }
}
completion! {
    /// The key is gone.
    pub struct CreqDeallocateKeyResp: "creq_deallocate_key_resp" {
        {
            /// Number of the object.
            xid: le::U32 = 4,
        }
        {
            /// Zero.
            reserved16: le::U16 = 10,
            /// Windows that were bound.
            bound_window_info: le::U32 = 12,
        }
    }
}
command! {
    /// Gives a key memory.
    pub struct CmdqRegisterMr: "cmdq_register_mr", 56, REGISTER_MR => CreqXid {
        /// Level in bits 0 and 1, base-two logarithm of the page size in bits 2 to 6.
        log2_pg_size_lvl: u8 = 16,
        /// What is allowed.
        access: u8 = 17,
        /// Base-two logarithm of the page size of the list.
        log2_pbl_pg_size: le::U16 = 18,
        /// Key.
        key: le::U32 = 20,
        /// Page or page list.
        pbl: le::U64 = 24,
        /// Address of the first byte.
        va: le::U64 = 32,
        /// Bytes.
        mr_size: le::U64 = 40,
        /// Steering tag.
        steering_tag: le::U16 = 48,
        /// Zero.
        reserved48: [u8; 6] = 50,
    }
}
command! {
    /// Takes memory away from a key.
    pub struct CmdqDeregisterMr: "cmdq_deregister_mr", 24, DEREGISTER_MR => CreqDeregisterMrResp {
        /// Key.
        lkey: le::U32 = 16,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
completion! {
    /// The key has no memory any more.
    pub struct CreqDeregisterMrResp: "creq_deregister_mr_resp" {
        {
            /// Number of the object.
            xid: le::U32 = 4,
        }
        {
            /// Zero.
            reserved16: le::U16 = 10,
            /// Windows that were bound.
            bound_windows: le::U32 = 12,
        }
    }
}
