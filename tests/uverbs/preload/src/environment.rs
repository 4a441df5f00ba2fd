//! The made-up machine that the environment of a program asks for.
//!
//! `DIRECTVERBS_FAKE` is a list of devices, `NIC[@KERNEL][:PLACE]` each, with commas between them: `bnxt_re@7.2:3`. Without
//! it every call goes on to the kernel. `DIRECTVERBS_FAKE_WIRE` is a folder in which the machines of several programs
//! meet; their devices need different places.

use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use directverbs_fake_uverbs::{Machine, Options, Profile, Release};
use directverbs_softnic::open::NicKind;
use rustix::mm::ProtFlags;

use crate::hooks::{Errno, Hooks, Listed};
use crate::raw;

/// Variable with the devices.
const DEVICES: &str = "DIRECTVERBS_FAKE";
/// Variable with the folder of the wire.
const WIRE: &str = "DIRECTVERBS_FAKE_WIRE";
/// Folders of sysfs that are the machine's.
const FOLDERS: [&str; 3] = ["class/infiniband", "class/infiniband_verbs", "class/net"];

/// Folder of the made-up sysfs.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Takes the folder away when the program ends.
extern "C" fn remove() {
    if let Some(folder) = FOLDER.get() {
        // It is of no use to anyone, whether it can be removed or not.
        let _ = std::fs::remove_dir_all(folder);
    }
}

struct Environment {
    machine: Machine,
    listed: Vec<Listed>,
}

/// What a list of devices stands for.
fn profiles(list: &str) -> Result<Vec<Profile>, String> {
    let device = |(nth, text): (usize, &str)| {
        let (text, place) = match text.split_once(':') {
            Some((text, place)) => {
                (text, place.parse().map_err(|_| format!("`{place}` is no place from 1 to 255"))?)
            }
            None => (text, nth as u8 + 1),
        };
        let (nic, release) = match text.split_once('@') {
            Some((nic, release)) => (nic, release.parse::<Release>().map_err(|error| error.to_string())?),
            None => (text, Release::default()),
        };
        let nic = nic.parse::<NicKind>().map_err(|error| error.to_string())?;
        Ok(Profile::new(nic, release, place))
    };
    list.split(',').enumerate().map(device).collect()
}

/// The machine that the environment asks for, if it does. It lasts as long as the process.
pub fn hooks() -> Option<&'static dyn Hooks> {
    let list = std::env::var(DEVICES).ok()?;
    let made = profiles(&list).and_then(|profiles| {
        let options = Options { wire: std::env::var_os(WIRE).map(PathBuf::from), ..Options::default() };
        let machine = Machine::new(&options, &profiles).map_err(|error| error.to_string())?;
        let listed = machine.identities().into_iter().map(|identity| Listed {
            name: identity.name,
            uverbs: identity.uverbs,
            driver_id: identity.driver_id,
            guid: identity.guid,
        });
        let listed = listed.collect();
        Ok(Environment { machine, listed })
    });
    match made {
        Ok(environment) => {
            let environment: &'static Environment = Box::leak(Box::new(environment));
            // What a program leaves in the file system would stay.
            let _ = FOLDER.set(environment.machine.sysfs().to_owned());
            // SAFETY: the function may be called at any time.
            unsafe { libc::atexit(remove) };
            Some(environment)
        }
        Err(message) => {
            // A program that was asked to use a made-up device must not go on with a real one.
            eprintln!("{DEVICES}={list}: {message}");
            std::process::abort()
        }
    }
}

impl Environment {
    /// The file of the made-up sysfs in place of one of the real.
    fn sysfs(&self, path: &CStr) -> Option<PathBuf> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())).strip_prefix("/sys").ok()?;
        FOLDERS.iter().any(|folder| path.starts_with(folder)).then(|| self.machine.sysfs().join(path))
    }
}

fn text(path: &CStr) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()))
}

impl Hooks for Environment {
    fn devices(&self) -> Vec<Listed> {
        self.listed.clone()
    }

    fn open(&self, path: &CStr) -> Option<Result<c_int, Errno>> {
        if path.to_bytes().starts_with(b"/dev/infiniband/") {
            return Some(self.machine.open(text(path)).map_err(|errno| errno.raw_os_error()));
        }
        let real = CString::new(self.sysfs(path)?.into_os_string().as_bytes()).ok()?;
        Some(raw::open(&real))
    }

    fn stat_instead(&self, path: &CStr) -> Option<CString> {
        if path.to_bytes().starts_with(b"/dev/infiniband/") {
            return self.machine.is_device(text(path)).then(|| c"/dev/null".into());
        }
        CString::new(self.sysfs(path)?.into_os_string().as_bytes()).ok()
    }

    fn close(&self, fd: c_int) -> bool {
        self.machine.close(fd)
    }

    unsafe fn write(&self, fd: c_int, bytes: &[u8]) -> Option<Result<(), Errno>> {
        if !self.machine.owns(fd) {
            return None;
        }
        // SAFETY: the caller's.
        let written = unsafe { self.machine.write(fd, bytes) };
        Some(written.map(drop).map_err(|errno| errno.raw_os_error()))
    }

    fn reads(&self, fd: c_int) -> bool {
        self.machine.owns(fd)
    }

    fn read(&self, fd: c_int, bytes: &mut [u8]) -> Result<usize, Errno> {
        self.machine.read(fd, bytes).map_err(|errno| errno.raw_os_error())
    }

    unsafe fn ioctl(&self, fd: c_int, request: u64, argument: *mut u8) -> Option<Result<(), Errno>> {
        if !self.machine.owns(fd) {
            return None;
        }
        // SAFETY: the caller's.
        let done = unsafe { self.machine.ioctl(fd, request, argument.expose_provenance() as u64) };
        Some(done.map_err(|errno| errno.raw_os_error()))
    }

    fn mmap(&self, fd: c_int, len: usize, prot: c_int, offset: u64) -> Option<Result<usize, Errno>> {
        let access = ProtFlags::from_bits_truncate(prot.cast_unsigned());
        let ours = self.machine.owns(fd);
        ours.then(|| self.machine.mmap(fd, offset, len, access).map_err(|errno| errno.raw_os_error()))
    }

    unsafe fn munmap(&self, at: usize, len: usize) -> bool {
        // SAFETY: the caller's.
        self.machine.maps(at) && unsafe { self.machine.munmap(at, len) }.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_devices_kernels_and_places() {
        let list = profiles("bnxt_re@7.2:3,ionic").unwrap();
        assert_eq!(
            list,
            [
                Profile::new(NicKind::BnxtReP7, Release::V7_2, 3),
                Profile::new(NicKind::IonicV2, Release::V7_3, 2)
            ]
        );
        for (wrong, message) in [
            ("mlx5", "no software NIC is called `mlx5`"),
            ("bnxt_re@5.4", "no kernel is called `5.4`"),
            ("bnxt_re:x", "`x` is no place from 1 to 255"),
        ] {
            let error = profiles(wrong).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
