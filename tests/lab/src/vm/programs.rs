//! The programs that a guest with a Linux kernel runs, and the libraries of this machine that they are linked with.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::initramfs::Initramfs;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::succeed;
use crate::progress::Step;

const LIMIT: Duration = Duration::from_secs(900);

/// Builds and packs programs: where each is in the guest, and its name. The libraries are where the programs look for them.
///
/// # Errors
/// A program does not compile, or there is nothing that it is linked with.
pub fn pack(
    lab: &Lab,
    programs: &[(&str, &str)],
    log: &Path,
    step: &mut Step,
    into: &mut Initramfs,
) -> Result<()> {
    let mut libraries = BTreeSet::new();
    for (at, name) in programs {
        let program = build(lab, name, log, step)?;
        let text = succeed(Command::new("ldd").arg(&program), log, step, LIMIT)?;
        // NAME => PATH (ADDRESS), or PATH (ADDRESS)
        let mut named =
            text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).peekable();
        if named.peek().is_none() {
            return Err(Error::Unexpected(format!("{}: ldd names no library: {text}", program.display())));
        }
        libraries.extend(named);
        into.file(at, &fs::read(&program).map_err(Error::file(&program))?);
    }
    // In order, a folder comes before what is in it.
    let folders: BTreeSet<&Path> = libraries.iter().flat_map(|library| library.ancestors().skip(1)).collect();
    folders.into_iter().filter_map(in_archive).for_each(|folder| into.folder(folder));
    for library in &libraries {
        let at = in_archive(library).ok_or_else(|| Error::Unexpected(format!("{library:?} is no text")))?;
        into.file(at, &fs::read(library).map_err(Error::file(library))?);
    }
    Ok(())
}

/// The name that an absolute path has in an archive; none for the root.
fn in_archive(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix('/').filter(|name| !name.is_empty())
}

/// Builds a program as all other suites have it, so that nothing is compiled for guests alone.
fn build(lab: &Lab, name: &str, log: &Path, step: &mut Step) -> Result<PathBuf> {
    succeed(lab.cargo().args(["build", "--workspace", "--bin", name]), log, step, LIMIT)?;
    Ok(lab.target.join("debug").join(name))
}
