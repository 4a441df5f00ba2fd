use directverbs::verbs::{Gid, Mac, Mtu, Psn, QKey, QpId, RKey};

use crate::MAX_BATCH;

/// What a side tells the other, out of band, so that it can connect: plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact {
    /// Queue pair.
    pub qp: QpId,
    /// First sequence number that the queue pair sends.
    pub psn: Psn,
    /// Queue key of a datagram queue pair.
    pub qkey: QKey,
    /// Address of the port.
    pub gid: Gid,
    /// Ethernet address of the port.
    pub mac: Mac,
    /// Largest path MTU of the port.
    pub mtu: Mtu,
    /// READs and atomics that the queue pair takes at once.
    pub rd_atomic: u8,
    /// Address of the exposed memory's first slot.
    pub addr: u64,
    /// Bytes from slot to slot.
    pub stride: u64,
    /// Key of the exposed memory.
    pub rkey: RKey,
    /// Keys of the memory windows before their first bind, for SEND with invalidate.
    pub windows: [RKey; MAX_BATCH as usize],
}
