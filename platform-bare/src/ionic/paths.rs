//! Paths: the headers that the device is given for them, and address handles.

use directverbs::ionic::admin::{CreateAhCmd, DestroyAhCmd, HeaderTemplate, TEMPLATE_MAX};
use directverbs::verbs::{AddressVector, AhId};

use super::device::{Device, ProtectionDomain};
use super::error::Cause;
use super::session::DBID;
use crate::host::Host;
use crate::ledger::Kind;

/// Bytes of Ethernet addresses, and of what follows them in headers.
const ADDRESSES: usize = 12;
const ETHER_TYPE: usize = 2;
const VLAN: usize = 4;
const UDP: usize = 8;

/// The length of the headers that `bytes` begin with: the device does not tell it.
fn headers_len(bytes: &[u8; TEMPLATE_MAX]) -> Option<usize> {
    let kind =
        |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|kind| u16::from_be_bytes(*kind));
    let tagged = if kind(ADDRESSES)? == 0x8100 { VLAN } else { 0 };
    let ip = match kind(ADDRESSES + tagged)? {
        0x0800 => 20,
        0x86dd => 40,
        _ => return None,
    };
    Some(ADDRESSES + ETHER_TYPE + tagged + ip + UDP)
}

impl<H: Host> Device<'_, H> {
    /// The headers for `path`, written where the device finds them.
    pub(super) fn headers(&mut self, path: &AddressVector) -> Result<(HeaderTemplate, u64), Cause> {
        let local = self.local_gid(path.sgid_index)?;
        let path = AddressVector { vlan: path.vlan.or(local.vlan), ..*path };
        let headers = HeaderTemplate::new(&path, self.mac(), local.gid)?;
        let (scratch, at) = self.nic.session.scratch()?;
        if scratch.store_bytes(0, headers.bytes()) { Ok((headers, at)) } else { Err(Cause::Failed) }
    }

    /// The path that headers tell; `None` if they are none, or not from one of our GIDs.
    pub(super) fn path_of(&self, bytes: &[u8; TEMPLATE_MAX]) -> Option<AddressVector> {
        let parsed = HeaderTemplate::parse(bytes.get(..headers_len(bytes)?)?).ok()?;
        let sgid_index = self.gid_index(parsed.sgid)?;
        Some(AddressVector { sgid_index, ..parsed.path })
    }

    pub(super) fn make_ah(&mut self, pd: &ProtectionDomain<'_>, to: &AddressVector) -> Result<AhId, Cause> {
        self.check_own(pd.lease)?;
        self.check_room()?;
        let (headers, at) = self.headers(to)?;
        let id = self.nic.free_ah()?;
        let cmd = CreateAhCmd {
            dma_addr: at.into(),
            length: u32::from(headers.len()).into(),
            pd_id: pd.id.into(),
            id_ver: id.into(),
            dbid_flags: DBID.into(),
            csum_profile: headers.profile() as u8,
            ..CreateAhCmd::ZERO
        };
        self.nic.session.rdma(&cmd)?;
        self.nic.created((Kind::AddressHandle, id), &[pd.object()]);
        Ok(AhId::truncated(id))
    }

    pub(super) fn unmake_ah(&mut self, ah: AhId) -> Result<(), Cause> {
        let object = (Kind::AddressHandle, ah.get());
        self.check_unused(object)?;
        self.nic.session.rdma(&DestroyAhCmd { ah_id: ah.get().into() })?;
        self.nic.destroyed(object);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use directverbs::verbs::{Gid, Mac};
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn the_length_of_headers_is_told_by_their_first_bytes() {
        let v6 = Gid::v6(Ipv6Addr::LOCALHOST);
        for gid in [Gid::v4(Ipv4Addr::LOCALHOST), v6] {
            for vlan in [None, Some(7)] {
                let path = AddressVector { vlan, ..AddressVector::new(gid, Mac::default()) };
                let headers = HeaderTemplate::new(&path, Mac::default(), gid).unwrap();
                let mut bytes = [0xee; TEMPLATE_MAX];
                bytes.iter_mut().zip(headers.bytes()).for_each(|(to, from)| *to = *from);
                assert_eq!(headers_len(&bytes), Some(headers.len().into()));
            }
        }
        assert_eq!(headers_len(&[0xff; TEMPLATE_MAX]), None);
    }
}
