use directverbs::bnxt_re::caps::DeviceCaps;
use directverbs::bnxt_re::doorbell::DbType;
use directverbs::bnxt_re::hwrm::driver::FuncDrvUnrgtrInput;
use directverbs::bnxt_re::hwrm::function::FuncResetInput;
use directverbs::bnxt_re::hwrm::pacing::{FuncDbrPacingQcfgInput, FuncDbrPacingQcfgOutput};
use directverbs::bnxt_re::hwrm::ring::{RingFreeInput, ring_type};
use directverbs::bnxt_re::hwrm::stat::StatCtxFreeInput;
use directverbs::bnxt_re::nq::NqEvent;
use directverbs::bnxt_re::rcfw::function::{CmdqDeinitializeFw, CreqQueryFuncRespSb};
use directverbs::bnxt_re::rcfw::gid::{CmdqAddGid, CmdqDeleteGid};
use directverbs::bnxt_re::rcfw::path::SourceGid;
use directverbs::bnxt_re::rcfw::stats::{
    CmdqQueryRoceStats, CmdqQueryRoceStatsExt, CreqQueryRoceStatsExtRespSb, CreqQueryRoceStatsRespSb,
};
use directverbs::bnxt_re::rcfw::transition::Outstanding;
use directverbs::queue::Doorbell;
use directverbs::verbs::{Gid, Mac, MwType, PdId};
use zerocopy::little_endian as le;

use super::bring_up::{Brought, Told, bring_up};
use super::config::Config;
use super::error::Error;
use super::event::Event;
use crate::host::Host;
use crate::registers::DoorbellPage;

/// GIDs of a device.
const GIDS: usize = 16;
/// Memory windows of a device, whose kinds this driver must know.
const WINDOWS: usize = 256;
/// Protection domains: the device takes any number below this.
const PDS: u32 = 1 << 16;

/// Protection domain.
#[derive(Debug)]
pub struct ProtectionDomain {
    pub(super) id: PdId,
}

/// A device that is brought up. Its objects are created, changed and destroyed through [`directverbs::verbs::Device`].
///
/// [`Device::close`] takes it back in good order. Dropped, the function is reset: objects that are left give their memory up,
/// and it is free once the function cannot reach it.
#[derive(Debug)]
pub struct Device<H: Host> {
    pub(super) host: H,
    brought: Option<Brought<H>>,
    pub(super) page: DoorbellPage<H::Bar>,
    pub(super) told: Told,
    pub(super) gids: heapless::Vec<(Gid, SourceGid), GIDS>,
    pub(super) windows: heapless::Vec<(u32, MwType), WINDOWS>,
    pub(super) mtu: directverbs::verbs::Mtu,
    mac: Mac,
    next_pd: u32,
    next_handle: u32,
}

impl<H: Host> Device<H> {
    /// Brings up the function of `host`, from whatever state it is in.
    ///
    /// # Errors
    /// What does not work. The function was reset, and nothing of the host's is left with it; the host can try again.
    pub fn open(host: H, config: &Config<'_>) -> Result<Self, Error> {
        let mut brought = None;
        match bring_up(&mut brought, &host, config) {
            Ok((page, told)) => {
                let mac = brought.as_ref().map_or(Mac::default(), |brought| brought.mac);
                let mut device = Self {
                    host,
                    brought,
                    page,
                    told,
                    gids: heapless::Vec::new(),
                    windows: heapless::Vec::new(),
                    mtu: config.mtu,
                    mac,
                    next_pd: 0,
                    next_handle: 1,
                };
                // If this fails, dropping the device takes it back.
                device.add_gids(config)?;
                Ok(device)
            }
            Err(error) => {
                take_back(&host, brought);
                Err(error)
            }
        }
    }

    /// The host, which goes on when the device is closed.
    pub const fn host(&self) -> &H {
        &self.host
    }

    /// What plans are made of.
    pub const fn caps(&self) -> &DeviceCaps {
        &self.told.caps
    }

    /// What the device tells about itself.
    pub const fn function(&self) -> &CreqQueryFuncRespSb {
        &self.told.func
    }

    /// READs and atomics that can be outstanding at a queue pair.
    pub const fn outstanding(&self) -> Outstanding {
        self.told.outstanding
    }

    /// Ethernet address of the port.
    pub const fn mac(&self) -> Mac {
        self.mac
    }

