//! What drivers look at and set, without any need. Source: `roce_hsi.h`.

use zerocopy::little_endian as le;

use super::message::{CreqDone, CreqSize, command};

command! {
    /// Asks for the device's own view of an object.
    pub struct CmdqReadContext: "cmdq_read_context", 24, READ_CONTEXT => CreqSize {
        /// Number of the object.
        xid: le::U32 = 16,
        /// Kind: 0 queue pair, 1 shared receive queue, 2 completion queue, 3 region.
        r#type: u8 = 20,
        /// Zero.
        unused_0: [u8; 3] = 21,
    }
}
command! {
    /// Maps traffic classes to classes of the port.
    pub struct CmdqMapTcToCos: "cmdq_map_tc_to_cos", 24, MAP_TC_TO_COS => CreqDone {
        /// Class of traffic class 0.
        cos0: le::U16 = 16,
        /// Class of traffic class 1.
        cos1: le::U16 = 18,
        /// Zero.
        unused_0: le::U32 = 20,
    }
}
command! {
    /// Mirrors RoCE packets to Ethernet.
    pub struct CmdqRoceMirrorCfg: "cmdq_roce_mirror_cfg", 24, ROCE_MIRROR_CFG => CreqDone {
        /// 1: mirror received packets.
        mirror_flags: u8 = 16,
        /// Zero.
        rsvd: [u8; 7] = 17,
    }
}
