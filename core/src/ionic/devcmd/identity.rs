//! What the RDMA part of a device says of itself, checked before anything is computed from it.

use super::lif::{LifCapabilities, LifIdentity, LogicalQtype};
use crate::ionic::caps::{Caps, ExpressQueues, ExpressStrides};
use crate::ionic::doorbell::QueueType;
use crate::ionic::wqe::{RdmaVersion, SqOp};
use crate::verbs::{QpId, Text, shown};

/// Page sizes of devices that do not tell any: 4 KiB, 2 MiB, 1 GiB.
const PAGE_SIZES: u64 = 1 << 12 | 1 << 21 | 1 << 30;
/// Versions that tell their page sizes: from here on.
const TELLS_PAGE_SIZES: (u8, u8) = (2, 1);

/// An identity that this driver cannot work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The LIF has no RDMA part.
    #[error("the interface has no RDMA: capabilities {0:#x}")]
    NoRdma(u64),
    /// Another interface version.
    #[error("rdma version {0}, supported are 1 and 2")]
    Version(u8),
    /// A number that cannot be.
    #[error("{what} {given}, must be {min} to {max}")]
    Range {
        /// The number.
        what: Text,
        /// Its value, as [`shown`].
        given: u32,
        /// Smallest, as [`shown`].
        min: u32,
        /// Largest, as [`shown`].
        max: u32,
    },
    /// Two kinds of queue with the same doorbell register.
    #[error("two kinds of queue have doorbell register {0}")]
    SharedRegister(u8),
}

/// A kind of queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRange {
    /// Its doorbell register.
    pub qtype: QueueType,
    /// Number of the first queue.
    pub base: u32,
    /// Number of queues.
    pub count: u32,
}

/// What the RDMA part of a LIF can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaIdentity {
    /// Interface version.
    pub version: RdmaVersion,
    /// Opcodes of the admin queue: those below.
    pub admin_opcodes: u8,
    /// Page table entries.
    pub page_table_entries: u32,
    /// Memory regions and windows.
    pub regions: u32,
    /// Address handles.
    pub address_handles: u32,
    /// Longest WQE, base-two logarithm of its bytes.
    pub max_stride: u8,
    /// Bit of queue numbers that names the pipeline.
    pub udma_shift: u8,
    /// Page sizes, a bit for each.
    pub page_sizes: u64,
    /// Admin queues.
    pub admin: QueueRange,
    /// Send queues, hence queue pairs.
    pub send: QueueRange,
    /// Receive queues.
    pub recv: QueueRange,
    /// Completion queues.
    pub completion: QueueRange,
    /// Event queues.
    pub event: QueueRange,
}

impl IdentityError {
    /// A number that must be within `min` and `max`.
    ///
    /// # Errors
    /// It is not.
    pub const fn check(what: Text, given: u64, min: u64, max: u64) -> Result<(), Self> {
        if given < min || given > max {
            return Err(Self::Range { what, given: shown(given), min: shown(min), max: shown(max) });
        }
        Ok(())
    }
}

const fn range(what: Text, given: u64, min: u64, max: u64) -> Result<(), IdentityError> {
    IdentityError::check(what, given, min, max)
}

fn queues(what: Text, qtype: &LogicalQtype, min: u64) -> Result<QueueRange, IdentityError> {
    let (base, count) = (qtype.qid_base.get(), qtype.qid_count.get());
    range(what, count.into(), min, QpId::MAX.get().into())?;
    range(what, u64::from(base) + u64::from(count), min, u64::from(QpId::MAX.get()) + 1)?;
    let register = QueueType::new(qtype.qtype);
    let register =
        register.ok_or(IdentityError::Range { what, given: qtype.qtype.into(), min: 0, max: 7 })?;
    Ok(QueueRange { qtype: register, base, count })
}

