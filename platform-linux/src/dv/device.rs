//! Names of devices, and where this machine's are looked for.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use directverbs_bare::pci::NoAddress;
use directverbs_bare::vfio;
use directverbs_fake_uverbs::Release;
use directverbs_linux::sysfs::Sysfs;
use directverbs_softnic::open::{NicKind, UnknownName};

/// Name of a device: what opens it, and which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// A software NIC in this process.
    Soft(NicKind),
    /// A device of this machine, by the name that the kernel gives it.
    Uverbs(String),
    /// A software NIC behind a made-up kernel.
    Fake(NicKind, Release),
    /// A PCI function of this machine, which this process brings up itself.
    Pci(vfio::FunctionAddress),
}

impl DeviceName {
    /// All software NICs.
    pub fn soft() -> impl Iterator<Item = Self> {
        NicKind::ALL.into_iter().map(Self::Soft)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Soft(kind) => f.pad(&format!("soft:{kind}")),
            Self::Uverbs(name) => f.pad(&format!("uverbs:{name}")),
            Self::Fake(kind, release) => f.pad(&format!("fake:{kind}@{release}")),
            Self::Pci(address) => f.pad(&format!("pci:{address}")),
        }
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || {
            let soft: Vec<_> = Self::soft().map(|device| device.to_string()).collect();
            format!(
                "there are: {}, uverbs:NAME and pci:ADDRESS for a device of this machine (dv devices), and \
                 fake:KIND[@KERNEL] for a software NIC of a KIND behind a made-up kernel",
                soft.join(", ")
            )
        };
        match text.split_once(':') {
            Some(("uverbs", name)) if !name.is_empty() && !name.contains('/') => {
                Ok(Self::Uverbs(name.into()))
            }
            Some(("soft", name)) => name
                .parse()
                .map(Self::Soft)
                .map_err(|_| format!("no software NIC has this name; {}", known())),
            Some(("fake", name)) => fake(name),
            Some(("pci", address)) => {
                address.parse().map(Self::Pci).map_err(|error: NoAddress| format!("{address}: {error}"))
            }
            _ => Err(format!("no device has this name; {}", known())),
        }
    }
}

/// Reads `KIND[@KERNEL]`.
fn fake(name: &str) -> Result<DeviceName, String> {
    let (kind, release) = name.split_once('@').unwrap_or((name, Release::default().name()));
    let kind: NicKind = kind.parse().map_err(|error: UnknownName| error.to_string())?;
    let release: Release = release.parse().map_err(|error: UnknownName| error.to_string())?;
    if release.drives(kind) {
        Ok(DeviceName::Fake(kind, release))
    } else {
        Err(format!("Linux {release} has no driver for {kind}"))
    }
}

/// Where devices of this machine are looked for.
#[derive(Args, Clone, Debug)]
pub struct Places {
    /// What the kernel tells of devices: the root of a sysfs
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,
    /// Folder with the devices' files
    #[arg(long, value_name = "DIR", default_value = "/dev/infiniband")]
    pub nodes: PathBuf,
    /// Folder with the files of VFIO
    #[arg(long, value_name = "DIR", default_value = "/dev")]
    pub dev: PathBuf,
}

impl Places {
    /// The tree to look in.
    pub fn tree(&self) -> Sysfs {
        Sysfs::at(&self.sysfs).nodes(&self.nodes)
    }

    /// Where VFIO's files are.
    pub fn vfio(&self) -> vfio::Places {
        vfio::Places { sysfs: self.sysfs.clone(), dev: self.dev.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_opens_it() {
        for name in DeviceName::soft() {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!("uverbs:bnxt_re0".parse(), Ok(DeviceName::Uverbs("bnxt_re0".into())));
        assert_eq!("fake:ionic".parse(), Ok(DeviceName::Fake(NicKind::IonicV2, Release::V7_3)));
        assert_eq!("fake:bnxt_re@6.12".parse(), Ok(DeviceName::Fake(NicKind::BnxtReP7, Release::V6_12)));
        assert_eq!(
            "fake:ionic@6.12".parse::<DeviceName>().unwrap_err(),
            "Linux 6.12 has no driver for ionic"
        );
        assert_eq!("pci:1:2.3".parse::<DeviceName>().unwrap().to_string(), "pci:0000:01:02.3");
        let wrong = "pci:0".parse::<DeviceName>().unwrap_err();
        assert_eq!(wrong, "0: not a PCI address: bus, device and function, as in 01:02.3");
        assert!("fake:ionic@5.4".parse::<DeviceName>().unwrap_err().contains("6.12, 7.2, 7.3"));
        for wrong in ["", "bnxt_re0", "soft:", "soft:mlx5", "uverbs:", "uverbs:../null"] {
            let error = wrong.parse::<DeviceName>().expect_err(wrong);
            assert!(
                error.contains("there are: soft:bnxt_re-p5, soft:bnxt_re, soft:ionic-v1, soft:ionic"),
                "{error}"
            );
        }
    }
}
