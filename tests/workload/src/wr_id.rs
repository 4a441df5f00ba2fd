use core::fmt;

/// What a work request of the workload is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WrKind {
    /// A receive request.
    Receive = 1,
    /// The job's operation.
    Operation = 2,
    /// The empty SEND that hands the turn over.
    HandOver = 3,
    /// Binding a memory window.
    Bind = 4,
}

/// The `wr_id` of a work request: kind in bits 56..64, turn in bits 16..56, position in its batch in bits 0..16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrId(pub u64);

const TURN_BITS: u32 = 40;

impl WrId {
    /// The id of request `position` of turn `turn`. Turns count modulo 2^40.
    pub const fn new(kind: WrKind, turn: u64, position: u32) -> Self {
        let turn = turn & ((1 << TURN_BITS) - 1);
        Self((kind as u64) << 56 | turn << 16 | (position as u64 & 0xffff))
    }

    /// Kind, if the id is one of the workload's.
    pub const fn kind(self) -> Option<WrKind> {
        match self.0 >> 56 {
            1 => Some(WrKind::Receive),
            2 => Some(WrKind::Operation),
            3 => Some(WrKind::HandOver),
            4 => Some(WrKind::Bind),
            _ => None,
        }
    }

    /// Turn, modulo 2^40.
    pub const fn turn(self) -> u64 {
        self.0 >> 16 & ((1 << TURN_BITS) - 1)
    }

    /// Position in its batch.
    pub const fn position(self) -> u32 {
        (self.0 & 0xffff) as u32
    }
}

impl fmt::Display for WrId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(kind) = self.kind() else {
            return write!(f, "work request {:#x}", self.0);
        };
        let kind = match kind {
            WrKind::Receive => "receive",
            WrKind::Operation => "operation",
            WrKind::HandOver => "hand-over",
            WrKind::Bind => "bind",
        };
        write!(f, "work request {:#x} ({kind} {} of turn {})", self.0, self.position(), self.turn())
    }
}
