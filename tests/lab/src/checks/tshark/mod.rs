//! tshark's judgment of the captures that the `pcap` suite has left: no malformed frame, nothing that it warns of.
//!
//! tshark 4.0 shows the ICRC but does not check it, so it is computed here, apart from the software NICs, and compared
//! both with what the frame carries and with what tshark takes for the ICRC.

mod icrc;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::suites::Checks;

/// Severity of an expert's note from which on it is a fault: warning.
const WARNING: u64 = 0x60_0000;

/// Acknowledge, and fetch and add, whose header is longer.
const ACKNOWLEDGE: u8 = 0x11;
const FETCH_ADD: u8 = 0x14;
/// Where a BTH is over IPv4.
const BTH: usize = 14 + 20 + 8;

/// Judges every capture.
///
/// # Errors
/// There is none, or tshark failed.
pub fn run(checks: &mut Checks<'_>) -> Result<()> {
    let folder = checks.lab.target.join("tmp/captures");
    let mut captures: Vec<_> = fs::read_dir(&folder)
        .map_err(|_| {
            Error::Unexpected(format!("no captures in {}: run the suite pcap first", folder.display()))
        })?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "pcap"))
        .collect();
    captures.sort();
    let payloads = payload_protocols(checks)?;
    let mut acknowledge = None;
    for path in &captures {
        let capture = Capture::read(path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let seen = dissect(checks, path, &payloads)?;
        checks.count(
            &format!("{name}: structure of {} frames", capture.frames.len()),
            no_fault(&seen, &capture),
        );
        checks.count(&format!("{name}: ICRC of {} frames", capture.frames.len()), same_icrc(&seen, &capture));
        acknowledge = acknowledge.or(capture.frames.into_iter().find(|f| f.get(BTH) == Some(&ACKNOWLEDGE)));
    }
    match acknowledge {
        Some(frame) => controls(checks, &frame, &payloads),
        None => Err(Error::Unexpected(format!("no acknowledge packet over IPv4 in {}", folder.display()))),
    }
}

/// What tshark says of a frame.
#[derive(Debug)]
struct Seen {
    number: String,
    malformed: String,
    severity: u64,
    messages: String,
    opcode: String,
    icrc: String,
}

impl Seen {
    fn faulty(&self) -> bool {
        !self.malformed.is_empty() || self.severity >= WARNING || self.opcode.is_empty()
    }
}

/// Protocols that tshark looks for in a payload by guessing. What the workload carries is none of them.
fn payload_protocols(checks: &mut Checks<'_>) -> Result<Vec<String>> {
    let table = checks.succeed(Command::new("tshark").args(["-G", "heuristic-decodes"]))?;
    let rows = table.lines().filter_map(|line| line.strip_prefix("infiniband.payload\t")?.split('\t').next());
    Ok(rows.map(str::to_owned).collect())
}

fn dissect(checks: &mut Checks<'_>, capture: &Path, payloads: &[String]) -> Result<Vec<Seen>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture);
    for protocol in payloads {
        tshark.args(["--disable-protocol", protocol]);
    }
    // RoCEv2 sends no UDP checksum, over IPv6 neither: the ICRC stands in for it.
    tshark.args(["-o", "ip.check_checksum:TRUE", "-o", "udp.ignore_ipv6_zero_checksum:TRUE"]);
    tshark.args(["-T", "fields", "-E", "separator=|"]);
    for field in [
        "frame.number",
        "_ws.malformed",
        "_ws.expert.severity",
        "_ws.expert.message",
        "infiniband.bth.opcode",
        "infiniband.invariant.crc",
    ] {
        tshark.args(["-e", field]);
    }
    let output = checks.succeed(&mut tshark)?;
    let seen = output.lines().filter_map(|line| {
        let mut fields = line.split('|').map(str::to_owned);
        let (number, malformed, severities) = (fields.next()?, fields.next()?, fields.next()?);
        let severity = severities.split(',').filter_map(|s| s.parse().ok()).max().unwrap_or(0);
        let (messages, opcode, icrc) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Seen { number, malformed, severity, messages, opcode, icrc })
    });
    Ok(seen.collect())
}

