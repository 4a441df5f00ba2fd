//! apt: installs packages on this machine, and downloads from other suites with a configuration of its own, which
//! leaves the machine's untouched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{found, succeed};
use crate::progress::Step;
use crate::setup::sources;

const LIMIT: Duration = Duration::from_secs(300);

/// Installs Debian packages on this machine.
///
/// # Errors
/// Not root; the message names the packages. Or apt failed.
pub fn install(lab: &Lab, packages: &[&str], step: &mut Step) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot { packages: packages.join(" ") });
    }
    if !found("apt-get") {
        return Err(Error::Unexpected(format!("no apt-get here to install {} with", packages.join(" "))));
    }
    let log = lab.logs().join("setup.log");
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    // One source of many may be out of reach; what matters is whether the packages can be had.
    let updated = succeed(apt().arg("update"), &log, step, LIMIT);
    let mut command = apt();
    command.args(["install", "--yes", "--no-install-recommends"]).args(packages);
    succeed(&mut command, &log, step, LIMIT).map(drop).map_err(|error| match updated {
        Ok(_) => error,
        Err(update) => Error::Unexpected(format!("{error}\nand before that: {update}")),
    })
}

/// Installs the package that has a program, if the program is missing.
///
/// # Errors
/// As [`install`].
pub fn program(lab: &Lab, name: &str, package: &str, step: &mut Step) -> Result<()> {
    if found(name) { Ok(()) } else { install(lab, &[package], step) }
}

/// apt with lists and a cache of its own in the lab's folder, for suites that the machine does not use.
#[derive(Debug)]
pub struct Private {
    dir: PathBuf,
    log: PathBuf,
    /// Folder of apt's and dpkg's programs; empty if the search path is to be used.
    programs: PathBuf,
}

impl Private {
    /// Reads the package lists of the suites that the lab takes things from, from the machine's own mirror.
    ///
    /// # Errors
    /// No mirror is configured, or it cannot be reached.
    pub fn open(lab: &Lab, step: &mut Step) -> Result<Self> {
        if !found("apt-get") {
            return Err(Error::Unexpected("no apt-get here: the lab needs Debian".into()));
        }
        let dir = lab.dir.join("apt");
        for part in ["state/lists/partial", "cache/archives/partial", "parts"] {
            fs::create_dir_all(dir.join(part)).map_err(Error::file(&dir))?;
        }
        let mirror = sources::mirror()?;
        let signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
        write(
            &dir.join("sources.list"),
            &format!(
                "deb {signed} {mirror} trixie-backports main\n\
                 deb {signed} {mirror} forky main\n\
                 deb-src {signed} {mirror} forky main\n"
            ),
        )?;
        write(&dir.join("state/status"), "")?;
        let at = dir.display();
        // A snapshot mirror's lists are older than their validity says.
        write(
            &dir.join("apt.conf"),
            &format!(
                "Dir::State \"{at}/state\";\nDir::State::status \"{at}/state/status\";\nDir::Cache \"{at}/cache\";\n\
                 Dir::Etc::sourcelist \"{at}/sources.list\";\nDir::Etc::sourceparts \"{at}/parts\";\n\
                 Dir::Etc::preferencesparts \"{at}/parts\";\nAPT::Sandbox::User \"\";\n\
                 Acquire::Check-Valid-Until \"false\";\nAcquire::Check-Date \"false\";\n\
                 Acquire::Languages \"none\";\nAcquire::Retries \"3\";\nAPT::Update::Error-Mode \"any\";\n"
            ),
        )?;
        let apt = Self { dir, log: lab.logs().join("setup.log"), programs: PathBuf::new() };
        apt.run("apt-get", &["update"], step).map_err(|error| {
            Error::Unexpected(format!(
                "the package lists of {mirror} cannot be read; is the network there?\n{error}"
            ))
        })?;
        Ok(apt)
    }

    /// Downloads the binary package `name`, in the newest version that begins with `version`, and unpacks it to `to`.
    ///
    /// # Errors
    /// The mirror has no such version, or apt or dpkg failed.
    pub fn unpack(&self, name: &str, version: &str, to: &Path, step: &mut Step) -> Result<()> {
        let full = self.version(name, version, step)?;
        let archive = self.download(&["download", &format!("{name}={full}")], name, ".deb", step)?;
        self.extract(&archive, to, step)
    }

