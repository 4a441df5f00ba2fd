//! A device that is brought up, and its control channels. However far it has come, dropping it takes it back.

use directverbs::ionic::admin::{
    AdminCommand, AdminOp, CQE_STRIDE_LOG2, EQE_LOG2, EventQueue, RdmaAdminConfig, RdmaAdminQueue,
    STRIDE_LOG2,
};
use directverbs::ionic::cqe::AdminCqe;
use directverbs::ionic::devcmd::registers::{
    BAR0_BYTES, COMMAND_BYTES, COMPLETION_BYTES, INTR_CONTROL, IntrCredits, PCI_DEVICE_PF, PCI_DEVICE_VF,
    PCI_VENDOR,
};
use directverbs::ionic::devcmd::*;
use directverbs::queue::RingMemory;
use directverbs::text;
use directverbs::verbs::{Mac, MemoryError, Text};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::config::Config;
use super::error::{Cause, Error, On};
use super::link::Link;
use crate::clock::Timeout;
use crate::dma::Owned;
use crate::host::{Host, ResetError};
use crate::pci::{Command as PciCommand, Config as _, command};
use crate::registers::{Caching, DoorbellPage, Registers};

/// BAR with the doorbell pages.
const BAR_DOORBELLS: u8 = 2;
/// BAR with controller memory.
pub(super) const BAR_MEMORY: u8 = 4;
/// Bytes of a doorbell page.
const PAGE: usize = 4096;
/// Rings begin with a page.
const ALIGN: usize = PAGE;
/// Bytes that the device may want for what it tells about the port.
const PORT_INFO_BYTES: usize = 2 * PAGE;
/// Entries of the Ethernet admin queue, of the notify queue, of the event queue, and strides of the RDMA admin queue,
/// base-two logarithms.
const ADMINQ_LOG2: u8 = 4;
const NOTIFYQ_LOG2: u8 = 6;
const EQ_LOG2: u8 = 9;
const AQ_LOG2: u8 = 6;
/// The only event queue, and its interrupt.
pub(super) const EQ: u32 = 0;
const INTERRUPT: u16 = 0;
/// Interrupt of the Ethernet queues: it stays masked, as all are polled.
const ETH_INTERRUPT: u16 = 1;
/// The only admin queue, and the completion queue that its completions go to.
const AQ: u32 = 0;
pub(super) const ADMIN_CQ: u32 = 0;
/// The LIF, and the doorbell page of the driver.
const LIF: u16 = 0;
pub(super) const DBID: u16 = 0;
/// Bytes of frames beside what a packet carries: headers, checksums.
const OVERHEAD: u32 = 128;

const DEVICE: Text = text!("device");

/// DMA memory that the device writes to, or reads a command's data from.
pub(super) type Shared<H> = Owned<RingMemory<'static>, <H as Host>::Dma, 1>;

/// The control channels and their memory.
#[derive(Debug)]
struct Channels<H: Host> {
    port_info: Option<Shared<H>>,
    lif_info: Option<Shared<H>>,
    scratch: Option<Shared<H>>,
    admin: Option<Owned<AdminQueue<'static>, H::Dma, 2>>,
    notify: Option<Owned<NotifyQueue<'static>, H::Dma, 1>>,
    events: Option<Owned<EventQueue<'static>, H::Dma, 1>>,
    rdma: Option<Owned<RdmaAdminQueue<'static>, H::Dma, 2>>,
}

impl<H: Host> Channels<H> {
    const NONE: Self = Self {
        port_info: None,
        lif_info: None,
        scratch: None,
        admin: None,
        notify: None,
        events: None,
        rdma: None,
    };
}

/// A device that is brought up.
#[derive(Debug)]
pub(super) struct Session<H: Host> {
    pub link: Link<H>,
    channels: Channels<H>,
    pub doorbell: Option<DoorbellPage<H::Bar>>,
    /// What the RDMA part can do; known once the device is up.
    identity: Option<RdmaIdentity>,
    pub memory: ControllerMemory,
    pub mac: Mac,
    failed: bool,
    down: bool,
}

