//! Bring-up: from a function in any state to one whose queues can be used.

use core::time::Duration;

use directverbs::bnxt_re::caps::{DeviceCaps, Generation};
use directverbs::bnxt_re::doorbell::DbType;
use directverbs::bnxt_re::hwrm::context::Demand;
use directverbs::bnxt_re::hwrm::driver::{
    FuncDrvIfChangeInput, FuncDrvRgtrInput, HOT_FW_RESET_DONE, IF_CHANGE_SUPPORTED, IF_UP, OS_TYPE_OTHER,
    VER_MODE_16BIT, enables as driver_enables,
};
use directverbs::bnxt_re::hwrm::function::{
    FuncQcapsInput, FuncQcapsOutput, FuncQcfgInput, FuncQcfgOutput, FuncResetInput, caps, caps_ext,
};
use directverbs::bnxt_re::hwrm::message::{NONE, Request};
use directverbs::bnxt_re::hwrm::port::{LINK, PortPhyQcfgInput};
use directverbs::bnxt_re::hwrm::queue::QueueQportcfgInput;
use directverbs::bnxt_re::hwrm::resources::{FuncCfgInput, FuncResourceQcapsInput, enables};
use directverbs::bnxt_re::hwrm::ring::{INT_MODE_MSIX, RingAllocInput, ring_type};
use directverbs::bnxt_re::hwrm::stat::{STAT_CTX_ROCE, StatCtxAllocInput};
use directverbs::bnxt_re::hwrm::version::{DEV_NOT_RDY, VerGetInput, VerGetOutput};
use directverbs::bnxt_re::pbl::{Level, PAGE};
use directverbs::bnxt_re::rcfw::create::Listed;
use directverbs::bnxt_re::rcfw::function::{
    CmdqInitializeFw, CmdqQueryFunc, CreqQueryFuncRespSb, caps_ext2, init_flags,
};
use directverbs::bnxt_re::rcfw::message::{Command, CreqSize};
use directverbs::bnxt_re::rcfw::transition::Outstanding;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::queue::Doorbell;
use directverbs::text;
use directverbs::verbs::Mac;
use zerocopy::{FromBytes, little_endian as le};

use super::config::Config;
use super::context::{self, Contexts};
use super::error::Error;
use super::firmware::{Firmware, of_health};
use super::probe::probe;
use super::rcfw::{Events, Rcfw, events};
use crate::clock::{Deadline, Timeout};
use crate::dma::Owned;
use crate::host::Host;
use crate::ledger::Ledger;
use crate::pci::{Command as PciCommand, command};
use crate::registers::{Caching, DoorbellPage};

/// BAR of the registers, and of the doorbells.
pub(super) const REGISTERS: u8 = 0;
pub(super) const DOORBELLS: u8 = 2;
/// Registers that are used.
const REGISTER_BYTES: usize = 0x1000;
/// Offset of the privileged doorbell page of P5.
const P5_PAGE: u64 = 0x1_0000;
/// Version of the interface that this driver knows.
const INTERFACE: [u8; 3] = [1, 10, 3];
/// Rings of events: that of completions of commands, and one notification queue.
const EVENT_RINGS: u16 = 2;

/// A device as far as it was brought up. What there is was given to the device: dropped, its memory is abandoned.
#[derive(Debug)]
pub(super) struct Brought<H: Host> {
    pub firmware: Firmware<H>,
    /// What there is in the device.
    pub ledger: Owned<Ledger, H::Dma, 1>,
    pub contexts: Contexts<H>,
    pub rcfw: Option<Rcfw<H>>,
    pub nq: Option<Events<H>>,
    pub nq_id: u16,
    pub mac: Mac,
    pub stat_ctx: Option<u16>,
    /// Longest time that a request may take.
    pub limit: Duration,
}

/// What the device is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub caps: DeviceCaps,
    pub func: CreqQueryFuncRespSb,
    pub outstanding: Outstanding,
    pub link: bool,
}

impl<H: Host> Brought<H> {
    /// Sends a request that takes no longer than usual.
    pub fn request<R: Request>(&mut self, host: &H, request: &R) -> Result<R::Response, Error> {
        self.firmware.send(host, request, Duration::ZERO)
    }

    /// Sends a query of the command channel.
    pub fn query<C, T>(&mut self, host: &H, command: &C) -> Result<T, Error>
    where
        C: Command<Completion = CreqSize>,
        T: FromBytes + Copy,
    {
        let answer = self.channel()?.query(host, command);
        self.told_apart(host, answer)
    }

