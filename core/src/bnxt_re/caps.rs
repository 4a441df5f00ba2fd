//! What a device says about itself: in the reply to opening a context, and to QUERY_FUNC.

use super::plan::QpPlan;
use super::psn::Retransmit;
use super::rcfw::function::{CreqQueryFuncRespSb, caps_ext, caps_ext2};
use super::wqe::WqeMode;
use crate::verbs::{DeviceAttributes, PlanError};

/// Generation of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Before BCM575xx: 8-byte retransmit entries, and a datagram queue pair wants RTS again after
    /// [`UD_REFRESH`] posts.
    Legacy,
    /// BCM575xx.
    P5,
    /// BCM5760x.
    P7,
}

/// Posts after which a datagram queue pair of [`Generation::Legacy`] is modified from RTS to RTS. Source: rdma-core.
pub const UD_REFRESH: u32 = 0x40_0000;

impl Generation {
    /// The generation of a chip number.
    pub const fn from_chip(number: u16) -> Self {
        match number {
            0x1750..=0x1752 => Self::P5,
            0xd818 | 0x1760 => Self::P7,
            _ => Self::Legacy,
        }
    }

    /// Name, as [`crate::verbs::DeviceAttributes::family`] spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P7 => "bnxt_re",
            Self::Legacy | Self::P5 => "bnxt_re-p5",
        }
    }
}

/// Bits of [`ContextReply::comp_mask`]. Unknown bits are ignored.
pub mod context_bits {
    /// The chip id is valid.
    pub const HAVE_CCTX: u64 = 0x01;
    /// The WQE mode is valid.
    pub const HAVE_MODE: u64 = 0x02;
    /// A write-combining push page can be had.
    pub const WC_DPI_ENABLED: u64 = 0x04;
    /// Doorbells shall be paced.
    pub const DBR_PACING_ENABLED: u64 = 0x08;
    /// Ring depths need not be powers of two.
    pub const POW2_DISABLED: u64 = 0x10;
    /// The retransmit table is the MSN table.
    pub const MSN_TABLE_ENABLED: u64 = 0x40;
    /// Queue pairs can be rate-limited.
    pub const QP_RATE_LIMIT_ENABLED: u64 = 0x80;
}

/// The kernel driver's reply to opening a context; what a short reply lacks is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextReply {
    /// Features, see [`context_bits`].
    pub comp_mask: u64,
    /// Chip number (bits 0 to 15), revision (16 to 23), metal (24 to 31).
    pub chip_id0: u32,
    /// 0 static, 1 variable.
    pub mode: u32,
    /// Page size of the host.
    pub pg_size: u32,
    /// Bytes of a CQE.
    pub cqe_sz: u32,
    /// Most entries of a completion queue.
    pub max_cqd: u32,
}

/// Limits of queues, from the device attributes or from QUERY_FUNC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests of a send or receive queue.
    pub max_qp_wr: u32,
    /// SGEs of a request.
    pub max_sge: u32,
    /// Requests of a shared receive queue.
    pub max_srq_wr: u32,
    /// SGEs of a request of a shared receive queue.
    pub max_srq_sge: u32,
    /// Atomics are there.
    pub atomics: bool,
}

/// What plans and queues need to know of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCaps {
    /// Generation of the chip.
    pub generation: Generation,
    /// Layout of WQEs.
    pub wqe_mode: WqeMode,
    /// The retransmit table is the MSN table.
    pub msn_table: bool,
    /// Ring depths need not be powers of two.
    pub pow2_disabled: bool,
    /// A write-combining push page can be had.
    pub push: bool,
    /// Doorbells shall be paced.
    pub pacing: bool,
    /// Queue pairs can be rate-limited.
    pub rate_limit: bool,
    /// Page size that ring lengths are rounded to, a power of two.
    pub page_size: u32,
    /// Bytes of a CQE.
    pub cqe_bytes: u32,
    /// Most entries of a completion queue.
    pub max_cqe: u32,
    /// Limits of queues.
    pub limits: Limits,
}

impl DeviceCaps {
    /// Reads what the kernel driver says. The MSN table is decided by its own bit, never by the generation; the mode
    /// counts only if the reply says that it is valid.
    pub const fn from_context(reply: &ContextReply, limits: Limits) -> Self {
        use context_bits::*;
        Self {
            generation: if reply.comp_mask & HAVE_CCTX != 0 {
                Generation::from_chip(reply.chip_id0 as u16)
            } else {
                Generation::Legacy
            },
            wqe_mode: if reply.comp_mask & HAVE_MODE != 0 && reply.mode & 1 != 0 {
                WqeMode::Variable
            } else {
                WqeMode::Static
            },
            msn_table: reply.comp_mask & MSN_TABLE_ENABLED != 0,
            pow2_disabled: reply.comp_mask & POW2_DISABLED != 0,
            push: reply.comp_mask & WC_DPI_ENABLED != 0,
            pacing: reply.comp_mask & DBR_PACING_ENABLED != 0,
            rate_limit: reply.comp_mask & QP_RATE_LIMIT_ENABLED != 0,
            page_size: reply.pg_size,
            cqe_bytes: reply.cqe_sz,
            max_cqe: reply.max_cqd,
            limits,
        }
    }

