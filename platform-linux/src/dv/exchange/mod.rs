//! Two processes agree over TCP: both say what they are about to do, exchange contacts, and wait for each other before the
//! first request and before the end.

mod error;
mod link;
mod meeting;
mod message;
mod rc_pingpong;
mod remote;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::Args;
use directverbs::verbs::Device;
use directverbs_softnic::open::VisitOne;
use directverbs_workload::Role;

use crate::Failure;
use crate::ends::Ends;
use crate::runner::{Local, Runner};
use link::Link;
use meeting::Meeting;
use rc_pingpong::{RcPingpong, Wire};
use remote::Remote;

/// How long a message of the peer may take, connecting included.
const LIMIT: Duration = Duration::from_secs(30);

/// Arguments about the peer.
#[derive(Args)]
pub struct ExchangeArgs {
    /// Wait for a peer that connects, and serve it [default: 0.0.0.0:18515]
    #[arg(long, value_name = "ADDRESS[:PORT]", num_args = 0..=1, default_missing_value = "0.0.0.0",
          conflicts_with_all = ["connect", "peer_device", "stepped"])]
    pub listen: Option<String>,
    /// Connect to a peer that listens, and measure
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["peer_device", "stepped"])]
    pub connect: Option<String>,
}

impl ExchangeArgs {
    /// Whether there is a peer.
    pub const fn is_given(&self) -> bool {
        self.listen.is_some() || self.connect.is_some()
    }

    /// What is at the other end: a device, or a peer.
    pub fn other(&self, ends: &Ends) -> String {
        match (&self.connect, &self.listen) {
            (Some(host), _) => host.clone(),
            (None, Some(_)) => "peer".into(),
            (None, None) => ends.peer().to_string(),
        }
    }
}

/// Which program is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This one.
    Dv,
    /// rdma-core's `ibv_rc_pingpong`.
    RcPingpong,
}

/// Runs `run` with both ends in this process, or with one here and one at the peer.
pub fn with_runner(
    ends: &Ends,
    args: &ExchangeArgs,
    peer: Peer,
    run: &mut dyn FnMut(&mut dyn Runner) -> Result<(), Failure>,
) -> Result<(), Failure> {
    ends.check()?;
    let (meeting, role) = match (&args.listen, &args.connect) {
        (Some(address), _) => (Meeting::listen(address)?, Role::Second),
        (None, Some(host)) => (Meeting::connect(host)?, Role::First),
        (None, None) => return run(&mut Local(ends)),
    };
    if peer == Peer::RcPingpong {
        if ends.needs_stream() {
            return Err(Failure::Usage(format!(
                "{}: ibv_rc_pingpong is no peer of it: use uverbs:NAME, or fake:KIND with --wire",
                ends.device
            )));
        }
        let wire = Wire::new(meeting.stream()?, LIMIT)?;
        return ends.open(role, None, WithRcPingpong { wire, role, run })?;
    }
    let mut link = Link::new(meeting.stream()?, LIMIT)?;
    link.greet(ends.kind_of_wire())?;
    let stream = if ends.needs_stream() { Some(meeting.another()?) } else { None };
    ends.open(role, stream, WithPeer { link, role, run })?
}

struct WithPeer<'a> {
    link: Link,
    role: Role,
    run: &'a mut dyn FnMut(&mut dyn Runner) -> Result<(), Failure>,
}

impl VisitOne for WithPeer<'_> {
    type Out = Result<(), Failure>;

    fn run<D: Device + Send>(self, device: D) -> Self::Out {
        (self.run)(&mut Remote::new(device, self.link, self.role))
    }
}

struct WithRcPingpong<'a> {
    wire: Wire,
    role: Role,
    run: &'a mut dyn FnMut(&mut dyn Runner) -> Result<(), Failure>,
}

impl VisitOne for WithRcPingpong<'_> {
    type Out = Result<(), Failure>;

    fn run<D: Device + Send>(self, device: D) -> Self::Out {
        (self.run)(&mut RcPingpong::new(device, self.wire, self.role))
    }
}
