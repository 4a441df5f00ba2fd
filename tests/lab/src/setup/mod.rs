//! What the tests need from outside of Rust: a table of things with a test and a way to get each.

mod apt;
mod foreign;
mod image;
pub mod iommufd;
mod kernel;
pub mod providers;
pub mod qemu;
mod sources;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use apt::Private;
pub use image::Image;
pub use kernel::Kernel;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::found;
use crate::progress::{Step, say, warn};

/// A thing that the tests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A C compiler and a C++ compiler (libFuzzer is C++).
    Compilers,
    /// clang, the second judge of C headers.
    Clang,
    /// Wireshark without a window.
    Tshark,
    /// The command that makes network interfaces.
    Ip,
    /// The standard library's source, to build `core` for the bare targets.
    RustSource,
    /// valgrind, whose callgrind counts instructions.
    Valgrind,
    /// Headers of rdma-core, to compare layouts with.
    RdmaCore,
    /// libibverbs and the C providers of rdma-core 65, with the C library that they need.
    Providers,
    /// Modules and headers of Debian's kernel, to compare layouts with.
    Kernel,
    /// QEMU, to run guests.
    Qemu,
    /// Debian's kernel and its modules, for guests.
    Image,
    /// Modules for it that Debian does not build: VFIO's character devices.
    Iommufd,
}

impl Need {
    /// All.
    pub const ALL: [Self; 12] = [
        Self::Compilers,
        Self::Clang,
        Self::Tshark,
        Self::Ip,
        Self::RustSource,
        Self::Valgrind,
        Self::RdmaCore,
        Self::Providers,
        Self::Kernel,
        Self::Qemu,
        Self::Image,
        Self::Iommufd,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compilers => "C and C++ compilers",
            Self::Clang => "clang",
            Self::Tshark => "tshark",
            Self::Ip => "ip",
            Self::RustSource => "Rust library source",
            Self::Valgrind => "valgrind",
            Self::RdmaCore => "rdma-core headers",
            Self::Providers => "C providers",
            Self::Kernel => "Debian's kernel modules and headers",
            Self::Qemu => "QEMU",
            Self::Image => "Debian's kernel",
            Self::Iommufd => "modules of iommufd for Debian's kernel",
        }
    }

    /// Whether it is there.
    pub fn is_there(self, lab: &Lab) -> bool {
        match self {
            Self::Compilers => found("gcc") && found("g++"),
            Self::Clang => found("clang") && found("clang++"),
            Self::Tshark => found("tshark"),
            Self::Ip => found("ip"),
            Self::RustSource => rust_source(lab).is_ok(),
            Self::Valgrind => found("valgrind"),
            Self::RdmaCore => rdma_core(lab).join(".complete").exists(),
            Self::Providers => providers::is_there(lab),
            Self::Kernel => Kernel::find(lab).is_ok(),
            Self::Qemu => qemu::is_there(lab),
            Self::Image => Image::find(lab).is_ok(),
            Self::Iommufd => iommufd::find(lab).is_ok(),
        }
    }

    fn get(self, lab: &Lab, apt: &mut Option<Private>, step: &mut Step) -> Result<()> {
        match self {
            Self::Compilers => apt::install(lab, &["gcc", "g++", "libc6-dev"], step),
            Self::Clang => apt::install(lab, &["clang"], step),
            Self::Tshark => apt::install(lab, &["tshark"], step),
            Self::Ip => apt::install(lab, &["iproute2"], step),
            Self::Valgrind => apt::install(lab, &["valgrind"], step),
            Self::RustSource => {
                let to = rust_source_dir(lab)?;
                let version = format!("{}+", rust_version()?);
                private(lab, apt, step)?.unpack("rust-src", &version, &to, step)?;
                rust_source(lab).map(drop)
            }
            Self::RdmaCore => {
                let to = rdma_core(lab);
                fs::create_dir_all(&to).map_err(Error::file(&to))?;
                let members = ["*/kernel-headers/*", "*/providers/bnxt_re/*.h", "*/providers/ionic/*.h"];
                private(lab, apt, step)?.unpack_source("rdma-core", "65.", &members, &to, step)?;
                let mark = to.join(".complete");
                fs::write(&mark, "").map_err(Error::file(&mark))
            }
            Self::Providers => providers::get(lab, private(lab, apt, step)?, step),
            Self::Kernel => Kernel::get(lab, private(lab, apt, step)?, step),
            Self::Qemu => qemu::get(lab, private(lab, apt, step)?, step),
            Self::Image => Image::get(lab, private(lab, apt, step)?, step),
            Self::Iommufd => iommufd::build(lab, step),
        }
    }
}

