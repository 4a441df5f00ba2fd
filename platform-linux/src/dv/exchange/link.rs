//! Messages over TCP: each is JSON behind its length, four bytes with the most significant first.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::error::ExchangeError;
use super::message::{Message, VERSION};

/// Bytes of a message at most.
pub const LONGEST: u32 = 16 << 10;

/// A connection to the peer. Whatever it sends, nothing is awaited for longer than the limit, and no more is kept than a
/// message may have.
pub struct Link {
    stream: TcpStream,
    limit: Duration,
    /// A message that came before it was awaited.
    pub(super) early: Option<Message>,
}

impl Link {
    /// Takes a connection. A message may take `limit`.
    pub fn new(stream: TcpStream, limit: Duration) -> Result<Self, ExchangeError> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self { stream, limit, early: None })
    }

    /// Says which version this is and what the wire is, and hears the same of the peer.
    pub fn greet(&mut self, wire: &str) -> Result<(), ExchangeError> {
        self.send(&Message::Directverbs { version: VERSION, wire: wire.into() })?;
        let waiting = "a greeting";
        match self.receive(waiting)? {
            Message::Directverbs { version, .. } if version != VERSION => {
                Err(ExchangeError::Version { ours: VERSION, theirs: version })
            }
            Message::Directverbs { wire: theirs, .. } if theirs != wire => Err(ExchangeError::Differs {
                what: "the wire".into(),
                ours: wire.into(),
                theirs: plain(&theirs),
            }),
            Message::Directverbs { .. } => Ok(()),
            other => Err(ExchangeError::Unexpected { waiting, found: other.name() }),
        }
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Message) -> Result<(), ExchangeError> {
        let text = serde_json::to_vec(message).map_err(std::io::Error::from)?;
        let length = u32::try_from(text.len()).ok().filter(|length| *length <= LONGEST);
        let length = length.ok_or(ExchangeError::TooLong { given: text.len() as u64, max: LONGEST })?;
        self.stream.write_all(&[&length.to_be_bytes()[..], &text].concat())?;
        Ok(())
    }

    /// The next message. `waiting` says what is awaited. A peer that has failed is an error.
    pub fn receive(&mut self, waiting: &'static str) -> Result<Message, ExchangeError> {
        let message = match self.early.take() {
            Some(message) => message,
            None => self.read(waiting)?,
        };
        match message {
            Message::Failed(why) => Err(ExchangeError::Peer(plain(&why))),
            message => Ok(message),
        }
    }

    /// Looks whether a message has come, without waiting for one. A peer that has failed or gone is an error.
    pub fn look(&mut self, waiting: &'static str) -> Result<(), ExchangeError> {
        if self.early.is_some() {
            return Ok(());
        }
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        match peeked {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
            Ok(0) => Err(ExchangeError::Closed { waiting }),
            Ok(_) => {
                let message = self.receive(waiting)?;
                self.early = Some(message);
                Ok(())
            }
        }
    }

    fn read(&mut self, waiting: &'static str) -> Result<Message, ExchangeError> {
        let until = Instant::now() + self.limit;
        let mut length = [0; 4];
        self.fill(&mut length, until, waiting)?;
        let length = u32::from_be_bytes(length);
        if length > LONGEST {
            return Err(ExchangeError::TooLong { given: length.into(), max: LONGEST });
        }
        let mut text = vec![0; length as usize];
        self.fill(&mut text, until, waiting)?;
        serde_json::from_slice(&text)
            .map_err(|error| ExchangeError::Senseless { waiting, why: error.to_string() })
    }

    /// Reads until `bytes` are full: a peer that sends one byte at a time has no more time than any other.
    fn fill(
        &mut self,
        mut bytes: &mut [u8],
        until: Instant,
        waiting: &'static str,
    ) -> Result<(), ExchangeError> {
        let timed_out = ExchangeError::TimedOut { waiting, limit: self.limit };
        while !bytes.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(timed_out);
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(ExchangeError::Closed { waiting }),
                Ok(count) => bytes = bytes.split_at_mut(count).1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(timed_out);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The peer's words as they may be shown in one line: a terminal does as control characters say.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
