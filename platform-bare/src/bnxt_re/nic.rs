use directverbs::bnxt_re::caps::DeviceCaps;
use directverbs::bnxt_re::hwrm::driver::FuncDrvUnrgtrInput;
use directverbs::bnxt_re::hwrm::function::FuncResetInput;
use directverbs::bnxt_re::hwrm::ring::{RingFreeInput, ring_type};
use directverbs::bnxt_re::hwrm::stat::StatCtxFreeInput;
use directverbs::bnxt_re::rcfw::function::{CmdqDeinitializeFw, CreqQueryFuncRespSb};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::path::SourceGid;
use directverbs::bnxt_re::rcfw::transition::Outstanding;
use directverbs::text;
use directverbs::verbs::{Gid, Mac, PdId};
use zerocopy::little_endian as le;

use super::bring_up::{Brought, Told, bring_up};
use super::config::Config;
use super::device::Device;
use super::error::Error;
use super::push::PushPages;
use super::rcfw::Rcfw;
use crate::host::{Host, ResetError};
use crate::lease::Lease;
use crate::ledger::{Kind, Object, Objects};
use crate::registers::DoorbellPage;

/// GIDs of a device.
const GIDS: usize = 16;
/// Protection domains: the device takes any number below this.
const PDS: u32 = 1 << 16;
/// Numbers of objects have 20 bits in doorbells, those of queue pairs 24 on the wire.
const MAX_XID: u32 = (1 << 20) - 1;

/// A NIC that is up: its host, its control channels and the memory that it was given.
///
/// [`Nic::device`] lends it out as a [`Device`], which creates objects. Each object borrows the NIC until it is gone: a NIC is
/// not closed, moved or reset while it has objects.
///
/// ```compile_fail,E0505
/// # fn order<H: directverbs_bare::Host>(mut nic: directverbs_bare::bnxt_re::Nic<H>) {
/// use directverbs::verbs::Device as _;
///
/// let mut device = nic.device();
/// let cq = device.create_cq(16).unwrap();
/// nic.close().unwrap(); // the completion queue still lives
/// drop(cq);
/// # }
/// ```
///
/// An object that is dropped instead of destroyed stays in the device, and the memory under it stays with the host as long as
/// the device may write there. It is not forgotten: [`Nic::objects`] counts it, and
/// - [`Nic::close`] resets the function, so that all memory comes back, and tells how many there were: [`Error::Left`],
/// - [`Nic::reset`] does the same, tells as much, and brings the NIC up again,
/// - a NIC that is dropped is reset too.
#[derive(Debug)]
pub struct Nic<H: Host> {
    pub(super) host: H,
    brought: Option<Brought<H>>,
    pub(super) page: DoorbellPage<H::Bar>,
    pub(super) told: Told,
    /// Pages to push through, if there shall be some.
    pub(super) push: Option<PushPages<H>>,
    pub(super) gids: [Option<(Gid, SourceGid)>; GIDS],
    pub(super) mtu: directverbs::verbs::Mtu,
    pub(super) mac: Mac,
    next_pd: u32,
    next_handle: u32,
}

impl<H: Host> Nic<H> {
    /// Brings up the function of `host`, from whatever state it is in.
    ///
    /// # Errors
    /// What does not work. The function was reset, and nothing of the host's is left with it; the host can try again.
    pub fn open(host: H, config: &Config<'_>) -> Result<Self, Error> {
        let (brought, page, told) = up(&host, config)?;
        let mut nic = Self {
            mac: brought.mac,
            host,
            brought: Some(brought),
            page,
            told,
            push: None,
            gids: [None; GIDS],
            mtu: config.mtu,
            next_pd: 0,
            next_handle: 1,
        };
        // If this fails, dropping the NIC takes it back.
        nic.device().add_gids(config)?;
        Ok(nic)
    }

