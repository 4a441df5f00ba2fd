//! Two guests across a wire: each has a NIC of its own daemon. The daemons send each other frames in UDP datagrams; what the
//! guests agree on goes from serial port to serial port, through pipes: they keep what a guest has said last when it has ended.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::daemon::Daemon;
use super::image;
use super::outcome::Outcome;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{self, spelled, tail};
use crate::progress::Step;
use crate::setup::qemu::Arch;

/// How long the guest that was started first may go on when the other is done.
const LIMIT: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(20);

/// Runs the image in two guests, each with one of `nics`. Gives what both have reported, with the end of what they have said.
///
/// # Errors
/// Something could not be started, or the second guest does not end within `limit`.
pub fn run(
    lab: &Lab,
    name: &str,
    (arch, image): (Arch, &Path),
    nics: [&str; 2],
    (log, step, limit): (&Path, &mut Step, Duration),
) -> Result<(Outcome, String)> {
    let [here, there] = free_ports()?;
    let ends = [(here, there, "1"), (there, here, "2")];
    let start = |nth: usize| {
        let (local, peer, number) = ends[nth];
        let wire = format!("udp:127.0.0.1:{local},127.0.0.1:{peer}");
        Daemon::start(lab, &format!("{name}-{number}"), &[nics[nth]], &["--first", number, "--wire", &wire])
    };
    let daemons = [start(0)?, start(1)?];
    let folder = tempfile::tempdir().map_err(Error::file(&std::env::temp_dir()))?;
    let lines = cross(folder.path())?;
    let machine = |nth: usize| {
        let line = format!("pipe,path={}", lines[nth].display());
        image::machine(lab, arch, image, &daemons[nth].sockets, Some(&line))
    };
    let first = Other::start(machine(0)?, lab.logs().join(format!("vm-{name}-1.log")))?;
    let second = process::run(&mut machine(1)?, log, step, limit)?;
    let (text, status) = first.end()?;
    let mut both = Outcome::default();
    let mut said = String::new();
    for (number, text, status) in [("1", text, status), ("2", second.text, second.status)] {
        let text = text.replace('\r', "");
        let outcome = image::outcome(arch, &text, status);
        both.rows
            .extend(outcome.rows.into_iter().map(|(name, result)| (format!("{number}: {name}"), result)));
        both.first_verified = both.first_verified.into_iter().chain(outcome.first_verified).min();
        said += &format!("guest {number}:\n{}\n", tail(&text));
    }
    Ok((both, said))
}

/// Makes two pipes in `folder`. Each of the two ends is a name, to which QEMU appends `.in` and `.out`.
fn cross(folder: &Path) -> Result<[PathBuf; 2]> {
    let ends = ["1", "2"].map(|end| folder.join(end));
    for (from, to) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        let (out, into) = (from.with_extension("out"), to.with_extension("in"));
        let made = mknodat(CWD, &out, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        made.map_err(|error| Error::file(&out)(error.into()))?;
        fs::hard_link(&out, &into).map_err(Error::file(&into))?;
    }
    Ok(ends)
}

/// Two ports that nobody has now.
fn free_ports() -> Result<[u16; 2]> {
    let fault = |error: std::io::Error| Error::Unexpected(format!("no UDP port: {error}"));
    // Both are open at the same time, so they differ.
    let sockets =
        [UdpSocket::bind("127.0.0.1:0").map_err(fault)?, UdpSocket::bind("127.0.0.1:0").map_err(fault)?];
    let port = |socket: &UdpSocket| Ok(socket.local_addr().map_err(fault)?.port());
    Ok([port(&sockets[0])?, port(&sockets[1])?])
}

/// The guest that was started first. It ends with the value.
struct Other {
    child: Child,
    command: String,
    log: PathBuf,
}

impl Other {
    fn start(mut command: Command, log: PathBuf) -> Result<Self> {
        let out = File::create(&log).map_err(Error::file(&log))?;
        command.stdin(Stdio::null()).stderr(out.try_clone().map_err(Error::file(&log))?).stdout(out);
        let words = spelled(&command);
        let child = command.spawn().map_err(|source| Error::Start { program: words.clone(), source })?;
        Ok(Self { child, command: words, log })
    }

    fn said(&self) -> Result<String> {
        let bytes = fs::read(&self.log).map_err(Error::file(&self.log))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits for its end; gives what it has said, and its status.
    fn end(mut self) -> Result<(String, ExitStatus)> {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().map_err(Error::file(&self.log))? {
                return Ok((self.said()?, status));
            }
            thread::sleep(NAP);
        }
        let (command, last) = (self.command.clone(), tail(&self.said()?));
        Err(Error::TimeOut { command, limit: LIMIT, last })
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
