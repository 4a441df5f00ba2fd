//! The library and the two providers, loaded at run time.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::rc::Rc;

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_NOW};

use super::error::{Error, Result};
use super::sys::{
    ibv_ah, ibv_ah_attr, ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr,
    ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_srq, ibv_srq_attr, ibv_srq_init_attr,
};
use crate::uverbs::Family;

/// Shared object of the library, and of the providers. libionic is a library of its own, and its provider a link to it.
const IBVERBS: &str = "libibverbs.so.1";
const PROVIDERS: [&str; 2] = ["libbnxt_re-rdmav65.so", "libionic.so.1"];

/// Declares the functions that are taken from a library, with their C names.
macro_rules! functions {
    ($(#[doc = $doc:literal])* $name:ident { $($function:ident: $type:ty,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name { $(pub $function: $type,)* }
        impl $name {
            fn find(library: &Handle) -> Result<Self> {
                Ok(Self { $($function: {
                    let name = stringify!($function);
                    // SAFETY: the type is that of the library's header.
                    let found = unsafe { library.get::<$type>(name.as_bytes()) };
                    *found.map_err(|source| Error::Load { name, source })?
                },)* })
            }
        }
    };
}

functions! {
    /// Functions of libibverbs.
    Ibverbs {
        ibv_get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device,
        ibv_free_device_list: unsafe extern "C" fn(*mut *mut ibv_device),
        ibv_open_device: unsafe extern "C" fn(*mut ibv_device) -> *mut ibv_context,
        ibv_close_device: unsafe extern "C" fn(*mut ibv_context) -> c_int,
        ibv_get_async_event: unsafe extern "C" fn(*mut ibv_context, *mut ibv_async_event) -> c_int,
        ibv_ack_async_event: unsafe extern "C" fn(*mut ibv_async_event),
        ibv_query_device: unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int,
        ibv_alloc_pd: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd,
        ibv_dealloc_pd: unsafe extern "C" fn(*mut ibv_pd) -> c_int,
        ibv_reg_mr: unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr,
        ibv_dereg_mr: unsafe extern "C" fn(*mut ibv_mr) -> c_int,
        ibv_create_comp_channel: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_comp_channel,
        ibv_destroy_comp_channel: unsafe extern "C" fn(*mut ibv_comp_channel) -> c_int,
        ibv_create_cq: unsafe extern "C" fn(
            *mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int,
        ) -> *mut ibv_cq,
        ibv_resize_cq: unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int,
        ibv_destroy_cq: unsafe extern "C" fn(*mut ibv_cq) -> c_int,
        ibv_create_srq: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq,
        ibv_modify_srq: unsafe extern "C" fn(*mut ibv_srq, *mut ibv_srq_attr, c_int) -> c_int,
        ibv_destroy_srq: unsafe extern "C" fn(*mut ibv_srq) -> c_int,
        ibv_create_qp: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
        ibv_modify_qp: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
        ibv_destroy_qp: unsafe extern "C" fn(*mut ibv_qp) -> c_int,
        ibv_create_ah: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah,
        ibv_destroy_ah: unsafe extern "C" fn(*mut ibv_ah) -> c_int,
    }
}

functions! {
    /// Functions that libionic has besides.
    Ionic {
        ionic_dv_ctx_get_udma_count: unsafe extern "C" fn(*mut ibv_context) -> u8,
        ionic_dv_pd_get_udma_mask: unsafe extern "C" fn(*mut ibv_pd) -> u8,
        ionic_dv_pd_set_udma_mask: unsafe extern "C" fn(*mut ibv_pd, u8) -> c_int,
        ionic_dv_pd_set_sqcmb: unsafe extern "C" fn(*mut ibv_pd, bool, bool, bool) -> c_int,
        ionic_dv_pd_set_rqcmb: unsafe extern "C" fn(*mut ibv_pd, bool, bool, bool) -> c_int,
    }
}

#[derive(Debug)]
pub(super) struct Loaded {
    pub verbs: Ibverbs,
    pub ionic: Ionic,
    // Kept: their code is called, and libibverbs keeps pointers into the providers.
    _handles: [Handle; 3],
}

/// libibverbs with both providers.
#[derive(Clone, Debug)]
pub struct Library(pub(super) Rc<Loaded>);

impl Library {
    /// Loads them from where the dynamic linker looks.
    ///
    /// # Errors
    /// A library is missing, or is not of version 65.
    pub fn load() -> Result<Self> {
        crate::uverbs::registry::install();
        // SAFETY: the libraries' constructors register the providers and do nothing else.
        let open = |name: &'static str| unsafe {
            Handle::open(Some(name), RTLD_NOW | RTLD_GLOBAL).map_err(|source| Error::Load { name, source })
        };
        let (verbs, bnxt_re, ionic) = (open(IBVERBS)?, open(PROVIDERS[0])?, open(PROVIDERS[1])?);
        let (functions, dv) = (Ibverbs::find(&verbs)?, Ionic::find(&ionic)?);
        Ok(Self(Rc::new(Loaded { verbs: functions, ionic: dv, _handles: [verbs, bnxt_re, ionic] })))
    }

    /// Opens the device of a family.
    pub(super) fn open(&self, family: Family) -> Result<*mut ibv_context> {
        let verbs = &self.0.verbs;
        let mut count: c_uint = 0;
        // SAFETY: the count is written.
        let list = unsafe { (verbs.ibv_get_device_list)((&raw mut count).cast()) };
        if list.is_null() {
            return Err(super::error::last("ibv_get_device_list"));
        }
        // SAFETY: as many pointers as it says.
        let devices = unsafe { std::slice::from_raw_parts(list, count as usize) };
        let name = family.device_name();
        let found = devices.iter().copied().find(|device| {
            // SAFETY: a device of the list; names are strings.
            unsafe { CStr::from_ptr((&raw const (**device).name).cast()) }.to_bytes() == name.as_bytes()
        });
        // SAFETY: a device of the list.
        let opened = found.map(|device| unsafe { (verbs.ibv_open_device)(device) });
        let error = super::error::last("ibv_open_device");
        // SAFETY: the list is used no more; an open device stays.
        unsafe { (verbs.ibv_free_device_list)(list) };
        match opened {
            None => Err(Error::NoDevice(name)),
            Some(context) if context.is_null() => Err(error),
            Some(context) => Ok(context),
        }
    }
}
