//! RDMA devices.

use std::fmt;
use std::path::{Path, PathBuf};

use super::driver::Driver;
use super::port::{PortInfo, is_name};
use super::read::{self, Problem, Sysfs, SysfsError};
use crate::error::Error;
use crate::uverbs::abi::UVERBS_ABI;

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    sysfs: Sysfs,
    /// Name: `bnxt_re0`.
    pub name: String,
    /// Name of its file: `uverbs0`.
    pub uverbs: String,
    /// Driver.
    pub driver: Driver,
    /// Version of the uverbs ABI as a whole.
    pub core_abi: u32,
    /// Version of the driver's ABI.
    pub driver_abi: u32,
    /// GUID of the device.
    pub node_guid: Guid,
    /// GUID of the system it is in.
    pub system_guid: Guid,
    /// Firmware version; empty if the driver does not tell.
    pub firmware: String,
    /// Description.
    pub description: String,
    /// PCI vendor and device; none for software.
    pub pci: Option<(u32, u32)>,
    /// PCI address: `0000:03:00.0`; none for software.
    pub address: Option<String>,
    /// NUMA node; none if it has none.
    pub numa_node: Option<u32>,
}

/// A GUID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Guid(pub u64);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = [48, 32, 16, 0].map(|shift| (self.0 >> shift) as u16);
        write!(f, "{a:04x}:{b:04x}:{c:04x}:{d:04x}")
    }
}

impl Guid {
    fn parse(text: &str) -> Option<Self> {
        let groups: Vec<_> = text.split(':').collect();
        let whole = groups.len() == 4 && groups.iter().all(|g| g.len() == 4);
        whole.then(|| groups.concat()).and_then(|digits| u64::from_str_radix(&digits, 16).ok()).map(Self)
    }
}

impl Device {
    /// All devices of a tree, by name. A machine without any has an empty list.
    ///
    /// # Errors
    /// There is no RDMA subsystem, or a file is not what it should be.
    pub fn all(sysfs: &Sysfs) -> Result<Vec<Self>, SysfsError> {
        Self::each(sysfs)?.into_iter().map(|(_, device)| device).collect()
    }

    /// All devices of a tree, by name, also those of which a file is not what it should be.
    ///
    /// # Errors
    /// There is no RDMA subsystem.
    pub fn each(sysfs: &Sysfs) -> Result<Vec<(String, Result<Self, SysfsError>)>, SysfsError> {
        let read = |name: String| {
            let device = Self::read(sysfs, &name);
            (name, device)
        };
        Ok(names(sysfs)?.into_iter().map(read).collect())
    }

    /// The device called `name`.
    ///
    /// # Errors
    /// There is no such device, or no RDMA subsystem, or a file is not what it should be.
    pub fn find(sysfs: &Sysfs, name: &str) -> Result<Self, SysfsError> {
        let names = names(sysfs)?;
        if names.iter().any(|n| n == name) {
            return Self::read(sysfs, name);
        }
        let hint = match names.as_slice() {
            [] => "; there are none at all".to_owned(),
            names => format!("; there are {}", names.join(", ")),
        };
        Err(read::fault(&class(sysfs).join(name), Problem::NoDevice(hint)))
    }

    fn read(sysfs: &Sysfs, name: &str) -> Result<Self, SysfsError> {
        let folder = class(sysfs).join(name);
        let file = |name: &str| folder.join(name);
        let verbs = sysfs.path("class/infiniband_verbs");
        let (uverbs, driver_abi) =
            find_uverbs(&verbs, name)?.ok_or_else(|| read::fault(&folder, Problem::NoUverbs))?;
        let parent = folder.join("device");
        let hex = |name: &str| {
            let path = parent.join(name);
            match read::parsed(&path, "a number such as `0x14e4`", read::hex) {
                Err(error) if error.is_missing() => Ok(None),
                result => result.map(Some),
            }
        };
        let pci = match (hex("vendor")?, hex("device")?) {
            (Some(vendor), Some(device)) => Some((vendor, device)),
            _ => None,
        };
        let description = read::optional(&file("node_desc"))?.unwrap_or_default();
        let bound = read::link_name(&parent.join("driver"));
        let guid =
            |name: &str| read::parsed(&file(name), "a GUID such as `0002:c903:0012:3456`", Guid::parse);
        let numa = read::optional(&parent.join("numa_node"))?;
        Ok(Self {
            sysfs: sysfs.clone(),
            name: name.to_owned(),
            uverbs,
            driver: Driver::find(bound.as_deref(), pci.map(|(vendor, _)| vendor), Some(&description)),
            core_abi: read::number(&verbs.join("abi_version"))?,
            driver_abi,
            node_guid: guid("node_guid")?,
            system_guid: guid("sys_image_guid")?,
            firmware: read::optional(&file("fw_ver"))?.unwrap_or_default(),
            description,
            address: pci.and_then(|_| read::link_name(&parent)),
            pci,
            numa_node: numa.and_then(|n| n.parse().ok()),
        })
    }

    /// The file that programs open.
    pub fn path(&self) -> PathBuf {
        self.sysfs.node(&self.uverbs)
    }

    /// Refuses an ABI that is not supported: of the kernel, or of a driver that is none of the kernel's own.
    ///
    /// # Errors
    /// Which one, and what is supported.
    pub fn check_abi(&self) -> Result<(), Error> {
        let check = |what: String, given, min, max| {
            if (min..=max).contains(&given) { Ok(()) } else { Err(Error::Abi { what, given, min, max }) }
        };
        check("uverbs".to_owned(), self.core_abi, UVERBS_ABI, UVERBS_ABI)?;
        match self.driver.abi() {
            Some((min, max)) => check(self.driver.name().to_owned(), self.driver_abi, min, max),
            None => Ok(()),
        }
    }

    /// Its ports, from 1.
    ///
    /// # Errors
    /// A file is missing or not what it should be.
    pub fn ports(&self) -> Result<Vec<PortInfo>, SysfsError> {
        let folder = class(&self.sysfs).join(&self.name).join("ports");
        let net = self.sysfs.path("class/net");
        read::names(&folder)?
            .into_iter()
            .map(|name| {
                let path = folder.join(&name);
                let number = name.parse().map_err(|_| {
                    read::fault(
                        &path,
                        Problem::Value { found: name, expected: "a name that is a port's number" },
                    )
                })?;
                PortInfo::read(&path, number, &net)
            })
            .collect()
    }
}

fn class(sysfs: &Sysfs) -> PathBuf {
    sysfs.path("class/infiniband")
}

fn names(sysfs: &Sysfs) -> Result<Vec<String>, SysfsError> {
    let path = class(sysfs);
    match read::names(&path) {
        Err(error) if error.is_missing() => Err(read::fault(&path, Problem::NoSubsystem)),
        names => Ok(names?.into_iter().filter(|n| is_name(n)).collect()),
    }
}

/// The file of the device `name`, and the version of its driver's ABI.
fn find_uverbs(verbs: &Path, name: &str) -> Result<Option<(String, u32)>, SysfsError> {
    let entries = match read::names(verbs) {
        Err(error) if error.is_missing() => return Ok(None),
        entries => entries?,
    };
    for uverbs in entries.into_iter().filter(|e| e.starts_with("uverbs")) {
        let folder = verbs.join(&uverbs);
        if read::optional(&folder.join("ibdev"))?.as_deref() == Some(name) {
            let abi = read::number(&folder.join("abi_version"))?;
            return Ok(Some((uverbs, abi)));
        }
    }
    Ok(None)
}
