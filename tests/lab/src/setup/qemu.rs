//! QEMU with all that it is linked with, unpacked: this machine's may be too old for what the guests need.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::apt::Private;
use super::foreign;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::progress::Step;

const PACKAGE: &str = "qemu-system-x86";
const PROGRAM: &str = "usr/bin/qemu-system-x86_64";

/// Folders of firmware.
const FIRMWARE: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];

fn root(lab: &Lab) -> PathBuf {
    lab.dir.join("qemu")
}

fn mark(lab: &Lab) -> PathBuf {
    root(lab).join(".complete")
}

pub(super) fn is_there(lab: &Lab) -> bool {
    mark(lab).exists()
}

pub(super) fn get(lab: &Lab, apt: &Private, step: &mut Step) -> Result<()> {
    let to = root(lab);
    // What is left of a set-up that was stopped.
    let _ = fs::remove_dir_all(&to);
    fs::create_dir_all(&to).map_err(Error::file(&to))?;
    apt.unpack_all(PACKAGE, &to, step)?;
    let mark = mark(lab);
    fs::write(&mark, "").map_err(Error::file(&mark))
}

/// QEMU, with its firmware, and nothing else yet.
///
/// # Errors
/// It is not there.
pub fn command(lab: &Lab) -> Result<Command> {
    let root = root(lab);
    let mut command = foreign::command(&root, &[], &root.join(PROGRAM))?;
    for folder in FIRMWARE {
        command.arg("-L").arg(root.join(folder));
    }
    Ok(command)
}
