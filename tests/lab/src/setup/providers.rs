//! A folder with libibverbs, the C providers and the example programs of rdma-core 65 as Debian ships them, and with the C
//! library that they were made for: this machine's may be older.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::Private;
use super::foreign;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::progress::Step;

/// Packages, and how their versions begin. The oracle's exceptions are of this version of the providers.
const PACKAGES: [(&str, &str); 7] = [
    ("libc6", "2."),
    ("libgcc-s1", ""),
    ("libnl-3-200", "3."),
    ("libnl-route-3-200", "3."),
    ("libibverbs1", "65."),
    ("ibverbs-providers", "65."),
    ("ibverbs-utils", "65."),
];

fn root(lab: &Lab) -> PathBuf {
    lab.dir.join("providers-65")
}

fn mark(lab: &Lab) -> PathBuf {
    root(lab).join(".complete")
}

pub(super) fn is_there(lab: &Lab) -> bool {
    mark(lab).exists() && program(lab, "ibv_rc_pingpong").exists()
}

pub(super) fn get(lab: &Lab, apt: &Private, step: &mut Step) -> Result<()> {
    let to = root(lab);
    fs::create_dir_all(&to).map_err(Error::file(&to))?;
    for (name, version) in PACKAGES {
        apt.unpack(name, version, &to, step)?;
    }
    let mark = mark(lab);
    fs::write(&mark, "").map_err(Error::file(&mark))
}

/// One of the example programs, to be run with [`command`].
pub fn program(lab: &Lab, name: &str) -> PathBuf {
    root(lab).join("usr/bin").join(name)
}

/// A command that runs `program` so that it finds the providers.
///
/// # Errors
/// The folder is not there.
pub fn command(lab: &Lab, program: &Path) -> Result<Command> {
    foreign::command(&root(lab), &["libibverbs"], program)
}
