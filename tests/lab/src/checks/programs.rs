//! rdma-core's own programs, unmodified, over the made-up kernel: `ibv_devinfo` sees the devices, and `ibv_rc_pingpong`
//! talks to itself in another process, by polling and by events, and to `dv pingpong`, within a family and between them.

use std::fmt;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::spelled;
use crate::setup::providers;
use crate::suites::Checks;

/// NICs, and what tells that `ibv_devinfo` has asked the right one.
const NICS: [(&str, &str); 4] =
    [("bnxt_re-p5", "0x14e4"), ("bnxt_re", "0x14e4"), ("ionic-v1", "0x1dd8"), ("ionic", "0x1dd8")];
const KERNELS: [&str; 3] = ["6.12", "7.2", "7.3"];

/// Whether a kernel has a driver for a NIC.
fn drives(kernel: &str, nic: &str) -> bool {
    kernel != "6.12" || nic.starts_with("bnxt_re")
}

/// Longest time that a pair of programs may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Round trips.
const ITERATIONS: &str = "100";
/// Bytes of a message: several packets, the last not full.
const SIZE: &str = "4500";
/// Bytes of all messages that a side receives.
const VERIFIED: u32 = 450_000;

/// Builds the library and `dv`, and runs all.
///
/// # Errors
/// They do not compile, or a folder cannot be made.
pub fn run(checks: &mut Checks<'_>) -> Result<()> {
    for what in
        [["--package", "directverbs-preload"].as_slice(), &["--package", "directverbs-linux", "--bin", "dv"]]
    {
        let mut build = checks.lab.cargo();
        checks.succeed(build.arg("build").args(what))?;
    }
    let wire = checks.lab.dir.join("wire");
    let all = NICS.iter().flat_map(|nic| KERNELS.iter().map(move |kernel| (nic, *kernel)));
    for ((nic, vendor), kernel) in all.filter(|((nic, _), kernel)| drives(kernel, nic)) {
        let device = format!("{nic}@{kernel}");
        let info = devinfo(checks, &device, vendor);
        checks.count(&format!("ibv_devinfo on {device}"), info);
        for (how, arguments) in [("", ["-c"].as_slice()), (" with events", ["-c", "-e"].as_slice())] {
            // libionic arms a completion queue only with the next post or poll, and the program that waits for its peer
            // does neither: it would wait on any device.
            if arguments.contains(&"-e") && nic.starts_with("ionic") {
                continue;
            }
            let sides = [Program::C(arguments), Program::C(arguments)];
            let outcome = pingpong(checks.lab, &wire, [&device, &device], sides);
            checks.count(&format!("ibv_rc_pingpong{how} on {device}"), outcome);
        }
        for sides in [[Program::Dv, Program::C(&[])], [Program::C(&[]), Program::Dv]] {
            let outcome = pingpong(checks.lab, &wire, [&device, &device], sides);
            checks.count(&format!("{} and {} on {device}", sides[0], sides[1]), outcome);
        }
    }
    for pair in [["bnxt_re@7.3", "ionic@7.3"], ["ionic-v1@7.2", "bnxt_re-p5@6.12"]] {
        for sides in
            [[Program::C(&["-c"]); 2], [Program::Dv, Program::C(&[])], [Program::C(&[]), Program::Dv]]
        {
            let outcome = pingpong(checks.lab, &wire, pair, sides);
            checks.count(&format!("{} on {} and {} on {}", sides[0], pair[0], sides[1], pair[1]), outcome);
        }
    }
    Ok(())
}

/// What runs at one end.
#[derive(Clone, Copy)]
enum Program<'a> {
    /// `ibv_rc_pingpong` over the vendor's provider, with these arguments.
    C(&'a [&'a str]),
    /// `dv pingpong`.
    Dv,
}

impl fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C(_) => "ibv_rc_pingpong",
            Self::Dv => "dv pingpong",
        })
    }
}

/// A program of rdma-core with the devices that `devices` names.
///
/// # Errors
/// The programs are not there.
pub fn program(lab: &Lab, name: &str, devices: &str, wire: Option<&Path>) -> Result<Command> {
    let mut command = providers::command(lab, &providers::program(lab, name))?;
    command.env("LD_PRELOAD", lab.target.join("debug/libpreload.so"));
    // Debian's folder of drivers is not where the library looks for it.
    command.env("IBV_DRIVERS", "bnxt_re:ionic");
    command.env("DIRECTVERBS_FAKE", devices);
    if let Some(wire) = wire {
        command.env("DIRECTVERBS_FAKE_WIRE", wire);
    }
    Ok(command)
}

