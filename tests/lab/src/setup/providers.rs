//! A folder with libibverbs and the C providers of rdma-core 65 as Debian ships them, and with the C library that they
//! were made for: this machine's may be older.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::Private;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::progress::Step;

/// Packages, and how their versions begin. The oracle's exceptions are of this version of the providers.
const PACKAGES: [(&str, &str); 6] = [
    ("libc6", "2."),
    ("libgcc-s1", ""),
    ("libnl-3-200", "3."),
    ("libnl-route-3-200", "3."),
    ("libibverbs1", "65."),
    ("ibverbs-providers", "65."),
];

fn root(lab: &Lab) -> PathBuf {
    lab.dir.join("providers-65")
}

fn mark(lab: &Lab) -> PathBuf {
    root(lab).join(".complete")
}

pub(super) fn is_there(lab: &Lab) -> bool {
    mark(lab).exists()
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

/// The folder's own dynamic linker, and the path where it shall look for libraries.
fn linker(lab: &Lab) -> Result<(PathBuf, String)> {
    let libraries = root(lab).join("usr/lib").join(triplet()?);
    let linker =
        fs::read_dir(&libraries).map_err(Error::file(&libraries))?.flatten().map(|entry| entry.path());
    let linker = linker.into_iter().find(|path| is_linker(path)).ok_or_else(|| {
        Error::Unexpected(format!("no dynamic linker in {}: `cargo lab setup` gets it", libraries.display()))
    })?;
    let providers = libraries.join("libibverbs");
    Ok((linker, format!("{}:{}", libraries.display(), providers.display())))
}

fn is_linker(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux-"))
}

/// Debian's name of this machine's kind.
fn triplet() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("x86_64-linux-gnu"),
        "aarch64" => Ok("aarch64-linux-gnu"),
        other => Err(Error::Unexpected(format!("no C providers for {other}"))),
    }
}

/// A command that runs `program` so that it finds the providers.
///
/// # Errors
/// The folder is not there.
pub fn command(lab: &Lab, program: &Path) -> Result<Command> {
    let (linker, path) = linker(lab)?;
    let mut command = Command::new(linker);
    command.arg("--library-path").arg(path).arg(program);
    Ok(command)
}
