//! What can go wrong between two processes.

use std::io;
use std::time::Duration;

use crate::Failure;

/// Why the exchange with the peer failed.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// An address that cannot be found.
    #[error("{host}: {error}: give a name or address, and a port behind a colon if it is another one")]
    Address { host: String, error: io::Error },
    /// The address cannot be listened at.
    #[error("--listen {address}: {error}")]
    Listen { address: String, error: io::Error },
    /// The peer cannot be reached.
    #[error("--connect {host}: {error}: start the peer first, with --listen and the same other arguments")]
    Connect { host: String, error: io::Error },
    /// The connection failed.
    #[error("peer: {0}")]
    Io(#[from] io::Error),
    /// The peer has gone.
    #[error("peer: it has closed the connection while {waiting} was awaited")]
    Closed { waiting: &'static str },
    /// The peer has taken too long.
    #[error("peer: no {waiting} within {} s", limit.as_secs_f64())]
    TimedOut { waiting: &'static str, limit: Duration },
    /// A message longer than any that there is.
    #[error("peer: a message of {given} bytes, at most {max} are allowed: it speaks another protocol")]
    TooLong { given: u64, max: u32 },
    /// A message that makes no sense.
    #[error("peer: {waiting} expected, what came makes no sense ({why})")]
    Senseless { waiting: &'static str, why: String },
    /// A message at the wrong time.
    #[error("peer: {waiting} expected, {found} came")]
    Unexpected { waiting: &'static str, found: &'static str },
    /// Another version of the exchange.
    #[error("peer: version {theirs} of the exchange, here it is {ours}: use the same dv at both ends")]
    Version { ours: u32, theirs: u32 },
    /// The two do not want the same.
    #[error("peer: {what} is {theirs} there and {ours} here: give both ends the same arguments")]
    Differs { what: String, ours: String, theirs: String },
    /// The peer has failed.
    #[error("peer: {0}")]
    Peer(String),
}

impl From<ExchangeError> for Failure {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Address { .. } | ExchangeError::Differs { .. } => Self::Usage(error.to_string()),
            _ => Self::Fault(error.to_string()),
        }
    }
}
