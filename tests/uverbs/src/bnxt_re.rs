//! bnxt_re's driver: contexts, doorbell and other pages, and its own methods. Queues are in [`queues`].
//!
//! Source: kernel `drivers/infiniband/hw/bnxt_re/{ib_verbs,uapi}.c`, `rdma/bnxt_re-abi.h`.

mod queues;

use std::sync::Arc;

use directverbs_softnic::open::{NicKind, WqeMode};
use zerocopy::IntoBytes;

use crate::Errno;
use crate::abi::bnxt_re::*;
use crate::objects::Object;
use crate::packet::Bundle;
use crate::pages::{PAGE, Region, Rights, Stores};
use crate::profile::{Profile, Release};
use crate::session::Session;
use crate::udata::{Udata, check_mask};

pub(crate) use queues::arm_srq;
pub use queues::{create_cq, create_qp, create_srq, resize_cq};

/// Bytes of a CQE.
const CQE: u32 = 32;
/// Offset in the shared page of the number of the newest address handle.
const AVID: usize = 0x10;
/// The NIC's number of its first push page.
const FIRST_PUSH_PAGE: u32 = 1;

/// Doorbell pacing that never has to begin: the FIFO is as good as empty.
const PACING: PacingParameters = PacingParameters {
    do_pacing: 0,
    pacing_th: 250,
    alarm_th: 500,
    fifo_max_depth: 0x2c00,
    fifo_room_mask: 0x1fff_8000,
    fifo_room_shift: 15,
    grc_reg_offset: 0xa8,
};

/// Whether completion and shared receive queues have toggle pages.
const fn has_toggles(profile: &Profile) -> bool {
    matches!(profile.nic, NicKind::BnxtReP7)
}

/// Whether the retransmit table is the MSN table.
const fn has_msn_table(profile: &Profile) -> bool {
    matches!(profile.nic, NicKind::BnxtReP7)
}

/// Whether depths need not be powers of two.
const fn has_exact_depths(profile: &Profile) -> bool {
    matches!(profile.nic, NicKind::BnxtReP7)
}

/// GET_CONTEXT: the driver's reply.
pub fn get_context(session: &mut Session<'_>, udata: &Udata) -> Result<Vec<u8>, Errno> {
    use uctx_reply::*;
    let (profile, release) = (session.device.profile.clone(), session.release());
    let asked = match udata.is_empty() {
        true => UctxReq::default(),
        false => udata.get::<UctxReq>(release, 8, 8)?,
    };
    check_mask(release, asked.comp_mask, uctx_request::POW2_SUPPORT | uctx_request::VAR_WQE_SUPPORT)?;
    let exact = has_exact_depths(&profile) && asked.comp_mask & uctx_request::POW2_SUPPORT != 0;
    let has_mode = asked.comp_mask & uctx_request::VAR_WQE_SUPPORT != 0;
    let variable = has_mode && profile.wqe_mode == WqeMode::Variable;
    let bits = [
        (true, HAVE_CCTX),
        (has_mode, HAVE_MODE),
        (profile.push, WC_DPI_ENABLED),
        (profile.pacing, DBR_PACING_ENABLED),
        (exact, POW2_DISABLED),
        (has_msn_table(&profile), MSN_TABLE_ENABLED),
        (release >= Release::V7_2, QP_RATE_LIMIT_ENABLED),
        (release >= Release::V7_3, TOGGLE_MEM_UOBJ_SUPPORT),
    ];
    let reply = UctxResp {
        dev_id: 0,
        max_qp: session.device.limits.max_qp,
        pg_size: PAGE as u32,
        cqe_sz: CQE,
        max_cqd: session.device.limits.max_cqe,
        comp_mask: bits.iter().filter(|(on, _)| *on).fold(0, |mask, (_, bit)| mask | bit),
        chip_id0: profile.pci().1.into(),
        mode: variable.into(),
        ..UctxResp::default()
    };
    let shared = Region::new(PAGE, Rights::Any, Stores::Plain)?;
    session.add_page(0, Arc::new(shared))?;
    let driver = &mut session.context()?.driver;
    (driver.exact_depths, driver.variable_wqe) = (exact, variable);
    Ok(reply.as_bytes().to_vec())
}

fn doorbell_region(session: &Session<'_>, dpi: u32) -> Result<Arc<Region>, Errno> {
    Region::new(PAGE, Rights::Any, Stores::Doorbell(session.device.nic.clone(), dpi)).map(Arc::new)
}

/// ALLOC_PD: the driver's reply. The first one of a context brings its doorbell page.
pub fn alloc_pd(session: &mut Session<'_>, id: u32) -> Result<Vec<u8>, Errno> {
    let (dpi, cookie) = match session.context()?.driver.doorbell {
        Some(doorbell) => doorbell,
        None => {
            let dpi = session.device.take_dpi()?;
            let region = doorbell_region(session, dpi);
            let added = region.and_then(|region| session.add_page(session.first_cookie(), region));
            let cookie = added.inspect_err(|_| session.device.dpis.give(dpi))?;
            session.context()?.driver.doorbell = Some((dpi, cookie));
            (dpi, cookie)
        }
    };
    // Packed: the 64-bit offset is not aligned.
    Ok([[id, dpi].as_bytes(), cookie.as_bytes()].concat())
}

