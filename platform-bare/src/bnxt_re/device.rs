use core::ops::Deref;

use directverbs::bnxt_re::doorbell::DbType;
use directverbs::bnxt_re::hwrm::pacing::{FuncDbrPacingQcfgInput, FuncDbrPacingQcfgOutput};
use directverbs::bnxt_re::nq::NqEvent;
use directverbs::bnxt_re::rcfw::gid::CmdqAddGid;
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::path::SourceGid;
use directverbs::bnxt_re::rcfw::stats::{
    CmdqQueryRoceStats, CmdqQueryRoceStatsExt, CreqQueryRoceStatsExtRespSb, CreqQueryRoceStatsRespSb,
};
use directverbs::queue::Doorbell;
use directverbs::verbs::{Gid, Mac, PdId};

use super::config::Config;
use super::error::Error;
use super::event::Event;
use super::nic::Nic;
use crate::host::Host;
use crate::lease::Lease;
use crate::ledger::{Kind, Object};

/// Protection domain.
#[derive(Debug)]
pub struct ProtectionDomain<'n> {
    pub(super) id: PdId,
    pub(super) lease: Lease<'n>,
}

impl ProtectionDomain<'_> {
    pub(super) const fn object(&self) -> Object {
        (Kind::ProtectionDomain, self.id.get())
    }
}

/// A [`Nic`] that is lent out. Its objects are created, changed and destroyed through [`directverbs::verbs::Device`].
#[derive(Debug)]
pub struct Device<'n, H: Host> {
    pub(super) nic: &'n mut Nic<H>,
    pub(super) lease: Lease<'n>,
}

impl<H: Host> Deref for Device<'_, H> {
    type Target = Nic<H>;

    fn deref(&self) -> &Nic<H> {
        self.nic
    }
}

impl<H: Host> Device<'_, H> {
    /// Whether an object is of this NIC.
    pub(super) fn check_own(&self, kind: Kind, lease: Lease<'_>) -> Result<(), Error> {
        if lease == self.lease { Ok(()) } else { Err(Error::Foreign(kind)) }
    }

    pub(super) fn add_gids(&mut self, config: &Config<'_>) -> Result<(), Error> {
        let local = [link_local(self.mac)];
        let gids = if config.gids.is_empty() { &local } else { config.gids };
        for (i, gid) in gids.iter().enumerate() {
            self.add_gid(*gid, config.vlans.get(i).copied().flatten())?;
        }
        Ok(())
    }

    /// Adds a GID of ours, in a VLAN if there is one; gives its index among [`Nic::gids`].
    ///
    /// # Errors
    /// The device has no room, or fails.
    pub fn add_gid(&mut self, gid: Gid, vlan: Option<u16>) -> Result<u8, Error> {
        if self.gids.is_full() {
            return Err(Error::Full("GID"));
        }
        let mac = self.mac;
        let max = self.told.func.max_gid.get();
        let (brought, host) = self.nic.brought()?;
        let command = CmdqAddGid::new(gid, mac, vlan, brought.stat_ctx);
        let xid = brought.command(host, &command)?.xid.get();
        let index = match u16::try_from(xid) {
            Ok(index) if xid < max => index,
            _ => {
                return Err(Error::Number { opcode: Opcode::ADD_GID, xid });
            }
        };
        let at = self.gids.len() as u8;
        let pushed = self.nic.gids.push((gid, SourceGid { index, vlan }));
        debug_assert!(pushed.is_ok(), "there was room");
        Ok(at)
    }

    /// Our GID at `index`, as the device knows it.
    pub(super) fn source(&self, index: u8) -> Result<SourceGid, Error> {
        self.gids.get(usize::from(index)).map(|(_, source)| *source).ok_or(Error::NoGid(index))
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    /// An event that makes no sense, or after which nothing can be trusted.
    pub fn take_event(&mut self) -> Result<Option<Event>, Error> {
        let page = self.page.clone();
        let (brought, _) = self.nic.brought()?;
        if let Some(event) = brought.channel()?.take_event()? {
            return Ok(Some(event));
        }
        let Some(nq) = &mut brought.nq else { return Ok(None) };
        let Some(entry) = nq.take(&page) else { return Ok(None) };
        page.store(0, nq.doorbell(DbType::NQ).to_u64());
        match NqEvent::decode(entry) {
            NqEvent::Cq { handle, toggle } => Ok(Some(Event::Completion { handle, toggle })),
            NqEvent::Srq { handle, toggle } => Ok(Some(Event::Limit { handle, toggle })),
            NqEvent::Doorbells { dpi } => Ok(Some(Event::Doorbells { dpi })),
            NqEvent::Unknown { entry } => Err(Error::Event(entry)),
        }
    }

    /// Counters of errors.
    ///
    /// # Errors
    /// The device does not tell.
    pub fn error_counters(&mut self) -> Result<CreqQueryRoceStatsRespSb, Error> {
        let (brought, host) = self.nic.brought()?;
        brought.query(host, &CmdqQueryRoceStats::ZERO)
    }

    /// Counters of packets.
    ///
    /// # Errors
    /// The device does not tell.
    pub fn packet_counters(&mut self) -> Result<CreqQueryRoceStatsExtRespSb, Error> {
        let (brought, host) = self.nic.brought()?;
        brought.query(host, &CmdqQueryRoceStatsExt::ZERO)
    }

    /// How the device wants doorbells to be paced.
    ///
    /// # Errors
    /// The device does not tell.
    pub fn pacing(&mut self) -> Result<FuncDbrPacingQcfgOutput, Error> {
        let (brought, host) = self.nic.brought()?;
        brought.request(host, &FuncDbrPacingQcfgInput::ZERO)
    }
}

/// The link-local GID that follows from an Ethernet address.
fn link_local(mac: Mac) -> Gid {
    let [a, b, c, d, e, f] = mac.0;
    Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_local_gid_is_that_of_the_address() {
        let gid = link_local(Mac([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]));
        assert_eq!(gid.0, [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55]);
    }
}
