//! A context of a made-up device.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::config::{Config, Ids, Limits};
use super::memory::{Page, Region, Store};
use super::objects::{Cq, Objects, Qp, Srq};
use super::{Errno, bnxt_re, ioctl, trap, write};

/// A context of a made-up device, as its maker sees it. It lives on when the provider has closed it.
#[derive(Clone, Debug)]
pub struct Device(Arc<Mutex<State>>);

#[derive(Debug)]
pub(super) struct State {
    pub config: Config,
    pub objects: Objects,
    pub bnxt_re: bnxt_re::Context,
    pages: Vec<Region>,
    next: Ids,
    handle: u32,
    cookie: u64,
    /// Where asynchronous events are written to.
    events: Option<c_int>,
    /// Where completion events are written to, by the descriptor that the provider has.
    channels: Vec<(c_int, c_int)>,
}

impl State {
    fn new(config: Config) -> Self {
        Self {
            next: config.ids,
            config,
            objects: Objects::default(),
            bnxt_re: bnxt_re::Context::default(),
            pages: Vec::new(),
            handle: 0,
            cookie: 0,
            events: None,
            channels: Vec::new(),
        }
    }

    pub fn limits(&self) -> Limits {
        self.config.limits
    }

    /// A handle that no object has or had.
    pub fn next_handle(&mut self) -> u32 {
        self.handle += 1;
        self.handle
    }

    pub fn next_cq(&mut self) -> u32 {
        next(&mut self.next.cq, 1)
    }

    pub fn next_qp(&mut self) -> u32 {
        next(&mut self.next.qp, 1)
    }

    pub fn next_srq(&mut self) -> u32 {
        next(&mut self.next.srq, 1)
    }

    pub fn next_ah(&mut self) -> u32 {
        next(&mut self.next.ah, 1)
    }

    /// Keys differ above their lowest byte, which belongs to the consumer.
    pub fn next_mr(&mut self) -> u32 {
        next(&mut self.next.mr, 0x100)
    }

    pub fn next_mw(&mut self) -> u32 {
        next(&mut self.next.mw, 0x100)
    }

    /// Makes a page and gives its cookie for mmap.
    pub fn add_page(&mut self, page: Page, len: usize) -> Result<u64, Errno> {
        let cookie = self.cookie;
        self.pages.push(Region::new(page, cookie, len)?);
        self.cookie += 4096;
        Ok(cookie)
    }

    /// Takes a page away. What the provider has mapped stays.
    pub fn remove_page(&mut self, page: Page) {
        self.pages.retain(|region| region.page != page);
    }

    pub fn page(&self, page: Page) -> &Region {
        self.find(page).unwrap_or_else(|| panic!("the context has no {page:?}"))
    }

    fn find(&self, page: Page) -> Option<&Region> {
        self.pages.iter().find(|region| region.page == page)
    }

    /// A descriptor for asynchronous events.
    pub fn open_events(&mut self) -> Result<c_int, Errno> {
        let (read, write) = pipe()?;
        if let Some(old) = self.events.replace(write) {
            preload::close(old);
        }
        Ok(read)
    }

    /// A descriptor for completion events.
    pub fn open_channel(&mut self) -> Result<c_int, Errno> {
        let (read, write) = pipe()?;
        self.channels.push((read, write));
        Ok(read)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let channels = self.channels.iter().map(|(_, write)| *write);
        for fd in self.events.into_iter().chain(channels) {
            preload::close(fd);
        }
    }
}

fn next(id: &mut u32, step: u32) -> u32 {
    let now = *id;
    *id = id.wrapping_add(step);
    now
}

fn pipe() -> Result<(c_int, c_int), Errno> {
    let mut ends = [0; 2];
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: room for two descriptors.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), flags) } {
        0 => Ok((ends[0], ends[1])),
        _ => Err(libc::EMFILE),
    }
}