    /// Downloads the binary packages `names` and all that they depend on, and unpacks them to `to`.
    ///
    /// # Errors
    /// The mirror has no such package or not all that it depends on, or apt or dpkg failed.
    pub fn unpack_all(&self, names: &[&str], to: &Path, step: &mut Step) -> Result<()> {
        // The status file says that nothing is installed, so that apt takes everything.
        self.run("apt-get", &["clean"], step)?;
        let get = ["install", "--download-only", "--yes", "--no-install-recommends"];
        self.run("apt-get", &[&get, names].concat(), step)?;
        let cache = self.dir.join("cache/archives");
        let mut archives = Vec::new();
        for entry in fs::read_dir(&cache).map_err(Error::file(&cache))? {
            let path = entry.map_err(Error::file(&cache))?.path();
            if path.extension().is_some_and(|end| end == "deb") {
                archives.push(path);
            }
        }
        if archives.is_empty() {
            return Err(Error::Unexpected(format!("apt downloaded nothing for {}", names.join(", "))));
        }
        for archive in &archives {
            self.extract(archive, to, step)?;
        }
        self.run("apt-get", &["clean"], step).map(drop)
    }

    fn extract(&self, archive: &Path, to: &Path, step: &mut Step) -> Result<()> {
        let mut command = self.command("dpkg-deb");
        command.arg("--extract").arg(archive).arg(to);
        succeed(&mut command, &self.log, step, LIMIT).map(drop)
    }

    /// As [`Self::unpack`], but only the files that `members` names, and without keeping the package.
    ///
    /// # Errors
    /// The mirror has no such version, it has none of the files, or apt, dpkg or tar failed.
    pub fn unpack_parts(
        &self,
        name: &str,
        version: &str,
        members: &[&str],
        to: &Path,
        step: &mut Step,
    ) -> Result<()> {
        let full = self.version(name, version, step)?;
        let archive = self.download(&["download", &format!("{name}={full}")], name, ".deb", step)?;
        fs::create_dir_all(to).map_err(Error::file(to))?;
        // tar fails when a name is not found, so that a package cut short does not pass.
        let script = r#"package="$1"; to="$2"; shift 2
            "$0" --fsys-tarfile "$package" | tar --extract --directory "$to" --wildcards "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(self.programs.join("dpkg-deb")).arg(&archive).arg(to).args(members);
        succeed(&mut command, &self.log, step, LIMIT)?;
        fs::remove_file(&archive).map_err(Error::file(&archive))
    }

    /// Unpacks the parts that `members` names of a tar archive inside the binary package `name` to `to`, without the
    /// first folder of their path.
    ///
    /// # Errors
    /// As [`Self::unpack_parts`].
    pub fn unpack_inner(
        &self,
        name: &str,
        version: &str,
        inner: &str,
        members: &[&str],
        to: &Path,
        step: &mut Step,
    ) -> Result<()> {
        let between = self.dir.join("inner");
        self.unpack_parts(name, version, &[&format!("*/{inner}")], &between, step)?;
        self.untar(&between.join("usr/src").join(inner), members, to, step)?;
        fs::remove_dir_all(&between).map_err(Error::file(&between))
    }

    /// Unpacks parts of a tar archive, without the first folder of their path.
    fn untar(&self, archive: &Path, members: &[&str], to: &Path, step: &mut Step) -> Result<()> {
        fs::create_dir_all(to).map_err(Error::file(to))?;
        let mut command = Command::new("tar");
        // All processors, for the archives that allow it.
        command.env("XZ_DEFAULTS", "--threads=0");
        command.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(to);
        command.args(["--strip-components=1", "--wildcards"]).args(members);
        succeed(&mut command, &self.log, step, LIMIT).map(drop)
    }

