//! Programs of another Debian release, unpacked to a folder with the C library that they were made for: this machine's
//! may be older. They run without a chroot, under the dynamic linker of their own folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// Folder of shared libraries below `root`.
///
/// # Errors
/// A machine that Debian's packages of it are not known for.
pub fn libraries(root: &Path) -> Result<PathBuf> {
    let triplet = match std::env::consts::ARCH {
        "x86_64" => "x86_64-linux-gnu",
        "aarch64" => "aarch64-linux-gnu",
        other => return Err(Error::Unexpected(format!("no unpacked programs for {other}"))),
    };
    Ok(root.join("usr/lib").join(triplet))
}

/// A command that runs `program` with the libraries below `root`, and with those of the folders `more` below its
/// libraries.
///
/// # Errors
/// The folder is not there.
pub fn command(root: &Path, more: &[&str], program: &Path) -> Result<Command> {
    let libraries = libraries(root)?;
    let entries = fs::read_dir(&libraries).map_err(Error::file(&libraries))?;
    let linker =
        entries.flatten().map(|entry| entry.path()).find(|path| is_linker(path)).ok_or_else(|| {
            Error::Unexpected(format!(
                "no dynamic linker in {}: `cargo lab setup` gets it",
                libraries.display()
            ))
        })?;
    let mut path = libraries.display().to_string();
    for folder in more {
        path += &format!(":{}", libraries.join(folder).display());
    }
    let mut command = Command::new(linker);
    command.arg("--library-path").arg(path).arg(program);
    Ok(command)
}

fn is_linker(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux-"))
}
