//! The machine: devices on a wire, the files of a process, and what the driver does when a NIC interrupts.

use std::collections::BTreeMap;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::uplink;
use rustix::fs::{Mode, OFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use tempfile::TempDir;

use crate::abi::RDMA_VERBS_IOCTL;
use crate::census::Census;
use crate::device::Device;
use crate::events::{EventFiles, take_count};
use crate::objects::Object;
use crate::packet::Bundle;
use crate::pages::{PAGE, unmap};
use crate::profile::Profile;
use crate::schema::{Access, FileKind, Kind};
use crate::session::{DeviceFile, Session};
use crate::user::PinnedMemory;
use crate::{Errno, command, interrupt, sysfs};

/// Where the character devices are.
const FOLDER: &str = "/dev/infiniband/";
/// Descriptors from here on are never this machine's.
const DESCRIPTORS: usize = 4096;
/// How long the interrupt thread sleeps when no NIC wakes it.
const NAP: Duration = Duration::from_millis(50);

/// How the wire behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The NICs run on threads of their own; otherwise they move only in [`Machine::step`].
    pub threaded: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// Folder in which machines of other processes are met: what has no place on this machine's wire is there.
    pub wire: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { threaded: true, seed: 1, faults: FaultPlan::NONE, wire: None }
    }
}

/// What discovery tells of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the RDMA device.
    pub name: String,
    /// Name of its character device.
    pub uverbs: String,
    /// `enum rdma_driver_id`.
    pub driver_id: u32,
    /// Node GUID, as it is in memory.
    pub guid: [u8; 8],
}

/// What the process has of the kernel.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub devices: Vec<Device>,
    pub files: BTreeMap<RawFd, DeviceFile>,
    pub events: EventFiles,
    /// Bytes of each mapping.
    pub mappings: BTreeMap<usize, usize>,
    /// Calls so far that can fail, and which one shall.
    calls: usize,
    fail: Option<(usize, Errno)>,
}

impl State {
    /// The call that comes through `fd`.
    fn session(&mut self, fd: RawFd) -> Result<Session<'_>, Errno> {
        let file = self.files.get_mut(&fd).ok_or(Errno::BADF)?;
        let device = self.devices.get_mut(file.device).ok_or(Errno::NODEV)?;
        Ok(Session { fd, device, file, events: &mut self.events, gone: Default::default() })
    }

    fn count(&mut self) -> Result<(), Errno> {
        let call = self.calls;
        self.calls += 1;
        match self.fail {
            Some((at, errno)) if at == call => Err(errno),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Shared {
    fabric: Fabric,
    memory: Arc<PinnedMemory>,
    state: Mutex<State>,
    sysfs: TempDir,
    stop: AtomicBool,
    owned: Owned,
}

/// Descriptors that are this machine's: asked without a lock, as a preload library must.
struct Owned([AtomicBool; DESCRIPTORS]);

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Owned")
    }
}

impl Owned {
    fn set(&self, fd: RawFd, owned: bool) {
        if let Some(slot) = usize::try_from(fd).ok().and_then(|fd| self.0.get(fd)) {
            slot.store(owned, Ordering::Release);
        }
    }

    fn contains(&self, fd: RawFd) -> bool {
        let slot = usize::try_from(fd).ok().and_then(|fd| self.0.get(fd));
        slot.is_some_and(|slot| slot.load(Ordering::Acquire))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve_interrupts(&self) -> bool {
        interrupt::serve(&mut self.state())
    }
}

/// A machine. Clones share it; its threads end with the last one.
#[derive(Clone, Debug)]
pub struct Machine {
    shared: Arc<Shared>,
    _thread: Arc<Thread>,
}

/// The thread that serves interrupts.
#[derive(Debug)]
struct Thread {
    shared: Arc<Shared>,
    join: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(join) = self.join.take() {
            // It has nothing to say.
            let _ = join.join();
        }
    }
}