impl Device {
    pub(super) fn new(config: Config) -> Self {
        Self(Arc::new(Mutex::new(State::new(config))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command by write().
    ///
    /// # Safety
    /// Addresses in the command are memory.
    pub(crate) unsafe fn write(&self, bytes: &[u8]) -> Result<(), Errno> {
        // SAFETY: the caller's.
        unsafe { write::run(&mut self.state(), bytes) }
    }

    /// A method by ioctl().
    ///
    /// # Safety
    /// `argument` is a header with attributes, whose addresses are memory.
    pub(crate) unsafe fn ioctl(&self, request: u64, argument: *mut u8) -> Result<(), Errno> {
        // SAFETY: the caller's.
        unsafe { ioctl::run(&mut self.state(), request, argument) }
    }

    /// Maps a page.
    pub(crate) fn mmap(&self, len: usize, prot: c_int, cookie: u64) -> Result<usize, Errno> {
        let state = self.state();
        let region = state.pages.iter().find(|region| region.offset == cookie).ok_or(libc::EINVAL)?;
        let kernels = matches!(region.page, Page::PacingParameters | Page::CqToggle(_) | Page::SrqToggle(_));
        if kernels && prot & libc::PROT_WRITE != 0 {
            return Err(libc::EFAULT);
        }
        region.map(len, prot, state.config.traps)
    }

    /// What the context is like.
    pub fn config(&self) -> Config {
        self.state().config.clone()
    }

    /// All objects that there are now.
    pub fn objects(&self) -> Objects {
        self.state().objects.clone()
    }

    /// The completion queue with this handle.
    ///
    /// # Panics
    /// There is none.
    pub fn cq(&self, handle: u32) -> Cq {
        self.state().objects.cqs[&handle].clone()
    }

    /// The queue pair with this handle.
    ///
    /// # Panics
    /// There is none.
    pub fn qp(&self, handle: u32) -> Qp {
        self.state().objects.qps[&handle].clone()
    }

    /// The shared receive queue with this handle.
    ///
    /// # Panics
    /// There is none.
    pub fn srq(&self, handle: u32) -> Srq {
        self.state().objects.srqs[&handle].clone()
    }

    /// Pages that there are now, and their bytes.
    pub fn pages(&self) -> Vec<(Page, usize)> {
        self.state().pages.iter().map(|region| (region.page, region.len())).collect()
    }

    /// Bytes of a page.
    ///
    /// # Panics
    /// There is no such page, or it is shorter.
    pub fn read(&self, page: Page, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.state().page(page).read(offset, &mut bytes);
        bytes
    }

    /// A register.
    ///
    /// # Panics
    /// There is no such page, or it is shorter.
    pub fn read_u64(&self, page: Page, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.state().page(page).read(offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Changes a page, as the kernel or the device does.
    ///
    /// # Panics
    /// There is no such page, or it is shorter.
    pub fn write_page(&self, page: Page, offset: usize, bytes: &[u8]) {
        self.state().page(page).write(offset, bytes);
    }

    /// Stores into the trapped pages of this context since the last call, oldest first.
    pub fn take_stores(&self) -> Vec<Store> {
        let state = self.state();
        let owner = |area| state.pages.iter().find(|region| region.owns(area));
        let raws = trap::take(|area| owner(area).is_some());
        raws.iter()
            .filter_map(|raw| {
                let page = owner(raw.area)?.page;
                Some(Store::new(page, raw.offset, &raw.bytes[..raw.width]))
            })
            .collect()
    }

    /// bnxt_re: times that the provider has told the driver that the doorbell FIFO is nearly full.
    pub fn notified(&self) -> u32 {
        self.state().bnxt_re.notified
    }

    /// bnxt_re: after so many more notifications the word at `offset` of the pacing registers becomes `value`, as when the
    /// doorbell FIFO drains.
    pub fn drain_after(&self, notifications: u32, offset: usize, value: u32) {
        self.state().bnxt_re.drains = Some((notifications, offset, value));
    }

    /// Raises an asynchronous event: `enum ibv_event_type`, and the `user_handle` of the object, or the port.
    ///
    /// # Errors
    /// The context has no descriptor for events, or too many wait.
    pub fn raise(&self, event: u32, element: u64) -> Result<(), Errno> {
        let mut state = self.state();
        let to = state.events.ok_or(libc::EBADF)?;
        let mut bytes = element.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&event.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        let arguments = [to as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
        // SAFETY: the bytes are there.
        let written = unsafe { preload::syscall(libc::SYS_write, arguments) };
        if written != bytes.len() as isize {
            return Err(libc::EAGAIN);
        }
        state.objects.count_event(element);
        Ok(())
    }
}
