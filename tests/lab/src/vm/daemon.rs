//! softnicd for a guest: software NICs behind sockets that QEMU connects to.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{self, succeed};
use crate::progress::Step;

const PROGRAM: &str = "softnicd";
const BUILD_LIMIT: Duration = Duration::from_secs(900);
/// How long it may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A daemon that ends with the value.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// A socket for each NIC, in order.
    pub sockets: Vec<PathBuf>,
    /// Sockets have short names: they are not in the lab's folder.
    _folder: TempDir,
}

/// Builds the daemon.
///
/// # Errors
/// It does not compile.
pub fn build(lab: &Lab, log: &Path, step: &mut Step) -> Result<()> {
    // Of the whole workspace, so that nothing is compiled anew with fewer features than for other suites.
    let mut cargo = lab.cargo();
    cargo.args(["build", "--workspace", "--bin", PROGRAM]);
    succeed(&mut cargo, log, step, BUILD_LIMIT).map(drop)
}

impl Daemon {
    /// Starts it with NICs of these kinds, on one wire, and with further `arguments`. It prints the drivers' commands to a file
    /// in the lab's logs.
    ///
    /// # Errors
    /// It ends, or does not listen in time.
    pub fn start(lab: &Lab, name: &str, nics: &[&str], arguments: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(Error::file(&std::env::temp_dir()))?;
        let sockets: Vec<_> = (0..nics.len()).map(|nth| folder.path().join(nth.to_string())).collect();
        let log = lab.logs().join(format!("vm-{name}-softnicd.log"));
        let out = File::create(&log).map_err(Error::file(&log))?;
        let mut command = Command::new(lab.target.join("debug").join(PROGRAM));
        command.arg("--trace").args(arguments);
        for (nic, socket) in nics.iter().zip(&sockets) {
            command.arg("--nic").arg(format!("{nic}={}", socket.display()));
        }
        command.stdin(Stdio::null()).stderr(out.try_clone().map_err(Error::file(&log))?).stdout(out);
        let started = command.spawn();
        let child = started.map_err(|source| Error::Start { program: process::spelled(&command), source })?;
        let mut daemon = Self { child, sockets, _folder: folder };
        let limit = Instant::now() + START_LIMIT;
        loop {
            let said = fs::read_to_string(&log).map_err(Error::file(&log))?;
            if said.lines().any(|line| line == "listening") {
                return Ok(daemon);
            }
            let ended = daemon.child.try_wait().map_err(Error::file(&log))?;
            if ended.is_some() || Instant::now() > limit {
                return Err(Error::Unexpected(format!(
                    "{} does not listen: {said}",
                    process::spelled(&command)
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
