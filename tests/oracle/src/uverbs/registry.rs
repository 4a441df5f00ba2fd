//! Which descriptors are ours.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::netlink::Netlink;
use super::{Config, Device, Errno, Family, bnxt_re, ionic};
use crate::preload;

/// Stands behind the descriptor of a made-up device: a character device that every machine has.
pub const STAND_IN: &CStr = c"/dev/null";

const DIRECTORY: &str = "/dev/infiniband/";
/// Descriptors from here on are never ours.
const DESCRIPTORS: usize = 4096;

const OTHER: u8 = 0;
const DEVICE: u8 = 1;
const NETLINK: u8 = 2;

/// Asked on every call of an interposed function, so without a lock.
static KINDS: [AtomicU8; DESCRIPTORS] = [const { AtomicU8::new(OTHER) }; DESCRIPTORS];

struct Registry {
    configs: [Option<Config>; Family::ALL.len()],
    devices: Vec<(c_int, Device)>,
    netlinks: Vec<(c_int, Arc<Netlink>)>,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { configs: [const { None }; 2], devices: Vec::new(), netlinks: Vec::new() });

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
    if !mark(fd, DEVICE) {
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

fn mark(fd: c_int, kind: u8) -> bool {
    let slot = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd));
    slot.inspect(|slot| slot.store(kind, Ordering::Release)).is_some()
}

fn kind(fd: c_int) -> u8 {
    let slot = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd));
    slot.map_or(OTHER, |slot| slot.load(Ordering::Acquire))
}

/// The device behind a descriptor.
pub fn device(fd: c_int) -> Option<Device> {
    if kind(fd) != DEVICE {
        return None;
    }
    registry().devices.iter().find(|(of, _)| *of == fd).map(|(_, device)| device.clone())
}

pub(crate) fn add_netlink(fd: c_int) {
    if mark(fd, NETLINK) {
        registry().netlinks.push((fd, Arc::default()));
    }
}

pub(crate) fn netlink(fd: c_int) -> Option<Arc<Netlink>> {
    if kind(fd) != NETLINK {
        return None;
    }
    registry().netlinks.iter().find(|(of, _)| *of == fd).map(|(_, netlink)| netlink.clone())
}

/// The descriptor is ours no longer.
pub(crate) fn close(fd: c_int) {
    if kind(fd) == OTHER {
        return;
    }
    mark(fd, OTHER);
    let mut registry = registry();
    registry.devices.retain(|(of, _)| *of != fd);
    registry.netlinks.retain(|(of, _)| *of != fd);
}