impl RdmaIdentity {
    /// Checks an identity.
    ///
    /// # Errors
    /// What this driver cannot work with.
    pub fn new(lif: &LifIdentity) -> Result<Self, IdentityError> {
        if lif.capabilities.get() & LifCapabilities::RDMA.bits() == 0 {
            return Err(IdentityError::NoRdma(lif.capabilities.get()));
        }
        let version = match lif.rdma_version {
            1 => RdmaVersion::V1,
            2 => RdmaVersion::V2,
            other => return Err(IdentityError::Version(other)),
        };
        if version == RdmaVersion::V1 {
            range(text!("qp_opcodes"), lif.qp_opcodes.into(), SqOp::BindMw as u64 + 1, u8::MAX.into())?;
        }
        // DESTROY_QP is the last one that nothing works without.
        range(text!("admin_opcodes"), lif.admin_opcodes.into(), 12, u8::MAX.into())?;
        range(text!("max_stride"), lif.max_stride.into(), 6, 16)?;
        range(text!("udma_shift"), lif.udma_shift.into(), 0, 22)?;
        range(text!("npts_per_lif"), lif.npts_per_lif.get().into(), 1, u32::MAX.into())?;
        range(text!("nmrs_per_lif"), lif.nmrs_per_lif.get().into(), 2, 1 << 24)?;
        range(text!("nahs_per_lif"), lif.nahs_per_lif.get().into(), 2, u32::MAX.into())?;
        let tells = (lif.rdma_version, lif.minor_version) >= TELLS_PAGE_SIZES;
        let page_sizes = if tells { lif.page_size_cap.get() } else { PAGE_SIZES };
        range(text!("page_size_cap"), page_sizes & (1 << 12), 1 << 12, 1 << 12)?;
        let identity = Self {
            version,
            admin_opcodes: lif.admin_opcodes,
            page_table_entries: lif.npts_per_lif.get(),
            regions: lif.nmrs_per_lif.get(),
            address_handles: lif.nahs_per_lif.get(),
            max_stride: lif.max_stride,
            udma_shift: lif.udma_shift,
            page_sizes,
            admin: queues(text!("aq_qtype"), &lif.aq_qtype, 1)?,
            send: queues(text!("sq_qtype"), &lif.sq_qtype, 4)?,
            recv: queues(text!("rq_qtype"), &lif.rq_qtype, 4)?,
            completion: queues(text!("cq_qtype"), &lif.cq_qtype, 2)?,
            event: queues(text!("eq_qtype"), &lif.eq_qtype, 1)?,
        };
        let registers = [identity.admin, identity.send, identity.recv, identity.completion].map(|q| q.qtype);
        for (i, register) in registers.iter().enumerate() {
            if registers.iter().skip(i + 1).any(|other| other == register) {
                return Err(IdentityError::SharedRegister(register.get()));
            }
        }
        Ok(identity)
    }

