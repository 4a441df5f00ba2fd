//! Which descriptors are ours.

use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use preload::{Hooks, Listed};

use super::{Config, Device, Errno, Family, bnxt_re, ionic, sysfs, trap};

/// Stands behind the descriptor of a made-up device: a character device that every machine has.
pub const STAND_IN: &CStr = c"/dev/null";

const DIRECTORY: &str = "/dev/infiniband/";
/// Descriptors from here on are never ours.
const DESCRIPTORS: usize = 4096;

/// Whether a descriptor is a device's. Asked on every call of an interposed function, so without a lock.
static DEVICES: [AtomicBool; DESCRIPTORS] = [const { AtomicBool::new(false) }; DESCRIPTORS];

struct Registry {
    configs: [Option<Config>; Family::ALL.len()],
    devices: Vec<(c_int, Device)>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { configs: [const { None }; 2], devices: Vec::new() });

/// A panic in a test leaves the tables whole.
fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what the contexts of a family that are opened from now on are like.
pub fn configure(config: Config) {
    let family = config.family();
    registry().configs[family as usize] = Some(config);
}

fn family(path: &CStr) -> Option<Family> {
    let name = path.to_str().ok()?.strip_prefix(DIRECTORY)?;
    Family::ALL.into_iter().find(|family| family.device_name() == name)
}

/// The path is that of a made-up device.
pub fn is_device(path: &CStr) -> bool {
    family(path).is_some()
}

/// Opens the device with the path `path`, if it is one of ours.
pub(crate) fn open(path: &CStr) -> Option<Result<c_int, Errno>> {
    let family = family(path)?;
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    let at = [libc::AT_FDCWD as usize, STAND_IN.as_ptr() as usize, flags as usize, 0, 0, 0];
    // SAFETY: the path is a string.
    let fd = unsafe { preload::syscall(libc::SYS_openat, at) } as c_int;
    if !mark(fd, true) {
        preload::close(fd);
        return Some(Err(libc::EMFILE));
    }
    let mut registry = registry();
    let config = registry.configs[family as usize].clone().unwrap_or_else(|| match family {
        Family::BnxtRe => bnxt_re::Config::p7().into(),
        Family::Ionic => ionic::Config::default().into(),
    });
    registry.devices.push((fd, Device::new(config)));
    Some(Ok(fd))
}

fn mark(fd: c_int, device: bool) -> bool {
    let slot = usize::try_from(fd).ok().and_then(|fd| DEVICES.get(fd));
    slot.inspect(|slot| slot.store(device, Ordering::Release)).is_some()
}

fn is_marked(fd: c_int) -> bool {
    let slot = usize::try_from(fd).ok().and_then(|fd| DEVICES.get(fd));
    slot.is_some_and(|slot| slot.load(Ordering::Acquire))
}

/// The device behind a descriptor.
pub fn device(fd: c_int) -> Option<Device> {
    if !is_marked(fd) {
        return None;
    }
    registry().devices.iter().find(|(of, _)| *of == fd).map(|(_, device)| device.clone())
}

/// The made-up devices behind the interposed functions.
struct Oracle;

/// Makes calls on the made-up devices end here. A program must do it before it loads the library.
pub fn install() {
    preload::link();
    // There are no other hooks: whoever was first has installed these.
    let _ = preload::install(&Oracle);
}

impl Hooks for Oracle {
    fn devices(&self) -> Vec<Listed> {
        let listed = |(index, family): (usize, Family)| Listed {
            name: family.device_name().into(),
            uverbs: family.device_name().into(),
            driver_id: family.driver_id(),
            guid: (index as u64 + 1).to_ne_bytes(),
        };
        Family::ALL.into_iter().enumerate().map(listed).collect()
    }

    fn open(&self, path: &CStr) -> Option<Result<c_int, Errno>> {
        open(path).or_else(|| sysfs::open(path))
    }

    fn stat_instead(&self, path: &CStr) -> Option<CString> {
        is_device(path).then(|| STAND_IN.into())
    }

    fn close(&self, fd: c_int) -> bool {
        if is_marked(fd) {
            mark(fd, false);
            registry().devices.retain(|(of, _)| *of != fd);
        }
        false
    }

    unsafe fn write(&self, fd: c_int, bytes: &[u8]) -> Option<Result<(), Errno>> {
        // SAFETY: the caller's.
        device(fd).map(|device| unsafe { device.write(bytes) })
    }

    unsafe fn ioctl(&self, fd: c_int, request: u64, argument: *mut u8) -> Option<Result<(), Errno>> {
        // SAFETY: the caller's.
        device(fd).map(|device| unsafe { device.ioctl(request, argument) })
    }

    fn mmap(&self, fd: c_int, len: usize, prot: c_int, offset: u64) -> Option<Result<usize, Errno>> {
        device(fd).map(|device| device.mmap(len, prot, offset))
    }

    unsafe fn munmap(&self, at: usize, len: usize) -> bool {
        trap::forget(at, len);
        false
    }
}