    /// Names of binary packages that begin with `prefix`.
    ///
    /// # Errors
    /// apt failed.
    pub fn names(&self, prefix: &str, step: &mut Step) -> Result<Vec<String>> {
        let names = self.run("apt-cache", &["pkgnames", prefix], step)?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Downloads the upstream source of the package `name`, in the newest version that begins with `version`, and
    /// unpacks the parts of it that `members` names to `to`, without the first folder of their path.
    ///
    /// # Errors
    /// The mirror has no such version, or apt or tar failed.
    pub fn unpack_source(
        &self,
        name: &str,
        version: &str,
        members: &[&str],
        to: &Path,
        step: &mut Step,
    ) -> Result<()> {
        let full = self.version(name, version, step)?;
        let source = format!("{name}={full}");
        let archive =
            self.download(&["source", "--download-only", "--tar-only", &source], name, ".orig.tar", step)?;
        self.untar(&archive, members, to, step)
    }

    /// The newest version of the package `name` that begins with `begins`.
    ///
    /// # Errors
    /// The mirror has none.
    pub fn version(&self, name: &str, begins: &str, step: &mut Step) -> Result<String> {
        let table = self.run("apt-cache", &["madison", name], step)?;
        let versions: Vec<&str> =
            table.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
        let found = versions.iter().find(|v| v.starts_with(begins));
        found.map(|v| (*v).to_owned()).ok_or_else(|| {
            let others = if versions.is_empty() { "none at all".into() } else { versions.join(", ") };
            Error::Unexpected(format!("the mirror has no {name} {begins}, it has: {others}"))
        })
    }

    /// Downloads into an empty folder and gives the file.
    fn download(&self, arguments: &[&str], name: &str, kind: &str, step: &mut Step) -> Result<PathBuf> {
        let dir = self.dir.join("downloads").join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
        let mut command = self.command("apt-get");
        command.current_dir(&dir).args(arguments);
        succeed(&mut command, &self.log, step, LIMIT)?;
        let files = fs::read_dir(&dir).map_err(Error::file(&dir))?;
        let mut files = files.flatten().map(|e| e.path());
        files
            .find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().contains(kind)))
            .ok_or_else(|| Error::Unexpected(format!("apt downloaded no {kind} of {name}")))
    }

    fn run(&self, program: &str, arguments: &[&str], step: &mut Step) -> Result<String> {
        succeed(self.command(program).args(arguments), &self.log, step, LIMIT)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.env("APT_CONFIG", self.dir.join("apt.conf"));
        command
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// apt of shell scripts: each a program's name and what it does.
    fn private(programs: &[(&str, &str)]) -> (tempfile::TempDir, Private) {
        let dir = tempfile::tempdir().unwrap();
        for (name, script) in programs {
            let path = dir.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let at = dir.path().to_owned();
        (dir, Private { log: at.join("log"), programs: at.clone(), dir: at })
    }

    const TABLE: &str = "echo ' a | 7.3.4-1 | somewhere'; echo ' a | 7.2.1-1 | somewhere'";

    #[test]
    fn the_newest_version_that_begins_as_asked_is_taken() {
        let (_dir, apt) = private(&[("apt-cache", TABLE)]);
        assert_eq!(apt.version("a", "7.", &mut Step::new("test")).unwrap(), "7.3.4-1");
        let error = apt.version("a", "6.", &mut Step::new("test")).unwrap_err();
        assert_eq!(error.to_string(), "the mirror has no a 6., it has: 7.3.4-1, 7.2.1-1");
    }

    #[test]
    fn a_package_that_the_mirror_does_not_have_is_named() {
        let (dir, apt) = private(&[("apt-cache", "echo 'N: Unable to locate package a' >&2")]);
        let error = apt.unpack("a", "7.", dir.path(), &mut Step::new("test")).unwrap_err();
        assert_eq!(error.to_string(), "the mirror has no a 7., it has: none at all");
    }

    #[test]
    fn a_download_that_fails_says_what_apt_said() {
        let apt_get =
            "echo 'E: Failed to fetch http://mirror.example/a.deb  Could not resolve' >&2; exit 100";
        let (dir, apt) = private(&[("apt-cache", TABLE), ("apt-get", apt_get)]);
        let error = apt.unpack("a", "7.", dir.path(), &mut Step::new("test")).unwrap_err().to_string();
        assert!(error.contains("download a=7.3.4-1` ended with exit status: 100"), "{error}");
        assert!(error.ends_with("Could not resolve"), "{error}");
    }

    #[test]
    fn a_package_is_unpacked_with_all_that_it_depends_on() {
        let apt_get = r#"cd "$(dirname "$0")/cache/archives"
            case "$1" in clean) rm -f *.deb;; *) for p in a b; do echo $p > ${p}_1.deb; done;; esac"#;
        let (dir, apt) = private(&[("apt-get", apt_get), ("dpkg-deb", r#"cp "$2" "$3/$(cat "$2")""#)]);
        let (cache, to) = (dir.path().join("cache/archives"), dir.path().join("to"));
        for folder in [&cache, &to] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(cache.join("old.deb"), "old").unwrap();
        apt.unpack_all(&["a"], &to, &mut Step::new("test")).unwrap();
        assert!(to.join("a").exists() && to.join("b").exists() && !to.join("old").exists());
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
    }

    #[test]
    fn only_the_parts_asked_for_are_unpacked_and_one_that_is_missing_is_an_error() {
        let archive = "mkdir -p x/y && echo 1 > x/y/in && echo 2 > x/out && tar --create x";
        let get = "touch a_1.deb";
        let (dir, apt) = private(&[
            ("apt-cache", TABLE),
            ("apt-get", get),
            ("dpkg-deb", &format!("cd \"$(mktemp --directory)\" && {archive}")),
        ]);
        let to = dir.path().join("to");
        let unpack = |member: &str| apt.unpack_parts("a", "7.", &[member], &to, &mut Step::new("test"));
        unpack("*/y/*").unwrap();
        assert!(to.join("x/y/in").exists() && !to.join("x/out").exists());
        assert!(unpack("*/nothing").unwrap_err().to_string().contains("Not found in archive"));
    }
}
