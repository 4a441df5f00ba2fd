//! Sizes of queues before anything is created. The rules are those of rdma-core's provider, so that a queue planned
//! here is accepted wherever one of its own is.

use super::caps::DeviceCaps;
use super::psn::Retransmit;
use super::wqe::{HEADER_SLOTS, SLOT_BYTES, STATIC_SGES, STATIC_SLOTS, WqeMode};
use crate::verbs::{PlanError, QpCapabilities, SrqInit, Text};

/// Requests of a send queue that stay free: the device may look that far ahead of its consumer index.
pub const RESERVED_WRS: u32 = 0x80;
/// Slots of a send queue in variable mode are a multiple of this.
pub const VARIABLE_SLOT_ALIGN: u32 = 256;
/// Most slots of a send queue in variable mode.
pub const MAX_SQ_SLOTS: u32 = 65536;
/// Bytes of an entry of a shared receive queue.
pub const SRQ_ENTRY_BYTES: u32 = 128;
/// Tags of a shared receive queue have 20 bits.
pub const MAX_SRQ_ENTRIES: u32 = 1 << 20;
/// SGEs of the largest WQE whose size fits its header.
const MAX_SGES: u32 = 253;
/// Most entries of a ring that a doorbell can count.
const MAX_RING: u64 = 1 << 24;

const fn over(what: Text, asked: u64, max: u64) -> Result<(), PlanError> {
    if asked > max { Err(PlanError::over_device(what, asked, max)) } else { Ok(()) }
}

const fn max(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}

/// SGEs that both the device and the layout allow.
const fn sges(device: u32, layout: u32) -> u32 {
    if device < layout { device } else { layout }
}

/// Inline bytes of a WQE with room for `sges` SGEs.
const fn max_inline(static_mode: bool, sges: u32) -> u32 {
    if static_mode { sges / 2 * (2 * SLOT_BYTES) } else { sges * SLOT_BYTES }
}

macro_rules! check {
    ($e:expr) => {
        match $e {
            Ok(value) => value,
            Err(e) => return Err(e),
        }
    };
}

/// A send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendPlan {
    /// Layout of WQEs.
    pub mode: WqeMode,
    /// Requests of the largest size that fit at once.
    pub max_wr: u32,
    /// SGEs of a request.
    pub max_sge: u32,
    /// Inline bytes of a request.
    pub max_inline: u32,
    /// Bytes of the largest WQE.
    pub wqe_bytes: u32,
    /// WQEs that the depth was computed from, reserved ones included.
    pub wqes: u32,
    /// Slots of the ring.
    pub slots: u32,
    /// Modulus of WQE indices, and records of bookkeeping in use: slots in variable mode, WQEs in static mode.
    pub records: u32,
    /// Slots that stay free.
    pub reserve: u32,
    /// Retransmit table.
    pub retransmit: Retransmit,
    /// Entries of the retransmit table.
    pub npsn: u32,
    /// Byte offset of the retransmit table: right behind the slots.
    pub table_offset: u32,
    /// Modulus of message numbers; 0 without the MSN table.
    pub msn_modulus: u32,
    /// Bytes of ring and retransmit table, whole pages.
    pub bytes: u32,
}

