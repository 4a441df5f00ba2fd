//! Opcodes of the transport: what a packet is, and which headers follow the BTH.
//!
//! Source: InfiniBand Architecture Specification, volume 1, table "OpCode field".

bitflags::bitflags! {
    /// Headers between BTH and payload, in the order in which they stand.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Extensions: u8 {
        /// Datagram header, 8 bytes.
        const DETH = 1;
        /// RDMA header, 16 bytes.
        const RETH = 1 << 1;
        /// Atomic header, 28 bytes.
        const ATOMIC_ETH = 1 << 2;
        /// Acknowledge header, 4 bytes.
        const AETH = 1 << 3;
        /// Original value of an atomic, 8 bytes.
        const ATOMIC_ACK_ETH = 1 << 4;
        /// Immediate data, 4 bytes.
        const IMM_DT = 1 << 5;
        /// Key to invalidate, 4 bytes.
        const IETH = 1 << 6;
    }
}

impl Extensions {
    /// Bytes of all these headers together.
    pub const fn bytes(self) -> usize {
        const SIZES: [(Extensions, usize); 7] = [
            (Extensions::DETH, 8),
            (Extensions::RETH, 16),
            (Extensions::ATOMIC_ETH, 28),
            (Extensions::AETH, 4),
            (Extensions::ATOMIC_ACK_ETH, 8),
            (Extensions::IMM_DT, 4),
            (Extensions::IETH, 4),
        ];
        let mut sum = 0;
        let mut i = 0;
        while i < SIZES.len() {
            if self.contains(SIZES[i].0) {
                sum += SIZES[i].1;
            }
            i += 1;
        }
        sum
    }
}

/// What a packet is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// SEND of a connected queue pair.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ request.
    ReadRequest,
    /// RDMA READ response.
    ReadResponse,
    /// Acknowledgement, positive or negative.
    Acknowledge,
    /// Result of an atomic.
    AtomicAcknowledge,
    /// Compare and swap.
    CompareSwap,
    /// Fetch and add.
    FetchAdd,
    /// SEND of a datagram queue pair.
    Datagram,
}

/// Place of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// First of several.
    First,
    /// Neither first nor last.
    Middle,
    /// Last of several.
    Last,
    /// First and last.
    Only,
}

impl Position {
    /// Place of packet `index` of `count`.
    pub const fn of(index: u32, count: u32) -> Self {
        match (index == 0, index + 1 >= count) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }

    /// The message begins here.
    pub const fn begins(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// The message ends here.
    pub const fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// A packet's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// The code in the BTH.
    pub code: u8,
    /// What the packet is part of.
    pub service: Service,
    /// Its place there.
    pub position: Position,
    /// Headers that follow.
    pub extensions: Extensions,
}

/// Acknowledge.
pub const ACKNOWLEDGE: u8 = 0x11;
/// Atomic acknowledge.
pub const ATOMIC_ACKNOWLEDGE: u8 = 0x12;
/// Compare and swap.
pub const COMPARE_SWAP: u8 = 0x13;
/// Fetch and add.
pub const FETCH_ADD: u8 = 0x14;
/// RDMA READ request.
pub const READ_REQUEST: u8 = 0x0c;

const fn opcode(code: u8, service: Service, position: Position, extensions: Extensions) -> Opcode {
    Opcode { code, service, position, extensions }
}

/// All opcodes that the engine speaks.
pub const OPCODES: [Opcode; 25] = {
    use Position::{First, Last, Middle, Only};
    use Service::{
        Acknowledge, AtomicAcknowledge, CompareSwap, Datagram, FetchAdd, ReadRequest, ReadResponse, Send,
        Write,
    };
    type E = Extensions;
    const NONE: Extensions = Extensions::empty();
    [
        opcode(0x00, Send, First, NONE),
        opcode(0x01, Send, Middle, NONE),
        opcode(0x02, Send, Last, NONE),
        opcode(0x03, Send, Last, E::IMM_DT),
        opcode(0x04, Send, Only, NONE),
        opcode(0x05, Send, Only, E::IMM_DT),
        opcode(0x06, Write, First, E::RETH),
        opcode(0x07, Write, Middle, NONE),
        opcode(0x08, Write, Last, NONE),
        opcode(0x09, Write, Last, E::IMM_DT),
        opcode(0x0a, Write, Only, E::RETH),
        opcode(0x0b, Write, Only, E::RETH.union(E::IMM_DT)),
        opcode(READ_REQUEST, ReadRequest, Only, E::RETH),
        opcode(0x0d, ReadResponse, First, E::AETH),
        opcode(0x0e, ReadResponse, Middle, NONE),
        opcode(0x0f, ReadResponse, Last, E::AETH),
        opcode(0x10, ReadResponse, Only, E::AETH),
        opcode(ACKNOWLEDGE, Acknowledge, Only, E::AETH),
        opcode(ATOMIC_ACKNOWLEDGE, AtomicAcknowledge, Only, E::AETH.union(E::ATOMIC_ACK_ETH)),
        opcode(COMPARE_SWAP, CompareSwap, Only, E::ATOMIC_ETH),
        opcode(FETCH_ADD, FetchAdd, Only, E::ATOMIC_ETH),
        opcode(0x16, Send, Last, E::IETH),
        opcode(0x17, Send, Only, E::IETH),
        opcode(0x64, Datagram, Only, E::DETH),
        opcode(0x65, Datagram, Only, E::DETH.union(E::IMM_DT)),
    ]
};

/// Index into [`OPCODES`] by code; `NOWHERE` where there is none.
static BY_CODE: [u8; 256] = {
    let mut table = [NOWHERE; 256];
    let mut i = 0;
    while i < OPCODES.len() {
        table[OPCODES[i].code as usize] = i as u8;
        i += 1;
    }
    table
};
const NOWHERE: u8 = u8::MAX;

impl Opcode {
    /// The opcode with this code, if there is one.
    pub fn from_code(code: u8) -> Option<&'static Self> {
        static TABLE: [Opcode; 25] = OPCODES;
        TABLE.get(usize::from(*BY_CODE.get(usize::from(code))?))
    }

    /// Code of a packet of `service` at `position`, with immediate data, a key to invalidate, or neither.
    pub fn find(service: Service, position: Position, tail: Extensions) -> Option<u8> {
        let tails = Extensions::IMM_DT.union(Extensions::IETH);
        let is = |o: &&Opcode| {
            o.service == service && o.position == position && o.extensions.intersection(tails) == tail
        };
        OPCODES.iter().find(is).map(|o| o.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_finds_its_opcode() {
        for opcode in OPCODES {
            assert_eq!(Opcode::from_code(opcode.code), Some(&opcode));
        }
        assert_eq!(Opcode::from_code(0x15), None);
        assert_eq!(Opcode::from_code(0xff), None);
    }

    #[test]
    fn a_segment_finds_its_code() {
        let found = Opcode::find(Service::Write, Position::Last, Extensions::IMM_DT);
        assert_eq!(found, Some(0x09));
        assert_eq!(Opcode::find(Service::Send, Position::Only, Extensions::IETH), Some(0x17));
        assert_eq!(Opcode::find(Service::Write, Position::First, Extensions::IETH), None);
    }
}
