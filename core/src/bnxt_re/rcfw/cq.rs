//! Completion queues. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqXid, command, completion};

command! {
    /// Creates a completion queue.
    pub struct CmdqCreateCq: "cmdq_create_cq", 64, CREATE_CQ => CreqXid {
        /// Comes back in notifications.
        cq_handle: le::U64 = 16,
        /// Level in bits 0 and 1, page size in bits 2 to 4.
        pg_size_lvl: le::U32 = 24,
        /// Notification queue in bits 0 to 11, offset of the first CQE above.
        cq_fco_cnq_id: le::U32 = 28,
        /// Doorbell page.
        dpi: le::U32 = 32,
        /// CQEs.
        cq_size: le::U32 = 36,
        /// Page or page list.
        pbl: le::U64 = 40,
        /// Steering tag.
        steering_tag: le::U16 = 48,
        /// Zero.
        reserved48: [u8; 2] = 50,
        /// Joining of completions.
        coalescing: le::U32 = 52,
        /// Zero.
        reserved64: le::U64 = 56,
    }
}
command! {
    /// Destroys a completion queue.
    pub struct CmdqDestroyCq: "cmdq_destroy_cq", 24, DESTROY_CQ => CreqDestroyCqResp {
        /// Completion queue.
        cq_cid: le::U32 = 16,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
completion! {
    /// The completion queue is gone.
    pub struct CreqDestroyCqResp: "creq_destroy_cq_resp" {
        {
            /// Number of the object.
            xid: le::U32 = 4,
        }
        {
            /// How the queue was armed.
            cq_arm_lvl: le::U16 = 10,
            /// Notifications that the queue had in all.
            total_cnq_events: le::U16 = 12,
            /// Zero.
            reserved16: le::U16 = 14,
        }
    }
}
command! {
    /// Gives a completion queue another ring.
    pub struct CmdqResizeCq: "cmdq_resize_cq", 40, RESIZE_CQ => CreqXid {
        /// Completion queue.
        cq_cid: le::U32 = 16,
        /// Level in bits 0 and 1, page size in bits 2 to 4, CQEs above.
        new_cq_size_pg_size_lvl: le::U32 = 20,
        /// Page or page list of the new ring.
        new_pbl: le::U64 = 24,
        /// Offset of the first CQE in it.
        new_cq_fco: le::U32 = 32,
        /// Zero.
        unused_0: le::U32 = 36,
    }
}
