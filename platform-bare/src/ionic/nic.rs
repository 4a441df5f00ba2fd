use core::time::Duration;

use directverbs::ionic::caps::Caps;
use directverbs::ionic::devcmd::{ControllerMemory, LifStats, PortStats, RdmaIdentity};
use directverbs::text;
use directverbs::verbs::{Gid, Mac, Text};

use super::books::{Books, LocalGid, OwnedBooks};
use super::config::Config;
use super::device::Device;
use super::error::{Cause, Error, On};
use super::events::Event;
use super::numbers::Next;
use super::session::{self, Session};
use crate::host::Host;
use crate::lease::Lease;
use crate::ledger::Objects;
use crate::registers::DoorbellPage;

/// Events that wait for the caller.
const EVENTS: usize = 32;
const DEVICE: Text = text!("device");

/// A NIC that is up: its host, its control channels and the memory that it was given.
///
/// [`Nic::device`] lends it out as a [`Device`], which creates objects. Each object borrows the NIC until it is gone: a NIC is
/// not closed, moved or reset while it has objects.
///
/// ```compile_fail,E0505
/// # fn order<H: directverbs_bare::Host>(mut nic: directverbs_bare::ionic::Nic<H>) {
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
/// - [`Nic::close`] resets the device, so that all memory comes back, and tells how many there were: [`Cause::Left`],
/// - [`Nic::reset`] does the same, tells as much, and brings the NIC up again,
/// - a NIC that is dropped is reset too.
#[derive(Debug)]
pub struct Nic<H: Host> {
    pub(super) session: Session<H>,
    pub(super) books: Option<OwnedBooks<H>>,
    pub(super) doorbell: DoorbellPage<H::Bar>,
    pub(super) identity: RdmaIdentity,
    pub(super) memory: ControllerMemory,
    pub(super) caps: Caps,
    pub(super) next: Next,
    events: heapless::Deque<Event, EVENTS>,
    lost_events: u32,
    /// The first event that should not have come.
    unexpected: Option<Cause>,
}

/// What a session tells once it is up.
fn told<H: Host>(session: &Session<H>) -> Result<(DoorbellPage<H::Bar>, RdmaIdentity, Caps), Cause> {
    let identity = session.identity()?;
    let caps = Caps {
        express_strides: session.memory.express_strides(),
        express_queues: session.memory.express_queues(),
        ..identity.caps(session.link.config.pipelines)
    };
    Ok((session.doorbell.clone().ok_or(Cause::Failed)?, identity, caps))
}

impl<H: Host> Nic<H> {
    /// Brings the function of `host` up, from whatever state it is in.
    ///
    /// # Errors
    /// What does not work. Nothing of the host's is left to the device then, and it can be opened again.
    pub fn open(host: H, config: Config) -> Result<Self, Error> {
        if !(1..=2).contains(&config.pipelines) {
            return Err(Cause::Unsupported(text!("the device has one or two pipelines"))).on(DEVICE, None);
        }
        let books = Books::open(&host, &config).on(DEVICE, None)?;
        let up = session::open(host, config).and_then(|session| {
            let told = told(&session).on(DEVICE, None)?;
            Ok((session, told))
        });
        match up {
            Ok((session, (doorbell, identity, caps))) => Ok(Self {
                memory: session.memory,
                session,
                books: Some(books),
                doorbell,
                identity,
                caps,
                next: Next::default(),
                events: heapless::Deque::new(),
                lost_events: 0,
                unexpected: None,
            }),
            Err(error) => {
                // No device knows them.
                books.release();
                Err(error)
            }
        }
    }