impl SendPlan {
    /// Plans a send queue.
    ///
    /// # Errors
    /// More than the device has.
    pub const fn new(caps: &DeviceCaps, asked: &QpCapabilities) -> Result<Self, PlanError> {
        let limits = &caps.limits;
        let static_mode = matches!(caps.wqe_mode, WqeMode::Static);
        let sges = sges(limits.max_sge, if static_mode { STATIC_SGES } else { MAX_SGES });
        check!(over(text!("max_send_wr"), asked.max_send_wr as u64, limits.max_qp_wr as u64));
        check!(over(text!("max_send_sge"), asked.max_send_sge as u64, sges as u64));
        let max_inline = max_inline(static_mode, sges);
        check!(over(text!("max_inline_data"), asked.max_inline_data as u64, max_inline as u64));

        let inline_align = if static_mode { HEADER_SLOTS } else { 1 };
        let inline = asked.max_inline_data.div_ceil(inline_align * SLOT_BYTES) * inline_align;
        let wqe_slots = if static_mode {
            STATIC_SLOTS as u64
        } else {
            HEADER_SLOTS as u64 + max(asked.max_send_sge as u64, inline as u64)
        };
        let wqes = caps.depth(asked.max_send_wr as u64 + 1 + RESERVED_WRS as u64);
        let mut slots = wqes * wqe_slots;
        if !static_mode {
            slots = slots.next_multiple_of(VARIABLE_SLOT_ALIGN as u64);
            check!(over(text!("send queue slots"), slots, MAX_SQ_SLOTS as u64));
        }
        check!(over(text!("send queue slots"), slots, MAX_RING));
        let records = if static_mode { wqes } else { slots };
        let npsn = if caps.msn_table { records.next_power_of_two() } else { records };
        let msn_modulus = match (caps.msn_table, static_mode) {
            (false, _) => 0,
            (true, true) => wqes.next_power_of_two(),
            (true, false) => slots.next_power_of_two() / 2,
        };
        let table_offset = slots * SLOT_BYTES as u64;
        Ok(Self {
            mode: caps.wqe_mode,
            max_wr: (wqes - 1 - RESERVED_WRS as u64) as u32,
            max_sge: asked.max_send_sge,
            max_inline: asked.max_inline_data,
            wqe_bytes: wqe_slots as u32 * SLOT_BYTES,
            wqes: wqes as u32,
            slots: slots as u32,
            records: records as u32,
            reserve: RESERVED_WRS * wqe_slots as u32,
            retransmit: caps.retransmit(),
            npsn: npsn as u32,
            table_offset: table_offset as u32,
            msn_modulus: msn_modulus as u32,
            bytes: caps.pages(table_offset + npsn * caps.retransmit().entry_bytes() as u64) as u32,
        })
    }

    /// Records of bookkeeping to give the queue: a power of two.
    pub const fn shadow(&self) -> usize {
        self.records.next_power_of_two() as usize
    }

