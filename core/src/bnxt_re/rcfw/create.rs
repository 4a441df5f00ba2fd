//! Commands that create objects, from their plans.

use zerocopy::little_endian as le;

use super::cq::{CmdqCreateCq, CmdqResizeCq};
use super::mr::{ALLOC_MR, CONSUMER_OWNED_KEY, CmdqAllocateMrw, CmdqDeallocateKey, CmdqRegisterMr, kind};
use super::qp::{CmdqCreateQp, create_flags};
use super::srq::CmdqCreateSrq;
use super::transition::qp_kind;
use crate::bnxt_re::pbl::{PAGE_SHIFT, PblPlan};
use crate::bnxt_re::plan::QpPlan;
use crate::bnxt_re::wqe::{STATIC_SGES, WqeMode};
use crate::verbs::{AccessFlags, CqId, MwType, PdId, PlanError, QpType, SrqId};

/// Pages that were listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// How.
    pub plan: PblPlan,
    /// The address for the device.
    pub root: u64,
}

impl Listed {
    /// Level and page size of a completion queue or shared receive queue.
    fn queue(&self) -> Result<u8, PlanError> {
        self.plan.queue_attribute().ok_or(NO_SUCH_PAGES)
    }

    fn qp(&self) -> Result<u8, PlanError> {
        self.plan.attribute().map(|attribute| attribute.into_bits()).ok_or(NO_SUCH_PAGES)
    }
}

const NO_SUCH_PAGES: PlanError = PlanError::Unsupported(text!("rings do not have pages of this size"));

/// A queue pair to create.
#[derive(Clone, Copy, Debug)]
pub struct NewQp<'a> {
    /// Comes back in CQEs.
    pub handle: u64,
    /// Kind.
    pub qp_type: QpType,
    /// Plan of its queues.
    pub plan: &'a QpPlan,
    /// Every send request completes.
    pub signal_all: bool,
    /// Send ring, with the retransmit table behind it.
    pub sq: Listed,
    /// Receive ring, if there is one.
    pub rq: Option<Listed>,
    /// Addresses of the tables of incoming and outgoing READs and atomics; none of datagrams.
    pub read_tables: Option<(u64, u64)>,
    /// Completion queue of send requests.
    pub send_cq: CqId,
    /// Completion queue of receive requests.
    pub recv_cq: CqId,
    /// Shared receive queue.
    pub srq: Option<SrqId>,
    /// Protection domain.
    pub pd: PdId,
    /// Doorbell page.
    pub dpi: u32,
}

impl CmdqCreateQp {
    /// Creates a queue pair.
    ///
    /// # Errors
    /// Pages of a size that rings do not have.
    pub fn new(new: &NewQp<'_>) -> Result<Self, PlanError> {
        let variable = new.plan.send.mode == WqeMode::Variable;
        let mut flags = create_flags::RESERVED_LKEY_ENABLE | create_flags::FR_PMR_ENABLED;
        for (given, flag) in [
            (new.srq.is_some(), create_flags::SRQ_USED),
            (new.signal_all, create_flags::FORCE_COMPLETION),
            (variable, create_flags::VARIABLE_SIZED_WQE),
        ] {
            flags |= if given { flag } else { 0 };
        }
        let (rq_size, rq_sge) = match &new.plan.recv {
            // In static mode WQEs have the room that they have.
            Some(recv) if variable => (recv.wqes, recv.max_sge.max(1)),
            Some(recv) => (recv.wqes, STATIC_SGES),
            None => (0, 0),
        };
        let (irrq, orrq) = new.read_tables.unwrap_or_default();
        Ok(Self {
            qp_handle: le::U64::new(new.handle),
            qp_flags: le::U32::new(flags),
            r#type: qp_kind(new.qp_type),
            sq_pg_size_sq_lvl: new.sq.qp()?,
            rq_pg_size_rq_lvl: new.rq.map_or(Ok(0), |rq| rq.qp())?,
            dpi: le::U32::new(new.dpi),
            sq_size: le::U32::new(if variable { new.plan.send.slots } else { new.plan.send.wqes }),
            rq_size: le::U32::new(rq_size),
            sq_fwo_sq_sge: le::U16::new(new.plan.send.max_sge as u16 & 0xf),
            rq_fwo_rq_sge: le::U16::new(rq_sge as u16 & 0xf),
            scq_cid: le::U32::new(new.send_cq.get()),
            rcq_cid: le::U32::new(new.recv_cq.get()),
            srq_cid: le::U32::new(new.srq.map_or(0, SrqId::get)),
            pd_id: le::U32::new(new.pd.get()),
            sq_pbl: le::U64::new(new.sq.root),
            rq_pbl: le::U64::new(new.rq.map_or(0, |rq| rq.root)),
            irrq_addr: le::U64::new(irrq),
            orrq_addr: le::U64::new(orrq),
            ..Self::ZERO
        })
    }
}

