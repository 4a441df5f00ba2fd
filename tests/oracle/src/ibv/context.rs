//! An open device.

use std::mem::offset_of;
use std::rc::Rc;

use super::error::{Result, check, last};
use super::library::Library;
use super::sys::{ibv_async_event, ibv_context, ibv_device_attr, verbs_context};
use crate::uverbs::{self, Config, Device};

#[derive(Debug)]
struct Open {
    library: Library,
    raw: *mut ibv_context,
    device: Device,
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: all that was made of it is gone: those keep it alive.
        unsafe { (self.library.0.verbs.ibv_close_device)(self.raw) };
    }
}

/// An open device, of a configuration.
#[derive(Clone, Debug)]
pub struct Context(Rc<Open>);

impl Context {
    /// Opens a device that is like `config`.
    ///
    /// # Errors
    /// The provider does not see it or does not like it.
    ///
    /// # Panics
    /// The provider has opened something else than our device: the interposed functions are not exported.
    pub fn open(library: &Library, config: impl Into<Config>) -> Result<Self> {
        let config = config.into();
        let family = config.family();
        uverbs::configure(config);
        let raw = library.open(family)?;
        // SAFETY: the library opened it.
        let fd = unsafe { (*raw).cmd_fd };
        let device = uverbs::device(fd).expect("the descriptor is of our device");
        Ok(Self(Rc::new(Open { library: library.clone(), raw, device })))
    }

    /// The device, from the other side.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Takes the next asynchronous event and lets the provider see it: its type, and the object or port.
    ///
    /// # Errors
    /// There is none.
    pub fn async_event(&self) -> Result<(u32, u64)> {
        let mut event = ibv_async_event { element: 0, event_type: 0 };
        let verbs = self.verbs();
        // SAFETY: the context is open; the event is written.
        if unsafe { (verbs.ibv_get_async_event)(self.raw(), &mut event) } != 0 {
            return Err(last("ibv_get_async_event"));
        }
        let seen = (event.event_type, event.element);
        // SAFETY: the event was just taken.
        unsafe { (verbs.ibv_ack_async_event)(&mut event) };
        Ok(seen)
    }

    /// Version of the firmware, as the provider tells it.
    ///
    /// # Errors
    /// The provider failed.
    pub fn firmware(&self) -> Result<String> {
        let mut attributes = ibv_device_attr::default();
        // SAFETY: the context is open; the attributes are written.
        check("ibv_query_device", unsafe { (self.verbs().ibv_query_device)(self.raw(), &mut attributes) })?;
        let bytes = attributes.fw_ver.map(|byte| byte as u8);
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    pub(super) fn raw(&self) -> *mut ibv_context {
        self.0.raw
    }

    pub(super) fn verbs(&self) -> &super::library::Ibverbs {
        &self.0.library.0.verbs
    }

    pub(super) fn ionic(&self) -> &super::library::Ionic {
        &self.0.library.0.ionic
    }

    /// The extended context around it.
    pub(super) fn extended(&self) -> &verbs_context {
        // SAFETY: every context of version 65 is the last field of an extended one.
        unsafe { &*self.raw().byte_sub(offset_of!(verbs_context, context)).cast::<verbs_context>() }
    }

    /// ionic: number of pipelines.
    pub fn udma_count(&self) -> u8 {
        // SAFETY: the context is open; the function asks whose it is.
        unsafe { (self.ionic().ionic_dv_ctx_get_udma_count)(self.raw()) }
    }

    /// Closes the device, if nothing that was made of it is left.
    ///
    /// # Errors
    /// Something is left; gives the context back.
    pub fn close(self) -> std::result::Result<(), Self> {
        Rc::try_unwrap(self.0).map(drop).map_err(Self)
    }
}

/// What the destructors of wrappers do with a failure: the fake device or a wrapper is wrong.
pub(super) fn destroyed(verb: &'static str, code: std::ffi::c_int) {
    if let Err(error) = check(verb, code)
        && !std::thread::panicking()
    {
        panic!("{error}");
    }
}
