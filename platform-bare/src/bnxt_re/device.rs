use core::ops::Deref;

use directverbs::bnxt_re::doorbell::DbType;
use directverbs::bnxt_re::hwrm::pacing::{FuncDbrPacingQcfgInput, FuncDbrPacingQcfgOutput};
use directverbs::bnxt_re::nq::NqEvent;
use directverbs::bnxt_re::rcfw::congestion::CmdqQueryRoceCc;
use directverbs::bnxt_re::rcfw::parameter::{Congestion, ModifyCongestion};
use directverbs::bnxt_re::rcfw::stats::{
    CmdqQueryRoceStats, CmdqQueryRoceStatsExt, CreqQueryRoceStatsExtRespSb, CreqQueryRoceStatsRespSb,
};
use directverbs::queue::Doorbell;
use directverbs::verbs::PdId;

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

    /// How congestion is handled.
    ///
    /// # Errors
    /// The device does not tell.
    pub fn congestion(&mut self) -> Result<Congestion, Error> {
        let (brought, host) = self.nic.brought()?;
        brought.query(host, &CmdqQueryRoceCc::ZERO)
    }

    /// Changes how congestion is handled.
    ///
    /// # Errors
    /// The device refuses: all is as before.
    pub fn modify_congestion(&mut self, change: &ModifyCongestion) -> Result<(), Error> {
        let (brought, host) = self.nic.brought()?;
        brought.command(host, change).map(|_| ())
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