impl CmdqCreateCq {
    /// Creates a completion queue of `entries`, whose notifications go to the queue `nq`.
    ///
    /// # Errors
    /// Pages of a size that rings do not have.
    pub fn new(handle: u64, entries: u32, ring: Listed, nq: u16, dpi: u32) -> Result<Self, PlanError> {
        Ok(Self {
            cq_handle: le::U64::new(handle),
            pg_size_lvl: le::U32::new(ring.queue()?.into()),
            cq_fco_cnq_id: le::U32::new(u32::from(nq) & 0xfff),
            dpi: le::U32::new(dpi),
            cq_size: le::U32::new(entries),
            pbl: le::U64::new(ring.root),
            ..Self::ZERO
        })
    }
}

impl CmdqResizeCq {
    /// Gives a completion queue a ring of `entries`.
    ///
    /// # Errors
    /// Pages of a size that rings do not have, or too many entries.
    pub fn new(cq: CqId, entries: u32, ring: Listed) -> Result<Self, PlanError> {
        const MAX: u32 = (1 << 24) - 1;
        if entries > MAX {
            return Err(PlanError::over_device(text!("CQEs"), entries.into(), MAX.into()));
        }
        Ok(Self {
            cq_cid: le::U32::new(cq.get()),
            new_cq_size_pg_size_lvl: le::U32::new(u32::from(ring.queue()?) | entries << 5),
            new_pbl: le::U64::new(ring.root),
            ..Self::ZERO
        })
    }
}

impl CmdqCreateSrq {
    /// Creates a shared receive queue of `entries`.
    ///
    /// # Errors
    /// Pages of a size that rings do not have, or too many entries.
    pub fn new(
        handle: u64,
        entries: u32,
        ring: Listed,
        nq: u16,
        dpi: u32,
        pd: PdId,
    ) -> Result<Self, PlanError> {
        let max = u16::MAX.into();
        let size = u16::try_from(entries).map_err(|_| PlanError::OverDevice {
            what: text!("entries of a shared receive queue"),
            asked: entries,
            max,
        })?;
        Ok(Self {
            srq_handle: le::U64::new(handle),
            pg_size_lvl: le::U16::new(ring.queue()?.into()),
            eventq_id: le::U16::new(nq & 0xfff),
            srq_size: le::U16::new(size),
            dpi: le::U32::new(dpi),
            pd_id: le::U32::new(pd.get()),
            pbl: le::U64::new(ring.root),
            ..Self::ZERO
        })
    }
}

/// Which key a region gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKey {
    /// The device allocates one, in this protection domain.
    New(PdId),
    /// One that ALLOCATE_MRW has given.
    Allocated(u32),
}

impl CmdqRegisterMr {
    /// Registers the memory of `length` bytes from address `va` that `pages` list.
    pub fn new(key: RegionKey, access: AccessFlags, va: u64, length: u64, pages: Listed) -> Self {
        let (flags, key) = match key {
            RegionKey::New(pd) => (ALLOC_MR, pd.get()),
            RegionKey::Allocated(key) => (0, key),
        };
        Self {
            flags: le::U16::new(flags),
            log2_pg_size_lvl: pages.plan.region_attribute(),
            access: region_access(access),
            log2_pbl_pg_size: le::U16::new(PAGE_SHIFT.into()),
            key: le::U32::new(key),
            pbl: le::U64::new(pages.root),
            va: le::U64::new(va),
            mr_size: le::U64::new(length),
            ..Self::ZERO
        }
    }
}

/// Access flags of a region. REMOTE_READ and REMOTE_WRITE are the other way round than those of queue pairs.
const fn region_access(access: AccessFlags) -> u8 {
    let map = [
        (AccessFlags::LOCAL_WRITE, 0x1),
        (AccessFlags::REMOTE_READ, 0x2),
        (AccessFlags::REMOTE_WRITE, 0x4),
        (AccessFlags::REMOTE_ATOMIC, 0x8),
        (AccessFlags::MW_BIND, 0x10),
        (AccessFlags::ZERO_BASED, 0x20),
    ];
    let (mut bits, mut i) = (0, 0);
    while i < map.len() {
        bits |= if access.contains(map[i].0) { map[i].1 } else { 0 };
        i += 1;
    }
    bits
}