/// CREATE_AH: the number goes to the shared page.
pub fn create_ah(session: &mut Session<'_>, id: u32) -> Result<Vec<u8>, Errno> {
    if let Some(shared) = session.context()?.pages.get(&0) {
        shared.write(AVID, id.as_bytes());
    }
    Ok(Vec::new())
}

/// ALLOC_PAGE.
pub fn alloc_page(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    let profile = session.device.profile.clone();
    let (mut number, mut push) = (0, None);
    let region = match bundle.number(0x1001)? {
        0 if !profile.push => return Err(Errno::INVAL),
        0 if session.context()?.driver.push.is_some() => return Err(Errno::EXIST),
        0 => {
            let page = session.device.take_push_page()?;
            push = Some(page);
            number = page + FIRST_PUSH_PAGE;
            let base = u64::from(page) * PAGE as u64;
            Region::new(PAGE, Rights::Any, Stores::Device(session.device.nic.clone(), base))
        }
        1 | 2 if !profile.pacing => return Err(Errno::OPNOTSUPP),
        1 => Region::new(PAGE, Rights::Any, Stores::Plain).inspect(|registers| {
            let room = PACING.fifo_max_depth << PACING.fifo_room_shift;
            registers.write(PACING.grc_reg_offset as usize, room.as_bytes());
        }),
        2 => Region::new(PAGE, Rights::ReadOnly, Stores::Plain).inspect(|parameters| {
            parameters.write(0, PACING.as_bytes());
        }),
        _ => return Err(Errno::INVAL),
    };
    let first = session.first_cookie();
    let added = region.and_then(|region| session.add_page(first, Arc::new(region)));
    let cookie = added.inspect_err(|_| push.iter().for_each(|page| session.device.push_pages.give(*page)))?;
    let context = session.context()?;
    context.driver.push = push.map(|page| (page, cookie)).or(context.driver.push);
    let handle = context.objects.add(Object::Page(cookie), &[]);
    bundle.made(handle)?;
    bundle.put(0x1002, number.as_bytes())?;
    bundle.put(0x1003, cookie.as_bytes())?;
    bundle.put(0x1004, (PAGE as u32).as_bytes())
}

/// NOTIFY_DRV: the doorbell FIFO is full, says the process.
pub fn notify(_: &mut Session<'_>, _: &mut Bundle<'_>) -> Result<(), Errno> {
    Ok(())
}

/// GET_TOGGLE_MEM.
pub fn get_toggle(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    if !has_toggles(&session.device.profile) {
        return Err(Errno::OPNOTSUPP);
    }
    let objects = session.objects()?;
    let region = match (bundle.handle(0x1006), bundle.handle(0x1007), bundle.has(0x1001)) {
        (Some(cq), None, false) => objects.cq(cq)?.toggle.clone(),
        (None, Some(srq), false) => objects.srq(srq)?.toggle.clone(),
        (None, None, true) => {
            let (kind, id) = (bundle.number(0x1001)?, bundle.word(0x1002)?);
            let is = |object: &Object| match (kind, object) {
                (0, Object::Cq(cq)) => cq.ids[0].is_some_and(|of| of.get() == id),
                (1, Object::Srq(srq)) => srq.id.get() == id,
                _ => false,
            };
            if kind > 1 {
                return Err(Errno::INVAL);
            }
            // Numbers are looked up among the context's own objects only.
            let found = objects.iter().find(|(_, object)| is(object));
            match found.ok_or(Errno::INVAL)?.1 {
                Object::Cq(cq) => cq.toggle.clone(),
                Object::Srq(srq) => srq.toggle.clone(),
                _ => None,
            }
        }
        _ => return Err(Errno::INVAL),
    };
    let first = session.first_cookie();
    let cookie = session.add_page(first, region.ok_or(Errno::OPNOTSUPP)?)?;
    let handle = session.objects()?.add(Object::Toggle(cookie), &[]);
    bundle.made(handle)?;
    bundle.put(0x1003, cookie.as_bytes())?;
    bundle.put(0x1004, 0u32.as_bytes())?;
    bundle.put(0x1005, (PAGE as u32).as_bytes())
}

/// DBR_ALLOC.
pub fn alloc_dbr(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    let (dpi, first) = (session.device.take_dpi()?, session.first_cookie());
    let added = doorbell_region(session, dpi).and_then(|region| session.add_page(first, region));
    let cookie = added.inspect_err(|_| session.device.dpis.give(dpi))?;
    let handle = session.objects()?.add(Object::Dbr(cookie, dpi), &[]);
    bundle.made(handle)?;
    bundle.put(0x1001, DbRegion { dpi, ..DbRegion::default() }.as_bytes())?;
    bundle.put(0x1002, cookie.as_bytes())
}

/// GET_DEFAULT_DBR.
pub fn default_dbr(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    let dpi = session.context()?.driver.doorbell.map_or(0, |(dpi, _)| dpi);
    bundle.put(0x1000, DbRegion { dpi, ..DbRegion::default() }.as_bytes())
}
