use std::path::{Path, PathBuf};
use std::string::String;
use std::vec::Vec;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

const BUSY: &str =
    ": another process has it, or this one has a function of the same IOMMU group: open it beside that one";

/// Why a function cannot be used through VFIO: the file that it is about, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct VfioError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong, and what helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// There is no such function.
    #[error("no PCI function has this address: lspci -D lists them")]
    NoFunction,
    /// Another driver has it, or none.
    #[error(
        "{} has the function, and not vfio-pci: load vfio-pci, write vfio-pci to {at}/driver_override, the address \
         to {at}/driver/unbind if it has a driver, and then to /sys/bus/pci/drivers_probe",
        driver.as_deref().unwrap_or("no driver"), at = at.display()
    )]
    Driver {
        /// Its driver.
        driver: Option<String>,
        /// Its folder.
        at: PathBuf,
    },
    /// It has no IOMMU group.
    #[error(
        "there is no IOMMU for the function: switch it on in the firmware, and in the kernel (intel_iommu=on)"
    )]
    NoIommu,
    /// The kernel has no character devices of VFIO.
    #[error("the kernel has no character device for the function (CONFIG_VFIO_DEVICE_CDEV): take its group")]
    NoDevice,
    /// Other functions of the group belong to other drivers.
    #[error("the group is not viable: bind these functions to vfio-pci, too: {}", others.join(", "))]
    NotViable {
        /// Them, and their drivers.
        others: Vec<String>,
    },
    /// The interface is of another version.
    #[error("VFIO of version {0}, and not 0")]
    Version(i32),
    /// It cannot be opened.
    #[error("cannot be opened: {errno}{}", for_open(*errno))]
    Open {
        /// Why.
        errno: Errno,
    },
    /// Someone has it.
    #[error("cannot be taken: {errno}{}", BUSY)]
    Taken {
        /// What the kernel says.
        errno: Errno,
    },
    /// The process may not lock so much memory.
    #[error(
        "{bytes} bytes cannot be locked for DMA: {errno}; the limit (ulimit -l, RLIMIT_MEMLOCK) is {}: raise it, or \
         run as root",
        limit.map_or_else(|| "none".into(), |limit| std::format!("{limit} bytes"))
    )]
    Locked {
        /// Bytes.
        bytes: usize,
        /// What the kernel says.
        errno: Errno,
        /// The limit in bytes.
        limit: Option<u64>,
    },
    /// No device addresses are left that the IOMMU allows.
    #[error("the IOMMU has no range of device addresses for {bytes} bytes")]
    NoRange {
        /// Bytes.
        bytes: usize,
    },
    /// The process gets no memory.
    #[error("no {bytes} bytes of memory: {errno}")]
    Memory {
        /// Bytes.
        bytes: usize,
        /// Why.
        errno: Errno,
    },
    /// The kernel refuses a call.
    #[error("{call}: {errno}")]
    Refused {
        /// The call, as the kernel's headers name it.
        call: &'static str,
        /// Why.
        errno: Errno,
    },
}

impl Cause {
    pub(super) fn at(self, path: impl Into<PathBuf>) -> VfioError {
        VfioError { path: path.into(), cause: self }
    }
}

/// The kernel refuses `call` on the file at `path`.
pub(super) fn refused(path: &Path, call: &'static str) -> impl FnOnce(Errno) -> VfioError {
    move |errno| Cause::Refused { call, errno }.at(path)
}

/// The kernel refuses to lock memory.
pub(super) fn locked(path: &Path, call: &'static str, bytes: usize) -> impl FnOnce(Errno) -> VfioError {
    move |errno| match errno {
        Errno::NOMEM | Errno::AGAIN | Errno::PERM => {
            let limit = getrlimit(Resource::Memlock).current;
            Cause::Locked { bytes, errno, limit }.at(path)
        }
        _ => refused(path, call)(errno),
    }
}

const fn for_open(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS | Errno::PERM => ": run as root, or give the user this file (chown, or a rule of udev)",
        Errno::NOENT => ": load the kernel modules vfio-pci and vfio_iommu_type1 or iommufd",
        Errno::BUSY => BUSY,
        _ => "",
    }
}