/// The device's code for a kind of window.
const fn window_kind(mw_type: MwType) -> u8 {
    match mw_type {
        MwType::Type1 => kind::MW_TYPE1,
        MwType::Type2 => kind::MW_TYPE2B,
    }
}

impl CmdqAllocateMrw {
    /// Allocates the key of a region.
    pub fn region(pd: PdId) -> Self {
        Self { mrw_flags: kind::MR, pd_id: le::U32::new(pd.get()), ..Self::ZERO }
    }

    /// Allocates the key of a window. The owner of one of type 2 changes its low byte with each bind.
    pub fn window(pd: PdId, mw_type: MwType) -> Self {
        let access = if mw_type == MwType::Type2 { CONSUMER_OWNED_KEY } else { 0 };
        Self { mrw_flags: window_kind(mw_type), access, pd_id: le::U32::new(pd.get()), ..Self::ZERO }
    }
}

impl CmdqDeallocateKey {
    /// Frees the key of a region.
    pub fn region(key: u32) -> Self {
        Self { mrw_flags: kind::MR, key: le::U32::new(key), ..Self::ZERO }
    }

    /// Frees the key of a window.
    pub fn window(key: u32, mw_type: MwType) -> Self {
        Self { mrw_flags: window_kind(mw_type), key: le::U32::new(key), ..Self::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;
    use crate::bnxt_re::pbl::PblPlan;

    fn listed(bytes: u64) -> Listed {
        Listed { plan: PblPlan::new(bytes, 12).unwrap(), root: 0x1122_3344_5566_7000 }
    }

    #[test]
    fn a_region_swaps_read_and_write() {
        let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
        let key = RegionKey::New(PdId::truncated(7));
        let mr = CmdqRegisterMr::new(key, access, 0x1000, 0x2000, listed(0x2000));
        let bytes = mr.as_bytes();
        assert_eq!(bytes[2..4], [1, 0]);
        assert_eq!(bytes[16..24], [1 | 12 << 2, 5, 12, 0, 7, 0, 0, 0]);
        assert_eq!(bytes[24..48].chunks(8).map(|b| b[1]).collect::<std::vec::Vec<_>>(), [0x70, 0x10, 0x20]);
        let read = CmdqRegisterMr::new(RegionKey::Allocated(9), AccessFlags::REMOTE_READ, 0, 1, listed(1));
        assert_eq!((read.flags.get(), read.access, read.key.get()), (0, 2, 9));
    }

    #[test]
    fn queues_tell_level_and_size() {
        let cq = CmdqCreateCq::new(5, 256, listed(8192), 0x1003, 2).unwrap();
        assert_eq!(
            cq.as_bytes()[16..40],
            [5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0]
        );
        let resize = CmdqResizeCq::new(CqId::truncated(3), 512, listed(16384)).unwrap();
        assert_eq!(resize.as_bytes()[16..24], [3, 0, 0, 0, 1, 0x40, 0, 0]);
        assert!(CmdqResizeCq::new(CqId::truncated(3), 1 << 24, listed(1)).is_err());
        let srq = CmdqCreateSrq::new(5, 64, listed(8192), 3, 2, PdId::truncated(1)).unwrap();
        assert_eq!(srq.as_bytes()[24..40], [1, 0, 3, 0, 64, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0]);
        assert!(CmdqCreateSrq::new(5, 65536, listed(8192), 3, 2, PdId::truncated(1)).is_err());
    }

    #[test]
    fn rings_do_not_have_pages_of_every_size() {
        let odd = Listed { plan: PblPlan::new(1, 14).unwrap(), root: 0 };
        assert!(CmdqCreateCq::new(0, 1, odd, 0, 0).is_err());
    }

    #[test]
    fn keys_of_windows_tell_their_kind() {
        let window = CmdqAllocateMrw::window(PdId::truncated(3), MwType::Type2);
        assert_eq!(window.as_bytes()[24..32], [4, 0x20, 0, 0, 3, 0, 0, 0]);
        assert_eq!(
            CmdqDeallocateKey::window(0x100, MwType::Type1).as_bytes()[16..24],
            [2, 0, 0, 0, 0, 1, 0, 0]
        );
        assert_eq!(CmdqDeallocateKey::region(0x100).mrw_flags, 0);
        assert_eq!(CmdqAllocateMrw::region(PdId::truncated(3)).access, 0);
    }
}