impl Machine {
    /// Plugs the devices into one wire. Their character devices are `/dev/infiniband/uverbs0` and on, in this order.
    ///
    /// # Errors
    /// The folder for sysfs cannot be made, or a device's kernel has no driver for it.
    pub fn new(options: &Options, profiles: &[Profile]) -> std::io::Result<Self> {
        if let Some(profile) = profiles.iter().find(|profile| !profile.release.drives(profile.nic)) {
            let message = format!("Linux {} has no driver for {}", profile.release, profile.nic);
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, message));
        }
        let Options { threaded, seed, faults, .. } = *options;
        let fabric = Fabric::new(FabricOptions { seed, faults, threaded });
        let memory = PinnedMemory::new();
        let attach = |(number, profile): (usize, &Profile)| {
            Device::attach(&fabric, profile.clone(), number, memory.clone())
        };
        let devices: Vec<Device> = profiles.iter().enumerate().map(attach).collect();
        let folder = tempfile::Builder::new().prefix("fake-uverbs-").tempdir()?;
        sysfs::write(folder.path(), &devices)?;
        let shared = Arc::new(Shared {
            fabric,
            memory,
            state: Mutex::new(State { devices, ..State::default() }),
            sysfs: folder,
            stop: AtomicBool::new(false),
            owned: Owned([const { AtomicBool::new(false) }; DESCRIPTORS]),
        });
        if let Some(folder) = &options.wire {
            shared.fabric.lead_out(|inlet| uplink::folder(folder, &inlet))?;
        }
        let thread = threaded.then(|| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                while !shared.stop.load(Ordering::Acquire) {
                    shared.memory.wait(NAP);
                    shared.serve_interrupts();
                }
            })
        });
        let thread = Arc::new(Thread { shared: shared.clone(), join: thread });
        Ok(Self { shared, _thread: thread })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// Root of the made-up sysfs: what a real machine has in `/sys`.
    pub fn sysfs(&self) -> &Path {
        self.shared.sysfs.path()
    }

    /// Names of the RDMA devices, in order.
    pub fn devices(&self) -> Vec<String> {
        self.state().devices.iter().map(Device::name).collect()
    }

    /// What discovery tells of the devices, in order.
    pub fn identities(&self) -> Vec<Identity> {
        let of = |device: &Device| Identity {
            name: device.name(),
            uverbs: device.uverbs(),
            driver_id: device.profile.family().driver_id(),
            guid: device.guid(),
        };
        self.state().devices.iter().map(of).collect()
    }

    /// Gives the NICs time: one event of the wire, and the interrupts that came of it. `false` says that nothing will ever
    /// come without new work.
    pub fn step(&self) -> bool {
        let moved = self.shared.fabric.step();
        self.shared.serve_interrupts() || moved
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.shared.fabric.now_ns()
    }

    /// The wire between the devices.
    pub fn fabric(&self) -> &Fabric {
        &self.shared.fabric
    }

    /// What drivers did wrong in the eyes of the NICs: the device's name, and what.
    pub fn violations(&self) -> Vec<String> {
        let state = self.state();
        let of = |device: &Device| {
            let violations = device.nic.lock().front_end().violations();
            violations
                .into_iter()
                .map(|violation| format!("{}: {violation}", device.name()))
                .collect::<Vec<_>>()
        };
        state.devices.iter().flat_map(of).collect()
    }

    /// What is open, mapped and registered.
    pub fn census(&self) -> Census {
        Census::of(&self.state(), &self.shared.memory)
    }

    /// Makes a dma-buf. Its descriptor can be mapped and given to any device; the memory stays as long as the machine.
    ///
    /// # Errors
    /// There is no more memory, or no more descriptors.
    pub fn new_dmabuf(&self, bytes: usize) -> std::io::Result<OwnedFd> {
        self.shared.memory.new_dmabuf(bytes)
    }

    /// Limits how many bytes may be pinned.
    pub fn set_memlock_limit(&self, limit: Option<u64>) {
        self.shared.memory.set_limit(limit);
    }

    /// Bytes that may be pinned, if there is a limit.
    pub fn memlock_limit(&self) -> Option<u64> {
        self.shared.memory.limit()
    }

    /// Makes the `call`th call from now on that can fail, counted from 0, fail with `errno`; `None` lets all succeed.
    /// Opens, methods, commands, mappings and changes of a file's mode count. What destroys, unmaps or closes does not.
    pub fn fail(&self, call: Option<(usize, Errno)>) {
        let mut state = self.state();
        (state.calls, state.fail) = (0, call);
    }

    /// Calls that could have failed since [`Machine::fail`].
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// Opens a character device.
    ///
    /// # Errors
    /// ENOENT: there is none of this name.
    pub fn open(&self, path: &Path) -> Result<RawFd, Errno> {
        let mut state = self.state();
        state.count()?;
        let name = path.to_str().and_then(|path| path.strip_prefix(FOLDER)).ok_or(Errno::NOENT)?;
        let device = state.devices.iter().position(|device| device.uverbs() == name).ok_or(Errno::NOENT)?;
        // A descriptor of its own, so that numbers are those of the process.
        let stand_in = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let fd = stand_in.into_raw_fd();
        state.files.insert(fd, DeviceFile { device, context: None });
        self.shared.owned.set(fd, true);
        Ok(fd)
    }

    /// Whether a path is that of a character device.
    pub fn is_device(&self, path: &Path) -> bool {
        let name = path.to_str().and_then(|path| path.strip_prefix(FOLDER));
        name.is_some_and(|name| self.state().devices.iter().any(|device| device.uverbs() == name))
    }

    /// Whether a descriptor is one of this machine's. It takes no lock.
    pub fn owns(&self, fd: RawFd) -> bool {
        self.shared.owned.contains(fd)
    }

    /// Marks the files of events that a call has made.
    fn own(&self, state: &State) {
        state.events.descriptors().for_each(|fd| self.shared.owned.set(fd, true));
    }

    /// Closes a file. With a device's file all objects of its context go. `false` if it is not one of this machine's; the
    /// descriptor is then left alone.
    pub fn close(&self, fd: RawFd) -> bool {
        if !self.owns(fd) {
            return false;
        }
        let mut state = self.state();
        if let Ok(mut session) = state.session(fd) {
            session.close();
            state.files.remove(&fd);
        } else if !state.events.forget(fd) {
            return false;
        }
        self.shared.owned.set(fd, false);
        // SAFETY: the descriptor was made by `open` or for events, and its owner gives it up.
        unsafe { rustix::io::close(fd) };
        true
    }

    /// Carries out a method.
    ///
    /// # Errors
    /// What the kernel answers.
    ///
    /// # Safety
    /// `argument` is the address of a packet whose outputs, and itself, may be written.
    pub unsafe fn ioctl(&self, fd: RawFd, request: u64, argument: u64) -> Result<(), Errno> {
        let mut state = self.state();
        let (family, release) = {
            let session = state.session(fd)?;
            (session.family(), session.release())
        };
        if request != RDMA_VERBS_IOCTL {
            return Err(Errno::NOTTY);
        }
        // SAFETY: the caller's.
        let bundle = unsafe { Bundle::parse(family, release, argument) };
        let destroys = |kind| matches!(kind, Kind::Object(_, Access::Destroy));
        let free = bundle.as_ref().is_ok_and(|b| b.method.attrs.iter().any(|attr| destroys(attr.kind)));
        if !free {
            state.count()?;
        }
        let done = state.session(fd)?.call(&mut bundle?);
        self.own(&state);
        done
    }

    /// Carries out a command.
    ///
    /// # Errors
    /// What the kernel answers.
    ///
    /// # Safety
    /// The reply's address in the command may be written.
    pub unsafe fn write(&self, fd: RawFd, bytes: &[u8]) -> Result<usize, Errno> {
        let mut state = self.state();
        state.count()?;
        let mut session = state.session(fd)?;
        // SAFETY: the caller's.
        unsafe { command::write(&mut session, bytes) }?;
        self.own(&state);
        Ok(bytes.len())
    }

    /// Reads a record of a file of events; waits for one unless the file is non-blocking.
    ///
    /// # Errors
    /// EAGAIN: there is none. EINVAL: `bytes` are too few. EBADF: no file of events.
    pub fn read(&self, fd: RawFd, bytes: &mut [u8]) -> Result<usize, Errno> {
        let state = self.state();
        let is = |kind| state.files.keys().any(|owner| state.events.check(kind, *owner, fd as u64).is_ok());
        let needed = match (is(FileKind::Channel), is(FileKind::AsyncEvents)) {
            (true, _) => 8,
            (_, true) => 16,
            _ if state.events.contains(fd) => 8,
            _ => return Err(Errno::BADF),
        };
        drop(state);
        if bytes.len() < needed {
            return Err(Errno::INVAL);
        }
        loop {
            take_count(fd)?;
            let mut state = self.state();
            // What it was about may have been destroyed in between.
            let Some(record) = state.events.take(fd) else { continue };
            interrupt::reported(&mut state, &record);
            let to = bytes.get_mut(..record.bytes.len()).ok_or(Errno::INVAL)?;
            to.copy_from_slice(&record.bytes);
            return Ok(record.bytes.len());
        }
    }

    /// Waits until a file can be read; `false` if the time is over.
    ///
    /// # Errors
    /// EINTR: a signal came.
    pub fn wait_readable(&self, fd: RawFd, timeout: Option<Duration>) -> Result<bool, Errno> {
        interrupt::wait_readable(fd, timeout)
    }

    /// Makes reading a file wait, or not.
    ///
    /// # Errors
    /// EBADF: it is not one of this machine's.
    pub fn set_nonblocking(&self, fd: RawFd, nonblocking: bool) -> Result<(), Errno> {
        let mut state = self.state();
        state.count()?;
        if !state.events.contains(fd) && !state.files.contains_key(&fd) {
            return Err(Errno::BADF);
        }
        interrupt::set_nonblocking(fd, nonblocking)
    }

    /// Maps the page at the cookie `offset` of a device file.
    ///
    /// # Errors
    /// EINVAL: there is no such page, or it has another length. EFAULT: it may not be written.
    pub fn mmap(&self, fd: RawFd, offset: u64, len: usize, access: ProtFlags) -> Result<usize, Errno> {
        let mut state = self.state();
        state.count()?;
        let region = state.session(fd)?.context()?.pages.get(&offset).cloned().ok_or(Errno::INVAL)?;
        let at = region.map(len, access)?;
        state.mappings.insert(at, len);
        Ok(at)
    }

    /// Maps fresh zeroed memory, which a child after fork does not have.
    ///
    /// # Errors
    /// ENOMEM: there is no more.
    pub fn mmap_anonymous(&self, len: usize, access: ProtFlags) -> Result<usize, Errno> {
        let mut state = self.state();
        state.count()?;
        if len == 0 || !len.is_multiple_of(PAGE) {
            return Err(Errno::INVAL);
        }
        // SAFETY: a new mapping at a place of the kernel's choice; the advice changes only what a child sees.
        let at = unsafe {
            let at = mmap_anonymous(std::ptr::null_mut(), len, access, MapFlags::PRIVATE)?;
            madvise(at, len, Advice::LinuxDontFork)?;
            at
        };
        state.mappings.insert(at as usize, len);
        Ok(at as usize)
    }

    /// Unmaps what was mapped here.
    ///
    /// # Errors
    /// EINVAL: it is no mapping of this machine, or not all of one.
    ///
    /// # Safety
    /// Nobody uses the memory any more.
    pub unsafe fn munmap(&self, at: usize, len: usize) -> Result<(), Errno> {
        let mut state = self.state();
        if state.mappings.get(&at) != Some(&len) {
            return Err(Errno::INVAL);
        }
        state.mappings.remove(&at);
        // SAFETY: the caller's.
        unsafe { unmap(at, len) }
    }

    /// Whether a mapping of this machine begins there.
    pub fn maps(&self, at: usize) -> bool {
        self.state().mappings.contains_key(&at)
    }

    /// Handles of the objects of a device file that `wanted` says, for tests.
    pub fn handles(&self, fd: RawFd, wanted: impl Fn(&Object) -> bool) -> Vec<u32> {
        let mut state = self.state();
        let Ok(mut session) = state.session(fd) else { return Vec::new() };
        let Ok(objects) = session.objects() else { return Vec::new() };
        objects.iter().filter(|(_, object)| wanted(object)).map(|(handle, _)| handle).collect()
    }
}
