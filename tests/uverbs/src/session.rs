//! One call of a process: the device and the context that it goes to.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::Arc;

use directverbs_softnic::nic::Nic;

use crate::Errno;
use crate::chip::Chip;
use crate::device::{Device, refused};
use crate::events::EventFiles;
use crate::objects::{Object, Objects};
use crate::packet::Bundle;
use crate::pages::{PAGE, Region};
use crate::profile::{Family, Release};
use crate::schema::{Access, FileKind};

/// A context: what a device file has once it was opened for use.
#[derive(Debug, Default)]
pub struct Context {
    /// Objects.
    pub objects: Objects,
    /// Pages that can be mapped, by cookie.
    pub pages: BTreeMap<u64, Arc<Region>>,
    /// Where asynchronous events go that no file was named for.
    pub events: Option<RawFd>,
    /// What the driver keeps.
    pub driver: DriverContext,
}

/// What a driver keeps of a context.
#[derive(Debug, Default)]
pub struct DriverContext {
    /// bnxt_re: depths need not be powers of two.
    pub exact_depths: bool,
    /// bnxt_re: WQEs are of variable size.
    pub variable_wqe: bool,
    /// bnxt_re: doorbell page and its cookie, from the first protection domain on.
    pub doorbell: Option<(u32, u64)>,
    /// bnxt_re: push page, with its cookie.
    pub push: Option<(u32, u64)>,
}

/// A device file.
#[derive(Debug)]
pub struct DeviceFile {
    /// Number of its device.
    pub device: usize,
    /// Its context, once there is one.
    pub context: Option<Context>,
}

/// What a destroyed object leaves to answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gone {
    /// Completion events that were read.
    pub completions: u32,
    /// Asynchronous events that were read.
    pub events: u32,
}

/// One call.
pub struct Session<'a> {
    /// Descriptor that it came through.
    pub fd: RawFd,
    /// Device.
    pub device: &'a mut Device,
    /// Device file.
    pub file: &'a mut DeviceFile,
    /// Files of events.
    pub events: &'a mut EventFiles,
    /// The object that this call has destroyed.
    pub gone: Gone,
}

/// What methods do that only destroy, or only make a file: nothing more.
pub fn nothing_more(_: &mut Session<'_>, _: &mut Bundle<'_>) -> Result<(), Errno> {
    Ok(())
}

