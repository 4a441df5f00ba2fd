//! The driver comes and goes. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{HwrmDone, request, response};

/// Bits of [`FuncDrvRgtrInput::enables`].
pub mod enables {
    /// `os_type`.
    pub const OS_TYPE: u32 = 1;
    /// The version.
    pub const VER: u32 = 2;
    /// `async_event_fwd`.
    pub const ASYNC_EVENT_FWD: u32 = 0x10;
}

/// Bit of [`FuncDrvRgtrInput::flags`]: the version has 16-bit numbers.
pub const VER_MODE_16BIT: u32 = 4;
/// Value of [`FuncDrvRgtrInput::os_type`] of a driver that is none of the known ones.
pub const OS_TYPE_OTHER: u16 = 1;
/// Bit of [`FuncDrvRgtrOutput::flags`]: the device wants [`FuncDrvIfChangeInput`].
pub const IF_CHANGE_SUPPORTED: u32 = 1;
/// Bit of [`FuncDrvIfChangeInput::flags`].
pub const IF_UP: u32 = 1;
/// Bit of [`FuncDrvIfChangeOutput::flags`]: the firmware was reset; what it was told is gone.
pub const HOT_FW_RESET_DONE: u32 = 2;

request! {
    /// The driver is here.
    pub struct FuncDrvRgtrInput: "hwrm_func_drv_rgtr_input", 112, FUNC_DRV_RGTR => FuncDrvRgtrOutput {
        /// Flags.
        flags: le::U32 = 16,
        /// Which of the fields below count, a bit each.
        enables: le::U32 = 20,
        /// Operating system; 1 is another one.
        os_type: le::U16 = 24,
        /// Version of version, major number.
        ver_maj_8b: u8 = 26,
        /// Version of version, minor number.
        ver_min_8b: u8 = 27,
        /// Version of version, update number.
        ver_upd_8b: u8 = 28,
        /// Zero.
        unused_0: [u8; 3] = 29,
        /// When the driver was built.
        timestamp: le::U32 = 32,
        /// Zero.
        unused_1: [u8; 4] = 36,
        /// Requests of VFs to forward, a bit each.
        vf_req_fwd: [le::U32; 8] = 40,
        /// Events to tell this driver, a bit each.
        async_event_fwd: [le::U32; 8] = 72,
        /// Version of version, major number.
        ver_maj: le::U16 = 104,
        /// Version of version, minor number.
        ver_min: le::U16 = 106,
        /// Version of version, update number.
        ver_upd: le::U16 = 108,
        /// Version of version, patch number.
        ver_patch: le::U16 = 110,
    }
}
response! {
    /// What the device wants of it.
    pub struct FuncDrvRgtrOutput: "hwrm_func_drv_rgtr_output", 16 {
        /// 1: the device wants to know when its interface goes up and down.
        flags: le::U32 = 8,
        /// Zero.
        unused_0: [u8; 3] = 12,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
request! {
    /// The driver goes.
    pub struct FuncDrvUnrgtrInput: "hwrm_func_drv_unrgtr_input", 24, FUNC_DRV_UNRGTR => HwrmDone {
        /// Flags.
        flags: le::U32 = 16,
        /// Zero.
        unused_0: [u8; 4] = 20,
    }
}
request! {
    /// The interface goes up, or down.
    pub struct FuncDrvIfChangeInput: "hwrm_func_drv_if_change_input", 24, FUNC_DRV_IF_CHANGE => FuncDrvIfChangeOutput {
        /// 1: up; 0: down.
        flags: le::U32 = 16,
        /// Zero.
        unused: le::U32 = 20,
    }
}
response! {
    /// What has changed meanwhile.
    pub struct FuncDrvIfChangeOutput: "hwrm_func_drv_if_change_output", 16 {
        /// 1 resources changed, 2 the firmware was reset, 4 capabilities changed.
        flags: le::U32 = 8,
        /// Zero.
        unused_0: [u8; 3] = 12,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
