//! Write-combining buffers of a processor.

use crate::fault::Random;

/// Buffers that a processor combines stores in before they leave.
pub const BUFFERS: usize = 12;
/// Bytes of a buffer.
pub const LINE: usize = 64;

/// A line that leaves: where it goes, and which of its bytes were stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<K> {
    /// Where.
    pub key: K,
    bytes: [u8; LINE],
    stored: u64,
}

impl<K> Line<K> {
    /// The runs of bytes that were stored, each with its offset in the line.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut at = 0;
        std::iter::from_fn(move || {
            at += (self.stored.checked_shr(at as u32).unwrap_or(0)).trailing_zeros() as usize;
            let rest = self.stored.checked_shr(at as u32).filter(|rest| rest & 1 != 0)?;
            let (start, len) = (at, rest.trailing_ones() as usize);
            at += len;
            Some((start, &self.bytes[start..start + len]))
        })
    }
}

/// Stores wait here and leave in any order, unless they are flushed. So a driver that forgets to flush is found out.
#[derive(Debug)]
pub struct Combining<K> {
    lines: Vec<Line<K>>,
    random: Random,
}

impl<K: Copy + PartialEq> Combining<K> {
    /// Empty buffers; what leaves first depends on `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { lines: Vec::new(), random: Random::new(seed) }
    }

    /// Stores `bytes` at `offset` of the line `key`, and returns a line that leaves for want of buffers.
    ///
    /// # Panics
    /// The bytes do not fit the line.
    pub fn put(&mut self, key: K, offset: usize, bytes: &[u8]) -> Option<Line<K>> {
        let known = self.lines.iter().position(|line| line.key == key);
        let index = known.unwrap_or_else(|| {
            self.lines.push(Line { key, bytes: [0; LINE], stored: 0 });
            self.lines.len() - 1
        });
        let line = &mut self.lines[index];
        line.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        line.stored |= u64::MAX.checked_shr((LINE - bytes.len()) as u32).unwrap_or(0) << offset;
        (self.lines.len() > BUFFERS).then(|| self.take()).flatten()
    }

    /// A line that leaves; `None` if there is none.
    pub fn take(&mut self) -> Option<Line<K>> {
        let at = self.random.below(self.lines.len() as u64) as usize;
        (!self.lines.is_empty()).then(|| self.lines.swap_remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_to_a_line_leave_together() {
        let mut combining = Combining::new(1);
        assert_eq!(combining.put(7, 16, &[1; 8]), None);
        assert_eq!(combining.put(7, 24, &[2; 8]), None);
        assert_eq!(combining.put(7, 56, &[3; 8]), None);
        let line = combining.take().expect("a line");
        let joined = [[1; 8], [2; 8]].concat();
        assert_eq!(line.runs().collect::<Vec<_>>(), [(16, &joined[..]), (56, &[3; 8][..])]);
        assert_eq!(combining.take(), None);
        combining.put(9, 0, &[5; LINE]);
        let line = combining.take().expect("a line");
        assert_eq!(line.runs().collect::<Vec<_>>(), [(0, &[5; LINE][..])]);
    }

    #[test]
    fn a_line_leaves_when_there_are_too_many() {
        let mut combining = Combining::new(1);
        let left: Vec<_> = (0..20).filter_map(|key| combining.put(key, 0, &[0; 8])).collect();
        assert_eq!(left.len(), 20 - BUFFERS);
    }
}
