//! bnxt_re: what its driver adds to the commands, and its own methods. Source: kernel `rdma/bnxt_re-abi.h`; pages and
//! cookies as the kernel driver of 7.3 has them.

pub use super::abi::bnxt_re::*;
use super::device::State;
use super::ioctl::Attributes;
use super::memory::Page;
use super::objects::{Ah, Cq, Qp, Srq, Udata};
use super::{Errno, Limits};
use directverbs::bnxt_re::caps::{ContextReply, Limits as QueueLimits, context_bits};
use zerocopy::IntoBytes;

const PAGE: u32 = 4096;
const CQE: u32 = 32;

/// What the device is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Chip number: 0x1750 to 0x1752 are P5, 0x1760 and 0xd818 P7.
    pub chip: u16,
    /// WQEs are of variable size.
    pub variable_wqe: bool,
    /// The retransmit table is the MSN table in host memory.
    pub msn_table: bool,
    /// Ring depths need not be powers of two.
    pub exact_depths: bool,
    /// There is a push page.
    pub push: bool,
    /// There are pages of doorbell pacing, with these parameters.
    pub pacing: Option<PacingParameters>,
    /// Completion and shared receive queues have toggle pages.
    pub toggle: bool,
    /// Most entries of a completion queue.
    pub max_cq_depth: u32,
}

impl Config {
    /// BCM575xx: PSN entries of 16 bytes, static WQEs, depths of powers of two.
    pub const fn p5() -> Self {
        Self {
            chip: 0x1750,
            variable_wqe: false,
            msn_table: false,
            exact_depths: false,
            push: false,
            pacing: None,
            toggle: false,
            max_cq_depth: 0x1_0000,
        }
    }

    /// BCM5760x: MSN table, WQEs of variable size, exact depths, toggle pages.
    pub const fn p7() -> Self {
        Self {
            chip: 0x1760,
            variable_wqe: true,
            msn_table: true,
            exact_depths: true,
            toggle: true,
            ..Self::p5()
        }
    }

    /// What the kernel tells about the context, in the core's words.
    pub fn reply(&self) -> ContextReply {
        let bits = [
            (true, context_bits::HAVE_CCTX | context_bits::HAVE_MODE),
            (self.push, context_bits::WC_DPI_ENABLED),
            (self.pacing.is_some(), context_bits::DBR_PACING_ENABLED),
            (self.exact_depths, context_bits::POW2_DISABLED),
            (self.msn_table, context_bits::MSN_TABLE_ENABLED),
        ];
        ContextReply {
            comp_mask: bits.iter().filter(|(on, _)| *on).fold(0, |mask, (_, bit)| mask | bit),
            chip_id0: self.chip.into(),
            mode: self.variable_wqe.into(),
            pg_size: PAGE,
            cqe_sz: CQE,
            max_cqd: self.max_cq_depth,
        }
    }
}

/// The device's limits in the core's words.
impl From<Limits> for QueueLimits {
    fn from(limits: Limits) -> Self {
        Self {
            max_qp_wr: limits.max_qp_wr,
            max_sge: limits.max_sge,
            max_srq_wr: limits.max_srq_wr,
            max_srq_sge: limits.max_srq_sge,
            atomics: limits.atomic_cap != 0,
        }
    }
}

/// The context's own state.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// Doorbell page: its cookie, once there is a protection domain.
    doorbell: Option<u64>,
    /// Times that the provider has told the driver that the doorbell FIFO is full.
    pub notified: u32,
    /// After so many more, a word of [`Page::PacingRegisters`] changes: notifications left, its offset and new value.
    pub drains: Option<(u32, usize, u32)>,
    push: bool,
}

/// Offset in the shared page of the id of the newest address handle.
const AVID: usize = 0x10;
/// Doorbell page index of the context, and of its push page.
pub const DPI: u32 = 1;
/// Doorbell page index of the push page. It has more than 8 bits, so that both halves of the field in a push doorbell
/// are seen.
pub const PUSH_DPI: u32 = 0x234;

pub(super) fn get_context(state: &mut State, config: &Config) -> Result<Vec<u8>, Errno> {
    let reply = config.reply();
    state.add_page(Page::Shared, PAGE as usize)?;
    let response = UctxResp {
        dev_id: 0,
        max_qp: state.limits().max_qp,
        pg_size: reply.pg_size,
        cqe_sz: reply.cqe_sz,
        max_cqd: reply.max_cqd,
        comp_mask: reply.comp_mask,
        chip_id0: reply.chip_id0,
        mode: reply.mode,
        ..UctxResp::default()
    };
    Ok(response.as_bytes().to_vec())
}