/// Brings a device up.
///
/// # Errors
/// What does not work. The device is as if it had not been touched, but for its reset, and nothing of the host's is left.
pub(super) fn open<H: Host>(host: H, config: Config) -> Result<Session<H>, Error> {
    let bar = match find(&host) {
        Ok(bar) => bar,
        Err(cause) => {
            retire(&host);
            return Err(cause).on(DEVICE, None);
        }
    };
    let link = match Link::new(host, bar, config) {
        Ok(link) => link,
        Err((host, cause)) => {
            retire(&host);
            return Err(cause).on(DEVICE, None);
        }
    };
    let mut session = Session {
        link,
        channels: Channels::NONE,
        doorbell: None,
        identity: None,
        memory: ControllerMemory::default(),
        mac: Mac::default(),
        failed: false,
        down: false,
    };
    match session.bring_up() {
        Ok(()) => Ok(session),
        Err(cause) => {
            session.failed |= !cause.is_harmless();
            Err(cause).on(DEVICE, None)
        }
    }
}

/// Finds the device and maps its registers. It is reset first if it can be: nobody knows what it was left with.
fn find<H: Host>(host: &H) -> Result<H::Bar, Cause> {
    let (vendor, device) = host.config().id().ok_or(Cause::Gone)?;
    if vendor != PCI_VENDOR || ![PCI_DEVICE_PF, PCI_DEVICE_VF].contains(&device) {
        return Err(Cause::UnknownDevice { vendor, device });
    }
    host.quiesce().map_err(Cause::Unrest)?;
    match host.reset() {
        Ok(()) | Err(ResetError::Unsupported) => {}
        Err(error) => return Err(error.into()),
    }
    switch_on(host, PciCommand::MEMORY)?;
    let len = host.bar_len(0);
    if len < BAR0_BYTES as u64 {
        return Err(Cause::Registers(len));
    }
    Ok(host.map_bar(0, 0, BAR0_BYTES, Caching::Uncached)?)
}

/// Gives the device what it may do, and looks whether it has taken that: without, everything else fails for no reason that
/// can be seen.
fn switch_on<H: Host>(host: &H, bits: PciCommand) -> Result<(), Cause> {
    command::enable(host.config(), bits);
    let now = command::get(host.config());
    if now.contains(bits) {
        return Ok(());
    }
    Err(Cause::Answer { what: text!("command register"), given: now.bits().into() })
}

/// Takes bus mastering from the device; what was abandoned is freed. A device that does not come to rest keeps it.
fn retire<H: Host>(host: &H) {
    let _kept: Result<(), Timeout> = host.quiesce();
}

