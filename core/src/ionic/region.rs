//! WQEs that register memory and bind memory windows, and what a region or window allows.
//! Source: rdma-core `ionic_fw_types.h`; `reg_mr`: kernel `ionic_fw.h`.

use zerocopy::{big_endian as be, little_endian as le};

use super::wqe::WqeFlags;
use crate::layout::{bits, layout};
use crate::verbs::AccessFlags;

bits! {
    /// What a memory region or window is and allows, big-endian in memory.
    pub struct MrFlags(u16) {
        /// The device may write for local operations.
        local_write: bool = 1,
        /// A peer may write.
        remote_write: bool = 1,
        /// A peer may read.
        remote_read: bool = 1,
        /// A peer may do atomics.
        remote_atomic: bool = 1,
        /// A memory window may be bound to it.
        mw_bind: bool = 1,
        /// Addresses count from zero at its start.
        zero_based: bool = 1,
        /// Pages on demand.
        on_demand: bool = 1,
        /// Physical buffer list.
        pb: bool = 1,
        __: u8 = 5,
        /// The low byte of the key is the user's.
        ukey_en: bool = 1,
        /// It is a memory window.
        is_mw: bool = 1,
        /// It may be invalidated.
        inv_en: bool = 1,
    }
}

impl MrFlags {
    /// The access part; what the device has no flag for is dropped, as relaxed ordering is a matter of registration.
    pub const fn from_access(access: AccessFlags) -> Self {
        Self::new()
            .with_local_write(access.contains(AccessFlags::LOCAL_WRITE))
            .with_remote_write(access.contains(AccessFlags::REMOTE_WRITE))
            .with_remote_read(access.contains(AccessFlags::REMOTE_READ))
            .with_remote_atomic(access.contains(AccessFlags::REMOTE_ATOMIC))
            .with_mw_bind(access.contains(AccessFlags::MW_BIND))
            .with_zero_based(access.contains(AccessFlags::ZERO_BASED))
    }

    /// The access part in the field's terms.
    pub fn access(self) -> AccessFlags {
        let pairs = [
            (self.local_write(), AccessFlags::LOCAL_WRITE),
            (self.remote_write(), AccessFlags::REMOTE_WRITE),
            (self.remote_read(), AccessFlags::REMOTE_READ),
            (self.remote_atomic(), AccessFlags::REMOTE_ATOMIC),
            (self.mw_bind(), AccessFlags::MW_BIND),
            (self.zero_based(), AccessFlags::ZERO_BASED),
        ];
        pairs.iter().filter(|(set, _)| *set).fold(AccessFlags::empty(), |all, (_, flag)| all | *flag)
    }
}

layout! {
    /// Registers memory.
    pub struct RegMrWqe: "ionic" "ionic_v1_wqe", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation.
        op: u8 = 8,
        /// Low 8 bits of the key.
        num_sge_key: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Key of the region.
        imm_data_key: be::U32 = 12,
        /// First address.
        va: be::U64 = 16,
        /// Length in bytes.
        length: be::U64 = 24,
        /// Offset of the first byte in the first page.
        offset: be::U64 = 32,
        /// Page table, or the memory itself if `map_count` is 1.
        dma_addr: be::U64 = 40,
        /// Number of pages.
        map_count: be::U32 = 48,
        /// What the region is and allows.
        mr_flags: be::U16 as MrFlags = 52,
        /// Directory size, base-two logarithm; 0.
        dir_size_log2: u8 = 54,
        /// Page size, base-two logarithm.
        page_size_log2: u8 = 55,
        /// Reserved.
        rsvd: [u8; 8] = 56,
    }
}

layout! {
    /// Binds a memory window. `num_sge_key` has the low 8 bits of the new key, `imm_data_key` the window's key as it is.
    pub struct BindMwWqe: "ionic" "ionic_v1_wqe", 64 {
        /// Position in the ring.
        wqe_idx: le::U64 = 0,
        /// Operation.
        op: u8 = 8,
        /// Low 8 bits of the new key.
        num_sge_key: u8 = 9,
        /// Flags.
        flags: be::U16 as WqeFlags = 10,
        /// Key of the window.
        imm_data_key: be::U32 = 12,
        /// First address.
        va: be::U64 = 16,
        /// Length in bytes; 0 unbinds a window of type 1.
        length: be::U64 = 24,
        /// Key of the region.
        lkey: be::U32 = 32,
        /// What the window is and allows.
        mr_flags: be::U16 as MrFlags = 36,
        /// Reserved.
        rsvd: [u8; 26] = 38,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_flags_round_trip() {
        let access = AccessFlags::REMOTE_READ | AccessFlags::ZERO_BASED | AccessFlags::LOCAL_WRITE;
        assert_eq!(MrFlags::from_access(access).into_bits(), 0x25);
        assert_eq!(MrFlags::from_access(access).access(), access);
        assert_eq!(MrFlags::new().with_is_mw(true).with_inv_en(true).into_bits(), 0xc000);
        assert_eq!(MrFlags::new().with_ukey_en(true).into_bits(), 1 << 13);
    }
}