    /// Our GIDs; an address vector's `sgid_index` counts them.
    pub fn gids(&self) -> impl Iterator<Item = Gid> + '_ {
        self.gids.iter().map(|(gid, _)| *gid)
    }

    pub(super) fn brought(&mut self) -> Result<(&mut Brought<H>, &H), Error> {
        self.brought.as_mut().map(|brought| (brought, &self.host)).ok_or(Error::Failed)
    }

    /// Whether an error has left the device in an unknown state, so that it must be opened again.
    pub fn has_failed(&self) -> bool {
        self.brought
            .as_ref()
            .is_none_or(|brought| brought.rcfw.as_ref().is_none_or(super::rcfw::Rcfw::has_failed))
    }

    fn add_gids(&mut self, config: &Config<'_>) -> Result<(), Error> {
        let local = [link_local(self.mac)];
        let gids = if config.gids.is_empty() { &local } else { config.gids };
        for (i, gid) in gids.iter().enumerate() {
            self.add_gid(*gid, config.vlans.get(i).copied().flatten())?;
        }
        Ok(())
    }

    /// Adds a GID of ours, in a VLAN if there is one; gives its index among [`Device::gids`].
    ///
    /// # Errors
    /// The device has no room, or fails.
    pub fn add_gid(&mut self, gid: Gid, vlan: Option<u16>) -> Result<u8, Error> {
        if self.gids.is_full() {
            return Err(Error::Full("GID"));
        }
        let mac = self.mac;
        let max = self.told.func.max_gid.get();
        let (brought, host) = self.brought()?;
        let command = CmdqAddGid::new(gid, mac, vlan, brought.stat_ctx);
        let xid = brought.command(host, &command)?.xid.get();
        let index = match u16::try_from(xid) {
            Ok(index) if xid < max => index,
            _ => {
                return Err(Error::Number {
                    opcode: directverbs::bnxt_re::rcfw::opcode::Opcode::ADD_GID,
                    xid,
                });
            }
        };
        let at = self.gids.len() as u8;
        let pushed = self.gids.push((gid, SourceGid { index, vlan }));
        debug_assert!(pushed.is_ok(), "there was room");
        Ok(at)
    }

    /// Our GID at `index`, as the device knows it.
    pub(super) fn source(&self, index: u8) -> Result<SourceGid, Error> {
        self.gids.get(usize::from(index)).map(|(_, source)| *source).ok_or(Error::NoGid(index))
    }

    /// A number for a new protection domain.
    pub(super) const fn take_pd(&mut self) -> ProtectionDomain {
        let id = PdId::truncated(self.next_pd);
        self.next_pd = (self.next_pd + 1) % PDS;
        ProtectionDomain { id }
    }

    /// A handle for a new queue: not 0, and not given before.
    pub(super) const fn take_handle(&mut self) -> u32 {
        let handle = self.next_handle;
        self.next_handle = match handle.checked_add(1) {
            Some(next) => next,
            None => 1,
        };
        handle
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    /// An event that makes no sense, or after which nothing can be trusted.
    pub fn take_event(&mut self) -> Result<Option<Event>, Error> {
        let page = self.page.clone();
        let (brought, _) = self.brought()?;
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
        let (brought, host) = self.brought()?;
        brought.query(host, &CmdqQueryRoceStats::ZERO)
    }

    /// Counters of packets.
    ///
    /// # Errors
    /// The device does not tell.
    pub fn packet_counters(&mut self) -> Result<CreqQueryRoceStatsExtRespSb, Error> {
        let (brought, host) = self.brought()?;
        brought.query(host, &CmdqQueryRoceStatsExt::ZERO)
    }

    /// How the device wants doorbells to be paced.
    ///
    /// # Errors
    /// The device does not tell.
    pub fn pacing(&mut self) -> Result<FuncDbrPacingQcfgOutput, Error> {
        let (brought, host) = self.brought()?;
        brought.request(host, &FuncDbrPacingQcfgInput::ZERO)
    }

    /// Takes the device back in good order. All queues must be destroyed.
    ///
    /// # Errors
    /// What does not work. The function is reset nevertheless, as when the device is dropped.
    pub fn close(mut self) -> Result<(), Error> {
        self.wind_down()?;
        if let Some(brought) = self.brought.take() {
            // The firmware has confirmed that it has forgotten all.
            brought.release();
        }
        self.host.quiesce().map_err(crate::host::ResetError::from)?;
        Ok(())
    }

    fn wind_down(&mut self) -> Result<(), Error> {
        while let Some((gid, source)) = self.gids.pop() {
            let command = CmdqDeleteGid { gid_index: le::U16::new(source.index), ..CmdqDeleteGid::ZERO };
            let (brought, host) = self.brought()?;
            if let Err(error) = brought.command(host, &command) {
                let kept = self.gids.push((gid, source));
                debug_assert!(kept.is_ok(), "it was there");
                return Err(error);
            }
        }
        let (brought, host) = self.brought()?;
        brought.command(host, &CmdqDeinitializeFw::ZERO)?;
        let nq = RingFreeInput {
            ring_type: ring_type::NQ,
            ring_id: le::U16::new(brought.nq_id),
            ..RingFreeInput::ZERO
        };
        brought.request(host, &nq)?;
        let creq = RingFreeInput { ring_id: le::U16::new(brought.channel()?.id()), ..nq };
        brought.request(host, &creq)?;
        if let Some(id) = brought.stat_ctx {
            let free = StatCtxFreeInput { stat_ctx_id: le::U32::new(id.into()), ..StatCtxFreeInput::ZERO };
            brought.request(host, &free)?;
        }
        brought.request(host, &FuncDrvUnrgtrInput::ZERO)?;
        let limit = brought.limit;
        brought.firmware.send(host, &FuncResetInput::ZERO, limit)?;
        Ok(())
    }
}

impl<H: Host> Drop for Device<H> {
    fn drop(&mut self) {
        if let Some(brought) = self.brought.take() {
            take_back(&self.host, Some(brought));
        }
    }
}

/// Takes back what a device was given, although it may not answer: the function is reset. What it may still know after that
/// is given up until it is off the bus.
fn take_back<H: Host>(host: &H, brought: Option<Brought<H>>) {
    match (host.reset(), brought) {
        (Ok(()), Some(brought)) => brought.release(),
        (_, brought) => drop(brought),
    }
    // If transactions stay under way, the memory stays given up: the next attempt frees it.
    let _ = host.quiesce();
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
