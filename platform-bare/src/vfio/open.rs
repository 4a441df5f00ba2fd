//! From an address to a function and its address space: the two interfaces of the kernel.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::string::ToString;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::{Cause, VfioError, refused};
use super::function::{Function, Interface, Places, Way};
use super::kernel;
use super::space::Space;

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
    pub space: Space,
}

/// Takes a function.
pub(super) fn take(function: &Function, options: &Options) -> Result<Taken, VfioError> {
    match function.way(options.interface, &options.places)? {
        Way::Device { iommufd, device } => by_device(function, iommufd, device),
        Way::Group { container, group } => by_group(function, container, group),
    }
}

fn by_device(function: &Function, iommufd_path: PathBuf, path: PathBuf) -> Result<Taken, VfioError> {
    let iommufd = open(&iommufd_path)?;
    let device = open(&path)?;
    // Whoever has the right opens the file; only one can tie it.
    kernel::bind(&device, &iommufd).map_err(|errno| match errno {
        Errno::BUSY if !function.others().is_empty() => {
            Cause::NotViable { others: function.others() }.at(&path)
        }
        // The file is tied, or the group is open or in another address space.
        Errno::INVAL | Errno::BUSY => Cause::Taken { errno }.at(&path),
        _ => refused(&path, "VFIO_DEVICE_BIND_IOMMUFD")(errno),
    })?;
    let space = kernel::new_address_space(&iommufd).map_err(refused(&iommufd_path, "IOMMU_IOAS_ALLOC"))?;
    kernel::attach(&device, space).map_err(refused(&path, "VFIO_DEVICE_ATTACH_IOMMUFD_PT"))?;
    Ok(Taken { device, path, space: Space::Iommufd(iommufd, iommufd_path, space) })
}

fn by_group(function: &Function, container_path: PathBuf, path: PathBuf) -> Result<Taken, VfioError> {
    let container = open(&container_path)?;
    let version =
        kernel::api_version(&container).map_err(refused(&container_path, "VFIO_GET_API_VERSION"))?;
    if version != API_VERSION {
        return Err(Cause::Version(version).at(container_path));
    }
    let group = open(&path)?;
    if !kernel::is_viable(&group).map_err(refused(&path, "VFIO_GROUP_GET_STATUS"))? {
        return Err(Cause::NotViable { others: function.others() }.at(path));
    }
    kernel::set_container(&group, &container).map_err(refused(&path, "VFIO_GROUP_SET_CONTAINER"))?;
    kernel::set_iommu(&container).map_err(refused(&container_path, "VFIO_SET_IOMMU"))?;
    let device = kernel::device_of_group(&group, &function.address.to_string());
    let device = device.map_err(refused(&path, "VFIO_GROUP_GET_DEVICE_FD"))?;
    Ok(Taken { device, path, space: Space::Container(container, container_path, group) })
}
