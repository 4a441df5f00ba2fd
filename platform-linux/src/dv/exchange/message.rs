//! What the two say to each other.

use directverbs::verbs::{Gid, Mac, Mtu, Psn, QKey, QpId, RKey};
use directverbs_workload::{Contact, Job, MAX_BATCH, StreamJob};
use serde::{Deserialize, Serialize};

use super::error::ExchangeError;
use super::link::plain;

/// Version of the messages.
pub const VERSION: u32 = 1;

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// The first: which version this is, and what the wire is.
    Directverbs { version: u32, wire: String },
    /// What is about to be done: names and values.
    Job(Vec<(String, String)>),
    /// How to reach the queue pair.
    Contact(Box<Reach>),
    /// The queue pair is connected.
    Ready,
    /// All is done here, and so many bytes were verified.
    Done { verified_bytes: u64 },
    /// Whether there is another round.
    Again(bool),
    /// It failed, and why.
    Failed(String),
}

impl Message {
    /// What kind of message it is.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Directverbs { .. } => "a greeting",
            Self::Job(_) => "a job",
            Self::Contact(_) => "a contact",
            Self::Ready => "readiness",
            Self::Done { .. } => "the end",
            Self::Again(_) => "another round",
            Self::Failed(_) => "a failure",
        }
    }
}

/// A [`Contact`] as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    qp: u32,
    psn: u32,
    qkey: u32,
    gid: [u8; 16],
    mac: [u8; 6],
    /// Bytes.
    mtu: u32,
    rd_atomic: u8,
    addr: u64,
    stride: u64,
    rkey: u32,
    windows: Vec<u32>,
}

impl From<&Contact> for Reach {
    fn from(contact: &Contact) -> Self {
        Self {
            qp: contact.qp.get(),
            psn: contact.psn.get(),
            qkey: contact.qkey.get(),
            gid: contact.gid.0,
            mac: contact.mac.0,
            mtu: contact.mtu.bytes(),
            rd_atomic: contact.rd_atomic,
            addr: contact.addr,
            stride: contact.stride,
            rkey: contact.rkey.get(),
            windows: contact.windows.iter().map(|key| key.get()).collect(),
        }
    }
}

impl TryFrom<&Reach> for Contact {
    type Error = ExchangeError;

    fn try_from(reach: &Reach) -> Result<Self, ExchangeError> {
        let wrong = |what: &str, value: u32| ExchangeError::Senseless {
            waiting: "a contact",
            why: format!("{what} {value:#x}"),
        };
        let keys: Vec<_> = reach.windows.iter().map(|key| RKey::truncated(*key)).collect();
        let windows = <[RKey; MAX_BATCH as usize]>::try_from(keys)
            .map_err(|keys| wrong("number of memory windows", keys.len() as u32))?;
        Ok(Self {
            qp: QpId::new(reach.qp).ok_or_else(|| wrong("queue pair", reach.qp))?,
            psn: Psn::new(reach.psn).ok_or_else(|| wrong("sequence number", reach.psn))?,
            qkey: QKey::truncated(reach.qkey),
            gid: Gid(reach.gid),
            mac: Mac(reach.mac),
            mtu: Mtu::ALL
                .into_iter()
                .find(|mtu| mtu.bytes() == reach.mtu)
                .ok_or_else(|| wrong("path MTU", reach.mtu))?,
            rd_atomic: reach.rd_atomic,
            addr: reach.addr,
            stride: reach.stride,
            rkey: RKey::truncated(reach.rkey),
            windows,
        })
    }
}

type Values = Vec<(String, String)>;

fn values<const N: usize>(values: [(&str, String); N]) -> Values {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn mtu(mtu: Option<Mtu>) -> String {
    mtu.map_or_else(|| "the largest".into(), |mtu| mtu.bytes().to_string())
}

/// A job in turns, as both sides must have it.
pub fn turns(job: &Job) -> Values {
    values([
        ("the work", "turns".into()),
        ("the operation", job.op.to_string()),
        ("--size", job.size.to_string()),
        ("the number of turns", job.iterations.to_string()),
        ("--batch", job.batch.to_string()),
        ("--sges", job.sges.to_string()),
        ("--inline", job.inline.to_string()),
        ("--srq", job.srq.to_string()),
        ("--mtu", mtu(job.mtu)),
        ("--seed", job.seed.to_string()),
    ])
}

/// A stream, as both sides must have it. How long it lasts is the first side's alone.
pub fn stream(job: &StreamJob) -> Values {
    values([
        ("the work", "a stream".into()),
        ("the operation", job.op.to_string()),
        ("--size", job.size.to_string()),
        ("--depth", job.depth.to_string()),
        ("--batch", job.batch.to_string()),
        ("--mtu", mtu(job.mtu)),
        ("--seed", job.seed.to_string()),
    ])
}

/// Compares a job with the peer's.
pub fn compare(ours: &Values, theirs: &Values) -> Result<(), ExchangeError> {
    let none = || "missing".to_owned();
    for (what, ours) in ours {
        let theirs =
            theirs.iter().find(|(name, _)| name == what).map_or_else(none, |(_, value)| plain(value));
        if *ours != theirs {
            return Err(ExchangeError::Differs { what: what.clone(), ours: ours.clone(), theirs });
        }
    }
    match theirs.iter().find(|(name, _)| !ours.iter().any(|(what, _)| what == name)) {
        Some((what, value)) => {
            Err(ExchangeError::Differs { what: plain(what), ours: none(), theirs: plain(value) })
        }
        None => Ok(()),
    }
}