impl Session<'_> {
    /// Kernel release.
    pub const fn release(&self) -> Release {
        self.device.profile.release
    }

    /// Vendor's family.
    pub const fn family(&self) -> Family {
        self.device.profile.family()
    }

    /// The context.
    ///
    /// # Errors
    /// EINVAL: there is none yet.
    pub fn context(&mut self) -> Result<&mut Context, Errno> {
        self.file.context.as_mut().ok_or(Errno::INVAL)
    }

    /// Objects of the context.
    ///
    /// # Errors
    /// EINVAL: there is no context yet.
    pub fn objects(&mut self) -> Result<&mut Objects, Errno> {
        self.context().map(|context| &mut context.objects)
    }

    /// Runs a method.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn call(&mut self, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
        if !bundle.method.without_context {
            self.context()?;
        }
        let mut made = None;
        for (kind, access, fd) in bundle.files() {
            match access {
                Access::New => made = Some(self.events.open(kind, self.fd)?),
                Access::Read | Access::Destroy => drop(self.events.check(kind, self.fd, fd)?),
            }
        }
        for (kind, access, handle) in bundle.objects() {
            if access != Access::New {
                let handle = self.objects()?.check(kind, handle)?;
                if access == Access::Destroy {
                    self.gone = self.destroy(handle)?;
                }
            }
        }
        if let Some(fd) = made {
            let context = self.context()?;
            context.events = Some(context.events.unwrap_or(fd));
            bundle.made(fd.cast_unsigned())?;
        }
        (bundle.method.run)(self, bundle)
    }

    /// The file of asynchronous events that an attribute names, or the context's.
    pub fn events_file(&mut self, named: Option<u32>) -> Option<RawFd> {
        let own = self.file.context.as_ref().and_then(|context| context.events);
        named.map(u32::cast_signed).or(own)
    }

    /// Opens the context's file of asynchronous events.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn open_events(&mut self) -> Result<RawFd, Errno> {
        self.events.open(FileKind::AsyncEvents, self.fd)
    }

    /// A command to the NIC.
    ///
    /// # Errors
    /// The NIC refuses.
    pub fn nic<R>(
        &self,
        command: impl FnOnce(&mut Nic<Chip>) -> Result<R, directverbs_softnic::device::DeviceError>,
    ) -> Result<R, Errno> {
        command(&mut self.device.nic.lock()).map_err(refused)
    }

    /// Makes a page mappable: at `first`, or at the lowest free cookie behind it.
    ///
    /// # Errors
    /// EINVAL: there is no context yet.
    pub fn add_page(&mut self, first: u64, region: Arc<Region>) -> Result<u64, Errno> {
        let pages = &mut self.context()?.pages;
        let (mut cookie, len) = (first, region.len() as u64);
        for (at, taken) in pages.range(first..) {
            if cookie + len <= *at {
                break;
            }
            cookie = at + taken.len() as u64;
        }
        pages.insert(cookie, region);
        Ok(cookie)
    }

    /// Cookie of the first page that has none yet. bnxt_re's page 0 is the shared page.
    pub const fn first_cookie(&self) -> u64 {
        match self.family() {
            Family::BnxtRe => PAGE as u64,
            Family::Ionic => 0,
        }
    }

    /// Destroys an object.
    ///
    /// # Errors
    /// EBUSY: others use it.
    pub fn destroy(&mut self, handle: u32) -> Result<Gone, Errno> {
        if self.objects()?.is_used(handle) {
            return Err(Errno::BUSY);
        }
        let object = self.objects()?.remove(handle)?;
        self.events.drop_about((self.fd, handle));
        let nic = self.device.nic.clone();
        // Nothing in the NIC refers to an object that no other object uses.
        let end = |done: Result<(), _>| debug_assert!(done.is_ok(), "{done:?}");
        let mut gone = Gone::default();
        match object {
            Object::Pd(id) => end(nic.lock().destroy_pd(id)),
            Object::Cq(cq) => {
                for id in cq.ids.into_iter().flatten() {
                    end(nic.lock().destroy_cq(id));
                }
                if let (Family::Ionic, Some(id)) = (self.family(), cq.ids.into_iter().flatten().next()) {
                    self.device.cqs.give(id.get() & ((1 << directverbs_softnic::ionic::PIPELINE_SHIFT) - 1));
                }
                gone = Gone { completions: cq.completions, events: cq.events.reported };
            }
            Object::Qp(qp) => {
                end(nic.lock().destroy_qp(qp.id));
                if self.family() == Family::Ionic {
                    self.device.give_qp(qp.id.get());
                }
                if let Some((start, cookie)) = qp.cmb {
                    self.device.space.give(start);
                    self.context()?.pages.remove(&cookie);
                }
                gone.events = qp.events.reported;
            }
            Object::Srq(srq) => {
                end(nic.lock().destroy_srq(srq.id));
                gone.events = srq.events.reported;
            }
            Object::Ah(id) => end(nic.lock().destroy_ah(id)),
            Object::Mr(key, _) | Object::Mw(key) => end(nic.lock().destroy_mr(key)),
            Object::Page(cookie) | Object::Toggle(cookie) => {
                let context = self.context()?;
                context.pages.remove(&cookie);
                if let Some((page, _)) = context.driver.push.take_if(|(_, push)| *push == cookie) {
                    self.device.push_pages.give(page);
                }
            }
            Object::Dbr(cookie, dpi) => {
                self.context()?.pages.remove(&cookie);
                self.device.dpis.give(dpi);
            }
        }
        Ok(gone)
    }

    /// Ends the context: destroys all that is left of it.
    pub fn close(&mut self) {
        while let Some(handle) = self.file.context.as_ref().and_then(|context| context.objects.unused()) {
            let gone = self.destroy(handle);
            debug_assert!(gone.is_ok(), "{gone:?}");
        }
        if let Some(context) = self.file.context.take()
            && let Some((dpi, _)) = context.driver.doorbell
        {
            self.device.dpis.give(dpi);
        }
    }
}