/// `cargo lab setup`: gets everything and ends with a line of figures. `false` says that something is missing.
pub fn setup(lab: &Lab) -> bool {
    let missing = provide(lab, &Need::ALL).err().map_or(0, |failed| failed.len());
    println!("setup: {} needs, {} met, {missing} missing", Need::ALL.len(), Need::ALL.len() - missing);
    missing == 0
}

/// Gets all of `needs` that are not there. `Ok` says that each is there now.
///
/// # Errors
/// One message for each that could not be had; the others were got.
pub fn provide(lab: &Lab, needs: &[Need]) -> std::result::Result<(), Vec<(Need, Error)>> {
    let mut apt = None;
    let mut failed = Vec::new();
    for &need in needs {
        if need.is_there(lab) {
            say(&format!("setup: {} is there", need.name()));
            continue;
        }
        let mut step = Step::new(format!("setup: {}", need.name()));
        match need.get(lab, &mut apt, &mut step) {
            Ok(()) => step.end("got it"),
            Err(error) => {
                step.end("FAILED");
                warn(&error.to_string());
                failed.push((need, error));
            }
        }
    }
    if let Some(command) = for_root(&failed) {
        warn(&format!("This must be done as root:\n    {command}"));
    }
    if failed.is_empty() { Ok(()) } else { Err(failed) }
}

/// The one command that installs all packages which only root may install, if there are any.
fn for_root(failed: &[(Need, Error)]) -> Option<String> {
    let packages = failed.iter().filter_map(|(_, error)| match error {
        Error::NotRoot { packages } => Some(packages.as_str()),
        _ => None,
    });
    let packages: Vec<&str> = packages.collect();
    (!packages.is_empty()).then(|| format!("apt-get install {}", packages.join(" ")))
}

fn private<'a>(lab: &Lab, apt: &'a mut Option<Private>, step: &mut Step) -> Result<&'a Private> {
    let opened = match apt.take() {
        Some(opened) => opened,
        None => Private::open(lab, step)?,
    };
    Ok(apt.insert(opened))
}

/// Folder of rdma-core's headers.
pub fn rdma_core(lab: &Lab) -> PathBuf {
    lab.dir.join("rdma-core-65")
}

/// Folder `library` of the standard library's source: the toolchain's own, or Debian's of the same version.
///
/// # Errors
/// Neither is there.
pub fn rust_source(lab: &Lab) -> Result<PathBuf> {
    let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim());
    let debian = rust_source_dir(lab)?.join(format!("usr/src/rustc-{}", rust_version()?));
    let places = [sysroot.join("lib/rustlib/src/rust/library"), debian.join("library")];
    let found = places.into_iter().find(|place| place.join("core/src/lib.rs").exists());
    found.ok_or_else(|| Error::Unexpected("no Rust library source; `cargo lab setup` gets it".into()))
}

fn rust_source_dir(lab: &Lab) -> Result<PathBuf> {
    Ok(lab.dir.join(format!("rust-src-{}", rust_version()?)))
}

/// Version of the compiler, such as `1.95.0`.
fn rust_version() -> Result<String> {
    let text = rustc(&["--version"])?;
    let version = text.split_whitespace().nth(1);
    version.map(str::to_owned).ok_or_else(|| Error::Unexpected(format!("rustc calls itself {text:?}")))
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let output = Command::new("rustc").args(arguments).output();
    let output = output.map_err(|source| Error::Start { program: "rustc".into(), source })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_root_one_command_names_all_packages() {
        let not_root = |packages: &str| Error::NotRoot { packages: packages.into() };
        let other = Error::Unexpected("no network".into());
        let failed = [
            (Need::Compilers, not_root("gcc g++")),
            (Need::RdmaCore, other),
            (Need::Tshark, not_root("tshark")),
        ];
        assert_eq!(for_root(&failed).as_deref(), Some("apt-get install gcc g++ tshark"));
        assert_eq!(for_root(&failed[1..2]), None);
        assert_eq!(failed[0].1.to_string(), "missing: gcc g++; only root may install them");
    }
}