    /// The most requests that [`SendPlan::new`] grants with these SGEs and inline bytes.
    pub const fn max_send_wr(caps: &DeviceCaps, max_send_sge: u32, max_inline_data: u32) -> u32 {
        let (mut low, mut high) = (0, caps.limits.max_qp_wr);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let asked = QpCapabilities {
                max_send_wr: middle,
                max_recv_wr: 0,
                max_send_sge,
                max_recv_sge: 0,
                max_inline_data,
            };
            if Self::new(caps, &asked).is_ok() { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// A receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvPlan {
    /// Requests that fit at once.
    pub max_wr: u32,
    /// SGEs of a request.
    pub max_sge: u32,
    /// WQEs of the ring; one stays free.
    pub wqes: u32,
    /// Slots of a WQE.
    pub wqe_slots: u32,
    /// Slots of the ring.
    pub slots: u32,
    /// Bytes of the ring, whole pages.
    pub bytes: u32,
}

impl RecvPlan {
    /// Plans a receive queue. A request without SGEs takes one of length zero, so there is always room for one.
    ///
    /// # Errors
    /// More than the device has.
    pub const fn new(caps: &DeviceCaps, asked: &QpCapabilities) -> Result<Self, PlanError> {
        let limits = &caps.limits;
        let static_mode = matches!(caps.wqe_mode, WqeMode::Static);
        let sges = sges(limits.max_sge, if static_mode { STATIC_SGES } else { MAX_SGES });
        check!(over(text!("max_recv_wr"), asked.max_recv_wr as u64, limits.max_qp_wr as u64));
        check!(over(text!("max_recv_sge"), asked.max_recv_sge as u64, sges as u64));
        let wqe_slots = if static_mode {
            STATIC_SLOTS as u64
        } else {
            HEADER_SLOTS as u64 + max(asked.max_recv_sge as u64, 1)
        };
        let wqes = caps.depth(asked.max_recv_wr as u64 + 1);
        let slots = wqes * wqe_slots;
        check!(over(text!("receive queue slots"), slots, MAX_RING));
        Ok(Self {
            max_wr: wqes as u32 - 1,
            max_sge: asked.max_recv_sge,
            wqes: wqes as u32,
            wqe_slots: wqe_slots as u32,
            slots: slots as u32,
            bytes: caps.pages(slots * SLOT_BYTES as u64) as u32,
        })
    }
}

impl RecvPlan {
    /// Records of bookkeeping to give the queue: a power of two.
    pub const fn shadow(&self) -> usize {
        self.wqes.next_power_of_two() as usize
    }
}

/// A queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpPlan {
    /// Send queue.
    pub send: SendPlan,
    /// Receive queue; `None` if no receive requests were asked for, or come from a shared queue.
    pub recv: Option<RecvPlan>,
}

impl QpPlan {
    /// Plans a queue pair; with `srq`, receive requests come from a shared queue.
    ///
    /// # Errors
    /// More than the device has.
    pub const fn new(caps: &DeviceCaps, asked: &QpCapabilities, srq: bool) -> Result<Self, PlanError> {
        let send = check!(SendPlan::new(caps, asked));
        // The kernel driver checks these of every queue pair, also of one without a receive queue.
        check!(over(text!("max_recv_wr"), asked.max_recv_wr as u64, caps.limits.max_qp_wr as u64));
        check!(over(text!("max_recv_sge"), asked.max_recv_sge as u64, caps.limits.max_sge as u64));
        let recv =
            if srq || asked.max_recv_wr == 0 { None } else { Some(check!(RecvPlan::new(caps, asked))) };
        Ok(Self { send, recv })
    }

    /// The largest capabilities that can be asked for.
    pub const fn largest(caps: &DeviceCaps) -> QpCapabilities {
        let static_mode = matches!(caps.wqe_mode, WqeMode::Static);
        let sges = sges(caps.limits.max_sge, if static_mode { STATIC_SGES } else { MAX_SGES });
        let max_inline_data = max_inline(static_mode, sges);
        QpCapabilities {
            max_send_wr: SendPlan::max_send_wr(caps, sges, max_inline_data),
            max_recv_wr: caps.limits.max_qp_wr,
            max_send_sge: sges,
            max_recv_sge: sges,
            max_inline_data,
        }
    }

    /// Capabilities granted.
    pub const fn granted(&self) -> QpCapabilities {
        let (max_recv_wr, max_recv_sge) = match &self.recv {
            Some(recv) => (recv.max_wr, recv.max_sge),
            None => (0, 0),
        };
        QpCapabilities {
            max_send_wr: self.send.max_wr,
            max_recv_wr,
            max_send_sge: self.send.max_sge,
            max_recv_sge,
            max_inline_data: self.send.max_inline,
        }
    }
}

/// Parameters of a queue pair created through direct verbs, where the application sizes the rings and the driver takes
/// the numbers as they are (`FIXED_QUE_ATTR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectParameters {
    /// Bytes of send ring and retransmit table.
    pub sq_len: u32,
    /// Slots of the send ring.
    pub sq_slots: u32,
    /// Bytes of the largest send WQE.
    pub sq_wqe_bytes: u32,
    /// Bytes of a retransmit entry.
    pub sq_psn_bytes: u32,
    /// Entries of the retransmit table.
    pub sq_npsn: u32,
    /// Byte offset of the retransmit table.
    pub msn_table_offset: u32,
    /// Modulus of message numbers.
    pub msn_modulus: u32,
    /// Bytes of the receive ring; 0 if there is none.
    pub rq_len: u32,
    /// Slots of the receive ring.
    pub rq_slots: u32,
    /// Bytes of a receive WQE.
    pub rq_wqe_bytes: u32,
}

