//! GIDs of ours.

use directverbs::bnxt_re::rcfw::gid::{
    CmdqAddGid, CmdqDeleteGid, CmdqModifyGid, CmdqQueryGid, CreqQueryGidRespSb,
};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::path::SourceGid;
use directverbs::text;
use directverbs::verbs::Gid;
use zerocopy::little_endian as le;

use super::config::Config;
use super::device::Device;
use super::error::Error;
use crate::host::Host;

/// VLAN id that stands for none.
const NO_VLAN: u16 = 0xfff;

/// A tag that packets can have.
fn tag(vlan: Option<u16>) -> Result<Option<u16>, Error> {
    match vlan {
        Some(tag) if tag & 0xfff == NO_VLAN => Err(Error::Vlan(tag)),
        vlan => Ok(vlan),
    }
}

impl<H: Host> Device<'_, H> {
    pub(super) fn add_gids(&mut self, config: &Config<'_>) -> Result<(), Error> {
        let local = [Gid::link_local(self.mac)];
        let gids = if config.gids.is_empty() { &local } else { config.gids };
        for (i, gid) in gids.iter().enumerate() {
            self.add_gid(*gid, config.vlans.get(i).copied().flatten())?;
        }
        Ok(())
    }

    /// Adds a GID of ours, in a VLAN if there is one; gives its index among [`Nic::gids`](super::Nic::gids).
    ///
    /// # Errors
    /// There is no room, no such VLAN, or the device fails.
    pub fn add_gid(&mut self, gid: Gid, vlan: Option<u16>) -> Result<u8, Error> {
        let vlan = tag(vlan)?;
        let at = self.gids.iter().position(Option::is_none).ok_or(Error::Full(text!("GID")))?;
        let (mac, max) = (self.mac, self.told.func.max_gid.get());
        let (brought, host) = self.nic.brought()?;
        let xid = brought.command(host, &CmdqAddGid::new(gid, mac, vlan, brought.stat_ctx))?.xid.get();
        let known = |index| self.nic.gids.iter().flatten().any(|(_, source)| source.index == index);
        let index = u16::try_from(xid).ok().filter(|index| xid < max && !known(*index));
        let Some(index) = index else {
            self.nic.brought()?.0.channel()?.fail();
            return Err(Error::Number { opcode: Opcode::ADD_GID, xid });
        };
        if let Some(place) = self.nic.gids.get_mut(at) {
            *place = Some((gid, SourceGid { index, vlan }));
        }
        Ok(at as u8)
    }

    /// Puts another GID, or VLAN, in the place of the one at `index`: all that uses the index sends from it from now on, but
    /// a new VLAN reaches only queue pairs and address handles that are told of it.
    ///
    /// # Errors
    /// There is no such GID or VLAN, or the device refuses: then all is as before.
    pub fn modify_gid(&mut self, index: u8, gid: Gid, vlan: Option<u16>) -> Result<(), Error> {
        let vlan = tag(vlan)?;
        let source = self.source(index)?;
        let mac = self.mac;
        let (brought, host) = self.nic.brought()?;
        let command = CmdqModifyGid::new(source.index, gid, mac, vlan, brought.stat_ctx);
        brought.command(host, &command)?;
        if let Some(place) = self.nic.gids.get_mut(usize::from(index)) {
            *place = Some((gid, SourceGid { vlan, ..source }));
        }
        Ok(())
    }

    /// Deletes the GID at `index`. Others keep their index.
    ///
    /// # Errors
    /// There is no such GID, or the device refuses.
    pub fn delete_gid(&mut self, index: u8) -> Result<(), Error> {
        let gid_index = le::U16::new(self.source(index)?.index);
        let (brought, host) = self.nic.brought()?;
        brought.command(host, &CmdqDeleteGid { gid_index, ..CmdqDeleteGid::ZERO })?;
        if let Some(place) = self.nic.gids.get_mut(usize::from(index)) {
            *place = None;
        }
        Ok(())
    }

    /// What the device tells about the GID at `index`.
    ///
    /// # Errors
    /// There is no such GID, or the device does not tell.
    pub fn query_gid(&mut self, index: u8) -> Result<CreqQueryGidRespSb, Error> {
        let gid_index = le::U16::new(self.source(index)?.index);
        let (brought, host) = self.nic.brought()?;
        brought.query(host, &CmdqQueryGid { gid_index, ..CmdqQueryGid::ZERO })
    }

    /// Our GID at `index`, as the device knows it.
    pub(super) fn source(&self, index: u8) -> Result<SourceGid, Error> {
        let known = self.gids.get(usize::from(index)).copied().flatten();
        known.map(|(_, source)| source).ok_or(Error::NoGid(index))
    }
}
