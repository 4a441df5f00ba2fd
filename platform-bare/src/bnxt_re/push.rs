//! Push: short requests go to the device with their doorbell.
//!
//! What pushes is reached from [`Device::set_push`] alone: a program without it does not have the code.

use directverbs::bnxt_re::doorbell::PushPage;
use directverbs::bnxt_re::hwrm::function::{FuncQcapsInput, FuncQcfgInput};
use directverbs::bnxt_re::hwrm::message::NONE;
use directverbs::bnxt_re::pbl::PAGE;
use directverbs::bnxt_re::push::{PUSH_BUFFERS, PushBuffer, PushPlace, PushPreference};
use directverbs::text;
use directverbs::verbs::{BatchError, MemoryError, PlanError, SendRequest};
use zerocopy::little_endian as le;

use super::bring_up::{DOORBELLS, privileged_page};
use super::device::Device;
use super::error::Error;
use super::queue::{InnerCq, InnerQp};
use crate::host::Host;
use crate::registers::{Caching, DoorbellPage};

/// How a queue pair posts that pushes.
type Post<H> = for<'n> fn(
    &mut InnerQp<'n, H>,
    &mut InnerCq<'n, H>,
    &[SendRequest<'_>],
    &PushBuffer<DoorbellPage<<H as Host>::Bar>>,
) -> Result<(), BatchError>;

/// The pages of queue pairs that push.
#[derive(Debug)]
pub(super) struct PushPages<H: Host> {
    /// Page to ring in.
    page: DoorbellPage<H::Bar>,
    dpi: u32,
    memory: DoorbellPage<H::Bar>,
    number: PushPage,
    wish: PushPreference,
    /// Buffers that queue pairs have, a bit for each.
    claimed: u16,
    /// [`claim`]: reached only where there are such pages.
    pub claim: fn(&Self) -> Result<Option<Pushed<H>>, Error>,
}

/// What a queue pair pushes through.
#[derive(Debug)]
pub(super) struct Pushed<H: Host> {
    pub page: DoorbellPage<H::Bar>,
    pub dpi: u32,
    pub buffer: PushBuffer<DoorbellPage<H::Bar>>,
    pub post: Post<H>,
}

impl<H: Host> PushPages<H> {
    /// A queue pair has this buffer, or has it no longer.
    pub const fn mark(&mut self, pushed: &Pushed<H>, claimed: bool) {
        let bit = 1 << pushed.buffer.index();
        self.claimed = if claimed { self.claimed | bit } else { self.claimed & !bit };
    }
}

/// A buffer that no queue pair has. The first is left alone, as by the vendor's own library: doorbells go there, too.
fn claim<H: Host>(pages: &PushPages<H>) -> Result<Option<Pushed<H>>, Error> {
    let free = (1..PUSH_BUFFERS).find(|index| pages.claimed & 1 << index == 0);
    let index = match free {
        Some(index) if pages.wish.enable => index,
        None if pages.wish.enable && pages.wish.require => return Err(Error::Full(text!("push buffer"))),
        _ => return Ok(None),
    };
    let buffer = PushBuffer::new(pages.memory.clone(), pages.number, index)?;
    Ok(Some(Pushed { page: pages.page.clone(), dpi: pages.dpi, buffer, post: post::<H> }))
}

fn post<'n, H: Host>(
    qp: &mut InnerQp<'n, H>,
    cq: &mut InnerCq<'n, H>,
    requests: &[SendRequest<'_>],
    buffer: &PushBuffer<DoorbellPage<H::Bar>>,
) -> Result<(), BatchError> {
    qp.post_send_by(cq, requests, buffer)
}

impl<H: Host> Device<'_, H> {
    /// Says whether queue pairs that are created from now on push: requests that are posted alone, with inline data of at
    /// most [`PUSH_DATA_BYTES`](directverbs::bnxt_re::push::PUSH_DATA_BYTES). Gives whether they do; a device without push
    /// rings as ever, unless push is required. A NIC that was brought up, again too, does not push until it is told to.
    ///
    /// There are 15 buffers, and each queue pair has one of its own. If none is left, the next one does not push, or is not
    /// created if push is required.
    ///
    /// # Errors
    /// Push is required and there is none, or the device does not tell.
    pub fn set_push(&mut self, wish: PushPreference) -> Result<bool, Error> {
        if wish.enable && self.nic.push.is_none() {
            self.nic.push = match self.push_pages() {
                Err(Error::Map(_)) if !wish.require => None,
                pages => pages?,
            };
        }
        match &mut self.nic.push {
            Some(pages) => pages.wish = wish,
            None if wish.enable && wish.require => {
                return Err(PlanError::Unsupported(text!("the device has no push")).into());
            }
            None => return Ok(false),
        }
        Ok(wish.enable)
    }

    /// Asks for the pages, and maps them; `None` if there are none.
    fn push_pages(&mut self) -> Result<Option<PushPages<H>>, Error> {
        let generation = self.told.caps.generation;
        let fid = le::U16::new(NONE);
        let (brought, host) = self.nic.brought()?;
        let qcaps = brought.request(host, &FuncQcapsInput { fid, ..FuncQcapsInput::ZERO })?;
        let qcfg = brought.request(host, &FuncQcfgInput { fid, ..FuncQcfgInput::ZERO })?;
        let privileged = privileged_page(generation, &qcfg)?;
        let Some(place) = PushPlace::find(&qcaps, &qcfg, privileged, host.bar_len(DOORBELLS)) else {
            return Ok(None);
        };
        let map = |page, caching| host.map_bar(DOORBELLS, place.offset + page * PAGE, PAGE as usize, caching);
        Ok(Some(PushPages {
            page: DoorbellPage(map(0, Caching::Uncached)?),
            dpi: place.dpi,
            memory: DoorbellPage(map(1, Caching::WriteCombining)?),
            number: PushPage::new(place.dpi + 1).map_err(MemoryError::from)?,
            wish: PushPreference::OFF,
            claimed: 0,
            claim: claim::<H>,
        }))
    }
}