    /// What the datapath must know, for queues in memory of the host on `pipelines` pipelines.
    pub const fn caps(&self, pipelines: u8) -> Caps {
        Caps {
            version: self.version,
            page_shift: 12,
            sq_qtype: self.send.qtype,
            rq_qtype: self.recv.qtype,
            cq_qtype: self.completion.qtype,
            max_stride: self.max_stride,
            max_spec: 0,
            udma_count: if pipelines < 2 { 1 } else { 2 },
            express_strides: ExpressStrides::empty(),
            express_queues: ExpressQueues::empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromBytes, IntoBytes};

    fn lif() -> LifIdentity {
        let qtype = |qtype, count: u32| LogicalQtype { qtype, qid_count: count.into(), ..LogicalQtype::ZERO };
        LifIdentity {
            capabilities: 3.into(),
            rdma_version: 1,
            qp_opcodes: 11,
            admin_opcodes: 19,
            npts_per_lif: 1024.into(),
            nmrs_per_lif: 1024.into(),
            nahs_per_lif: 1024.into(),
            max_stride: 9,
            udma_shift: 12,
            aq_qtype: qtype(2, 4),
            sq_qtype: qtype(3, 8192),
            rq_qtype: qtype(4, 8192),
            cq_qtype: qtype(5, 8192),
            eq_qtype: qtype(6, 16),
            ..LifIdentity::ZERO
        }
    }

    #[test]
    fn page_sizes_count_from_version_2_1_on() {
        let told = LifIdentity { page_size_cap: (1 << 12 | 1 << 16).into(), ..lif() };
        assert_eq!(RdmaIdentity::new(&told).unwrap().page_sizes, PAGE_SIZES);
        let v2 = LifIdentity { rdma_version: 2, minor_version: 1, ..told };
        assert_eq!(RdmaIdentity::new(&v2).unwrap().page_sizes, 1 << 12 | 1 << 16);
        let none = LifIdentity { page_size_cap: 0.into(), ..v2 };
        assert!(
            matches!(RdmaIdentity::new(&none), Err(IdentityError::Range { what, .. }) if what == "page_size_cap")
        );
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let what = |lif: LifIdentity| match RdmaIdentity::new(&lif) {
            Err(IdentityError::Range { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        let zero = LogicalQtype::ZERO;
        assert_eq!(what(LifIdentity { qp_opcodes: 10, ..lif() }), "qp_opcodes");
        assert_eq!(what(LifIdentity { admin_opcodes: 11, ..lif() }), "admin_opcodes");
        assert_eq!(what(LifIdentity { max_stride: 5, ..lif() }), "max_stride");
        assert_eq!(what(LifIdentity { max_stride: 64, ..lif() }), "max_stride");
        assert_eq!(what(LifIdentity { udma_shift: 255, ..lif() }), "udma_shift");
        assert_eq!(what(LifIdentity { nmrs_per_lif: u32::MAX.into(), ..lif() }), "nmrs_per_lif");
        assert_eq!(what(LifIdentity { aq_qtype: zero, ..lif() }), "aq_qtype");
        let wide = LogicalQtype { qtype: 8, qid_count: 8.into(), ..zero };
        assert_eq!(what(LifIdentity { cq_qtype: wide, ..lif() }), "cq_qtype");
        let far = LogicalQtype { qid_count: 8.into(), qid_base: u32::MAX.into(), ..zero };
        assert_eq!(what(LifIdentity { sq_qtype: far, ..lif() }), "sq_qtype");
    }

    #[test]
    fn another_device_is_refused() {
        let error = |lif: LifIdentity| RdmaIdentity::new(&lif).unwrap_err();
        assert_eq!(error(LifIdentity { capabilities: 1.into(), ..lif() }), IdentityError::NoRdma(1));
        assert_eq!(error(LifIdentity { rdma_version: 3, ..lif() }), IdentityError::Version(3));
        let shared = LogicalQtype { qtype: 3, qid_count: 8.into(), ..LogicalQtype::ZERO };
        assert_eq!(error(LifIdentity { rq_qtype: shared, ..lif() }), IdentityError::SharedRegister(3));
        assert!(matches!(
            error(LifIdentity::read_from_bytes(&[0xff; 1912]).unwrap()),
            IdentityError::Version(255)
        ));
    }

    #[test]
    fn any_bytes_are_an_identity_or_an_error() {
        let mut bytes = [0u8; 1912];
        for seed in 0..2000u32 {
            let mut x = seed.wrapping_mul(0x9e37_79b9) | 1;
            bytes.copy_from_slice(lif().as_bytes());
            for _ in 0..4 {
                x ^= x << 13;
                x ^= x >> 17;
                x ^= x << 5;
                bytes[392 + (x >> 8) as usize % 256] = x as u8;
            }
            if let Ok(identity) = RdmaIdentity::new(&LifIdentity::read_from_bytes(&bytes).unwrap()) {
                assert!(identity.send.count >= 4 && identity.max_stride <= 16);
                assert_eq!(identity.caps(2).udma_count, 2);
            }
        }
    }
}
