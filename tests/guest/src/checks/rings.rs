//! The rings of soft-RoCE, which a program maps and the kernel works off: enough of them to send and to receive.
//!
//! Source: Linux `include/uapi/rdma/rdma_user_rxe.h`, `struct rxe_queue_buf` and the entries of the rings.

use std::sync::atomic::{Ordering, fence};

use directverbs::verbs::{LKey, RKey};
use directverbs_linux::objects::{Context, QueuePair};
use directverbs_linux::uverbs::abi::command::Command;
use directverbs_linux::uverbs::{Mapping, Protection, Uhw};
use zerocopy::{Immutable, IntoBytes};

use super::rxe::Ring;

/// Where the producer's and the consumer's index, and the entries are.
const PRODUCER: usize = 128;
const CONSUMER: usize = 256;
const ENTRIES: usize = 384;

/// Completion status.
pub const SUCCESS: u32 = 0;
pub const REMOTE_ACCESS: u32 = 10;

/// A mapped ring.
#[derive(Debug)]
pub struct Queue {
    mapping: Mapping,
    mask: u32,
    shift: u32,
}

impl Queue {
    pub fn map(context: &Context, ring: Ring) -> Self {
        let length = ring.size as usize;
        let mapping = context.file().map(ring.offset, length, Protection::ReadWrite, "ring").expect("a ring");
        let word = |at| mapping.load_u32(at).expect("in the ring");
        let (shift, mask) = (word(0), word(4));
        Self { mapping, mask, shift }
    }

    /// Where the entry with this index is.
    fn entry(&self, index: u32) -> usize {
        ENTRIES + (((index & self.mask) as usize) << self.shift)
    }

    /// Puts `words` into the next entry, and gives it to the kernel.
    fn produce(&self, words: &[(usize, u64)]) {
        let index = self.mapping.load_u32(PRODUCER).expect("in the ring");
        let at = self.entry(index);
        for offset in (0..1 << self.shift).step_by(8) {
            let value = words.iter().find(|(place, _)| *place == offset).map_or(0, |(_, value)| *value);
            assert!(self.mapping.store_u64(at + offset, value));
        }
        fence(Ordering::Release);
        assert!(self.mapping.store_u64(PRODUCER, (index.wrapping_add(1) & self.mask).into()));
    }

    /// The kernel has worked off all entries.
    pub fn is_empty(&self) -> bool {
        self.mapping.load_u32(PRODUCER) == self.mapping.load_u32(CONSUMER)
    }

    /// The next completion, if there is one.
    pub fn poll(&self) -> Option<Completion> {
        let word = |at| self.mapping.load_u32(at).expect("in the ring");
        let index = word(CONSUMER);
        if word(PRODUCER) == index {
            return None;
        }
        fence(Ordering::Acquire);
        let at = self.entry(index);
        let completion = Completion {
            wr_id: u64::from(word(at)) | u64::from(word(at + 4)) << 32,
            status: word(at + 8),
            bytes: word(at + 20),
            qp: word(at + 28),
        };
        assert!(self.mapping.store_u64(CONSUMER, (index.wrapping_add(1) & self.mask).into()));
        Some(completion)
    }

    /// Puts a receive request with one SGE into the ring.
    pub fn receive(&self, wr_id: u64, sge: Sge) {
        // The request at 0, its length from 16 on, its SGE from 40 on.
        self.produce(&[
            (0, wr_id),
            (16, pair(sge.length, sge.length)),
            (24, pair(0, 1)),
            (40, sge.address),
            (48, pair(sge.length, sge.lkey.get())),
        ]);
    }

    /// Puts a signaled send request with one SGE into the ring.
    pub fn send(&self, wr_id: u64, operation: &Operation, sge: Sge) {
        let (opcode, first, second) = match *operation {
            Operation::Write(address, rkey) => (0, address, pair(rkey.get(), 0)),
            Operation::Send => (2, 0, 0),
            Operation::Read(address, rkey) => (4, address, pair(rkey.get(), 0)),
            Operation::Datagram { qp, qkey, handle } => (2, pair(qp, qkey), pair(0, handle)),
        };
        const SIGNALED: u32 = 2;
        let iova = if matches!(operation, Operation::Datagram { .. }) { 0 } else { first };
        self.produce(&[
            (0, wr_id),
            (8, pair(0, opcode)),
            (16, pair(SIGNALED, 0)),
            (24, first),
            (32, second),
            (152, iova),
            (184, pair(sge.length, sge.length)),
            (192, pair(0, 1)),
            (208, sge.address),
            (216, pair(sge.length, sge.lkey.get())),
        ]);
    }
}

/// Two words of 4 bytes, the first one lower.
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Memory of a request.
#[derive(Clone, Copy, Debug)]
pub struct Sge {
    pub address: u64,
    pub length: u32,
    pub lkey: LKey,
}

/// What a send request does.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// RDMA WRITE to an address, by a key.
    Write(u64, RKey),
    /// RDMA READ from an address, by a key.
    Read(u64, RKey),
    /// SEND.
    Send,
    /// SEND of a datagram.
    Datagram {
        /// The peer's queue pair.
        qp: u32,
        /// Its key.
        qkey: u32,
        /// The driver's number of the address handle.
        handle: u32,
    },
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub wr_id: u64,
    pub status: u32,
    pub bytes: u32,
    pub qp: u32,
}

/// `POST_SEND` without requests: the driver looks into the ring.
const POST_SEND: Command = Command { number: 28, name: "POST_SEND", object: "queue pair", replies: true };

/// `struct ib_uverbs_post_send`.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
struct PostSend {
    response: u64,
    qp_handle: u32,
    wr_count: u32,
    sge_count: u32,
    wqe_size: u32,
}

/// Tells the kernel that there are send requests.
pub fn ring_doorbell(context: &Context, qp: &QueuePair) {
    // The least size of a request that the kernel takes, though there is none.
    let core = PostSend { response: 0, qp_handle: qp.handle(), wr_count: 0, sge_count: 0, wqe_size: 56 };
    let mut bad = [0u8; 4];
    // SAFETY: the command names no memory; the address of its reply is filled in where there is one.
    let sent = unsafe { context.file().command(&POST_SEND, &core, &mut bad, Uhw::none()) };
    sent.expect("a queue pair that may send");
}
