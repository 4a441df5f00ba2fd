//! QEMU with all that it is linked with, unpacked: this machine's may be too old for what the guests need.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;

use super::apt::Private;
use super::foreign;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::progress::Step;

/// Processors that guests may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arch {
    /// A PC
    #[value(name = "x86_64")]
    X86_64,
    /// QEMU's machine virt
    #[value(name = "aarch64")]
    Aarch64,
}

impl Arch {
    /// Both.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Name, as the compiler's targets begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86",
            Self::Aarch64 => "qemu-system-arm",
        }
    }

    fn program(self) -> String {
        format!("usr/bin/qemu-system-{}", self.name())
    }
}

/// Folders of firmware.
const FIRMWARE: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];

fn root(lab: &Lab) -> PathBuf {
    lab.dir.join("qemu")
}

fn mark(lab: &Lab) -> PathBuf {
    root(lab).join(".complete")
}

pub(super) fn is_there(lab: &Lab) -> bool {
    mark(lab).exists() && Arch::ALL.iter().all(|arch| root(lab).join(arch.program()).exists())
}

pub(super) fn get(lab: &Lab, apt: &Private, step: &mut Step) -> Result<()> {
    let to = root(lab);
    // What is left of a set-up that was stopped.
    let _ = fs::remove_dir_all(&to);
    fs::create_dir_all(&to).map_err(Error::file(&to))?;
    apt.unpack_all(&Arch::ALL.map(Arch::package), &to, step)?;
    let mark = mark(lab);
    fs::write(&mark, "").map_err(Error::file(&mark))
}

/// QEMU for a processor, with its firmware, and nothing else yet.
///
/// # Errors
/// It is not there.
pub fn command(lab: &Lab, arch: Arch) -> Result<Command> {
    let root = root(lab);
    let mut command = foreign::command(&root, &[], &root.join(arch.program()))?;
    for folder in FIRMWARE {
        command.arg("-L").arg(root.join(folder));
    }
    Ok(command)
}
