//! Sizes of queues before they are created, as `libionic` computes them: the device sees the same rings.

use super::caps::{Caps, ExpressQueues};
use super::cmb::CmbPreference;
use super::cqe::CQE_BYTES;
use super::wqe::{EXPRESS_BYTES, PAYLOAD_OFFSET, SPEC_FIRST_SGE, WQE_MIN};
use crate::verbs::{PlanError, QpCapabilities, Text};

/// Most requests of a queue. One entry of a ring stays free, so 32768 would take a ring of 65536, beyond the device.
pub const MAX_WR: u32 = 0x7fff;

/// CQEs of a ring beyond those asked for: they take what the device reports without a request, flushes say.
pub const CQ_GRACE: u32 = 100;

/// Most CQEs that may be asked for.
pub const MAX_CQE: u32 = 0xffff - CQ_GRACE;

/// Most SGEs that a WQE can count.
const MAX_SGE: u32 = u8::MAX as u32;

const SGE_BYTES: u32 = 16;
const PAYLOAD: u32 = PAYLOAD_OFFSET as u32;
const EXPRESS: u32 = EXPRESS_BYTES as u32;

/// A ring: 2^`depth_log2` entries of 2^`stride_log2` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlan {
    /// Entries, base-two logarithm.
    pub depth_log2: u8,
    /// Bytes of an entry, base-two logarithm.
    pub stride_log2: u8,
}

impl RingPlan {
    /// A ring for `requests` entries in use at once, of at least `stride` bytes each, and at least one page long.
    /// The caller has bounded both.
    const fn new(page_shift: u8, requests: u32, stride: u32) -> Self {
        let requests = if requests == 0 { 1 } else { requests };
        let depth_log2 = (u32::BITS - requests.leading_zeros()) as u8;
        let stride_log2 = (u32::BITS - (stride - 1).leading_zeros()) as u8;
        let short = depth_log2 + stride_log2 < page_shift;
        Self { depth_log2: if short { page_shift - stride_log2 } else { depth_log2 }, stride_log2 }
    }

    /// Entries.
    pub const fn depth(self) -> u32 {
        1 << self.depth_log2
    }

    /// Largest index; also the number of entries that can be in use at once.
    pub const fn mask(self) -> u16 {
        (self.depth() - 1) as u16
    }

    /// Bytes of an entry.
    pub const fn stride(self) -> u32 {
        1 << self.stride_log2
    }

    /// Bytes of the ring.
    pub const fn bytes(self) -> usize {
        1 << (self.depth_log2 as usize + self.stride_log2 as usize)
    }
}

/// A send or receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkQueuePlan {
    /// Its ring.
    pub ring: RingPlan,
    /// Spec limit: SGEs of a WQE that come with a list of their lengths; 0 if none do.
    pub spec: u8,
    /// Controller memory to ask for. Express doorbells are dropped if the stride has none.
    pub cmb: CmbPreference,
}

impl WorkQueuePlan {
    /// Most SGEs of a WQE, with or without express doorbells granted.
    pub const fn max_sge(&self, express: bool) -> u32 {
        max_sge(self.ring.stride_log2, self.spec as u32, express)
    }

    /// Most inline bytes of a WQE, with or without express doorbells granted.
    pub const fn max_inline(&self, express: bool) -> u32 {
        max_data(self.ring.stride_log2, express)
    }

    /// Records of bookkeeping that the queue needs.
    pub const fn records(&self) -> usize {
        self.ring.depth() as usize
    }
}

/// A queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpPlan {
    /// Send queue.
    pub sq: WorkQueuePlan,
    /// Receive queue.
    pub rq: WorkQueuePlan,
}

/// Where the queues of a queue pair shall be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Send queue.
    pub sq: CmbPreference,
    /// Receive queue.
    pub rq: CmbPreference,
}

impl QpPlan {
    /// Plans a queue pair.
    ///
    /// # Errors
    /// More than the device has, or express doorbells required that it does not have.
    pub const fn new(caps: &Caps, wanted: &QpCapabilities, place: Placement) -> Result<Self, PlanError> {
        let (sq_cmb, rq_cmb) = (
            place.sq.supported(caps.express_queues.contains(ExpressQueues::SEND)),
            place.rq.supported(caps.express_queues.contains(ExpressQueues::RECV)),
        );
        let (sq_cmb, rq_cmb) = match (sq_cmb, rq_cmb) {
            (Ok(sq), Ok(rq)) => (sq, rq),
            (Err(e), _) | (_, Err(e)) => return Err(e),
        };
        let sq = Limits {
            requests: (text!("max_send_wr"), wanted.max_send_wr),
            sges: (text!("max_send_sge"), wanted.max_send_sge),
            inline: wanted.max_inline_data,
            power_of_two: true,
        };
        let rq = Limits {
            requests: (text!("max_recv_wr"), wanted.max_recv_wr),
            sges: (text!("max_recv_sge"), wanted.max_recv_sge),
            inline: 0,
            power_of_two: false,
        };
        match (sq.plan(caps, sq_cmb), rq.plan(caps, rq_cmb)) {
            (Ok(sq), Ok(rq)) => Ok(Self { sq, rq }),
            (Err(e), _) | (_, Err(e)) => Err(e),
        }
    }

