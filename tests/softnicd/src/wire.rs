//! What the NICs of a daemon are wired to: each other, another daemon, or an interface of Linux.

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;

use directverbs_softnic::fabric::Fabric;
use directverbs_softnic::uplink::{Inlet, Outlet, Uplink};

mod interface;

/// Longest frame that a line carries.
const LONGEST: usize = 16 * 1024;

/// Where frames go that are for nobody here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// In UDP datagrams, a frame in each.
    Udp {
        /// Where they come from, and where the others' come to.
        local: SocketAddr,
        /// Where they go.
        peer: SocketAddr,
    },
    /// To a network interface of Linux.
    Interface(String),
}

/// What describes no wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no wire: udp:LOCAL,PEER with an address and port each, or if:NAME of an interface")]
pub struct NoWire;

impl FromStr for Wire {
    type Err = NoWire;

    fn from_str(text: &str) -> Result<Self, NoWire> {
        match text.split_once(':').ok_or(NoWire)? {
            ("udp", ends) => {
                let (local, peer) = ends.split_once(',').ok_or(NoWire)?;
                let address = |text: &str| text.parse().map_err(|_| NoWire);
                Ok(Self::Udp { local: address(local)?, peer: address(peer)? })
            }
            ("if", name) if !name.is_empty() => Ok(Self::Interface(name.into())),
            _ => Err(NoWire),
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp { local, peer } => write!(f, "udp:{local},{peer}"),
            Self::Interface(name) => write!(f, "if:{name}"),
        }
    }
}

/// A line to elsewhere.
trait Line: fmt::Debug + Send + Sync + 'static {
    /// Sends a frame. A line loses what it cannot send.
    fn send(&self, frame: &[u8]);

    /// Waits for the next frame; gives its length, or 0 for something that is none.
    fn receive(&self, frame: &mut [u8]) -> io::Result<usize>;
}

impl Line for UdpSocket {
    fn send(&self, frame: &[u8]) {
        let _ = UdpSocket::send(self, frame);
    }

    fn receive(&self, frame: &mut [u8]) -> io::Result<usize> {
        match self.recv(frame) {
            // The peer is not there yet, or not any more.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(0),
            other => other,
        }
    }
}

/// Joins a fabric to what is elsewhere.
///
/// # Errors
/// The line cannot be opened.
pub fn join(fabric: &Fabric, wire: &Wire) -> io::Result<()> {
    match wire {
        Wire::Udp { local, peer } => {
            let socket = UdpSocket::bind(local)?;
            socket.connect(peer)?;
            fabric.lead_out(|inlet| Ok(carried(socket, inlet)))
        }
        Wire::Interface(name) => {
            let interface = interface::Interface::open(name)?;
            fabric.lead_out(|inlet| Ok(carried(interface, inlet)))
        }
    }
}

/// The end of a line that the wire sends to.
#[derive(Debug)]
struct Out<L>(Arc<L>);

impl<L: Line> Outlet for Out<L> {
    fn send(&mut self, frame: &[u8]) -> bool {
        self.0.send(frame);
        true
    }

    fn waiting(&self) -> usize {
        0
    }
}

/// A line as an uplink. It is carried as long as the process lasts.
fn carried(line: impl Line, inlet: Inlet) -> Uplink {
    let line = Arc::new(line);
    let out = Out(line.clone());
    std::thread::spawn(move || {
        let mut frame = vec![0; LONGEST];
        // A line that fails for good is like a cable that is cut.
        while let Ok(len) = line.receive(&mut frame) {
            if len > 0 {
                inlet.arrive(frame[..len].to_vec());
            }
        }
    });
    Uplink::new(out, ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_is_spelled_as_it_is_read() {
        for text in ["udp:127.0.0.1:4000,127.0.0.1:4001", "udp:[::1]:1,[::1]:2", "if:veth0"] {
            assert_eq!(text.parse::<Wire>().unwrap().to_string(), text);
        }
        for text in ["", "udp", "udp:127.0.0.1:1", "udp:a,b", "if:", "tap:0"] {
            assert_eq!(text.parse::<Wire>(), Err(NoWire), "{text}");
        }
    }
}
