//! Our image: how it is built, and the machines that run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, SectionKind};

use super::machine::attach;
use super::outcome::{GUEST, Outcome};
use crate::checks::bare;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::succeed;
use crate::progress::Step;
use crate::setup::qemu::{self, Arch};
use crate::setup::{Need, rust_source};

/// What the image cannot be built or run without.
pub const NEEDS: &[Need] = &[Need::Compilers, Need::RustSource, Need::Qemu];

const PACKAGE: &str = "directverbs-unikernel";
const PROGRAM: &str = "unikernel";
/// The profile that is for images.
const PROFILE: &str = "image";
const MEMORY: &str = "256M";
const BUILD_LIMIT: Duration = Duration::from_secs(900);

/// Builds the image, as small as it gets.
///
/// # Errors
/// It does not compile.
pub fn build(lab: &Lab, arch: Arch, log: &Path, step: &mut Step) -> Result<PathBuf> {
    let target = format!("{}-unknown-none", arch.name());
    let mut cargo = bare::cargo(lab, "build", &rust_source(lab)?, &[&target], &bare::Std::SMALL);
    cargo.args(["--profile", PROFILE, "--package", PACKAGE]);
    succeed(&mut cargo, log, step, BUILD_LIMIT)?;
    Ok(lab.dir.join("bare").join(target).join(PROFILE).join(PROGRAM))
}

/// What an image takes of a machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of code, constants and data.
    pub loaded: u64,
    /// Bytes that begin as zeros: memory for DMA, stack, page tables.
    pub zeros: u64,
}

impl Sizes {
    /// Reads them from an ELF file.
    ///
    /// # Errors
    /// It is none.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(Error::file(path))?;
        let fault = |error| Error::Unexpected(format!("{}: {error}", path.display()));
        let file = ElfFile64::<Endianness>::parse(&*bytes).map_err(fault)?;
        let mut sizes = Self { loaded: 0, zeros: 0 };
        for section in file.sections() {
            match section.kind() {
                SectionKind::Text
                | SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyString
                | SectionKind::Data
                | SectionKind::Note => sizes.loaded += section.size(),
                SectionKind::UninitializedData => sizes.zeros += section.size(),
                _ => {}
            }
        }
        Ok(sizes)
    }
}

/// A machine with this image and a function for each socket, each behind a port of PCI Express. Its first serial port is QEMU's
/// standard output. `peer` is the character device of its second one.
///
/// # Errors
/// QEMU is not there.
pub fn machine(
    lab: &Lab,
    arch: Arch,
    image: &Path,
    sockets: &[PathBuf],
    peer: Option<&str>,
) -> Result<Command> {
    let mut command = qemu::command(lab, arch)?;
    command.args(["-accel", "tcg", "-smp", "1", "-m", MEMORY, "-nodefaults", "-nographic", "-no-reboot"]);
    match arch {
        Arch::X86_64 => {
            command.args(["-M", "q35,memory-backend=mem", "-cpu", "max"]);
            command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        }
        Arch::Aarch64 => {
            command.args(["-M", "virt,highmem=off,memory-backend=mem", "-cpu", "cortex-a72"]);
            command.args(["-semihosting-config", "enable=on,target=native"]);
        }
    }
    command.arg("-object").arg(format!("memory-backend-memfd,id=mem,size={MEMORY},share=on"));
    command.args(["-serial", "stdio"]).arg("-kernel").arg(image);
    if let Some(peer) = peer {
        command.arg("-chardev").arg(format!("{peer},id=peer")).args(["-serial", "chardev:peer"]);
    }
    attach(&mut command, sockets.chunks(1));
    Ok(command)
}

/// Exit status of QEMU when the image says that all checks held.
const fn passed_code(arch: Arch) -> i32 {
    match arch {
        Arch::X86_64 => 33,
        Arch::Aarch64 => 0,
    }
}

/// What the image has reported. Its exit status must say the same.
pub fn outcome(arch: Arch, text: &str, status: ExitStatus) -> Outcome {
    let mut outcome = Outcome::read(text);
    let passed = outcome.counts().1 == 0;
    if (status.code() == Some(passed_code(arch))) != passed {
        outcome.rows.push((GUEST.into(), Err(format!("its exit status was {status}"))));
    }
    outcome
}
