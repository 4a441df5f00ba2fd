//! Versions of the firmware, and what its channel can do. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{request, response};

/// Bits of [`VerGetOutput::dev_caps_cfg`].
pub mod caps {
    /// Requests may be in host memory.
    pub const SHORT_CMD_SUPPORTED: u32 = 0x4;
    /// Requests must be in host memory.
    pub const SHORT_CMD_REQUIRED: u32 = 0x8;
}

/// Bit of [`VerGetOutput::flags`]: ask again later.
pub const DEV_NOT_RDY: u8 = 1;

request! {
    /// Asks for versions: the first request, and the only one that may come before all others.
    pub struct VerGetInput: "hwrm_ver_get_input", 24, VER_GET => VerGetOutput {
        /// Version of the interface that the driver knows, major number.
        hwrm_intf_maj: u8 = 16,
        /// Minor number.
        hwrm_intf_min: u8 = 17,
        /// Update number.
        hwrm_intf_upd: u8 = 18,
        /// Zero.
        unused_0: [u8; 5] = 19,
    }
}
response! {
    /// Versions, and the limits of the channel.
    pub struct VerGetOutput: "hwrm_ver_get_output", 176 {
        /// Version of HWRM interface, major number.
        hwrm_intf_maj_8b: u8 = 8,
        /// Version of HWRM interface, minor number.
        hwrm_intf_min_8b: u8 = 9,
        /// Version of HWRM interface, update number.
        hwrm_intf_upd_8b: u8 = 10,
        /// Zero.
        hwrm_intf_rsvd_8b: u8 = 11,
        /// Version of HWRM firmware, major number.
        hwrm_fw_maj_8b: u8 = 12,
        /// Version of HWRM firmware, minor number.
        hwrm_fw_min_8b: u8 = 13,
        /// Version of HWRM firmware, build number.
        hwrm_fw_bld_8b: u8 = 14,
        /// Zero.
        hwrm_fw_rsvd_8b: u8 = 15,
        /// Version of management firmware, major number.
        mgmt_fw_maj_8b: u8 = 16,
        /// Version of management firmware, minor number.
        mgmt_fw_min_8b: u8 = 17,
        /// Version of management firmware, build number.
        mgmt_fw_bld_8b: u8 = 18,
        /// Zero.
        mgmt_fw_rsvd_8b: u8 = 19,
        /// Version of netctrl firmware, major number.
        netctrl_fw_maj_8b: u8 = 20,
        /// Version of netctrl firmware, minor number.
        netctrl_fw_min_8b: u8 = 21,
        /// Version of netctrl firmware, build number.
        netctrl_fw_bld_8b: u8 = 22,
        /// Zero.
        netctrl_fw_rsvd_8b: u8 = 23,
        /// Capabilities of the device, see [`caps`].
        dev_caps_cfg: le::U32 = 24,
        /// Version of RoCE firmware, major number.
        roce_fw_maj_8b: u8 = 28,
        /// Version of RoCE firmware, minor number.
        roce_fw_min_8b: u8 = 29,
        /// Version of RoCE firmware, build number.
        roce_fw_bld_8b: u8 = 30,
        /// Zero.
        roce_fw_rsvd_8b: u8 = 31,
        /// Name of the HWRM firmware.
        hwrm_fw_name: [u8; 16] = 32,
        /// Name of the management firmware.
        mgmt_fw_name: [u8; 16] = 48,
        /// Name of the network controller's firmware.
        netctrl_fw_name: [u8; 16] = 64,
        /// Name of the firmware package.
        active_pkg_name: [u8; 16] = 80,
        /// Name of the RoCE firmware.
        roce_fw_name: [u8; 16] = 96,
        /// Number of the chip, which tells its generation.
        chip_num: le::U16 = 112,
        /// Revision of the chip.
        chip_rev: u8 = 114,
        /// Metal layer of the chip.
        chip_metal: u8 = 115,
        /// Bond option of the chip.
        chip_bond_id: u8 = 116,
        /// 0 chip, 1 FPGA, 2 emulator.
        chip_platform_type: u8 = 117,
        /// Bytes of the request window.
        max_req_win_len: le::U16 = 118,
        /// Most bytes of a response.
        max_resp_len: le::U16 = 120,
        /// Time that a request may take, in milliseconds.
        def_req_timeout: le::U16 = 122,
        /// 1: the device is not ready; 2: the 16-bit versions are there.
        flags: u8 = 124,
        /// Zero.
        unused_0: [u8; 2] = 125,
        /// 1.
        always_1: u8 = 127,
        /// Version of HWRM interface, major number.
        hwrm_intf_major: le::U16 = 128,
        /// Version of HWRM interface, minor number.
        hwrm_intf_minor: le::U16 = 130,
        /// Version of HWRM interface, build number.
        hwrm_intf_build: le::U16 = 132,
        /// Version of HWRM interface, patch number.
        hwrm_intf_patch: le::U16 = 134,
        /// Version of HWRM firmware, major number.
        hwrm_fw_major: le::U16 = 136,
        /// Version of HWRM firmware, minor number.
        hwrm_fw_minor: le::U16 = 138,
        /// Version of HWRM firmware, build number.
        hwrm_fw_build: le::U16 = 140,
        /// Version of HWRM firmware, patch number.
        hwrm_fw_patch: le::U16 = 142,
        /// Version of management firmware, major number.
        mgmt_fw_major: le::U16 = 144,
        /// Version of management firmware, minor number.
        mgmt_fw_minor: le::U16 = 146,
        /// Version of management firmware, build number.
        mgmt_fw_build: le::U16 = 148,
        /// Version of management firmware, patch number.
        mgmt_fw_patch: le::U16 = 150,
        /// Version of netctrl firmware, major number.
        netctrl_fw_major: le::U16 = 152,
        /// Version of netctrl firmware, minor number.
        netctrl_fw_minor: le::U16 = 154,
        /// Version of netctrl firmware, build number.
        netctrl_fw_build: le::U16 = 156,
        /// Version of netctrl firmware, patch number.
        netctrl_fw_patch: le::U16 = 158,
        /// Version of RoCE firmware, major number.
        roce_fw_major: le::U16 = 160,
        /// Version of RoCE firmware, minor number.
        roce_fw_minor: le::U16 = 162,
        /// Version of RoCE firmware, build number.
        roce_fw_build: le::U16 = 164,
        /// Version of RoCE firmware, patch number.
        roce_fw_patch: le::U16 = 166,
        /// Most bytes of a request that is read from host memory.
        max_ext_req_len: le::U16 = 168,
        /// Time that the slowest request may take, in seconds.
        max_req_timeout: le::U16 = 170,
        /// Zero.
        unused_1: [u8; 3] = 172,
        /// 1 when the response is complete; written last.
        valid: u8 = 175,
    }
}
