//! From an address to a function and its address space: the two interfaces of the kernel.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::string::ToString;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::{Cause, VfioError, refused};
use super::function::{Function, Interface, Places, Way};
use super::kernel;
use super::space::{Keeper, Space};

/// What a function is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of memory for DMA; rounded up to pages.
    pub memory: usize,
    /// The memory comes from pages of 2 MiB, if enough are reserved (`vm.nr_hugepages`).
    pub huge_pages: bool,
    /// How the function is taken.
    pub interface: Interface,
    /// Where the kernel's files are.
    pub places: Places,
}

impl Default for Options {
    /// 32 MiB in pages of the usual size, by either interface.
    fn default() -> Self {
        Self { memory: 32 << 20, huge_pages: false, interface: Interface::Either, places: Places::default() }
    }
}

/// The version of VFIO that this is written for, the only one so far.
const API_VERSION: i32 = 0;

fn open(path: &Path) -> Result<OwnedFd, VfioError> {
    let opened = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    opened.map_err(|errno| Cause::Open { errno }.at(path))
}

/// A function that this process has taken, by the file at `path`.
#[derive(Debug)]
pub(super) struct Taken {
    pub device: OwnedFd,
    pub path: PathBuf,
    pub space: Arc<Space>,
}

/// Takes a function, in an address space of its own.
pub(super) fn take(function: &Function, options: &Options) -> Result<Taken, VfioError> {
    match function.way(options.interface, &options.places)? {
        Way::Device { iommufd, device } => by_device(function, iommufd, device),
        Way::Group { container, group } => by_group(function, container, group),
    }
}

/// Takes a function of the group that `space` is for: a group is open once, and has one address space.
pub(super) fn take_into(
    space: &Arc<Space>,
    function: &Function,
    places: &Places,
) -> Result<Taken, VfioError> {
    let (device, path) = match &space.keeper {
        Keeper::Container { group, .. } => {
            let path = function.group_file(places)?;
            (of_group(function, group, &path)?, path)
        }
        Keeper::Iommufd { iommufd, number, .. } => {
            let path = function.device_file(places)?;
            let device = bound(function, iommufd, &path)?;
            attach(&device, *number, &path)?;
            (device, path)
        }
    };
    Ok(Taken { device, path, space: Arc::clone(space) })
}

fn by_device(function: &Function, path: PathBuf, device_path: PathBuf) -> Result<Taken, VfioError> {
    let iommufd = open(&path)?;
    let device = bound(function, &iommufd, &device_path)?;
    let number = kernel::new_address_space(&iommufd).map_err(refused(&path, "IOMMU_IOAS_ALLOC"))?;
    attach(&device, number, &device_path)?;
    let space = Arc::new(Space::new(Keeper::Iommufd { iommufd, path, number }));
    Ok(Taken { device, path: device_path, space })
}

/// A character device, tied to an iommufd.
fn bound(function: &Function, iommufd: &OwnedFd, path: &Path) -> Result<OwnedFd, VfioError> {
    let device = open(path)?;
    // Whoever has the right opens the file; only one can tie it.
    kernel::bind(&device, iommufd).map_err(|errno| match errno {
        Errno::BUSY | Errno::PERM if !function.others().is_empty() => {
            Cause::NotViable { others: function.others() }.at(path)
        }
        // The file is tied, or the group is open or in another address space.
        Errno::INVAL | Errno::BUSY | Errno::PERM => Cause::Taken { errno }.at(path),
        _ => refused(path, "VFIO_DEVICE_BIND_IOMMUFD")(errno),
    })?;
    Ok(device)
}

fn attach(device: &OwnedFd, number: u32, path: &Path) -> Result<(), VfioError> {
    kernel::attach(device, number).map_err(refused(path, "VFIO_DEVICE_ATTACH_IOMMUFD_PT"))
}

fn by_group(function: &Function, path: PathBuf, group_path: PathBuf) -> Result<Taken, VfioError> {
    let container = open(&path)?;
    let version = kernel::api_version(&container).map_err(refused(&path, "VFIO_GET_API_VERSION"))?;
    if version != API_VERSION {
        return Err(Cause::Version(version).at(path));
    }
    let group = open(&group_path)?;
    if !kernel::is_viable(&group).map_err(refused(&group_path, "VFIO_GROUP_GET_STATUS"))? {
        return Err(Cause::NotViable { others: function.others() }.at(group_path));
    }
    kernel::set_container(&group, &container).map_err(refused(&group_path, "VFIO_GROUP_SET_CONTAINER"))?;
    kernel::set_iommu(&container).map_err(refused(&path, "VFIO_SET_IOMMU"))?;
    let device = of_group(function, &group, &group_path)?;
    let space = Arc::new(Space::new(Keeper::Container { container, path, group }));
    Ok(Taken { device, path: group_path, space })
}

/// A function of an open group.
fn of_group(function: &Function, group: &OwnedFd, path: &Path) -> Result<OwnedFd, VfioError> {
    let device = kernel::device_of_group(group, &function.address.to_string());
    device.map_err(|errno| match errno {
        Errno::BUSY => Cause::Taken { errno }.at(path),
        _ => refused(path, "VFIO_GROUP_GET_DEVICE_FD")(errno),
    })
}
