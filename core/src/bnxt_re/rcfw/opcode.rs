//! Opcodes of commands. Source: `roce_hsi.h`.

/// Opcode of a command. Open: any value is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(pub u8);

impl Opcode {
    /// `CREATE_QP`.
    pub const CREATE_QP: Self = Self(0x1);
    /// `DESTROY_QP`.
    pub const DESTROY_QP: Self = Self(0x2);
    /// `MODIFY_QP`.
    pub const MODIFY_QP: Self = Self(0x3);
    /// `QUERY_QP`.
    pub const QUERY_QP: Self = Self(0x4);
    /// `CREATE_SRQ`.
    pub const CREATE_SRQ: Self = Self(0x5);
    /// `DESTROY_SRQ`.
    pub const DESTROY_SRQ: Self = Self(0x6);
    /// `QUERY_SRQ`.
    pub const QUERY_SRQ: Self = Self(0x8);
    /// `CREATE_CQ`.
    pub const CREATE_CQ: Self = Self(0x9);
    /// `DESTROY_CQ`.
    pub const DESTROY_CQ: Self = Self(0xa);
    /// `RESIZE_CQ`.
    pub const RESIZE_CQ: Self = Self(0xc);
    /// `ALLOCATE_MRW`.
    pub const ALLOCATE_MRW: Self = Self(0xd);
    /// `DEALLOCATE_KEY`.
    pub const DEALLOCATE_KEY: Self = Self(0xe);
    /// `REGISTER_MR`.
    pub const REGISTER_MR: Self = Self(0xf);
    /// `DEREGISTER_MR`.
    pub const DEREGISTER_MR: Self = Self(0x10);
    /// `ADD_GID`.
    pub const ADD_GID: Self = Self(0x11);
    /// `DELETE_GID`.
    pub const DELETE_GID: Self = Self(0x12);
    /// `CREATE_QP1`.
    pub const CREATE_QP1: Self = Self(0x13);
    /// `DESTROY_QP1`.
    pub const DESTROY_QP1: Self = Self(0x14);
    /// `CREATE_AH`.
    pub const CREATE_AH: Self = Self(0x15);
    /// `DESTROY_AH`.
    pub const DESTROY_AH: Self = Self(0x16);
    /// `MODIFY_GID`.
    pub const MODIFY_GID: Self = Self(0x17);
    /// `QUERY_GID`.
    pub const QUERY_GID: Self = Self(0x18);
    /// `INITIALIZE_FW`.
    pub const INITIALIZE_FW: Self = Self(0x80);
    /// `DEINITIALIZE_FW`.
    pub const DEINITIALIZE_FW: Self = Self(0x81);
    /// `STOP_FUNC`.
    pub const STOP_FUNC: Self = Self(0x82);
    /// `QUERY_FUNC`.
    pub const QUERY_FUNC: Self = Self(0x83);
    /// `SET_FUNC_RESOURCES`.
    pub const SET_FUNC_RESOURCES: Self = Self(0x84);
    /// `READ_CONTEXT`.
    pub const READ_CONTEXT: Self = Self(0x85);
    /// `VF_BACKCHANNEL_REQUEST`.
    pub const VF_BACKCHANNEL_REQUEST: Self = Self(0x86);
    /// `READ_VF_MEMORY`.
    pub const READ_VF_MEMORY: Self = Self(0x87);
    /// `COMPLETE_VF_REQUEST`.
    pub const COMPLETE_VF_REQUEST: Self = Self(0x88);
    /// `EXTEND_CONTEXT_ARRAY`.
    pub const EXTEND_CONTEXT_ARRAY: Self = Self(0x89);
    /// `MAP_TC_TO_COS`.
    pub const MAP_TC_TO_COS: Self = Self(0x8a);
    /// `QUERY_VERSION`.
    pub const QUERY_VERSION: Self = Self(0x8b);
    /// `MODIFY_ROCE_CC`.
    pub const MODIFY_ROCE_CC: Self = Self(0x8c);
    /// `QUERY_ROCE_CC`.
    pub const QUERY_ROCE_CC: Self = Self(0x8d);
    /// `QUERY_ROCE_STATS`.
    pub const QUERY_ROCE_STATS: Self = Self(0x8e);
    /// `SET_LINK_AGGR_MODE`.
    pub const SET_LINK_AGGR_MODE: Self = Self(0x8f);
    /// `MODIFY_CQ`.
    pub const MODIFY_CQ: Self = Self(0x90);
    /// `QUERY_QP_EXTEND`.
    pub const QUERY_QP_EXTEND: Self = Self(0x91);
    /// `QUERY_ROCE_STATS_EXT`.
    pub const QUERY_ROCE_STATS_EXT: Self = Self(0x92);
    /// `ROCE_MIRROR_CFG`.
    pub const ROCE_MIRROR_CFG: Self = Self(0x99);

