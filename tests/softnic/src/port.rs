//! What passes the port of a NIC.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// Bytes of the check sequence that a frame has on a real wire.
const FCS_BYTES: usize = 4;

/// Frames that have passed one way. Lengths include the check sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// To one receiver, to a group, and to all.
    pub frames: [u64; 3],
    /// Those with a VLAN tag, among them.
    pub tagged: u64,
    /// Bytes of all.
    pub bytes: u64,
    lengths: BTreeMap<usize, u64>,
}

impl Passed {
    /// A frame passes.
    pub(crate) fn count(&mut self, frame: &[u8]) {
        let to = frame.first_chunk::<6>().copied().unwrap_or_default();
        let kind = if to == [0xff; 6] { 2 } else { usize::from(to[0] & 1) };
        self.frames[kind] += 1;
        self.tagged += u64::from(frame.get(12..14) == Some(&[0x81, 0][..]));
        let len = frame.len() + FCS_BYTES;
        self.bytes += len as u64;
        *self.lengths.entry(len).or_default() += 1;
    }

    /// All frames.
    pub fn all(&self) -> u64 {
        self.frames.iter().sum()
    }

    /// Frames of such lengths.
    pub fn of(&self, lengths: impl RangeBounds<usize>) -> u64 {
        self.lengths.range(lengths).map(|(_, count)| count).sum()
    }
}

/// What has passed both ways since power-on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// To the NIC.
    pub received: Passed,
    /// From it.
    pub sent: Passed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart_by_receiver_tag_and_length() {
        let mut passed = Passed::default();
        passed.count(&[&[2; 12][..], &[8, 0], &[0; 46]].concat());
        passed.count(&[&[3; 12][..], &[0x81, 0], &[0; 100]].concat());
        passed.count(&[0xff; 60]);
        assert_eq!((passed.frames, passed.all(), passed.tagged), ([1, 1, 1], 3, 1));
        assert_eq!((passed.bytes, passed.of(..65), passed.of(65..=127)), (64 + 118 + 64, 2, 1));
    }
}