    /// Lends the NIC out: objects are created, changed and destroyed through [`directverbs::verbs::Device`].
    pub fn device(&mut self) -> Device<'_, H> {
        let (lease, nic) = Lease::on(self);
        Device { nic, lease }
    }

    /// The host, which goes on when the NIC is closed.
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

    /// Our GIDs, each with its index: an address vector's `sgid_index`.
    pub fn gids(&self) -> impl Iterator<Item = (u8, Gid)> + '_ {
        (0..).zip(&self.gids).filter_map(|(index, known)| known.map(|(gid, _)| (index, gid)))
    }

    /// Objects that the device has. While nothing borrows the NIC these are objects that were dropped instead of destroyed.
    pub fn objects(&self) -> Objects {
        self.brought.as_ref().map_or(Objects::default(), |brought| brought.ledger.count())
    }

    /// Whether an error has left the device in an unknown state, so that it must be reset.
    pub fn has_failed(&self) -> bool {
        self.brought.as_ref().and_then(|brought| brought.rcfw.as_ref()).is_none_or(Rcfw::has_failed)
    }

    pub(super) fn brought(&mut self) -> Result<(&mut Brought<H>, &H), Error> {
        self.brought.as_mut().map(|brought| (brought, &self.host)).ok_or(Error::Failed)
    }

    /// Whether one more object can be kept track of.
    pub(super) fn check_room(&self) -> Result<(), Error> {
        let room = self.brought.as_ref().is_some_and(|brought| brought.ledger.has_room());
        if room { Ok(()) } else { Err(Error::Full(text!("object"))) }
    }

    /// Whether nothing refers to an object, which is there.
    pub(super) fn check_unused(&self, object: Object) -> Result<(), Error> {
        let (kind, id) = object;
        let ledger = &self.brought.as_ref().ok_or(Error::Failed)?.ledger;
        match ledger.users(object) {
            0 if ledger.has(object) => Ok(()),
            0 => Err(Error::NoSuch { kind, id }),
            users => Err(Error::InUse { kind, id, users }),
        }
    }

    /// Keeps track of a new object, to which `opcode` has given the number `xid`. A device that gives a number that cannot be,
    /// or that another object has, is not to be trusted any more.
    pub(super) fn created(
        &mut self,
        opcode: Opcode,
        (kind, id): Object,
        xid: u32,
        needs: &[Object],
    ) -> Result<(), Error> {
        let (brought, _) = self.brought()?;
        let fits = id <= MAX_XID || matches!(kind, Kind::Region | Kind::Window(_));
        if fits && brought.ledger.add((kind, id), needs) {
            return Ok(());
        }
        brought.channel()?.fail();
        Err(Error::Number { opcode, xid })
    }

    /// An object is gone.
    pub(super) fn destroyed(&mut self, object: Object) {
        if let Some(brought) = &mut self.brought {
            brought.ledger.remove(object);
        }
    }

    /// A number for a new protection domain.
    pub(super) fn new_pd(&mut self) -> Result<PdId, Error> {
        let next = self.next_pd;
        let (brought, _) = self.brought()?;
        if !brought.ledger.has_room() {
            return Err(Error::Full(text!("object")));
        }
        let numbers = (next..PDS).chain(0..next);
        let add = |id: &u32| brought.ledger.add((Kind::ProtectionDomain, *id), &[]);
        let id = numbers.into_iter().find(add).ok_or(Error::Full(text!("protection domain")))?;
        self.next_pd = (id + 1) % PDS;
        Ok(PdId::truncated(id))
    }

    /// A handle for a new queue: not 0, and not given before.
    pub(super) const fn next_handle(&mut self) -> u32 {
        let handle = self.next_handle;
        self.next_handle = match handle.checked_add(1) {
            Some(next) => next,
            None => 1,
        };
        handle
    }

    /// Resets the function and brings it up again, whatever has happened. Gives the objects that were left: they are gone.
    ///
    /// # Errors
    /// What does not work. Nothing of the host's is left with the function; the NIC has failed, and can be reset again.
    pub fn reset(&mut self, config: &Config<'_>) -> Result<Objects, Error> {
        let left = self.objects();
        self.gids = [None; GIDS];
        self.push = None;
        take_back(&self.host, self.brought.take())?;
        let (brought, page, told) = up(&self.host, config)?;
        (self.mac, self.mtu, self.page, self.told) = (brought.mac, config.mtu, page, told);
        self.brought = Some(brought);
        if let Err(error) = self.device().add_gids(config) {
            take_back(&self.host, self.brought.take())?;
            return Err(error);
        }
        Ok(left)
    }

    /// Takes the device back in good order.
    ///
    /// # Errors
    /// What does not work, or that objects were left: [`Error::Left`]. The function is reset nevertheless.
    pub fn close(mut self) -> Result<(), Error> {
        let left = self.objects();
        if !self.has_failed() && left.total() != 0 {
            take_back(&self.host, self.brought.take())?;
            return Err(Error::Left(left));
        }
        self.wind_down()?;
        if let Some(brought) = self.brought.take() {
            // The firmware has confirmed that it has forgotten all.
            brought.release();
        }
        self.host.quiesce().map_err(ResetError::from)?;
        Ok(())
    }

    fn wind_down(&mut self) -> Result<(), Error> {
        for index in 0..GIDS as u8 {
            let mut device = self.device();
            if device.source(index).is_ok() {
                device.delete_gid(index)?;
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

impl<H: Host> Drop for Nic<H> {
    fn drop(&mut self) {
        if let Some(brought) = self.brought.take() {
            // Where this fails, memory stays given up: the next attempt frees it.
            let _ = take_back(&self.host, Some(brought));
        }
    }
}

/// Brings the function up; if that fails, takes back what it was given.
fn up<H: Host>(host: &H, config: &Config<'_>) -> Result<(Brought<H>, DoorbellPage<H::Bar>, Told), Error> {
    let mut brought = None;
    let up = bring_up(&mut brought, host, config);
    match (up, brought) {
        (Ok((page, told)), Some(brought)) => Ok((brought, page, told)),
        (up, brought) => {
            // What went wrong first is what is told.
            let _ = take_back(host, brought);
            Err(up.err().unwrap_or(Error::Failed))
        }
    }
}

/// Takes back what a device was given, although it may not answer: the function is reset. What it may still know after that
/// is given up until it is off the bus.
fn take_back<H: Host>(host: &H, brought: Option<Brought<H>>) -> Result<(), ResetError> {
    let reset = host.reset();
    match (reset, brought) {
        (Ok(()), Some(brought)) => brought.release(),
        (_, brought) => drop(brought),
    }
    host.quiesce()?;
    reset
}