    /// Those with a name, by number.
    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::CREATE_QP, "CREATE_QP"),
        (Self::DESTROY_QP, "DESTROY_QP"),
        (Self::MODIFY_QP, "MODIFY_QP"),
        (Self::QUERY_QP, "QUERY_QP"),
        (Self::CREATE_SRQ, "CREATE_SRQ"),
        (Self::DESTROY_SRQ, "DESTROY_SRQ"),
        (Self::QUERY_SRQ, "QUERY_SRQ"),
        (Self::CREATE_CQ, "CREATE_CQ"),
        (Self::DESTROY_CQ, "DESTROY_CQ"),
        (Self::RESIZE_CQ, "RESIZE_CQ"),
        (Self::ALLOCATE_MRW, "ALLOCATE_MRW"),
        (Self::DEALLOCATE_KEY, "DEALLOCATE_KEY"),
        (Self::REGISTER_MR, "REGISTER_MR"),
        (Self::DEREGISTER_MR, "DEREGISTER_MR"),
        (Self::ADD_GID, "ADD_GID"),
        (Self::DELETE_GID, "DELETE_GID"),
        (Self::CREATE_QP1, "CREATE_QP1"),
        (Self::DESTROY_QP1, "DESTROY_QP1"),
        (Self::CREATE_AH, "CREATE_AH"),
        (Self::DESTROY_AH, "DESTROY_AH"),
        (Self::MODIFY_GID, "MODIFY_GID"),
        (Self::QUERY_GID, "QUERY_GID"),
        (Self::INITIALIZE_FW, "INITIALIZE_FW"),
        (Self::DEINITIALIZE_FW, "DEINITIALIZE_FW"),
        (Self::STOP_FUNC, "STOP_FUNC"),
        (Self::QUERY_FUNC, "QUERY_FUNC"),
        (Self::SET_FUNC_RESOURCES, "SET_FUNC_RESOURCES"),
        (Self::READ_CONTEXT, "READ_CONTEXT"),
        (Self::VF_BACKCHANNEL_REQUEST, "VF_BACKCHANNEL_REQUEST"),
        (Self::READ_VF_MEMORY, "READ_VF_MEMORY"),
        (Self::COMPLETE_VF_REQUEST, "COMPLETE_VF_REQUEST"),
        (Self::EXTEND_CONTEXT_ARRAY, "EXTEND_CONTEXT_ARRAY"),
        (Self::MAP_TC_TO_COS, "MAP_TC_TO_COS"),
        (Self::QUERY_VERSION, "QUERY_VERSION"),
        (Self::MODIFY_ROCE_CC, "MODIFY_ROCE_CC"),
        (Self::QUERY_ROCE_CC, "QUERY_ROCE_CC"),
        (Self::QUERY_ROCE_STATS, "QUERY_ROCE_STATS"),
        (Self::SET_LINK_AGGR_MODE, "SET_LINK_AGGR_MODE"),
        (Self::MODIFY_CQ, "MODIFY_CQ"),
        (Self::QUERY_QP_EXTEND, "QUERY_QP_EXTEND"),
        (Self::QUERY_ROCE_STATS_EXT, "QUERY_ROCE_STATS_EXT"),
        (Self::ROCE_MIRROR_CFG, "ROCE_MIRROR_CFG"),
    ];

    /// Its name, as the kernel driver spells it.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.iter().find(|(known, _)| *known == self).map(|(_, name)| *name)
    }
}

impl core::fmt::Display for Opcode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "opcode {:#x}", self.0),
        }
    }
}
