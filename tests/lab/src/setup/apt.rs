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

/// apt with lists and a cache of its own in the lab's folder, for suites that the machine does not use.
#[derive(Debug)]
pub struct Private {
    dir: PathBuf,
    log: PathBuf,
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
                 Acquire::Languages \"none\";\nAcquire::Retries \"3\";\n"
            ),
        )?;
        let apt = Self { dir, log: lab.logs().join("setup.log") };
        apt.run("apt-get", &["update"], step)?;
        Ok(apt)
    }

    /// Downloads the binary package `name`, in the newest version that begins with `version`, and unpacks it to `to`.
    ///
    /// # Errors
    /// The mirror has no such version, or apt or dpkg failed.
    pub fn unpack(&self, name: &str, version: &str, to: &Path, step: &mut Step) -> Result<()> {
        let full = self.version(name, version, step)?;
        let archive = self.download(&["download", &format!("{name}={full}")], name, ".deb", step)?;
        let mut command = Command::new("dpkg-deb");
        command.arg("--extract").arg(archive).arg(to);
        succeed(&mut command, &self.log, step, LIMIT).map(drop)
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
        let mut command = Command::new("tar");
        command.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(to);
        command.args(["--strip-components=1", "--wildcards"]).args(members);
        succeed(&mut command, &self.log, step, LIMIT).map(drop)
    }

    /// The newest version that the mirror has.
    fn version(&self, name: &str, begins: &str, step: &mut Step) -> Result<String> {
        let table = self.run("apt-cache", &["madison", name], step)?;
        let versions: Vec<&str> =
            table.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
        let found = versions.iter().find(|v| v.starts_with(begins));
        found.map(|v| (*v).to_owned()).ok_or_else(|| {
            Error::Unexpected(format!("the mirror has no {name} {begins}, it has: {}", versions.join(", ")))
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
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.dir.join("apt.conf"));
        command
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file(path))
}
