//! The transport headers of a packet.
//!
//! Source: InfiniBand Architecture Specification, volume 1, chapter 9.

use directverbs::verbs::{Psn, QpId};

/// Base transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// What the packet is.
    pub opcode: u8,
    /// Solicited event.
    pub solicited: bool,
    /// Destination queue pair.
    pub dest_qp: QpId,
    /// The sender wants an acknowledgement.
    pub ack_request: bool,
    /// Sequence number.
    pub psn: Psn,
}

/// RDMA extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// Address in the responder's region.
    pub addr: u64,
    /// Its key.
    pub rkey: u32,
    /// Length of the message in bytes.
    pub length: u32,
}

/// Atomic extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth {
    /// Address in the responder's region.
    pub addr: u64,
    /// Its key.
    pub rkey: u32,
    /// Value to swap in, or to add.
    pub swap_or_add: u64,
    /// Value to compare with.
    pub compare: u64,
}

/// Datagram extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deth {
    /// Queue key.
    pub qkey: u32,
    /// Sender's queue pair.
    pub src_qp: QpId,
}

/// Acknowledge extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    /// What kind of acknowledgement.
    pub syndrome: u8,
    /// Messages completed, modulo 2^24.
    pub msn: u32,
}

/// Bytes of extension headers, as they are collected for a packet: at most those of an atomic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers {
    bytes: [u8; 28],
    len: usize,
}

impl Headers {
    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(mut self, bytes: &[u8]) -> Self {
        if let Some(to) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            to.copy_from_slice(bytes);
            self.len += bytes.len();
        }
        self
    }

    /// Adds an RDMA header.
    #[must_use]
    pub fn reth(self, reth: &Reth) -> Self {
        self.push(&reth.addr.to_be_bytes()).push(&reth.rkey.to_be_bytes()).push(&reth.length.to_be_bytes())
    }

    /// Adds an atomic header.
    #[must_use]
    pub fn atomic(self, atomic: &AtomicEth) -> Self {
        self.push(&atomic.addr.to_be_bytes())
            .push(&atomic.rkey.to_be_bytes())
            .push(&atomic.swap_or_add.to_be_bytes())
            .push(&atomic.compare.to_be_bytes())
    }

    /// Adds a datagram header.
    #[must_use]
    pub fn deth(self, deth: &Deth) -> Self {
        self.push(&deth.qkey.to_be_bytes()).push(&deth.src_qp.get().to_be_bytes())
    }

    /// Adds an acknowledge header.
    #[must_use]
    pub fn aeth(self, aeth: &Aeth) -> Self {
        self.push(&(u32::from(aeth.syndrome) << 24 | aeth.msn & 0xff_ffff).to_be_bytes())
    }

    /// Adds the original value of an atomic.
    #[must_use]
    pub fn original(self, value: u64) -> Self {
        self.push(&value.to_be_bytes())
    }

    /// Adds immediate data or a key to invalidate.
    #[must_use]
    pub fn word(self, word: u32) -> Self {
        self.push(&word.to_be_bytes())
    }
}
