//! What queue pairs share.

use std::collections::VecDeque;

use directverbs::verbs::{AddressVector, PdId, SrqId};

use super::event::Event;
use super::ids::{Table, Users};
use super::memory::MemoryTable;
use super::work::RecvWork;
use crate::bus::Bus;
use crate::device::NicConfig;

/// What the engine counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// RoCEv2 packets received and accepted.
    pub received: u64,
    /// Bytes of these packets' frames.
    pub received_bytes: u64,
    /// Packets sent, of any kind.
    pub sent: u64,
    /// Bytes of their frames.
    pub sent_bytes: u64,
    /// Frames whose lengths, versions, checksums or opcodes make no sense.
    pub malformed: u64,
    /// Packets with a wrong ICRC.
    pub bad_icrc: u64,
    /// Frames for other addresses, or that are no RoCEv2 packets and that no raw queue pair takes.
    pub not_ours: u64,
    /// Packets for a queue pair that is not there, in no state to take them, or not connected to the sender.
    pub no_qp: u64,
    /// Datagrams with a wrong queue key.
    pub bad_qkey: u64,
    /// Datagrams and raw frames for which no receive request was ready.
    pub no_recv: u64,
    /// Requests received again.
    pub duplicates: u64,
    /// NAKs for a gap, sent.
    pub sequence_naks: u64,
    /// RNR NAKs sent.
    pub rnr_naks: u64,
    /// Times that a requester went back.
    pub rewinds: u64,
    /// Times that a requester waited in vain for an answer.
    pub timeouts: u64,
    /// Atomics carried out as responder.
    pub atomics: u64,
}

/// A shared receive queue.
#[derive(Debug)]
pub struct Srq {
    /// Protection domain.
    pub pd: PdId,
    /// Requests, oldest first.
    pub recvs: VecDeque<RecvWork>,
    /// An event is wanted once there are fewer.
    pub limit: Option<u32>,
    /// Queue pairs that receive from it.
    pub users: Users,
}

impl Srq {
    /// Whether the limit has been reached; it is asked once.
    pub fn take_limit(&mut self) -> bool {
        let below = self.limit.is_some_and(|limit| (self.recvs.len() as u64) < u64::from(limit));
        if below {
            self.limit = None;
        }
        below
    }
}

/// An address handle.
#[derive(Clone, Copy, Debug)]
pub struct AddressHandle {
    /// Protection domain.
    pub pd: PdId,
    /// Where it leads.
    pub path: AddressVector,
}

/// Everything of the engine but its queue pairs.
#[derive(Debug)]
pub struct Parts {
    /// What the NIC was built with.
    pub config: NicConfig,
    /// Memory keys.
    pub memory: MemoryTable,
    /// Shared receive queues.
    pub srqs: Table<Srq>,
    /// Address handles.
    pub ahs: Table<AddressHandle>,
    /// What the front end was not told yet.
    pub events: VecDeque<Event>,
    /// Frames for the wire.
    pub out: VecDeque<Vec<u8>>,
    /// Frames that are no RoCEv2 packets, for the host; nothing if it wants none.
    pub for_host: Option<VecDeque<Vec<u8>>>,
    /// Counters.
    pub counters: Counters,
}

impl Parts {
    /// Puts a frame on the wire.
    pub fn send(&mut self, frame: Vec<u8>) {
        self.counters.sent += 1;
        self.counters.sent_bytes += frame.len() as u64;
        self.out.push_back(frame);
    }

    /// The oldest request of a shared receive queue.
    pub fn take_shared(&mut self, srq: SrqId) -> Option<RecvWork> {
        let queue = self.srqs.find_mut(srq.get())?;
        let work = queue.recvs.pop_front()?;
        if queue.take_limit() {
            self.events.push_back(Event::SrqLimit { srq });
        }
        Some(work)
    }
}

/// The surroundings of a queue pair while it works.
pub struct Context<'a> {
    /// What it shares with others.
    pub parts: &'a mut Parts,
    /// Host memory.
    pub bus: &'a dyn Bus,
    /// Nanoseconds since the start.
    pub now: u64,
}