impl DirectParameters {
    /// The parameters for a plan.
    ///
    /// # Errors
    /// Static mode, or no MSN table: the kernel takes fixed sizes with neither.
    pub const fn new(caps: &DeviceCaps, plan: &QpPlan) -> Result<Self, PlanError> {
        let (send, psn_bytes) = (&plan.send, plan.send.retransmit.entry_bytes());
        let npsn = (send.slots / 2).next_power_of_two();
        let (rq_len, rq_slots, rq_wqe_bytes) = match &plan.recv {
            Some(recv) => (recv.bytes, recv.slots, recv.wqe_slots * SLOT_BYTES),
            None => (0, 0, 0),
        };
        let parameters = Self {
            sq_len: caps.pages((send.table_offset + npsn * psn_bytes) as u64) as u32,
            sq_slots: send.slots,
            sq_wqe_bytes: send.wqe_bytes,
            sq_psn_bytes: psn_bytes,
            sq_npsn: npsn,
            msn_table_offset: send.table_offset,
            msn_modulus: send.msn_modulus,
            rq_len,
            rq_slots,
            rq_wqe_bytes,
        };
        match parameters.check(caps) {
            Ok(()) => Ok(parameters),
            Err(e) => Err(e),
        }
    }

    /// Checks parameters that an application chose against what the kernel takes.
    ///
    /// # Errors
    /// What it would refuse.
    pub const fn check(&self, caps: &DeviceCaps) -> Result<(), PlanError> {
        if matches!(caps.wqe_mode, WqeMode::Static) {
            return Err(PlanError::Unsupported(text!("fixed ring sizes need variable WQE mode")));
        }
        if !caps.msn_table {
            return Err(PlanError::Unsupported(text!("fixed ring sizes need the MSN table")));
        }
        if self.sq_slots == 0 || self.sq_npsn == 0 {
            return Err(PlanError::Unsupported(text!("a send queue needs slots and a retransmit table")));
        }
        check!(over(text!("sq_slots"), self.sq_slots as u64, MAX_SQ_SLOTS as u64));
        check!(over(
            text!("sq_npsn"),
            self.sq_npsn as u64,
            self.sq_slots.div_ceil(2).next_power_of_two() as u64
        ));
        let offset = self.sq_slots as u64 * SLOT_BYTES as u64;
        if self.msn_table_offset as u64 != offset {
            return Err(PlanError::Unsupported(text!("the retransmit table begins right behind the slots")));
        }
        let bytes = offset + self.sq_npsn as u64 * caps.retransmit().entry_bytes() as u64;
        check!(over(text!("bytes of the send queue"), bytes, self.sq_len as u64));
        over(
            text!("bytes of the receive queue"),
            self.rq_slots as u64 * SLOT_BYTES as u64,
            self.rq_len as u64,
        )
    }

    /// The plan of a send queue with these parameters, for an application that sized the ring itself.
    ///
    /// # Errors
    /// What [`DirectParameters::check`] refuses, or capabilities that the ring has no room for.
    pub const fn send_plan(
        &self,
        caps: &DeviceCaps,
        granted: &QpCapabilities,
    ) -> Result<SendPlan, PlanError> {
        check!(self.check(caps));
        let plan = check!(SendPlan::new(caps, granted));
        let wqe_slots = plan.wqe_bytes / SLOT_BYTES;
        if !self.sq_npsn.is_power_of_two() {
            return Err(PlanError::Unsupported(text!("sq_npsn is a power of two")));
        }
        let needed = (granted.max_send_wr as u64 + 1 + RESERVED_WRS as u64) * wqe_slots as u64;
        check!(over(text!("send queue slots"), needed, self.sq_slots as u64));
        Ok(SendPlan {
            max_wr: granted.max_send_wr,
            wqes: self.sq_slots / wqe_slots,
            slots: self.sq_slots,
            records: self.sq_slots,
            npsn: self.sq_npsn,
            table_offset: self.msn_table_offset,
            msn_modulus: self.sq_npsn,
            bytes: self.sq_len,
            ..plan
        })
    }
}