    /// A device that does not answer may be resetting itself.
    fn told_apart<T>(&self, host: &H, answer: Result<T, Error>) -> Result<T, Error> {
        if let Err(Error::NoCompletion { .. }) = answer {
            self.firmware.health(host).map_err(of_health)?;
        }
        answer
    }

    /// The command channel.
    pub fn channel(&mut self) -> Result<&mut Rcfw<H>, Error> {
        self.rcfw.as_mut().ok_or(Error::Failed)
    }

    /// Sends a command.
    pub fn command<C: Command>(&mut self, host: &H, command: &C) -> Result<C::Completion, Error> {
        let answer = self.channel()?.send(host, command);
        self.told_apart(host, answer)
    }

    /// Frees all memory: the device has forgotten it.
    pub fn release(self) {
        self.firmware.release();
        self.ledger.release();
        self.contexts.into_iter().for_each(|memory| memory.release());
        self.rcfw.into_iter().for_each(Rcfw::release);
        self.nq.into_iter().for_each(|ring| ring.release());
    }
}

/// Brings a device up. What was given to the device before something failed is in `at`.
///
/// # Errors
/// What does not work.
pub(super) fn bring_up<H: Host>(
    at: &mut Option<Brought<H>>,
    host: &H,
    config: &Config<'_>,
) -> Result<(DoorbellPage<H::Bar>, Told), Error> {
    probe(host)?;
    // Whatever somebody has left behind is gone after this, and memory that was given up is free.
    host.reset()?;
    host.quiesce().map_err(crate::host::ResetError::from)?;
    command::enable(host.config(), PciCommand::MEMORY | PciCommand::BUS_MASTER);
    let registers = host.map_bar(REGISTERS, 0, REGISTER_BYTES, Caching::Uncached)?;
    let firmware = Firmware::new(host, registers.clone(), config.request_limit)?;
    let brought = at.insert(Brought {
        firmware,
        ledger: ledger(host, config)?,
        contexts: Contexts::<H>::new(),
        rcfw: None,
        nq: None,
        nq_id: 0,
        mac: Mac::default(),
        stat_ctx: None,
        limit: config.reset_limit,
    });
    wait_until_well(brought, host, config.reset_limit)?;
    let version = greet(brought, host, config.reset_limit)?;
    let generation = match Generation::from_chip(version.chip_num.get()) {
        Generation::Legacy => return Err(Error::UnknownChip(version.chip_num.get())),
        generation => generation,
    };
    brought.firmware.send(host, &FuncResetInput::ZERO, config.reset_limit)?;
    let qcaps = capabilities(brought, host)?;
    let queues = brought.request(host, &QueueQportcfgInput::ZERO)?;
    let ext = qcaps.flags_ext.get();
    let v2 = context::has_v2(
        generation,
        ext & caps_ext::BS_V2_SUPPORTED != 0,
        ext & caps_ext::BS_V2_REQUIRED != 0,
    );
    context::give(brought, host, v2, queues.max_configurable_queues, &config.demand)?;
    let page_at = register(brought, host, generation)?;
    let page = DoorbellPage(host.map_bar(DOORBELLS, page_at, PAGE as usize, Caching::Uncached)?);
    channels(brought, host, registers, &page, config)?;
    let told = start(brought, host, generation, config)?;
    Ok((page, told))
}

/// A ledger for all objects that there may be.
fn ledger<H: Host>(host: &H, config: &Config<'_>) -> Result<Owned<Ledger, H::Dma, 1>, Error> {
    let Demand { qps, srqs, cqs, regions, ahs } = config.demand;
    let objects = [qps, srqs, cqs, regions, ahs, config.pds];
    let objects = objects.into_iter().fold(0usize, |sum, kind| sum.saturating_add(kind as usize));
    let block = host.dma(Ledger::bytes(objects), PAGE as usize)?;
    // SAFETY: the device is never told of this block.
    Ok(Owned::build([block], |[memory]| unsafe { Ledger::new(memory, objects) })?)
}

