//! A kernel for tests: it takes calls as strictly as the real one, keeps files, objects and mappings, writes down what it was
//! sent, and fails where it is told to.

mod device;
mod packet;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustix::io::Errno;

use super::abi::attribute::{Method, Spec};
use super::kernel::{Fd, Kernel, MapRequest};

pub(crate) use packet::Request;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// What the kernel and its driver are like.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// There is `RDMA_VERBS_IOCTL`.
    pub ioctl: bool,
    /// There is INVOKE_WRITE.
    pub invoke_write: bool,
    /// There is the extended QUERY_DEVICE.
    pub extended_query: bool,
    /// There are the attributes for memory of queues.
    pub umem: bool,
    /// Contexts can be asked about.
    pub query_context: bool,
    /// Features that it tells.
    pub core_support: u64,
    /// Driver.
    pub driver_id: u32,
    /// What the driver writes as its part of the reply to a method or command.
    pub uhw: Vec<(&'static str, Vec<u8>)>,
    /// Methods of the driver's own.
    pub methods: &'static [&'static Method],
    /// Attributes that the driver adds to a method of the core.
    pub attributes: &'static [(&'static str, Spec)],
    /// What the driver's methods write: method, attribute, bytes.
    pub outputs: Vec<(&'static str, &'static str, Vec<u8>)>,
}

impl Settings {
    /// As Linux 7.3 is.
    pub fn newest() -> Self {
        Self {
            ioctl: true,
            invoke_write: true,
            extended_query: true,
            umem: true,
            query_context: true,
            core_support: 3,
            driver_id: 6,
            uhw: Vec::new(),
            methods: &[],
            attributes: &[],
            outputs: Vec::new(),
        }
    }

    /// As Linux 6.12 is.
    pub fn older() -> Self {
        Self { umem: false, core_support: 1, ..Self::newest() }
    }
}

/// A file that is open.
#[derive(Debug, Default)]
struct File {
    /// It is the device's, and whether its context is open.
    device: Option<bool>,
    /// What reading it yields.
    records: VecDeque<Vec<u8>>,
    nonblocking: bool,
}

/// An object: its kind and handle.
type Key = (u16, u32);

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<i32, File>,
    objects: BTreeMap<Key, Vec<Key>>,
    mappings: BTreeMap<usize, usize>,
    log: Vec<Request>,
    /// Calls so far that can fail, and which one shall.
    calls: usize,
    fail: Option<(usize, Errno)>,
    /// The next wait or read is interrupted by a signal.
    interrupt: usize,
    next: u32,
    process: u32,
}

/// The kernel.
pub(crate) struct Model {
    settings: Settings,
    state: Mutex<State>,
}

