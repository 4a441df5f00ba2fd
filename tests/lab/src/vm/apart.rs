//! Two guests across a wire: each has a NIC of its own daemon. The daemons send each other frames in UDP datagrams; what the
//! guests agree on goes from serial port to serial port.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::daemon::Daemon;
use super::image;
use super::outcome::Outcome;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{self, spelled, tail};
use crate::progress::Step;
use crate::setup::qemu::Arch;

/// How long the guest that was started first may go on when the other is done, or take to open its socket.
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
    let socket = folder.path().join("peer");
    let line = |server: &str| format!("socket,path={},server={server}", socket.display());
    let machine =
        |nth: usize, server| image::machine(lab, arch, image, &daemons[nth].sockets, Some(&line(server)));
    let mut first = Other::start(machine(0, "on")?, lab.logs().join(format!("vm-{name}-1.log")))?;
    first.wait_for(&socket)?;
    let second = process::run(&mut machine(1, "off")?, log, step, limit)?;
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

/// Two ports that nobody has now.
fn free_ports() -> Result<[u16; 2]> {
    let fault = |error: std::io::Error| Error::Unexpected(format!("no UDP port: {error}"));
    // Both are open at the same time, so they differ.
    let sockets =
        [UdpSocket::bind("127.0.0.1:0").map_err(fault)?, UdpSocket::bind("127.0.0.1:0").map_err(fault)?];
    let port = |socket: &UdpSocket| Ok(socket.local_addr().map_err(fault)?.port());
    Ok([port(&sockets[0])?, port(&sockets[1])?])
}

/// The guest that waits for the other one to connect. It ends with the value.
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

    /// Waits until `done` gives something.
    fn wait<T>(&mut self, mut done: impl FnMut(&mut Child) -> std::io::Result<Option<T>>) -> Result<T> {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            if let Some(found) = done(&mut self.child).map_err(Error::file(&self.log))? {
                return Ok(found);
            }
            thread::sleep(NAP);
        }
        let (command, last) = (self.command.clone(), tail(&self.said()?));
        Err(Error::TimeOut { command, limit: LIMIT, last })
    }

    fn wait_for(&mut self, socket: &Path) -> Result<()> {
        let ended = self.wait(|child| {
            let ended = child.try_wait()?;
            Ok((ended.is_some() || socket.exists()).then_some(ended))
        })?;
        match ended {
            Some(status) => {
                Err(Error::Failed { command: self.command.clone(), status, tail: tail(&self.said()?) })
            }
            None => Ok(()),
        }
    }

    /// Waits for its end; gives what it has said, and its status.
    fn end(mut self) -> Result<(String, ExitStatus)> {
        let status = self.wait(Child::try_wait)?;
        Ok((self.said()?, status))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