/// Waits until the firmware says that it is well.
fn wait_until_well<H: Host>(brought: &Brought<H>, host: &H, limit: Duration) -> Result<(), Error> {
    enum Wait {
        Error(Error),
        Over,
    }
    impl From<Timeout> for Wait {
        fn from(_: Timeout) -> Self {
            Self::Over
        }
    }
    let mut last = Error::Failed;
    let wait = Deadline::after(host, limit).wait(host, || match brought.firmware.health(host) {
        Ok(()) => Ok(Some(())),
        Err(error @ Error::NotReady(_)) => {
            last = error;
            Ok(None)
        }
        Err(error) => Err(Wait::Error(error)),
    });
    match wait {
        Ok(()) => Ok(()),
        Err(Wait::Error(error)) => Err(error),
        Err(Wait::Over) => Err(last),
    }
}

/// Asks for versions until the device is ready.
fn greet<H: Host>(brought: &mut Brought<H>, host: &H, limit: Duration) -> Result<VerGetOutput, Error> {
    let [major, minor, update] = INTERFACE;
    let asked = VerGetInput {
        hwrm_intf_maj: major,
        hwrm_intf_min: minor,
        hwrm_intf_upd: update,
        ..VerGetInput::ZERO
    };
    let deadline = Deadline::after(host, limit);
    loop {
        let version = brought.request(host, &asked)?;
        if version.flags & DEV_NOT_RDY == 0 {
            brought.firmware.learn(&version);
            return Ok(version);
        }
        if deadline.is_over(host) {
            return Err(Error::NotReady(version.flags.into()));
        }
        host.delay(Duration::from_millis(10));
    }
}

fn capabilities<H: Host>(brought: &mut Brought<H>, host: &H) -> Result<FuncQcapsOutput, Error> {
    let asked = FuncQcapsInput { fid: le::U16::new(NONE), ..FuncQcapsInput::ZERO };
    let qcaps = brought.request(host, &asked)?;
    if qcaps.flags.get() & (caps::ROCE_V1 | caps::ROCE_V2) == 0 {
        return Err(Error::Capabilities(text!("no RoCE")));
    }
    // An address of a group is nobody's.
    if qcaps.mac_address == [0; 6] || qcaps.mac_address[0] & 1 != 0 {
        return Err(Error::Capabilities(text!("no Ethernet address")));
    }
    brought.mac = Mac(qcaps.mac_address);
    Ok(qcaps)
}

/// Registers the driver and reserves resources; gives the offset of the privileged doorbell page.
fn register<H: Host>(brought: &mut Brought<H>, host: &H, generation: Generation) -> Result<u64, Error> {
    let resources = FuncResourceQcapsInput { fid: le::U16::new(NONE), ..FuncResourceQcapsInput::ZERO };
    let has = brought.request(host, &resources)?;
    if has.max_msix.get() < EVENT_RINGS || has.max_stat_ctx.get() == 0 {
        return Err(Error::Capabilities(text!("too few event rings or statistics contexts")));
    }
    let driver = FuncDrvRgtrInput {
        flags: le::U32::new(VER_MODE_16BIT),
        enables: le::U32::new(driver_enables::OS_TYPE | driver_enables::VER),
        os_type: le::U16::new(OS_TYPE_OTHER),
        ver_min: le::U16::new(1),
        ..FuncDrvRgtrInput::ZERO
    };
    let registered = brought.request(host, &driver)?;
    let qcfg = FuncQcfgInput { fid: le::U16::new(NONE), ..FuncQcfgInput::ZERO };
    let layout = brought.request(host, &qcfg)?;
    if registered.flags.get() & IF_CHANGE_SUPPORTED != 0 {
        let up = FuncDrvIfChangeInput { flags: le::U32::new(IF_UP), ..FuncDrvIfChangeInput::ZERO };
        if brought.request(host, &up)?.flags.get() & HOT_FW_RESET_DONE != 0 {
            return Err(Error::HotReset);
        }
    }
    let reserve = FuncCfgInput {
        fid: le::U16::new(NONE),
        enables: le::U32::new(enables::NUM_CMPL_RINGS | enables::NUM_STAT_CTXS | enables::NUM_MSIX),
        num_msix: le::U16::new(EVENT_RINGS),
        num_cmpl_rings: le::U16::new(EVENT_RINGS),
        num_stat_ctxs: le::U16::new(1),
        ..FuncCfgInput::ZERO
    };
    brought.request(host, &reserve)?;
    privileged_page(generation, &layout)
}

