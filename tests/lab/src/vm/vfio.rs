//! `cargo lab vm vfio`: Debian's kernel with a virtual IOMMU, software NICs on its PCI bus, and `dv` as their only driver, by
//! either interface of VFIO.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::daemon::{self, Daemon};
use super::initramfs::Initramfs;
use super::linux;
use super::machine::{Hardware, Machine};
use super::modules::Modules;
use super::outcome::Outcome;
use super::programs;
use crate::error::Result;
use crate::lab::Lab;
use crate::progress::Step;
use crate::setup::{Image, Need, iommufd};
use crate::suites::Checks;

/// What the guest is started with.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A folder with a kernel's packages, unpacked, instead of Debian's kernel: boot/vmlinuz-* and lib/modules/*. It needs
    /// CONFIG_IOMMUFD, CONFIG_VFIO_DEVICE_CDEV, CONFIG_VFIO_GROUP and CONFIG_UIO_PCI_GENERIC
    #[arg(long, value_name = "FOLDER")]
    kernel: Option<PathBuf>,
}

/// What the guest cannot run without.
pub const NEEDS: &[Need] = &[Need::Compilers, Need::Qemu, Need::Image, Need::Kernel, Need::Iommufd];

const NAME: &str = "vfio";

/// The modules that the guest loads. The last is a driver that is not for processes.
const MODULES: [&str; 3] = ["vfio_iommu_type1", "vfio_pci", "uio_pci_generic"];

/// NICs, in the order that the guest's checks expect. The last two are functions of one slot.
const NICS: [&str; 8] =
    ["bnxt_re-p5", "bnxt_re-p5", "bnxt_re", "bnxt_re", "ionic-v1", "ionic-v1", "ionic", "ionic"];

/// The guest takes about a minute; a machine that is busy takes more.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs in the foreground: progress, a table of the checks, and a closing line.
///
/// # Errors
/// A program could not be built, or the machine not be started.
pub fn foreground(lab: &Lab, options: &Options) -> Result<bool> {
    linux::in_foreground(lab, NAME, NEEDS, |lab, log, step| match &options.kernel {
        Some(packages) => {
            let kernel = Image::unpacked(lab, packages)?;
            let modules = Modules::find(&kernel.modules)?;
            run(lab, (&kernel, &modules), log, step)
        }
        None => debian(lab, log, step),
    })
}

/// The same as a suite: each check of the guest's is one of the suite's.
///
/// # Errors
/// As [`foreground`].
pub fn suite(checks: &mut Checks<'_>) -> Result<()> {
    linux::as_suite(checks, NAME, debian)
}

/// Debian's kernel, and what it has no modules for.
fn debian(lab: &Lab, log: &Path, step: &mut Step) -> Result<(Outcome, String)> {
    let kernel = Image::find(lab)?;
    let mut modules = Modules::find(&kernel.modules)?;
    modules.add(&iommufd::find(lab)?)?;
    run(lab, (&kernel, &modules), log, step)
}

/// Builds, packs, boots; gives the guest's report, and the end of its console.
fn run(
    lab: &Lab,
    (kernel, modules): (&Image, &Modules),
    log: &Path,
    step: &mut Step,
) -> Result<(Outcome, String)> {
    daemon::build(lab, log, step)?;
    let mut files = Initramfs::default();
    programs::pack(lab, &[("init", linux::PROGRAM), ("dv", "dv")], log, step, &mut files)?;
    // The kernel opens it for the first program before anything is mounted.
    files.folder("dev");
    modules.pack(&MODULES, &mut files)?;
    let daemon = Daemon::start(lab, NAME, &NICS, &[])?;
    let (alone, together) = daemon.sockets.split_at(NICS.len() - 2);
    let slots: Vec<&[PathBuf]> = alone.chunks(1).chain([together]).collect();
    let hardware = Hardware::Pci(&slots);
    let mut machine = Machine::new(lab, NAME, (kernel, &files.finish()), &hardware, NAME)?;
    let report = machine.run(log, step, LIMIT)?;
    Ok((Outcome::read(&report), machine.console()))
}
