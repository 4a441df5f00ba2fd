//! Functions as sysfs tells of them, and which files stand for them.

use std::borrow::ToOwned;
use std::format;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::vec::Vec;

use rustix::fs::{Access, access};

use super::address::FunctionAddress;
use super::error::{Cause, VfioError};

/// The driver that gives functions to processes.
const DRIVER: &str = "vfio-pci";
/// Drivers that leave a function's group to processes.
const HARMLESS: [&str; 3] = [DRIVER, "pci-stub", "pcieport"];

/// What a file is opened for.
const USE: Access = Access::READ_OK.union(Access::WRITE_OK);

/// Where the kernel's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Root of sysfs.
    pub sysfs: PathBuf,
    /// Folder of the devices.
    pub dev: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self { sysfs: "/sys".into(), dev: "/dev".into() }
    }
}

/// How a function is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// By its character device if the process may use it and iommufd, otherwise by its group.
    #[default]
    Either,
    /// By its group, and a container.
    Group,
    /// By its character device, and iommufd.
    Device,
}

/// The files to take a function by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Group { container: PathBuf, group: PathBuf },
    Device { iommufd: PathBuf, device: PathBuf },
}

/// A PCI function of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Where it is.
    pub address: FunctionAddress,
    /// Vendor and device.
    pub id: (u16, u16),
    /// The driver that has it.
    pub driver: Option<String>,
    /// Number of its IOMMU group.
    pub group: Option<String>,
    folder: PathBuf,
}

impl Function {
    /// All, in the order of their addresses.
    ///
    /// # Errors
    /// There is no sysfs, or no PCI.
    pub fn all(places: &Places) -> io::Result<Vec<Self>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(places.sysfs.join("bus/pci/devices"))? {
            let name = entry?.file_name();
            let address = name.to_str().and_then(|name| name.parse().ok());
            // One that goes away while it is looked at is not there.
            all.extend(address.and_then(|address| Self::find(address, places).ok()));
        }
        all.sort_by_key(|function| function.address);
        Ok(all)
    }

    /// The one at `address`.
    ///
    /// # Errors
    /// There is none.
    pub fn find(address: FunctionAddress, places: &Places) -> Result<Self, VfioError> {
        let folder = places.sysfs.join("bus/pci/devices").join(address.to_string());
        let id = |file: &str| {
            let text = fs::read_to_string(folder.join(file)).ok()?;
            u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
        };
        let (Some(vendor), Some(device)) = (id("vendor"), id("device")) else {
            return Err(Cause::NoFunction.at(folder));
        };
        let (driver, group) = (link(&folder.join("driver")), link(&folder.join("iommu_group")));
        Ok(Self { address, id: (vendor, device), driver, group, folder })
    }

    /// What stands in the way of taking it, as far as can be told without doing so.
    pub fn obstacle(&self, interface: Interface, places: &Places) -> Option<VfioError> {
        let files = match self.way(interface, places) {
            Err(error) => return Some(error),
            Ok(Way::Group { container, group }) => [container, group],
            Ok(Way::Device { iommufd, device }) => [iommufd, device],
        };
        files.into_iter().find_map(|path| {
            let errno = access(&path, USE).err()?;
            Some(Cause::Open { errno }.at(path))
        })
    }

    /// The files to take it by.
    pub(super) fn way(&self, interface: Interface, places: &Places) -> Result<Way, VfioError> {
        let group = self.group_file(places)?;
        let by_group = Way::Group { container: places.dev.join("vfio/vfio"), group };
        let iommufd = places.dev.join("iommu");
        match (interface, self.device_file(places)) {
            (Interface::Device, device) => Ok(Way::Device { iommufd, device: device? }),
            // Most kernels keep iommufd for root where users have groups.
            (Interface::Either, Ok(device)) if usable(&iommufd) && usable(&device) => {
                Ok(Way::Device { iommufd, device })
            }
            _ => Ok(by_group),
        }
    }

    /// The file of its group, if the function is for processes.
    pub(super) fn group_file(&self, places: &Places) -> Result<PathBuf, VfioError> {
        if self.driver.as_deref() != Some(DRIVER) {
            let cause = Cause::Driver { driver: self.driver.clone(), at: self.folder.clone() };
            return Err(cause.at(self.folder.join("driver")));
        }
        let group = self.group.as_ref().ok_or_else(|| Cause::NoIommu.at(self.folder.join("iommu_group")))?;
        Ok(places.dev.join("vfio").join(group))
    }

    /// Its character device.
    pub(super) fn device_file(&self, places: &Places) -> Result<PathBuf, VfioError> {
        let devices = self.folder.join("vfio-dev");
        let name = fs::read_dir(&devices).ok().and_then(|mut entries| entries.next()?.ok());
        // Every kernel has the folder. The number of a character device is in it only where there is one.
        let name = name.filter(|name| name.path().join("dev").exists());
        let name = name.ok_or_else(|| Cause::NoDevice.at(devices))?;
        Ok(places.dev.join("vfio/devices").join(name.file_name()))
    }

    /// Functions of the group that belong to drivers which keep it from processes.
    pub(super) fn others(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join("iommu_group/devices")).into_iter().flatten().flatten();
        let other = |entry: fs::DirEntry| {
            let driver = link(&entry.path().join("driver"))?;
            let name = entry.file_name().into_string().ok()?;
            (!HARMLESS.contains(&driver.as_str())).then(|| format!("{name} ({driver})"))
        };
        entries.filter_map(other).collect()
    }
}

fn usable(path: &Path) -> bool {
    access(path, USE).is_ok()
}

/// The last part of where a link leads.
fn link(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_str()?.to_owned())
}