/// Memory for one queue or table.
fn shared<H: Host, Q>(
    host: &H,
    bytes: usize,
    build: impl FnOnce(RingMemory<'static>) -> Result<Q, MemoryError>,
) -> Result<Owned<Q, H::Dma, 1>, Cause> {
    let block = host.dma(bytes, ALIGN)?;
    Ok(Owned::build([block], |[memory]| build(memory))?)
}

/// Memory for a queue of two rings.
fn shared_pair<H: Host, Q>(
    host: &H,
    bytes: [usize; 2],
    build: impl FnOnce([RingMemory<'static>; 2]) -> Result<Q, MemoryError>,
) -> Result<Owned<Q, H::Dma, 2>, Cause> {
    let blocks = [host.dma(bytes[0], ALIGN)?, host.dma(bytes[1], ALIGN)?];
    Ok(Owned::build(blocks, build)?)
}

fn range(what: Text, given: u64, min: u64, max: u64) -> Result<(), Cause> {
    Ok(IdentityError::check(what, given, min, max)?)
}

impl<H: Host> Session<H> {
    fn host(&self) -> &H {
        &self.link.host
    }

    /// A device command whose answer begins the data window.
    fn ask<C: Command, T>(&self, cmd: &C, data: &[u8], len: usize) -> Result<T, Cause>
    where
        T: FromBytes + IntoBytes + Immutable,
    {
        let mut identity = T::new_zeroed();
        let out = identity.as_mut_bytes().get_mut(..len).unwrap_or_default();
        self.link.command(cmd, data, out)?;
        Ok(identity)
    }

    fn bring_up(&mut self) -> Result<(), Cause> {
        self.link.command(&DevResetCmd::ZERO, &[], &mut [])?;
        switch_on(self.host(), PciCommand::BUS_MASTER)?;
        let driver = DrvIdentity::new("directverbs", env!("CARGO_PKG_VERSION"));
        let data = driver.as_bytes().get(..DRV_IDENTITY_BYTES).unwrap_or_default();
        let device: DevIdentity = self.ask(&DevIdentifyCmd::new(), data, DEV_IDENTITY_BYTES)?;
        range(text!("nlifs"), device.nlifs.get().into(), 1, u64::from(u16::MAX))?;
        range(text!("nintrs"), device.nintrs.get().into(), 2, u64::from(u16::MAX))?;
        range(text!("ndbpgs_per_lif"), device.ndbpgs_per_lif.get().into(), 1, u64::from(u16::MAX))?;
        let lif: LifIdentity = self.ask(&LifIdentifyCmd::new(), &[], LIF_IDENTITY_BYTES)?;
        let rdma = RdmaIdentity::new(&lif)?;
        // Queues and their pipelines are told from their numbers.
        range(text!("sq_qtype base"), rdma.send.base.into(), 0, 0)?;
        range(text!("cq_qtype base"), rdma.completion.base.into(), 0, 0)?;
        self.identity = Some(rdma);
        self.memory = self.find_memory(&device)?;
        self.link.command(&DevInitCmd { opcode: Opcode::INIT.0, ..DevInitCmd::ZERO }, &[], &mut [])?;
        self.port_up()?;
        let page = self.lif_up(device.ndbpgs_per_lif.get())?;
        self.doorbell = Some(DoorbellPage(page));
        self.admin_up()?;
        self.lif_settings(&lif)?;
        self.rdma_up(&rdma)
    }

    /// Finds controller memory. A device that does not say where it is has all of the BAR for it, and one that refuses to say,
    /// none.
    fn find_memory(&self, device: &DevIdentity) -> Result<ControllerMemory, Cause> {
        let len = self.host().bar_len(BAR_MEMORY);
        let capabilities = DevCapabilities::from_bits_retain(device.capabilities.get());
        if len == 0 || !capabilities.contains(DevCapabilities::DISC_CMB) {
            return Ok(ControllerMemory::whole(len));
        }
        let cmd = DiscoverCmbCmd { opcode: Opcode::DISCOVER_CMB.0, ..DiscoverCmbCmd::ZERO };
        match self.ask::<_, CmbIdentity>(&cmd, &[], CMB_IDENTITY_BYTES) {
            Ok(identity) => Ok(ControllerMemory::new(&identity, len)?),
            Err(Cause::Command(_)) => Ok(ControllerMemory::default()),
            Err(cause) => Err(cause),
        }
    }

    fn port_up(&mut self) -> Result<(), Cause> {
        let port: PortIdentity = self.ask(&PortIdentifyCmd::new(), &[], PORT_IDENTITY_BYTES)?;
        let info = shared(self.host(), PORT_INFO_BYTES, Ok)?;
        let [at] = info.device_addresses();
        self.channels.port_info = Some(info);
        // The configuration that the port has is the one that it keeps.
        let config = PortConfig { state: PortState::UP.0, ..port.config };
        self.link.command(&PortInitCmd::new(at), &config.as_bytes()[..PORT_CONFIG_BYTES], &mut [])?;
        self.link.command(&PortSetAttrCmd::state(PortState::UP), &[], &mut []).map(drop)
    }

    /// Initialises the LIF, and maps the driver's doorbell page.
    fn lif_up(&mut self, pages: u32) -> Result<H::Bar, Cause> {
        let info = shared(self.host(), size_of::<LifInfo>(), Ok)?;
        let [at] = info.device_addresses();
        self.channels.lif_info = Some(info);
        let lif = self.link.command(&LifInitCmd::new(LIF, at), &[], &mut [])?;
        let page = u64::from(lif.hw_index.get()) * u64::from(pages) + u64::from(DBID);
        let bar = self.host().map_bar(BAR_DOORBELLS, page * PAGE as u64, PAGE, Caching::Uncached)?;
        Ok(bar)
    }

    fn admin_up(&mut self) -> Result<(), Cause> {
        let depth_log2 = ADMINQ_LOG2;
        let bytes = [64usize << depth_log2, 16usize << depth_log2];
        let queue = shared_pair(self.host(), bytes, |[commands, completions]| {
            AdminQueue::new(AdminQueueConfig { commands, completions, depth_log2 })
        })?;
        let [ring, cq_ring] = queue.device_addresses();
        let queue = self.channels.admin.insert(queue);
        let cmd = QInitCmd {
            opcode: Opcode::Q_INIT.0,
            r#type: QueueKind::ADMINQ.0,
            lif_index: LIF.into(),
            pid: DBID.into(),
            intr_index: ETH_INTERRUPT.into(),
            flags: QInitFlags::new().with_ena(true).into_bits().into(),
            ring_size: depth_log2,
            ring_base: ring.into(),
            cq_ring_base: cq_ring.into(),
            ..QInitCmd::ZERO
        };
        let made = self.link.command(&cmd, &[], &mut [])?;
        queue.attach(made.hw_type, made.hw_index.get()).map_err(|_| Cause::Answer {
            what: text!("number of the admin queue"),
            given: made.hw_index.get().into(),
        })
    }

    fn lif_settings(&mut self, lif: &LifIdentity) -> Result<(), Cause> {
        let notifies = lif.config.queue_count.get(usize::from(QueueKind::NOTIFYQ.0));
        if notifies.is_some_and(|count| count.get() > 0) {
            self.notify_up()?;
        }
        self.mac = self.admin(&LifGetAttrCmd::new(LIF, LifAttr::MAC))?.mac();
        // A group address, which all ones are too, is none of an interface.
        if self.mac == Mac::default() || self.mac.0[0] & 1 != 0 {
            let given = self.mac.0.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            return Err(Cause::Answer { what: text!("Ethernet address"), given });
        }
        let mtu = self.link.config.mtu.bytes() + OVERHEAD;
        self.admin(&LifSetAttrCmd::mtu(LIF, mtu))?;
        self.admin(&RxFilterAddCmd::mac(LIF, self.mac)).map(drop)
    }

    fn notify_up(&mut self) -> Result<(), Cause> {
        let queue = shared(self.host(), NOTIFY_BYTES << NOTIFYQ_LOG2, |memory| {
            NotifyQueue::new(memory, NOTIFYQ_LOG2)
        })?;
        let [ring] = queue.device_addresses();
        self.channels.notify = Some(queue);
        self.admin(&QInitCmd {
            opcode: Opcode::Q_INIT.0,
            r#type: QueueKind::NOTIFYQ.0,
            lif_index: LIF.into(),
            pid: DBID.into(),
            intr_index: ETH_INTERRUPT.into(),
            flags: QInitFlags::new().with_ena(true).into_bits().into(),
            ring_size: NOTIFYQ_LOG2,
            ring_base: ring.into(),
            ..QInitCmd::ZERO
        })
        .map(drop)
    }

    fn rdma_up(&mut self, rdma: &RdmaIdentity) -> Result<(), Cause> {
        self.channels.scratch = Some(shared(self.host(), PAGE, Ok)?);
        self.admin(&RdmaResetCmd::new(LIF))?;
        let events = shared(self.host(), 4 << EQ_LOG2, |memory| EventQueue::new(memory, EQ_LOG2))?;
        let [addr] = events.device_addresses();
        self.channels.events = Some(events);
        let (id, to) = (rdma.event.base + EQ, INTERRUPT.into());
        let ring = RdmaRing { id, to, dbid: DBID, depth_log2: EQ_LOG2, stride_log2: EQE_LOG2, addr };
        self.admin(&CreateEqCmd::new(LIF, &ring))?;
        let bytes = [64usize << AQ_LOG2, 32usize << AQ_LOG2];
        let queue = shared_pair(self.host(), bytes, |[commands, completions]| {
            RdmaAdminQueue::new(RdmaAdminConfig {
                commands,
                depth_log2: AQ_LOG2,
                completions,
                cq_depth_log2: AQ_LOG2,
                qtype: rdma.admin.qtype,
                id: rdma.admin.base + AQ,
                cq_qtype: rdma.completion.qtype,
                cq_id: ADMIN_CQ,
            })
        })?;
        let [commands, completions] = queue.device_addresses();
        self.channels.rdma = Some(queue);
        let cq = RdmaRing {
            id: ADMIN_CQ,
            to: EQ,
            depth_log2: AQ_LOG2,
            stride_log2: CQE_STRIDE_LOG2,
            addr: completions,
            ..ring
        };
        self.admin(&CreateAdminCqCmd::new(LIF, &cq))?;
        let id = rdma.admin.base + AQ;
        let aq = RdmaRing { id, to: ADMIN_CQ, stride_log2: STRIDE_LOG2, addr: commands, ..cq };
        self.admin(&CreateAdminQCmd::new(LIF, &aq)).map(drop)
    }

    /// A command through the Ethernet admin queue.
    fn admin<C: Command>(&mut self, cmd: &C) -> Result<C::Completion, Cause> {
        Ok(C::completion(&self.admin_bytes(C::OPCODE, &cmd.to_bytes())?)?)
    }

    fn admin_bytes(
        &mut self,
        opcode: Opcode,
        cmd: &[u8; COMMAND_BYTES],
    ) -> Result<[u8; COMPLETION_BYTES], Cause> {
        let (Some(queue), Some(doorbell)) = (&mut self.channels.admin, &self.doorbell) else {
            return Err(Cause::Failed);
        };
        let deadline = self.link.deadline();
        loop {
            queue.post_bytes(cmd, doorbell)?;
            let done = self.link.wait(deadline, || Ok(queue.poll(doorbell)?))?;
            match CommandError::check(opcode, &done.bytes) {
                Ok(()) => return Ok(done.bytes),
                Err(error) if self.link.pause(deadline, &error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A command through the RDMA admin queue. A device that does not answer as it must takes no more.
    ///
    /// # Errors
    /// The device refuses or has failed.
    pub fn rdma<C: AdminCommand>(&mut self, cmd: &C) -> Result<AdminCqe, Cause> {
        self.rdma_bytes(C::OP, cmd.as_bytes())
    }

    fn rdma_bytes(&mut self, op: AdminOp, cmd: &[u8]) -> Result<AdminCqe, Cause> {
        let failed = self.has_failed();
        let (Some(queue), Some(doorbell), false) = (&mut self.channels.rdma, &self.doorbell, failed) else {
            return Err(Cause::Failed);
        };
        if self.identity.is_none_or(|rdma| op.0 >= rdma.admin_opcodes) {
            return Err(Cause::Unsupported(text!("the device does not have the command")));
        }
        let result = queue.post_raw(op, cmd, doorbell).map_err(Cause::from).and_then(|_| {
            let done = self.link.wait(self.link.deadline(), || Ok(queue.poll(doorbell)?))?;
            Ok(done.result?)
        });
        if let Err(cause) = &result {
            self.failed |= !cause.is_harmless();
        }
        result
    }

    /// What the RDMA part can do.
    pub fn identity(&self) -> Result<RdmaIdentity, Cause> {
        self.identity.ok_or(Cause::Failed)
    }

    /// Whether the device has failed and must be opened again.
    pub const fn has_failed(&self) -> bool {
        self.failed || self.down
    }

    /// The device has failed.
    pub const fn fail(&mut self) {
        self.failed = true;
    }

    /// The firmware is alive, and the one that the device was opened with.
    pub fn check(&mut self) -> Result<(), Cause> {
        if self.has_failed() {
            return Err(Cause::Failed);
        }
        let alive = self.link.alive().and_then(|()| self.link.heartbeat());
        alive.inspect_err(|_| self.failed = true)
    }

    /// Has the device count from zero.
    pub fn reset_statistics(&mut self) -> Result<(), Cause> {
        if self.has_failed() {
            return Err(Cause::Failed);
        }
        let (opcode, attr) = (Opcode::LIF_SETATTR.0, LifAttr::STATS_CTRL.0);
        let reset = self.admin(&LifSetAttrCmd { opcode, attr, index: LIF.into(), ..LifSetAttrCmd::ZERO });
        reset.map(drop).inspect_err(|cause| self.failed |= !cause.is_harmless())
    }

    /// Takes the device down and brings it up again.
    pub fn restart(&mut self, config: Config) -> Result<(), Cause> {
        // Whatever that says: the device is reset before it is used again.
        let _down = self.take_down();
        self.link.bar = find(&self.link.host)?;
        self.link.config = config;
        self.link.begin().inspect_err(|_| retire(&self.link.host))?;
        (self.failed, self.down) = (false, false);
        (self.identity, self.doorbell, self.memory) = (None, None, ControllerMemory::default());
        self.bring_up().inspect_err(|cause| {
            self.failed |= !cause.is_harmless();
            let _down = self.take_down();
        })
    }

    /// Memory for data of a command.
    pub fn scratch(&mut self) -> Result<(&mut RingMemory<'static>, u64), Cause> {
        let scratch = self.channels.scratch.as_mut().ok_or(Cause::Failed)?;
        let [at] = scratch.device_addresses();
        Ok((&mut **scratch, at))
    }

    /// What the device has counted at the port.
    pub fn port_stats(&self) -> Option<PortStats> {
        self.channels.port_info.as_ref()?.load(core::mem::offset_of!(PortInfo, stats))
    }

    /// What the device tells about the LIF.
    pub fn lif_info(&self) -> Option<LifInfo> {
        self.channels.lif_info.as_ref()?.load(0)
    }

    /// The next event of the RDMA part. The credit is given back at once.
    pub fn next_event(&mut self) -> Option<directverbs::ionic::admin::Event> {
        let event = self.channels.events.as_mut()?.poll()?;
        let credit = IntrCredits::new().with_count(1).into_bits();
        let at = INTR_CONTROL + usize::from(INTERRUPT) * 32 + 8;
        self.link.bar.write32(at, credit);
        Some(event)
    }

    /// The next notification.
    pub fn next_notification(&mut self) -> Option<NotifyEvent> {
        self.channels.notify.as_mut()?.poll()
    }

    /// Takes the device down. Whatever happens, it is off the bus at the end, or its memory is kept.
    pub fn take_down(&mut self) -> Result<(), Cause> {
        if self.down {
            return Ok(());
        }
        self.down = true;
        // The device forgets everything. One that has failed is not asked: it loses the bus anyway.
        let reset =
            if self.failed { Ok(()) } else { self.link.command(&DevResetCmd::ZERO, &[], &mut []).map(drop) };
        // Dropped means abandoned: the host frees it when the device is off the bus.
        self.channels = Channels::NONE;
        reset.and(self.link.host.quiesce().map_err(Cause::Unrest))
    }
}

impl<H: Host> Drop for Session<H> {
    fn drop(&mut self) {
        // Who wants to know calls it before.
        let _taken: Result<(), Cause> = self.take_down();
    }
}

/// Bytes of the identities that are transferred: the rest of the window is nothing.
const DRV_IDENTITY_BYTES: usize = 204;
const DEV_IDENTITY_BYTES: usize = 56;
const LIF_IDENTITY_BYTES: usize = 648;
const PORT_IDENTITY_BYTES: usize = 384;
const PORT_CONFIG_BYTES: usize = 16;
const CMB_IDENTITY_BYTES: usize = 264;