impl Model {
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self { settings, state: Mutex::new(State { next: 3, process: 100, ..State::default() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in the model")
    }

    /// Makes the `call`th of all that can fail, counted from 0, fail.
    pub fn fail_at(&self, call: usize, errno: Errno) {
        let mut state = self.state();
        state.calls = 0;
        state.fail = Some((call, errno));
    }

    /// What the driver writes as its part of the reply to `name`.
    pub fn uhw(&self, name: &str) -> &[u8] {
        self.settings.uhw.iter().find(|(n, _)| *n == name).map_or(&[], |(_, bytes)| bytes)
    }

    /// Calls since [`Model::fail_at`].
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// What was sent, and is forgotten.
    pub fn take_log(&self) -> Vec<Request> {
        std::mem::take(&mut self.state().log)
    }

    /// The only request since.
    pub fn only(&self) -> Request {
        let mut log = self.take_log();
        assert_eq!(log.len(), 1, "{log:?}");
        log.remove(0)
    }

    /// What is open, registered or mapped.
    pub fn leftovers(&self) -> Vec<String> {
        let state = self.state();
        let files = state.files.keys().map(|fd| format!("file {fd}"));
        let objects = state.objects.keys().map(|(kind, handle)| format!("object {kind}:{handle}"));
        let mappings = state.mappings.keys().map(|address| format!("mapping {address:#x}"));
        files.chain(objects).chain(mappings).collect()
    }

    /// The 64-bit word at an address of a mapping.
    pub fn load(&self, address: u64) -> u64 {
        let state = self.state();
        let (start, length) = state.mappings.range(..=address as usize).next_back().expect("a mapping");
        assert!(address as usize + size_of::<u64>() <= start + length, "in the mapping");
        // SAFETY: it lies in memory that `map` has allocated and `unmap` has not freed, while the state is locked.
        unsafe { (address as usize as *const u64).read_volatile() }
    }

    /// Puts a record into a file.
    pub fn raise(&self, fd: Fd, record: &[u8]) {
        let mut state = self.state();
        state.files.get_mut(&fd.get()).expect("an open file").records.push_back(record.to_vec());
    }

    /// The next `times` waits or reads are interrupted by a signal.
    pub fn interrupt(&self, times: usize) {
        self.state().interrupt = times;
    }

    /// The process forks: what follows is done by the child.
    pub fn fork(&self) {
        self.state().process += 1;
    }
}

impl State {
    /// Counts a call that can fail.
    fn count(&mut self) -> Result<(), Errno> {
        let call = self.calls;
        self.calls += 1;
        match self.fail {
            Some((at, errno)) if at == call => Err(errno),
            _ => Ok(()),
        }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn open(&mut self, file: File) -> i32 {
        let fd = self.number().cast_signed();
        self.files.insert(fd, file);
        fd
    }

    fn interrupted(&mut self) -> Result<(), Errno> {
        if self.interrupt == 0 {
            return Ok(());
        }
        self.interrupt -= 1;
        Err(Errno::INTR)
    }
}

// SAFETY: mappings are allocations of the length asked for, and memory is touched only as the packets say.
unsafe impl Kernel for Model {
    fn open(&self, _: &Path) -> Result<Fd, Errno> {
        let mut state = self.state();
        state.count()?;
        Fd::new(state.open(File { device: Some(false), ..File::default() })).ok_or(Errno::BADF)
    }

    fn close(&self, fd: Fd) {
        let mut state = self.state();
        let file = state.files.remove(&fd.get()).expect("closed once");
        // With the device's file all its objects go.
        if file.device.is_some() {
            state.objects.clear();
        }
    }

    unsafe fn ioctl(&self, fd: Fd, packet: &mut [u64]) -> Result<(), Errno> {
        // SAFETY: the caller vouches for the addresses in the packet.
        unsafe { self.run_packet(fd, packet) }
    }

    unsafe fn write(&self, fd: Fd, command: &[u8]) -> Result<usize, Errno> {
        // SAFETY: the caller vouches for the address in the command.
        unsafe { self.run_write(fd, command) }?;
        Ok(command.len())
    }

    fn read(&self, fd: Fd, bytes: &mut [u8]) -> Result<usize, Errno> {
        let mut state = self.state();
        state.interrupted()?;
        let file = state.files.get_mut(&fd.get()).ok_or(Errno::BADF)?;
        assert!(file.nonblocking, "a read that may wait for ever");
        let record = file.records.pop_front().ok_or(Errno::AGAIN)?;
        bytes[..record.len()].copy_from_slice(&record);
        Ok(record.len())
    }

    fn wait_readable(&self, fd: Fd, _: Option<Duration>) -> Result<bool, Errno> {
        let mut state = self.state();
        state.interrupted()?;
        let file = state.files.get(&fd.get()).ok_or(Errno::BADF)?;
        Ok(!file.records.is_empty())
    }

    fn set_nonblocking(&self, fd: Fd, nonblocking: bool) -> Result<(), Errno> {
        let mut state = self.state();
        state.count()?;
        state.files.get_mut(&fd.get()).ok_or(Errno::BADF)?.nonblocking = nonblocking;
        Ok(())
    }

    fn map(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno> {
        let mut state = self.state();
        state.count()?;
        assert_eq!(request.length % PAGE, 0, "whole pages");
        if let Some(fd) = request.file {
            assert!(state.files.contains_key(&fd.get()), "an open file");
            let number = |n: u64| n.to_le_bytes().to_vec();
            let attributes = vec![
                ("OFFSET", number(request.offset)),
                ("LENGTH", number(request.length as u64)),
                ("PROTECTION", number(request.protection as u64)),
            ];
            state.log.push(Request { name: "mmap", attributes, ..Request::default() });
        }
        let layout = Layout::from_size_align(request.length, PAGE).map_err(|_| Errno::NOMEM)?;
        // SAFETY: the length is at least a page.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).ok_or(Errno::NOMEM)?;
        state.mappings.insert(memory.as_ptr() as usize, request.length);
        Ok(memory)
    }

    unsafe fn unmap(&self, address: NonNull<u8>, length: usize) -> Result<(), Errno> {
        let known = self.state().mappings.remove(&(address.as_ptr() as usize));
        assert_eq!(known, Some(length), "unmapped once, and all of it");
        let layout = Layout::from_size_align(length, PAGE).map_err(|_| Errno::INVAL)?;
        // SAFETY: it was allocated by `map` with this layout, and the caller gives it up.
        unsafe { dealloc(address.as_ptr(), layout) };
        Ok(())
    }

    fn process(&self) -> u32 {
        self.state().process
    }

    fn page_size(&self) -> usize {
        PAGE
    }

    fn memlock_limit(&self) -> Option<u64> {
        Some(8 << 20)
    }
}