    /// Reads what the device itself says, to a driver that has the hardware to itself. `mode` is the layout of WQEs that the
    /// driver would like.
    ///
    /// # Errors
    /// Capabilities that cannot be, or that this driver cannot do with.
    pub const fn from_query(
        generation: Generation,
        told: &CreqQueryFuncRespSb,
        mode: WqeMode,
    ) -> Result<Self, PlanError> {
        let retransmission = told.dev_cap_ext_flags_2.get() & caps_ext2::RETRANSMISSION;
        if retransmission > caps_ext2::HOST_MSN_TABLE {
            return Err(PlanError::Unsupported(text!("retransmit tables that are not the host's")));
        }
        let variable_only = told.dev_cap_ext_flags & caps_ext::FIXED_SIZE_WQE_DISABLED != 0;
        let wqe_mode = if variable_only { WqeMode::Variable } else { mode };
        if matches!((generation, wqe_mode), (Generation::P5, WqeMode::Variable)) {
            return Err(PlanError::Unsupported(text!("WQEs of variable size on P5")));
        }
        let max_sge = match wqe_mode {
            WqeMode::Static => super::wqe::STATIC_SGES,
            WqeMode::Variable => told.max_sge_var_wqe as u32,
        };
        let max_cqe = told.max_cqe.get();
        if told.max_qp_wr.get() == 0 || max_sge == 0 || max_cqe == 0 || told.max_gid.get() == 0 {
            return Err(PlanError::Unsupported(text!("a device without requests, SGEs, CQEs or GIDs")));
        }
        Ok(Self {
            generation,
            wqe_mode,
            msn_table: retransmission == caps_ext2::HOST_MSN_TABLE,
            pow2_disabled: false,
            push: false,
            pacing: false,
            rate_limit: false,
            page_size: super::pbl::PAGE as u32,
            cqe_bytes: super::cqe::CQE_BYTES,
            max_cqe,
            limits: Limits {
                max_qp_wr: told.max_qp_wr.get() as u32,
                max_sge,
                max_srq_wr: told.max_srq_wr.get(),
                max_srq_sge: told.max_srq_sge as u32,
                atomics: told.dev_cap_ext_flags & caps_ext::ATOMIC_OPS_NOT_SUPPORTED == 0,
            },
        })
    }

    /// The same in the terms of the traits. The device has `max_rd_atomic` READs and atomics outstanding.
    pub const fn attributes(&self, max_rd_atomic: u8) -> DeviceAttributes {
        DeviceAttributes {
            family: self.generation.name(),
            max_qp: QpPlan::largest(self),
            max_cqe: self.max_cqe,
            max_srq_wr: self.limits.max_srq_wr,
            max_rd_atomic,
            atomics: self.limits.atomics,
            memory_windows: true,
        }
    }

    /// The retransmit table that the device reads.
    pub const fn retransmit(&self) -> Retransmit {
        match self.generation {
            _ if self.msn_table => Retransmit::Msn,
            Generation::Legacy => Retransmit::Psn,
            Generation::P5 | Generation::P7 => Retransmit::PsnExt,
        }
    }

    /// Depth of a ring that shall hold `entries`.
    pub(super) const fn depth(&self, entries: u64) -> u64 {
        if self.pow2_disabled { entries } else { entries.next_power_of_two() }
    }

    /// `bytes` rounded up to whole pages.
    pub(super) const fn pages(&self, bytes: u64) -> u64 {
        let page = if self.page_size.is_power_of_two() { self.page_size as u64 } else { 4096 };
        (bytes + page - 1) & !(page - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_msn_table_is_a_capability_of_its_own() {
        let mut reply = ContextReply {
            comp_mask: context_bits::HAVE_CCTX | context_bits::HAVE_MODE | 1 << 63 | 0x20,
            chip_id0: 0x0102_1760,
            mode: 1,
            pg_size: 4096,
            cqe_sz: 32,
            max_cqd: 0x1_0000,
        };
        let caps = DeviceCaps::from_context(&reply, Limits::default());
        assert_eq!((caps.generation, caps.wqe_mode), (Generation::P7, WqeMode::Variable));
        assert_eq!(caps.retransmit(), Retransmit::PsnExt);
        reply.comp_mask |= context_bits::MSN_TABLE_ENABLED;
        assert_eq!(DeviceCaps::from_context(&reply, Limits::default()).retransmit(), Retransmit::Msn);
        let old = DeviceCaps::from_context(&ContextReply { comp_mask: 0, ..reply }, Limits::default());
        assert_eq!((old.generation, old.wqe_mode), (Generation::Legacy, WqeMode::Static));
        assert_eq!(old.retransmit(), Retransmit::Psn);
    }
}
