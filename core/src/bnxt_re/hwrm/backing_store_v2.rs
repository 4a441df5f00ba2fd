//! Backing store, version 2: a message for each kind and instance. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{HwrmDone, request, response};
use crate::bnxt_re::pbl::PageAttribute;

/// Bits of [`FuncBackingStoreQcapsV2Output::flags`].
pub mod flags {
    /// Entries are initialised.
    pub const ENABLE_CTX_KIND_INIT: u32 = 1;
    /// The kind exists.
    pub const TYPE_VALID: u32 = 2;
    /// Memory of the driver: not for the device's contexts.
    pub const DRIVER_MANAGED_MEMORY: u32 = 4;
}

/// Bit of [`FuncBackingStoreCfgV2Input::flags`]: this was the last one.
pub const BS_CFG_ALL_DONE: u32 = 2;

request! {
    /// Asks for the context memory of one kind.
    pub struct FuncBackingStoreQcapsV2Input: "hwrm_func_backing_store_qcaps_v2_input", 24, FUNC_BACKING_STORE_QCAPS_V2 => FuncBackingStoreQcapsV2Output {
        /// Kind of context, see [`super::context::ContextType`].
        r#type: le::U16 = 16,
        /// Zero.
        rsvd: [u8; 6] = 18,
    }
}
response! {
    /// Context memory of one kind.
    pub struct FuncBackingStoreQcapsV2Output: "hwrm_func_backing_store_qcaps_v2_output", 56 {
        /// Kind of context, see [`super::context::ContextType`].
        r#type: le::U16 = 8,
        /// Bytes of an entry.
        entry_size: le::U16 = 10,
        /// 1: entries are initialised; 2: the kind exists; 4: memory of the driver.
        flags: le::U32 = 12,
        /// Instances there are, a bit each; 0 is one without a number.
        instance_bit_map: le::U32 = 16,
        /// Byte that entries are initialised with.
        ctx_init_value: u8 = 20,
        /// Byte to initialise in each entry, in words of 4 bytes.
        ctx_init_offset: u8 = 21,
        /// Entries come in multiples of this; 0 is 1.
        entry_multiple: u8 = 22,
        /// Zero.
        rsvd: u8 = 23,
        /// Most entries.
        max_num_entries: le::U32 = 24,
        /// Fewest entries.
        min_num_entries: le::U32 = 28,
        /// Kind to ask for next.
        next_valid_type: le::U16 = 32,
        /// How many of the split fields count.
        subtype_valid_cnt: u8 = 34,
        /// Split fields that must be met exactly, a bit each.
        exact_cnt_bit_map: u8 = 35,
        /// First split field: depends on the kind.
        split_entry_0: le::U32 = 36,
        /// Second split field.
        split_entry_1: le::U32 = 40,
        /// Third split field.
        split_entry_2: le::U32 = 44,
        /// Fourth split field.
        split_entry_3: le::U32 = 48,
        /// Most instances.
        max_instance_count: le::U16 = 52,
        /// Zero.
        rsvd3: u8 = 54,
        /// 1 when the response is complete; written last.
        valid: u8 = 55,
    }
}
request! {
    /// Gives the device context memory of one kind and instance.
    pub struct FuncBackingStoreCfgV2Input: "hwrm_func_backing_store_cfg_v2_input", 64, FUNC_BACKING_STORE_CFG_V2 => HwrmDone {
        /// Kind of context, see [`super::context::ContextType`].
        r#type: le::U16 = 16,
        /// Instance of the kind.
        instance: le::U16 = 18,
        /// 2: this was the last one.
        flags: le::U32 = 20,
        /// Address of the page, or of the page directory.
        page_dir: le::U64 = 24,
        /// Number of entries.
        num_entries: le::U32 = 32,
        /// Bytes of an entry.
        entry_size: le::U16 = 36,
        /// Page size and level.
        page_size_pbl_level: u8 as PageAttribute = 38,
        /// How many of the split fields count.
        subtype_valid_cnt: u8 = 39,
        /// First split field: depends on the kind.
        split_entry_0: le::U32 = 40,
        /// Second split field.
        split_entry_1: le::U32 = 44,
        /// Third split field.
        split_entry_2: le::U32 = 48,
        /// Fourth split field.
        split_entry_3: le::U32 = 52,
        /// 1: the next field counts.
        enables: le::U32 = 56,
        /// Offset of the next part.
        next_bs_offset: le::U32 = 60,
    }
}