fn no_fault(seen: &[Seen], capture: &Capture) -> Result<()> {
    if seen.len() != capture.frames.len() || seen.is_empty() {
        return Err(Error::Unexpected(format!(
            "tshark sees {} of {} frames",
            seen.len(),
            capture.frames.len()
        )));
    }
    let faults: Vec<String> = seen
        .iter()
        .filter(|seen| seen.faulty())
        .map(|s| format!("frame {}: opcode {:?}, {} {}", s.number, s.opcode, s.malformed, s.messages))
        .collect();
    match faults.first() {
        None => Ok(()),
        Some(first) => Err(Error::Unexpected(format!("{} frames with faults, first {first}", faults.len()))),
    }
}

fn same_icrc(seen: &[Seen], capture: &Capture) -> Result<()> {
    for (frame, seen) in capture.frames.iter().zip(seen) {
        let Some((carried, right)) = icrc::of(frame) else {
            return Err(Error::Unexpected(format!("frame {} is no whole RoCEv2 frame", seen.number)));
        };
        let shown = format!("{:#010x}", u32::from_be_bytes(carried));
        if carried != right || shown != seen.icrc {
            let number = &seen.number;
            return Err(Error::Unexpected(format!(
                "frame {number}: carries {carried:02x?}, should carry {right:02x?}, tshark shows {}",
                seen.icrc
            )));
        }
    }
    Ok(())
}

/// Shows that faults are found: in one frame, which is good, one thing after the other is spoilt.
fn controls(checks: &mut Checks<'_>, frame: &[u8], payloads: &[String]) -> Result<()> {
    let icrc_differs = |at: usize| {
        let mut spoilt = frame.to_vec();
        if let Some(byte) = spoilt.get_mut(at) {
            *byte ^= 1;
        }
        icrc::of(&spoilt).is_some_and(|(carried, right)| carried != right)
    };
    for (what, at, differs) in [
        ("packet sequence number", BTH + 11, true),
        ("acknowledge header", BTH + 12, true),
        ("source address", 14 + 15, true),
        ("time to live", 14 + 8, false),
        ("congestion bits", BTH + 4, false),
    ] {
        let outcome =
            if icrc_differs(at) == differs { Ok(()) } else { Err("the ICRC takes no notice, or too much") };
        checks.count(&format!("control: another {what}"), outcome);
    }

    let path = checks.lab.dir.join("control.pcap");
    for (what, at, xor) in [
        ("header longer than the packet", BTH, ACKNOWLEDGE ^ FETCH_ADD),
        ("wrong IP checksum", 14 + 10, 0xff),
    ] {
        let mut spoilt = frame.to_vec();
        if let Some(byte) = spoilt.get_mut(at) {
            *byte ^= xor;
        }
        Capture { frames: vec![spoilt] }.write(&path)?;
        let seen = dissect(checks, &path, payloads)?;
        let found = seen.first().is_some_and(Seen::faulty);
        checks.count(&format!("control: {what}"), if found { Ok(()) } else { Err("tshark took no notice") });
    }
    Ok(())
}

/// A capture file, little-endian with nanoseconds.
#[derive(Debug)]
struct Capture {
    frames: Vec<Vec<u8>>,
}

/// Magic number, version 2.4, no offset, longest frame, Ethernet.
const FILE_HEADER: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1];

impl Capture {
    fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(Error::file(path))?;
        let malformed = || Error::Unexpected(format!("{} is no capture", path.display()));
        let mut rest = bytes.get(FILE_HEADER.len() * 4..).ok_or_else(malformed)?;
        let mut frames = Vec::new();
        while let Some((header, tail)) = rest.split_first_chunk::<16>() {
            let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = *header;
            let len = u32::from_le_bytes([a, b, c, d]) as usize;
            let (frame, tail) = tail.split_at_checked(len).ok_or_else(malformed)?;
            frames.push(frame.to_vec());
            rest = tail;
        }
        Ok(Self { frames })
    }

    fn write(&self, path: &Path) -> Result<()> {
        let mut bytes: Vec<u8> = FILE_HEADER.iter().flat_map(|word| word.to_le_bytes()).collect();
        for frame in &self.frames {
            let len = frame.len() as u32;
            bytes.extend([0, 0, len, len].iter().flat_map(|word: &u32| word.to_le_bytes()));
            bytes.extend_from_slice(frame);
        }
        fs::write(path, bytes).map_err(Error::file(path))
    }
}
