//! Capture files of the wire, for tshark.

use std::io::{self, Write};

/// Writes frames as a pcap file with nanosecond time stamps and link type Ethernet.
///
/// Source: draft-ietf-opsawg-pcap, the section on the file header (little-endian).
pub struct Capture(Box<dyn Write + Send>);

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capture")
    }
}

/// Longest frame that a capture takes whole.
const SNAP_LEN: u32 = 65_535;

impl Capture {
    /// Writes the file header.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(mut out: Box<dyn Write + Send>) -> io::Result<Self> {
        out.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?; // magic of nanosecond files
        out.write_all(&[2, 0, 4, 0])?; // version 2.4
        out.write_all(&[0; 8])?;
        out.write_all(&SNAP_LEN.to_le_bytes())?;
        out.write_all(&1_u32.to_le_bytes())?; // Ethernet
        Ok(Self(out))
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn frame(&mut self, now_ns: u64, frame: &[u8]) -> io::Result<()> {
        let kept = frame.len().min(SNAP_LEN as usize);
        let numbers = [(now_ns / 1_000_000_000) as u32, (now_ns % 1_000_000_000) as u32, kept as u32];
        for number in numbers {
            self.0.write_all(&number.to_le_bytes())?;
        }
        self.0.write_all(&(frame.len() as u32).to_le_bytes())?;
        self.0.write_all(frame.get(..kept).unwrap_or(frame))
    }

    /// Hands everything to the operating system.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