/// Offset of the privileged doorbell page.
pub(super) fn privileged_page(generation: Generation, layout: &FuncQcfgOutput) -> Result<u64, Error> {
    match generation {
        Generation::P7 => match layout.legacy_l2_db_size_kb.get() {
            0 => Err(Error::Capabilities(text!("no doorbell page"))),
            kilobytes => Ok(u64::from(kilobytes) * 1024),
        },
        _ => Ok(P5_PAGE),
    }
}

/// Creates the statistics context, the event rings and the command channel.
fn channels<H: Host>(
    brought: &mut Brought<H>,
    host: &H,
    registers: H::Bar,
    page: &DoorbellPage<H::Bar>,
    config: &Config<'_>,
) -> Result<(), Error> {
    // No period: the device never writes to host memory.
    let statistics = StatCtxAllocInput { stat_ctx_flags: STAT_CTX_ROCE, ..StatCtxAllocInput::ZERO };
    let stat_ctx = brought.request(host, &statistics)?.stat_ctx_id.get();
    let stat_ctx = u16::try_from(stat_ctx).map_err(|_| Error::Capabilities(text!("statistics contexts")))?;
    brought.stat_ctx = Some(stat_ctx);
    let (creq, listed) = events(host, config.event_entries)?;
    // From here on the device may know the ring.
    let creq_id = allocate_ring(brought, host, &listed, config.event_entries, 0)?;
    brought.rcfw = Some(Rcfw::start(
        host,
        registers,
        page.clone(),
        (creq, creq_id),
        config.command_slots,
        config.command_limit,
    )?);
    let (mut nq, listed) = events(host, config.event_entries)?;
    let nq_id = allocate_ring(brought, host, &listed, config.event_entries, 1)?;
    if nq_id == creq_id {
        return Err(Error::Capabilities(text!("two rings with one number")));
    }
    nq.set_id(nq_id);
    page.store(0, nq.doorbell(DbType::NQ_ARM).to_u64());
    (brought.nq, brought.nq_id) = (Some(nq), nq_id);
    Ok(())
}

fn allocate_ring<H: Host>(
    brought: &mut Brought<H>,
    host: &H,
    listed: &Listed,
    entries: u32,
    vector: u16,
) -> Result<u16, Error> {
    let listed_pages = listed.plan.level != Level::Page;
    let ring = RingAllocInput {
        ring_type: ring_type::NQ,
        page_tbl_addr: le::U64::new(listed.root),
        page_size: if listed_pages { listed.plan.shift } else { 0 },
        page_tbl_depth: listed.plan.level as u8,
        length: le::U32::new(entries),
        logical_id: le::U16::new(vector),
        int_mode: INT_MODE_MSIX,
        ..RingAllocInput::ZERO
    };
    Ok(brought.request(host, &ring)?.ring_id.get())
}

/// Asks what RoCE can do and starts it.
fn start<H: Host>(
    brought: &mut Brought<H>,
    host: &H,
    generation: Generation,
    config: &Config<'_>,
) -> Result<Told, Error> {
    let stat_ctx = brought.stat_ctx.unwrap_or_default();
    let link = brought.request(host, &PortPhyQcfgInput::ZERO)?.link == LINK;
    let func: CreqQueryFuncRespSb = brought.query(host, &CmdqQueryFunc::ZERO)?;
    let mode = config.wqe_mode.unwrap_or(match generation {
        Generation::P7 => WqeMode::Variable,
        _ => WqeMode::Static,
    });
    let caps = DeviceCaps::from_query(generation, &func, mode)?;
    let optimized = func.dev_cap_ext_flags_2.get() & caps_ext2::OPTIMIZE_MODIFY_QP != 0;
    let flags = init_flags::HW_REQUESTER_RETX | if optimized { init_flags::OPTIMIZE_MODIFY_QP } else { 0 };
    let initialize = CmdqInitializeFw {
        flags: le::U16::new(flags),
        stat_ctx_id: le::U32::new(stat_ctx.into()),
        ..CmdqInitializeFw::ZERO
    };
    brought.command(host, &initialize)?;
    let outstanding = Outstanding {
        initiator: func.max_qp_init_rd_atom.min(Outstanding::MAX),
        responder: func.max_qp_rd_atom.min(Outstanding::MAX),
    };
    if outstanding.initiator == 0 || outstanding.responder == 0 {
        return Err(Error::Capabilities(text!("no READs")));
    }
    Ok(Told { caps, func, outstanding, link })
}