    /// What the queue pair can do, once it is known whether each queue has express doorbells.
    pub const fn granted(&self, sq_express: bool, rq_express: bool) -> QpCapabilities {
        QpCapabilities {
            max_send_wr: self.sq.ring.mask() as u32,
            max_recv_wr: self.rq.ring.mask() as u32,
            max_send_sge: self.sq.max_sge(sq_express),
            max_recv_sge: self.rq.max_sge(rq_express),
            max_inline_data: self.sq.max_inline(sq_express),
        }
    }

    /// The largest capabilities that can be asked for.
    pub const fn largest(caps: &Caps) -> QpCapabilities {
        let sges = max_sge(caps.max_stride, 0, false);
        QpCapabilities {
            max_send_wr: MAX_WR,
            max_recv_wr: MAX_WR,
            max_send_sge: sges,
            max_recv_sge: sges,
            max_inline_data: max_data(caps.max_stride, false),
        }
    }
}

/// A ring of a completion queue; there is one such ring on each pipeline of its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqPlan {
    /// The ring.
    pub ring: RingPlan,
}

impl CqPlan {
    /// Plans a completion queue for `cqe` completions.
    ///
    /// # Errors
    /// None, or more than the device has.
    pub const fn new(caps: &Caps, cqe: u32) -> Result<Self, PlanError> {
        if cqe == 0 {
            return Err(PlanError::Unsupported(text!("a completion queue has at least one entry")));
        }
        Self::collapsed(caps, cqe)
    }

    /// Plans a completion queue whose one CQE is written over and over; it may ask for none.
    ///
    /// # Errors
    /// More than the device has.
    pub const fn collapsed(caps: &Caps, cqe: u32) -> Result<Self, PlanError> {
        if cqe > MAX_CQE {
            return Err(PlanError::over_device(text!("cqe"), cqe as u64, MAX_CQE as u64));
        }
        Ok(Self { ring: RingPlan::new(caps.page_shift, cqe + CQ_GRACE, CQE_BYTES as u32) })
    }
}

struct Limits {
    requests: (Text, u32),
    sges: (Text, u32),
    inline: u32,
    /// The least stride of send queues is rounded up before it is looked up among the express ones; that of receive
    /// queues is not, so that only receive WQEs of 64 bytes can have express doorbells.
    power_of_two: bool,
}

impl Limits {
    const fn plan(&self, caps: &Caps, cmb: CmbPreference) -> Result<WorkQueuePlan, PlanError> {
        let checks = [
            (self.requests.0, self.requests.1, MAX_WR),
            (self.sges.0, self.sges.1, max_sge(caps.max_stride, 0, false)),
            (text!("max_inline_data"), self.inline, max_data(caps.max_stride, false)),
        ];
        let mut i = 0;
        while i < checks.len() {
            let (what, asked, max) = checks[i];
            if asked > max {
                return Err(PlanError::over_device(what, asked as u64, max as u64));
            }
            i += 1;
        }
        let spec = spec_limit(self.sges.1, caps.max_spec as u32);
        let mut cmb = cmb;
        let mut least = 0;
        if cmb.express {
            least = self.least_stride(spec, true);
            if !caps.express_strides.supports(least) {
                if cmb.require {
                    return Err(PlanError::Unsupported(text!("no express doorbells for WQEs of this size")));
                }
                cmb.express = false;
            }
        }
        if !cmb.express {
            least = self.least_stride(spec, false);
        }
        let longest = 1u32 << caps.max_stride;
        if least > longest {
            return Err(PlanError::over_device(text!("WQE bytes"), least as u64, longest as u64));
        }
        Ok(WorkQueuePlan {
            ring: RingPlan::new(caps.page_shift, self.requests.1, least),
            spec: spec as u8,
            cmb,
        })
    }

    const fn least_stride(&self, spec: u32, express: bool) -> u32 {
        let list = if spec > SPEC_FIRST_SGE { SPEC_FIRST_SGE } else { 0 };
        let sges = self.sges.1 + list + express as u32;
        let data = self.inline + if express { EXPRESS } else { 0 };
        let mut bytes = WQE_MIN as u32;
        if PAYLOAD + sges * SGE_BYTES > bytes {
            bytes = PAYLOAD + sges * SGE_BYTES;
        }
        if PAYLOAD + data > bytes {
            bytes = PAYLOAD + data;
        }
        if self.power_of_two { bytes.next_power_of_two() } else { bytes }
    }
}

/// The spec limit of a queue for `sges` SGEs on a device with the limit `max_spec`.
const fn spec_limit(sges: u32, max_spec: u32) -> u32 {
    if max_spec == 0 || sges > max_spec {
        0
    } else if sges <= SPEC_FIRST_SGE {
        SPEC_FIRST_SGE
    } else {
        max_spec
    }
}

const fn max_sge(stride_log2: u8, spec: u32, express: bool) -> u32 {
    let list = if spec > SPEC_FIRST_SGE { SPEC_FIRST_SGE } else { 0 };
    let fit = ((1u32 << stride_log2) - PAYLOAD) / SGE_BYTES - list - express as u32;
    let fit = if spec != 0 && fit > spec { spec } else { fit };
    if fit > MAX_SGE { MAX_SGE } else { fit }
}

const fn max_data(stride_log2: u8, express: bool) -> u32 {
    (1u32 << stride_log2) - PAYLOAD - if express { EXPRESS } else { 0 }
}