pub(super) fn alloc_pd(state: &mut State, handle: u32) -> Result<Vec<u8>, Errno> {
    let doorbell = match state.bnxt_re.doorbell {
        Some(doorbell) => doorbell,
        None => state.add_page(Page::Doorbell, PAGE as usize)?,
    };
    state.bnxt_re.doorbell = Some(doorbell);
    // Packed: the 64-bit offset is not aligned.
    let mut response = [handle, DPI].as_bytes().to_vec();
    response.extend_from_slice(&doorbell.to_ne_bytes());
    Ok(response)
}

pub(super) fn create_cq(state: &mut State, config: &Config, cq: &mut Cq) -> Result<Vec<u8>, Errno> {
    cq.ids[0] = state.next_cq();
    let response = CqResp { cqid: cq.ids[0], phase: 1, comp_mask: config.toggle.into(), ..CqResp::default() };
    Ok(response.as_bytes().to_vec())
}

pub(super) fn create_qp(qp: &Qp) -> Vec<u8> {
    QpResp { qpid: qp.id, rsvd: 0 }.as_bytes().to_vec()
}

pub(super) fn create_srq(config: &Config, srq: &Srq) -> Vec<u8> {
    SrqResp { srqid: srq.id, rsvd: 0, comp_mask: config.toggle.into() }.as_bytes().to_vec()
}

pub(super) fn resize_cq(cq: &mut Cq, cqe: u32, udata: &[u8]) {
    cq.cqe = cqe;
    cq.resize = Some(Udata(udata.to_vec()));
}

pub(super) fn create_ah(state: &State, ah: &Ah) {
    state.page(Page::Shared).write(AVID, &ah.id.to_ne_bytes());
}

/// Ids of the driver's methods.
const DRIVER: u16 = 0x1000;
const ALLOC_PAGE: u16 = DRIVER;
const NOTIFY: u16 = DRIVER + 1;
const TOGGLE: u16 = DRIVER + 2;

/// One of the driver's methods.
///
/// # Safety
/// The attributes' addresses are memory.
pub(super) unsafe fn method(
    state: &mut State,
    config: &Config,
    object: u16,
    method: u16,
    attributes: &mut Attributes<'_>,
) -> Result<(), Errno> {
    match (object, method) {
        (ALLOC_PAGE, DRIVER) => {
            let (page, dpi) = match attributes.value(DRIVER + 1)? {
                0 if !config.push => return Err(libc::EINVAL),
                0 if state.bnxt_re.push => return Err(libc::EEXIST),
                0 => (Page::Push, PUSH_DPI),
                _ if config.pacing.is_none() => return Err(libc::EOPNOTSUPP),
                1 => (Page::PacingRegisters, 0),
                2 => (Page::PacingParameters, 0),
                _ => return Err(libc::EINVAL),
            };
            let offset = state.add_page(page, PAGE as usize)?;
            if let (Page::PacingParameters, Some(parameters)) = (page, &config.pacing) {
                state.page(page).write(0, parameters.as_bytes());
            }
            state.bnxt_re.push |= page == Page::Push;
            let handle = state.next_handle();
            attributes.set_handle(DRIVER, handle)?;
            // SAFETY: the caller's.
            unsafe {
                attributes.output(DRIVER + 2, dpi.as_bytes())?;
                attributes.output(DRIVER + 3, offset.as_bytes())?;
                attributes.output(DRIVER + 4, PAGE.as_bytes())
            }
        }
        (ALLOC_PAGE | TOGGLE, 0x1001) => Ok(()),
        (NOTIFY, DRIVER) => {
            state.bnxt_re.notified += 1;
            if let Some((left, offset, value)) = &mut state.bnxt_re.drains {
                *left = left.saturating_sub(1);
                if let (0, offset, value) = (*left, *offset, *value) {
                    state.bnxt_re.drains = None;
                    state.page(Page::PacingRegisters).write(offset, &value.to_ne_bytes());
                }
            }
            Ok(())
        }
        (TOGGLE, DRIVER) => {
            let id = attributes.value(DRIVER + 2)? as u32;
            let page = match attributes.value(DRIVER + 1)? {
                0 => Page::CqToggle(id),
                1 => Page::SrqToggle(id),
                _ => return Err(libc::EINVAL),
            };
            let offset = state.add_page(page, PAGE as usize)?;
            let handle = state.next_handle();
            attributes.set_handle(DRIVER, handle)?;
            // SAFETY: the caller's.
            unsafe {
                attributes.output(DRIVER + 3, offset.as_bytes())?;
                attributes.output(DRIVER + 4, 0u32.as_bytes())?;
                attributes.output(DRIVER + 5, PAGE.as_bytes())
            }
        }
        _ => Err(libc::EPROTONOSUPPORT),
    }
}
