//! Messages in scattered memory: copies between packets and lists of SGEs.

use directverbs::verbs::{AccessFlags, Sge};

use super::memory::{Denied, MemoryTable, Scope};
use super::work::Payload;
use crate::bus::Bus;

/// Fills `out` with the bytes of `payload` from `offset` on.
///
/// # Errors
/// A key does not cover its SGE, or the payload ends before.
pub fn gather(
    memory: &MemoryTable,
    bus: &dyn Bus,
    scope: Scope,
    payload: &Payload,
    offset: u64,
    out: &mut [u8],
) -> Result<(), Denied> {
    match payload {
        Payload::Inline(bytes) => {
            let start = usize::try_from(offset).map_err(|_| Denied)?;
            let from = start.checked_add(out.len()).and_then(|end| bytes.get(start..end));
            out.copy_from_slice(from.ok_or(Denied)?);
            Ok(())
        }
        Payload::Sges(sges) => pieces(sges, offset, out.len(), |sge, skip, range| {
            whole(memory, scope, sge, AccessFlags::empty())?;
            let piece = out.get_mut(range).ok_or(Denied)?;
            memory.read(bus, scope, sge.lkey.get(), sge.addr + skip, piece, AccessFlags::empty())
        }),
    }
}

/// Copies `bytes` to `offset` of the memory that `sges` list.
///
/// # Errors
/// A key does not cover its SGE or allows no writing, or the list ends before.
pub fn scatter(
    memory: &MemoryTable,
    bus: &dyn Bus,
    scope: Scope,
    sges: &[Sge],
    offset: u64,
    bytes: &[u8],
) -> Result<(), Denied> {
    pieces(sges, offset, bytes.len(), |sge, skip, range| {
        whole(memory, scope, sge, AccessFlags::LOCAL_WRITE)?;
        let piece = bytes.get(range).ok_or(Denied)?;
        memory.write(bus, scope, sge.lkey.get(), sge.addr + skip, piece, AccessFlags::LOCAL_WRITE)
    })
}

/// An SGE is checked as a whole, also when a message ends inside.
fn whole(memory: &MemoryTable, scope: Scope, sge: &Sge, access: AccessFlags) -> Result<(), Denied> {
    memory.check(scope, sge.lkey.get(), sge.addr, sge.length.into(), access)
}

/// Calls `copy` for each piece of `len` bytes at `offset` of the list: the SGE, the bytes to skip in it, and the range
/// of the packet that the piece is.
fn pieces(
    sges: &[Sge],
    mut offset: u64,
    len: usize,
    mut copy: impl FnMut(&Sge, u64, std::ops::Range<usize>) -> Result<(), Denied>,
) -> Result<(), Denied> {
    let mut done = 0;
    for sge in sges {
        if done == len {
            break;
        }
        let length = u64::from(sge.length);
        if offset >= length {
            offset -= length;
            continue;
        }
        let piece = usize::try_from(length - offset).unwrap_or(usize::MAX).min(len - done);
        copy(sge, offset, done..done + piece)?;
        done += piece;
        offset = 0;
    }
    if done == len { Ok(()) } else { Err(Denied) }
}
