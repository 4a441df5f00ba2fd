//! Inline data: bytes copied into the slots behind the header.

use crate::queue::RingMemory;

/// Copies `pieces` one after another to byte `at` of a ring of `ring` bytes, and on from its start at its end.
pub(super) fn copy(memory: &mut RingMemory<'_>, at: usize, ring: usize, pieces: &[&[u8]]) {
    let mut at = at;
    for piece in pieces {
        let left = ring.saturating_sub(at);
        match piece.split_at_checked(left) {
            None => {
                memory.store_bytes(at, piece);
                at += piece.len();
            }
            Some((first, rest)) => {
                memory.store_bytes(at, first);
                memory.store_bytes(0, rest);
                at = rest.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_go_on_at_the_start_of_the_ring() {
        let mut bytes = [0u8; 20];
        let mut memory = RingMemory::new(&mut bytes);
        copy(&mut memory, 12, 16, &[&[1, 2, 3], &[], &[4, 5, 6], &[7]]);
        assert_eq!(bytes, [5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]);
    }
}