/// A shared receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqPlan {
    /// Requests that fit at once.
    pub max_wr: u32,
    /// SGEs of a request.
    pub max_sge: u32,
    /// Entries of the ring, and tags; one stays free.
    pub entries: u32,
    /// Bytes of the ring, whole pages.
    pub bytes: u32,
}

impl SrqPlan {
    /// Records of bookkeeping to give the queue: a power of two.
    pub const fn shadow(&self) -> usize {
        self.entries.next_power_of_two() as usize
    }

    /// Plans a shared receive queue.
    ///
    /// # Errors
    /// More than the device has.
    pub const fn new(caps: &DeviceCaps, asked: &SrqInit) -> Result<Self, PlanError> {
        let limits = &caps.limits;
        let sges = sges(limits.max_srq_sge, STATIC_SGES);
        check!(over(text!("max_srq_wr"), asked.max_wr as u64, limits.max_srq_wr as u64));
        check!(over(text!("max_srq_sge"), asked.max_sge as u64, sges as u64));
        if asked.max_wr == 0 {
            return Err(PlanError::Unsupported(text!("a shared receive queue needs requests")));
        }
        let entries = caps.depth(asked.max_wr as u64 + 1);
        check!(over(text!("shared receive queue entries"), entries, MAX_SRQ_ENTRIES as u64));
        Ok(Self {
            max_wr: entries as u32 - 1,
            max_sge: asked.max_sge,
            entries: entries as u32,
            bytes: caps.pages(entries * SRQ_ENTRY_BYTES as u64) as u32,
        })
    }
}

/// A completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqPlan {
    /// Completions to ask the kernel driver for.
    pub cqe: u32,
    /// Entries of the ring.
    pub entries: u32,
    /// Bytes of the ring, whole pages.
    pub bytes: u32,
    /// Consumer doorbells may wait until half the ring was consumed: the ring is twice as deep as asked.
    pub deferred: bool,
}

impl CqPlan {
    /// Plans a completion queue for `cqe` completions.
    ///
    /// # Errors
    /// More than the device has, or none.
    pub const fn new(caps: &DeviceCaps, cqe: u32) -> Result<Self, PlanError> {
        Self::sized(caps, cqe, (cqe as u64) * 2 < caps.max_cqe as u64)
    }

    /// Plans the new memory of a completion queue that is resized to `cqe` completions.
    ///
    /// # Errors
    /// More than the device has, none, or the entries that the queue has already.
    pub const fn resized(caps: &DeviceCaps, cqe: u32, now: &Self) -> Result<Self, PlanError> {
        let plan = check!(Self::sized(caps, cqe, (cqe as u64) * 2 <= caps.max_cqe as u64));
        if plan.entries == now.entries {
            return Err(PlanError::Unsupported(text!("the completion queue has that size already")));
        }
        Ok(plan)
    }

    const fn sized(caps: &DeviceCaps, cqe: u32, deferred: bool) -> Result<Self, PlanError> {
        if cqe == 0 {
            return Err(PlanError::Unsupported(text!("a completion queue needs entries")));
        }
        if caps.cqe_bytes != super::cqe::CQE_BYTES {
            return Err(PlanError::Unsupported(text!("CQEs of this size")));
        }
        check!(over(text!("max_cqe"), cqe as u64, caps.max_cqe as u64));
        let cqe = if deferred { cqe * 2 } else { cqe };
        let mut entries = caps.depth(cqe as u64 + 1);
        if entries > caps.max_cqe as u64 + 1 {
            entries = caps.max_cqe as u64 + 1;
        }
        check!(over(text!("completion queue entries"), entries, MAX_RING));
        Ok(Self {
            cqe,
            entries: entries as u32,
            bytes: caps.pages(entries * caps.cqe_bytes as u64) as u32,
            deferred,
        })
    }
}
