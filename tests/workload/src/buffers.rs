use directverbs::verbs::{AccessFlags, Device, MemoryRegion, Sge};
use heapless::Vec;

use crate::{DataError, MAX_SGES, Pattern};

/// What untouched memory holds.
const FILL: u8 = 0xa5;
/// Bytes checked behind each piece.
const GUARD: usize = 8;
/// Bytes that are copied at once.
const CHUNK: usize = 1024;

/// Message buffers: `slots` of them, each of `length` bytes in pieces, piece `i` in memory region `i`.
///
/// Piece `i` begins `i` modulo 8 bytes off its slot's start, so that every alignment occurs.
#[derive(Debug)]
pub(crate) struct Buffers<M> {
    regions: Vec<M, { MAX_SGES as usize }>,
    length: usize,
    stride: usize,
}

struct Piece {
    /// In the message.
    start: usize,
    /// In the region.
    offset: usize,
    length: usize,
}

impl<M: MemoryRegion> Buffers<M> {
    /// Allocates and registers them.
    pub(crate) fn alloc<D: Device<MemoryRegion = M>>(
        device: &mut D,
        pd: &D::ProtectionDomain,
        slots: u32,
        length: u32,
        pieces: u32,
        access: AccessFlags,
    ) -> Result<Self, D::Error> {
        let (length, pieces) = (length as usize, pieces.max(1) as usize);
        let stride = (length.div_ceil(pieces) + 8 + GUARD).next_multiple_of(64);
        let mut buffers = Self { regions: Vec::new(), length, stride };
        for _ in 0..pieces {
            let mut region = device.alloc_mr(pd, stride * slots as usize, access)?;
            for offset in (0..region.len()).step_by(64) {
                let len = region.len().saturating_sub(offset).min(64);
                let _ = region.write(offset, [FILL; 64].get(..len).unwrap_or(&[]));
            }
            if let Err(region) = buffers.regions.push(region) {
                device.dealloc_mr(region)?;
            }
        }
        Ok(buffers)
    }

    pub(crate) fn free<D: Device<MemoryRegion = M>>(self, device: &mut D) -> Result<(), D::Error> {
        self.regions.into_iter().try_for_each(|region| device.dealloc_mr(region))
    }

    /// The first region: the only one, if there is one piece.
    pub(crate) fn first(&self) -> Option<&M> {
        self.regions.first()
    }

    /// Bytes from slot to slot.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    fn piece(&self, slot: u32, i: usize) -> Piece {
        let n = self.regions.len().max(1);
        let (start, end) = (self.length * i / n, self.length * (i + 1) / n);
        Piece { start, offset: slot as usize * self.stride + i % 8, length: end - start }
    }

    /// The SGEs of a slot; none if the message is empty.
    pub(crate) fn sges(&self, slot: u32) -> impl Iterator<Item = Sge> + '_ {
        self.regions.iter().enumerate().filter(|_| self.length > 0).map(move |(i, region)| {
            let piece = self.piece(slot, i);
            Sge::new(region.addr() + piece.offset as u64, piece.length as u32, region.lkey())
        })
    }

    /// Writes the pattern into a slot.
    pub(crate) fn fill(&mut self, slot: u32, pattern: Pattern) -> Result<(), DataError> {
        for i in 0..self.regions.len() {
            let piece = self.piece(slot, i);
            let Some(region) = self.regions.get_mut(i) else { break };
            let mut done = 0;
            while done < piece.length {
                let mut chunk = [0; CHUNK];
                let bytes = chunk.split_at_mut((piece.length - done).min(CHUNK)).0;
                pattern.fill(piece.start + done, bytes);
                store(region, piece.offset + done, bytes)?;
                done += bytes.len();
            }
        }
        Ok(())
    }

    /// Compares a slot with `skip` bytes of something else and then the pattern, and what follows each piece with what
    /// was there.
    pub(crate) fn check(&self, slot: u32, skip: usize, pattern: Pattern) -> Result<(), DataError> {
        for (i, region) in self.regions.iter().enumerate() {
            let piece = self.piece(slot, i);
            let mut done = skip.saturating_sub(piece.start).min(piece.length);
            while done < piece.length {
                let (mut found, mut expected) = ([0; CHUNK], [0; CHUNK]);
                let length = (piece.length - done).min(CHUNK);
                let (found, expected) = (found.split_at_mut(length).0, expected.split_at_mut(length).0);
                let at = piece.start + done - skip;
                load(region, piece.offset + done, found)?;
                pattern.fill(at, expected);
                if found != expected {
                    let differ = found.iter().zip(expected.iter()).enumerate().find(|(_, (f, e))| f != e);
                    if let Some((n, (&found, &expected))) = differ {
                        return Err(DataError::Byte { offset: (at + n) as u64, expected, found });
                    }
                }
                done += length;
            }
            let mut guard = [0; GUARD];
            load(region, piece.offset + piece.length, &mut guard)?;
            if let Some((n, &found)) = guard.iter().enumerate().find(|(_, b)| **b != FILL) {
                return Err(DataError::Guard { sge: i, offset: piece.length + n, found });
            }
        }
        Ok(())
    }

    /// Copies the first bytes of a slot, gathered from its pieces.
    pub(crate) fn read(&self, slot: u32, out: &mut [u8]) -> Result<(), DataError> {
        for (i, region) in self.regions.iter().enumerate() {
            let piece = self.piece(slot, i);
            let end = out.len().min(piece.start + piece.length);
            if let Some(part) = out.get_mut(piece.start..end) {
                load(region, piece.offset, part)?;
            }
        }
        Ok(())
    }

    /// Writes a 64-bit little-endian word at the start of a slot that has one piece.
    pub(crate) fn set_word(&mut self, slot: u32, word: u64) -> Result<(), DataError> {
        let offset = self.piece(slot, 0).offset;
        self.regions.first_mut().map_or(Ok(()), |region| store(region, offset, &word.to_le_bytes()))
    }

    /// The 64-bit little-endian word at the start of a slot.
    pub(crate) fn word(&self, slot: u32) -> Result<u64, DataError> {
        let mut bytes = [0; 8];
        self.read(slot, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

fn store(region: &mut impl MemoryRegion, offset: usize, bytes: &[u8]) -> Result<(), DataError> {
    if region.write(offset, bytes) { Ok(()) } else { Err(DataError::Memory { offset }) }
}

fn load(region: &impl MemoryRegion, offset: usize, bytes: &mut [u8]) -> Result<(), DataError> {
    if region.read(offset, bytes) { Ok(()) } else { Err(DataError::Memory { offset }) }
}
