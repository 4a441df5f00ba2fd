//! Shared receive queues. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqSize, CreqXid, command, completion, side_buffer};

command! {
    /// Creates a shared receive queue.
    pub struct CmdqCreateSrq: "cmdq_create_srq", 56, CREATE_SRQ => CreqXid {
        /// Comes back in notifications.
        srq_handle: le::U64 = 16,
        /// Level in bits 0 and 1, page size in bits 2 to 4.
        pg_size_lvl: le::U16 = 24,
        /// Notification queue, 12 bits.
        eventq_id: le::U16 = 26,
        /// WQEs.
        srq_size: le::U16 = 28,
        /// Offset of the first WQE.
        srq_fwo: le::U16 = 30,
        /// Doorbell page.
        dpi: le::U32 = 32,
        /// Protection domain.
        pd_id: le::U32 = 36,
        /// Page or page list.
        pbl: le::U64 = 40,
        /// Steering tag.
        steering_tag: le::U16 = 48,
        /// Zero.
        reserved48: [u8; 6] = 50,
    }
}
command! {
    /// Destroys a shared receive queue.
    pub struct CmdqDestroySrq: "cmdq_destroy_srq", 24, DESTROY_SRQ => CreqDestroySrqResp {
        /// Shared receive queue.
        srq_cid: le::U32 = 16,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
completion! {
    /// The shared receive queue is gone.
    pub struct CreqDestroySrqResp: "creq_destroy_srq_resp" {
        {
            /// Number of the object.
            xid: le::U32 = 4,
        }
        {
            /// How the queue was armed, in bits 0 and 1 of the second word.
            enable_for_arm: [le::U16; 3] = 10,
        }
    }
}
command! {
    /// Asks for the limit of a shared receive queue.
    pub struct CmdqQuerySrq: "cmdq_query_srq", 24, QUERY_SRQ => CreqSize {
        /// Shared receive queue.
        srq_cid: le::U32 = 16,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
side_buffer! {
    /// Limit of a shared receive queue.
    pub struct CreqQuerySrqRespSb: "creq_query_srq_resp_sb", 32 {
        /// Number of the object.
        xid: le::U32 = 8,
        /// Limit that is armed.
        srq_limit: le::U16 = 12,
        /// Zero.
        reserved16: le::U16 = 14,
        /// Data.
        data: [le::U32; 4] = 16,
    }
}