fn devinfo(checks: &mut Checks<'_>, device: &str, vendor: &str) -> Result<()> {
    let mut command = program(checks.lab, "ibv_devinfo", device, None)?;
    let text = checks.succeed(command.arg("-v"))?;
    let facts =
        ["PORT_ACTIVE (4)", vendor, "fe80::aff:fe00:1, RoCE v2", "::ffff:10.0.0.1, RoCE v2", "Ethernet"];
    match facts.iter().find(|fact| !text.contains(**fact)) {
        Some(missing) => Err(Error::Unexpected(format!("no {missing:?} in\n{text}"))),
        None => Ok(()),
    }
}

/// Ends a program that is left when its peer has failed.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(mut command: Command) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map(Self).map_err(|source| Error::Start { program: spelled(&command), source })
    }

    /// Waits until the program ends well, at most until `end`, and gives what it said.
    fn finish(mut self, end: Instant) -> Result<String> {
        let status = loop {
            match self.0.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
                _ => break None,
            }
        };
        let _ = self.0.kill();
        let out = self.0.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read>);
        let err = self.0.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read>);
        let mut bytes = Vec::new();
        for mut pipe in [out, err].into_iter().flatten() {
            // What cannot be read was not said.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match status {
            Some(status) if status.success() => Ok(text),
            Some(status) => Err(Error::Unexpected(format!("it ended with {status}:\n{text}"))),
            None => Err(Error::Unexpected(format!("it did not end within {LIMIT:?}:\n{text}"))),
        }
    }
}

/// A port that nobody listens at.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| Error::Unexpected(format!("no port: {error}")))
}

/// Arguments for the first side, which listens, or the second, which connects.
fn command(
    lab: &Lab,
    wire: &Path,
    device: &str,
    side: Program<'_>,
    port: &str,
    listens: bool,
) -> Result<Command> {
    // Devices of one wire have different places; `dv` has the first if it connects.
    let place = if listens { 2 } else { 1 };
    let address = format!("127.0.0.1:{port}");
    match side {
        Program::C(arguments) => {
            let mut command = program(lab, "ibv_rc_pingpong", &format!("{device}:{place}"), Some(wire))?;
            // The second GID is the IPv4 address.
            command.args(["-g", "1", "-n", ITERATIONS, "-s", SIZE, "-p", port]).args(arguments);
            if !listens {
                command.arg("127.0.0.1");
            }
            Ok(command)
        }
        Program::Dv => {
            let mut command = Command::new(lab.target.join("debug/dv"));
            command.args(["pingpong", "--rc-pingpong", "--iters", ITERATIONS, "--size", SIZE]);
            command.args([
                "--device",
                &format!("fake:{device}"),
                if listens { "--listen" } else { "--connect" },
            ]);
            command.arg(address).arg("--wire").arg(wire);
            Ok(command)
        }
    }
}

fn pingpong(lab: &Lab, wire: &Path, devices: [&str; 2], programs: [Program<'_>; 2]) -> Result<()> {
    // Sockets of programs that were ended would stay.
    let _ = fs::remove_dir_all(wire);
    fs::create_dir_all(wire).map_err(Error::file(wire))?;
    let (end, port) = (Instant::now() + LIMIT, free_port()?.to_string());
    let side = |side: usize| command(lab, wire, devices[side], programs[side], &port, side == 0);
    let server = Running::start(side(0)?)?;
    let client = loop {
        let mut client = Running::start(side(1)?)?;
        // The server may not listen yet: its peer then ends at once.
        std::thread::sleep(Duration::from_millis(300));
        match client.0.try_wait() {
            Ok(Some(status)) if !status.success() && Instant::now() < end => {}
            _ => break client,
        }
    };
    let told = [client.finish(end)?, server.finish(end)?];
    for (text, program) in told.iter().zip(programs.iter().rev()) {
        let counted = match program {
            Program::C(_) => format!("{ITERATIONS} iters"),
            Program::Dv => format!("{VERIFIED} bytes verified, no error"),
        };
        if !text.contains(&counted) {
            return Err(Error::Unexpected(format!("no {counted:?} in\n{text}")));
        }
    }
    Ok(())
}