    /// Lends the NIC out: objects are created, changed and destroyed through [`directverbs::verbs::Device`].
    pub fn device(&mut self) -> Device<'_, H> {
        let (lease, nic) = Lease::on(self);
        Device { nic, lease }
    }

    /// The host, which goes on when the NIC is closed.
    pub const fn host(&self) -> &H {
        &self.session.link.host
    }

    /// What the RDMA part of the device can do.
    pub const fn identity(&self) -> &RdmaIdentity {
        &self.identity
    }

    /// What plans are made of.
    pub const fn caps(&self) -> &Caps {
        &self.caps
    }

    /// Where controller memory is.
    pub const fn controller_memory(&self) -> &ControllerMemory {
        &self.memory
    }

    /// Ethernet address of the port.
    pub const fn mac(&self) -> Mac {
        self.session.mac
    }

    /// Objects that the device has. While nothing borrows the NIC these are objects that were dropped instead of destroyed.
    pub fn objects(&self) -> Objects {
        self.books.as_ref().map_or(Objects::default(), |books| books.ledger.count())
    }

    /// Whether the device has failed, so that it must be reset.
    pub const fn has_failed(&self) -> bool {
        self.session.has_failed()
    }

    /// Adds a GID to the table and returns its index, or that of the same GID that is there already. Paths from it have the
    /// VLAN tag `vlan`, unless they have one of their own. The device has no such table: it learns GIDs from the headers of each
    /// path.
    ///
    /// # Errors
    /// The table is full.
    pub fn add_gid(&mut self, gid: Gid, vlan: Option<u16>) -> Result<u8, Error> {
        let new = LocalGid { gid, vlan };
        let table = self.books.as_mut().map_or(&mut [][..], |books| &mut *books.gids);
        let most = table.len() as u32;
        let known = table.iter().position(|known| known.is_none_or(|known| known == new));
        let index = known.ok_or(Cause::Exhausted(most)).on(text!("GID"), None)?;
        if let Some(slot) = table.get_mut(index) {
            *slot = Some(new);
        }
        Ok(index as u8)
    }

    /// Our GIDs; an address vector's `sgid_index` counts them.
    pub fn gids(&self) -> impl Iterator<Item = Gid> + '_ {
        let table = self.books.as_ref().map_or(&[][..], |books| &*books.gids);
        table.iter().map_while(|local| local.map(|local| local.gid))
    }

    pub(super) fn local_gid(&self, index: u8) -> Result<LocalGid, Cause> {
        let table = self.books.as_ref().map_or(&[][..], |books| &*books.gids);
        table.get(usize::from(index)).copied().flatten().ok_or(Cause::NoGid(index))
    }

    /// The index of a GID.
    pub(super) fn gid_index(&self, gid: Gid) -> Option<u8> {
        self.gids().position(|known| known == gid).map(|index| index as u8)
    }

    /// What the device has counted, as it has last told.
    pub fn statistics(&self) -> Option<LifStats> {
        self.session.lif_info().map(|info| info.stats)
    }

    /// What has passed the port since power-on, as the device has last told.
    pub fn port_statistics(&self) -> Option<PortStats> {
        self.session.port_stats()
    }

    /// Has the device count from zero.
    ///
    /// # Errors
    /// The device refuses or has failed.
    pub fn reset_statistics(&mut self) -> Result<(), Error> {
        self.session.reset_statistics().on(text!("statistics"), None)
    }

    /// Looks whether the firmware is alive and the one that the NIC was opened with: for a watchdog, now and then. Commands
    /// look only while they wait.
    ///
    /// # Errors
    /// It is gone or down, has started again, or its heart has stood still for [`Config::heartbeat_limit`]. The device has
    /// failed then.
    pub fn check(&mut self) -> Result<(), Error> {
        self.session.check().on(DEVICE, None)
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    /// An event that makes no sense, or one after which the device has failed. It is told before those that came in good
    /// order.
    pub fn take_event(&mut self) -> Result<Option<Event>, Error> {
        self.collect_events();
        match self.unexpected.take() {
            Some(cause) => Err(cause).on(text!("event"), None),
            None => Ok(self.events.pop_front()),
        }
    }

    /// Events that came while too many waited for the caller.
    pub const fn lost_events(&self) -> u32 {
        self.lost_events
    }

    pub(super) fn collect_events(&mut self) {
        // No more than fit: a device that never stops telling does not stop the caller.
        for _ in 0..EVENTS {
            let told = self.session.next_event().map(Event::of_word);
            let Some(told) =
                told.or_else(|| self.session.next_notification().map(|e| Event::of_notification(&e)))
            else {
                return;
            };
            match told {
                Ok(event) => {
                    if self.events.push_back(event).is_err() {
                        self.lost_events = self.lost_events.saturating_add(1);
                    }
                }
                Err(cause) => {
                    if matches!(cause, Cause::ResetEvent { .. }) {
                        self.session.fail();
                    }
                    self.unexpected.get_or_insert(cause);
                }
            }
        }
    }

    /// Resets the device and brings it up again, whatever has happened. Gives the objects that were left: they are gone.
    ///
    /// # Errors
    /// What does not work. Nothing of the host's is left with the device; the NIC has failed, and can be reset again.
    pub fn reset(&mut self, config: Config) -> Result<Objects, Error> {
        let left = self.objects();
        if !(1..=2).contains(&config.pipelines) {
            return Err(Cause::Unsupported(text!("the device has one or two pipelines"))).on(DEVICE, None);
        }
        let restarted = self.session.restart(config);
        self.release_books();
        restarted.on(DEVICE, None)?;
        self.books = Some(Books::open(&self.session.link.host, &config).on(DEVICE, None)?);
        let told = told(&self.session).on(DEVICE, None)?;
        (self.doorbell, self.identity, self.caps) = told;
        (self.memory, self.next) = (self.session.memory, Next::default());
        self.events.clear();
        (self.lost_events, self.unexpected) = (0, None);
        Ok(left)
    }

    /// Resets the device and takes it off the bus.
    ///
    /// # Errors
    /// It does not answer or does not come to rest, or objects were left: [`Cause::Left`]. It was taken off the bus all the same
    /// if that was possible.
    pub fn close(mut self) -> Result<(), Error> {
        let left = self.objects();
        let failed = self.has_failed();
        self.session.take_down().on(DEVICE, None)?;
        if !failed && left.total() != 0 {
            return Err(Cause::Left(left)).on(DEVICE, None);
        }
        Ok(())
    }

    fn release_books(&mut self) {
        if let Some(books) = self.books.take() {
            books.release();
        }
    }

    /// How long the firmware's heart may stand still.
    pub const fn heartbeat_limit(&self) -> Duration {
        self.session.link.config.heartbeat_limit
    }
}

impl<H: Host> Drop for Nic<H> {
    fn drop(&mut self) {
        self.release_books();
    }
}
