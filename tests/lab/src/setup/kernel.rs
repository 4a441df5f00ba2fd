//! Debian's kernel: modules with their BTF, and headers of the drivers that Debian does not build.

use std::fs;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::progress::Step;
use crate::setup::apt::{self, Private};

/// Version of the kernel, up to which its packages' names are the same.
pub(super) const VERSION: &str = "7.3";

/// Architecture and flavour of it.
const FLAVOR: &str = "amd64";

/// What the layouts are compared with, of the package of modules.
const MODULES: [&str; 1] = ["*/bnxt_re.ko*"];

/// Of the package of sources: the drivers' headers, which no other package has, and what [`super::iommufd`] is made of.
const SOURCES: [&str; 7] = [
    "*/drivers/infiniband/hw/bnxt_re/*.h",
    "*/drivers/infiniband/hw/ionic/*.h",
    "*/drivers/net/ethernet/pensando/ionic/*.h",
    "*/drivers/iommu/*.h",
    "*/drivers/iommu/iommufd/*.c",
    "*/drivers/vfio/*.[ch]",
    "*/lib/interval_tree.c",
];

/// What was unpacked of Debian's kernel packages.
#[derive(Debug)]
pub struct Kernel {
    dir: PathBuf,
    /// As `uname -r` says it, such as `7.3.4+deb13-amd64`.
    release: String,
}

impl Kernel {
    /// What is there.
    ///
    /// # Errors
    /// It is not complete.
    pub fn find(lab: &Lab) -> Result<Self> {
        let dir = lab.dir.join(format!("linux-{VERSION}"));
        let mark = dir.join(".complete");
        let release = fs::read_to_string(&mark).map_err(Error::file(&mark))?;
        // A lab of an earlier time has fewer sources.
        let last = dir.join("source/drivers/vfio");
        fs::metadata(&last).map_err(Error::file(&last))?;
        Ok(Self { dir, release })
    }

    /// As `uname -r` says it.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Downloads the packages and unpacks what is needed.
    ///
    /// # Errors
    /// The mirror has no such kernel, xz is missing and cannot be installed, or apt, dpkg or tar failed.
    pub fn get(lab: &Lab, apt: &Private, step: &mut Step) -> Result<()> {
        // The sources are compressed with xz, which is not on every Debian.
        apt::program(lab, "xz", "xz-utils", step)?;
        let (headers, modules) = ("linux-headers-", "linux-modules-");
        let release =
            newest(&apt.names(&format!("{headers}{VERSION}."), step)?, headers).ok_or_else(|| {
                Error::Unexpected(format!("the mirror has no package {headers}{VERSION}.*-{FLAVOR}"))
            })?;
        let dir = lab.dir.join(format!("linux-{VERSION}"));
        // What is left of an earlier kernel, or of a set-up that was stopped.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
        let common = release.strip_suffix(FLAVOR).unwrap_or(&release);
        let own = format!("{headers}{release}");
        let version = apt.version(&own, VERSION, step)?;
        apt.unpack(&own, &version, &dir, step)?;
        apt.unpack_parts(&format!("{headers}{common}common"), &version, &["*/include/*"], &dir, step)?;
        apt.unpack_parts(&format!("{modules}{release}"), &version, &MODULES, &dir, step)?;
        let source = format!("linux-source-{VERSION}");
        apt.unpack_inner(
            &source,
            &version,
            &format!("{source}.tar.xz"),
            &SOURCES,
            &dir.join("source"),
            step,
        )?;
        let mark = dir.join(".complete");
        fs::write(&mark, release).map_err(Error::file(&mark))
    }

    /// A module of the drivers for InfiniBand devices.
    pub fn module(&self, name: &str) -> PathBuf {
        let release = &self.release;
        self.dir.join(format!("usr/lib/modules/{release}/kernel/drivers/infiniband/hw/{name}/{name}.ko.xz"))
    }

    /// The kernel itself, reduced to its BTF.
    pub fn vmlinux(&self) -> PathBuf {
        self.own().join("vmlinux")
    }

    /// A file or folder of the source tree.
    pub fn source(&self, folder: &str) -> PathBuf {
        self.dir.join("source").join(folder)
    }

    /// Where the kernel's build looks for headers, in that order.
    pub fn includes(&self) -> [PathBuf; 8] {
        let common = self.release.strip_suffix(FLAVOR).unwrap_or(&self.release);
        let (own, common) = (self.own(), self.dir.join(format!("usr/src/linux-headers-{common}common")));
        let (arch, all) = ("arch/x86/include", "include");
        [
            common.join(arch),
            own.join(arch).join("generated"),
            common.join(all),
            own.join(all),
            common.join(arch).join("uapi"),
            own.join(arch).join("generated/uapi"),
            common.join(all).join("uapi"),
            own.join(all).join("generated/uapi"),
        ]
    }

    /// What the headers package of this release has of its own.
    fn own(&self) -> PathBuf {
        self.dir.join(format!("usr/src/linux-headers-{}", self.release))
    }
}

/// The newest release of our flavour among package names that begin with `prefix`.
pub(super) fn newest(names: &[String], prefix: &str) -> Option<String> {
    let releases = names.iter().filter_map(|name| name.strip_prefix(prefix));
    let ours = releases.filter(|release| release.split_once('-').is_some_and(|(_, flavor)| flavor == FLAVOR));
    let numbers = |release: &str| -> Vec<u32> {
        release.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    ours.max_by_key(|release| numbers(release)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_of_the_plain_flavor_is_taken() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            newest(&names, "linux-headers-")
        };
        assert_eq!(of(&["linux-headers-7.3.4+deb13-common", "linux-headers-7.3.4+deb13-rt-amd64"]), None);
        let names = [
            "linux-headers-7.3.9+deb13-amd64",
            "linux-headers-7.3.10+deb13-amd64",
            "linux-headers-7.3.11+deb13-cloud-amd64",
        ];
        assert_eq!(of(&names).as_deref(), Some("7.3.10+deb13-amd64"));
    }
}
