use directverbs::verbs::{Gid, Mac, Mtu, Psn, QKey, QpId, RKey};
use zerocopy::{FromBytes, Immutable, IntoBytes, little_endian as le};

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

/// A [`Contact`] as bytes.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
struct Bytes {
    qp: le::U32,
    psn: le::U32,
    qkey: le::U32,
    rkey: le::U32,
    addr: le::U64,
    stride: le::U64,
    gid: [u8; 16],
    mac: [u8; 6],
    /// Code of the path MTU.
    mtu: u8,
    rd_atomic: u8,
    windows: [le::U32; MAX_BATCH as usize],
}

/// Bytes of a [`Contact`] on its way to the other side.
pub const CONTACT_BYTES: usize = size_of::<Bytes>();

impl Contact {
    /// The contact as bytes, for a way that carries nothing else.
    pub fn to_bytes(&self) -> [u8; CONTACT_BYTES] {
        zerocopy::transmute!(Bytes {
            qp: self.qp.get().into(),
            psn: self.psn.get().into(),
            qkey: self.qkey.get().into(),
            rkey: self.rkey.get().into(),
            addr: self.addr.into(),
            stride: self.stride.into(),
            gid: self.gid.0,
            mac: self.mac.0,
            mtu: self.mtu as u8,
            rd_atomic: self.rd_atomic,
            windows: self.windows.map(|key| key.get().into()),
        })
    }

    /// The contact in `bytes`; `None` if there is none.
    pub fn from_bytes(bytes: &[u8; CONTACT_BYTES]) -> Option<Self> {
        let bytes: Bytes = zerocopy::transmute!(*bytes);
        Some(Self {
            qp: QpId::new(bytes.qp.get())?,
            psn: Psn::new(bytes.psn.get())?,
            qkey: QKey::truncated(bytes.qkey.get()),
            gid: Gid(bytes.gid),
            mac: Mac(bytes.mac),
            mtu: Mtu::ALL.into_iter().find(|mtu| *mtu as u8 == bytes.mtu)?,
            rd_atomic: bytes.rd_atomic,
            addr: bytes.addr.get(),
            stride: bytes.stride.get(),
            rkey: RKey::truncated(bytes.rkey.get()),
            windows: bytes.windows.map(|key| RKey::truncated(key.get())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_the_same_behind_its_bytes() {
        let contact = Contact {
            qp: QpId::truncated(0x12_3456),
            psn: Psn::MAX,
            qkey: QKey::truncated(0x1122_3344),
            gid: Gid::link_local(Mac([2, 0, 0, 0, 0, 9])),
            mac: Mac([2, 0, 0, 0, 0, 9]),
            mtu: Mtu::B2048,
            rd_atomic: 16,
            addr: 0x1122_3344_5566_7788,
            stride: 1088,
            rkey: RKey::truncated(0x99),
            windows: core::array::from_fn(|i| RKey::truncated(i as u32)),
        };
        let bytes = contact.to_bytes();
        assert_eq!(Contact::from_bytes(&bytes), Some(contact));
        for (at, wrong) in [(3, 1), (7, 1), (54, 0), (54, 6)] {
            let mut bytes = bytes;
            bytes[at] = wrong;
            assert_eq!(Contact::from_bytes(&bytes), None, "byte {at}");
        }
    }
}
