//! Where two processes meet: one listens, the other connects, as often as they need connections.

use std::io::ErrorKind;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::LIMIT;
use super::error::ExchangeError;

/// TCP port, if none is given.
const PORT: u16 = 18_515;
/// How long to sleep between two looks for a connection.
const NAP: Duration = Duration::from_millis(5);

/// A place, and the first connection there.
pub enum Meeting {
    /// The peer connects.
    Listening { listener: TcpListener, stream: TcpStream },
    /// The peer listens.
    Connected { address: SocketAddr, stream: TcpStream },
}

impl Meeting {
    /// Waits for a peer, however long it takes.
    pub fn listen(address: &str) -> Result<Self, ExchangeError> {
        let addresses = resolve(address)?;
        let failed = |error| ExchangeError::Listen { address: with_port(address), error };
        let listener = TcpListener::bind(addresses.as_slice()).map_err(failed)?;
        eprintln!("listening at {}", listener.local_addr().map_err(failed)?);
        let (stream, _) = listener.accept().map_err(failed)?;
        Ok(Self::Listening { listener, stream })
    }

    /// Connects to a peer.
    pub fn connect(host: &str) -> Result<Self, ExchangeError> {
        let mut last = ErrorKind::NotFound.into();
        for address in resolve(host)? {
            match TcpStream::connect_timeout(&address, LIMIT) {
                Ok(stream) => return Ok(Self::Connected { address, stream }),
                Err(error) => last = error,
            }
        }
        Err(ExchangeError::Connect { host: with_port(host), error: last })
    }

    /// The first connection.
    pub fn stream(&self) -> Result<TcpStream, ExchangeError> {
        let (Self::Listening { stream, .. } | Self::Connected { stream, .. }) = self;
        Ok(stream.try_clone()?)
    }

    /// Another connection with the same peer.
    pub fn another(&self) -> Result<TcpStream, ExchangeError> {
        let (listener, peer) = match self {
            Self::Connected { address, .. } => return Ok(TcpStream::connect_timeout(address, LIMIT)?),
            Self::Listening { listener, stream } => (listener, stream.peer_addr()?.ip()),
        };
        listener.set_nonblocking(true)?;
        let until = Instant::now() + LIMIT;
        loop {
            match listener.accept() {
                Ok((stream, from)) if from.ip() == peer => {
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
                // Somebody else's.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(NAP),
                Err(error) => return Err(error.into()),
            }
            if Instant::now() > until {
                return Err(ExchangeError::TimedOut { waiting: "a wire", limit: LIMIT });
            }
        }
    }
}

/// Adds the port that is meant if none is given.
fn with_port(host: &str) -> String {
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return SocketAddr::from((address, PORT)).to_string();
    }
    match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => host.to_owned(),
        _ => format!("{host}:{PORT}"),
    }
}

fn resolve(host: &str) -> Result<Vec<SocketAddr>, ExchangeError> {
    let host = with_port(host);
    match host.to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(ExchangeError::Address { host, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_added_where_none_is_given() {
        let cases = [
            ("host", "host:18515"),
            ("host:7", "host:7"),
            ("10.0.0.1", "10.0.0.1:18515"),
            ("fe80::1", "[fe80::1]:18515"),
            ("[fe80::1]", "[fe80::1]:18515"),
            ("[fe80::1]:7", "[fe80::1]:7"),
        ];
        for (given, meant) in cases {
            assert_eq!(with_port(given), meant);
        }
    }

    #[test]
    fn the_second_connection_is_the_peers() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let connected = Meeting::connect(&address.to_string()).expect("it listens");
        let (stream, _) = listener.accept().expect("connected");
        let listening = Meeting::Listening { listener, stream };
        let ours = connected.another().expect("another one");
        let theirs = listening.another().expect("accepted");
        assert_eq!(ours.local_addr().expect("an address"), theirs.peer_addr().expect("an address"));
    }
}
