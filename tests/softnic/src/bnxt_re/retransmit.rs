//! The table of PSNs that the driver fills for retransmission. The hardware finds the request of a PSN there; the model
//! knows it anyway, and so can tell whether the driver's entry would have led the hardware right.

use directverbs::bnxt_re::psn::{
    MsnWord, PsnNext, PsnStart, Retransmit, SqMsnSearch, SqPsnSearch, SqPsnSearchExt,
};
use zerocopy::{FromZeros, IntoBytes};

use crate::bus::BusError;
use crate::device::RingConfig;
use crate::nic::Hardware;
use crate::roce::PsnRange;

/// What an entry says, or what it should say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First PSN.
    pub first: u32,
    /// PSN behind the last.
    pub next: u32,
    /// Where the WQE begins, if the kind of table says so.
    pub start: Option<u16>,
}

/// An entry that would mislead the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It says something else than what is so.
    #[error("retransmit entry {index} says {found:x?}, should be {expected:x?}")]
    Wrong {
        /// Index of the entry.
        index: u32,
        /// What it says.
        found: Entry,
        /// What it should say.
        expected: Entry,
    },
    /// It cannot be read.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Where a request has its entry, and what must be there.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Index of the entry.
    pub index: u32,
    /// Where the WQE begins, as the doorbell counts.
    pub start: u32,
    /// The same in slots: drivers of the static mode store either.
    pub start_slot: u32,
    /// The PSNs that the engine has given it.
    pub psns: PsnRange,
}

/// The table of a queue pair.
#[derive(Clone, Debug)]
pub struct Table {
    ring: RingConfig,
    kind: Retransmit,
    msn: u32,
}

impl Table {
    /// The table in `ring`.
    pub fn new(ring: RingConfig, kind: Retransmit) -> Self {
        Self { ring, kind, msn: 0 }
    }

    /// Starts anew.
    pub fn reset(&mut self) {
        self.msn = 0;
    }

    /// Index of the entry of the request that begins at `start`, or `None` if it has none: the MSN table counts only
    /// requests that go over the wire.
    pub fn take_index(&mut self, start: u32, on_wire: bool) -> Option<u32> {
        match (self.kind, on_wire) {
            (Retransmit::Psn | Retransmit::PsnExt, _) => Some(start),
            (Retransmit::Msn, false) => None,
            (Retransmit::Msn, true) => {
                let index = self.msn;
                self.msn = if index + 1 < self.ring.entries { index + 1 } else { 0 };
                Some(index)
            }
        }
    }

    /// Compares an entry with what must be there.
    ///
    /// # Errors
    /// The difference.
    pub fn check(&self, hardware: &Hardware, place: &Place) -> Result<(), TableError> {
        let found = self.read(hardware, place.index)?;
        let start = found.start.map(|found| {
            let slot = place.start_slot as u16;
            if found == slot { slot } else { place.start as u16 }
        });
        let expected = Entry { first: place.psns.first.get(), next: place.psns.next.get(), start };
        if found == expected {
            Ok(())
        } else {
            Err(TableError::Wrong { index: place.index, found, expected })
        }
    }

    fn read(&self, hardware: &Hardware, index: u32) -> Result<Entry, BusError> {
        Ok(match self.kind {
            Retransmit::Psn => {
                let entry: SqPsnSearch = self.load(hardware, index)?;
                entry_of(entry.opcode_start_psn.get(), entry.flags_next_psn.get(), None)
            }
            Retransmit::PsnExt => {
                let entry: SqPsnSearchExt = self.load(hardware, index)?;
                let start = Some(entry.start_slot_idx.get());
                entry_of(entry.opcode_start_psn.get(), entry.flags_next_psn.get(), start)
            }
            Retransmit::Msn => {
                let entry: SqMsnSearch = self.load(hardware, index)?;
                let word: MsnWord = entry.word();
                Entry { first: word.start_psn(), next: word.next_psn(), start: Some(word.start_idx()) }
            }
        })
    }

    fn load<T>(&self, hardware: &Hardware, index: u32) -> Result<T, BusError>
    where
        T: FromZeros + IntoBytes + zerocopy::FromBytes,
    {
        let mut entry = T::new_zeroed();
        let offset = u64::from(index) * u64::from(self.ring.stride);
        hardware.read_ring(&self.ring, offset, entry.as_mut_bytes())?;
        Ok(entry)
    }
}

fn entry_of(start: u32, next: u32, start_idx: Option<u16>) -> Entry {
    Entry {
        first: PsnStart::from_bits(start).start_psn(),
        next: PsnNext::from_bits(next).next_psn(),
        start: start_idx,
    }
}
