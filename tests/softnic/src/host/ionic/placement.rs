/// Gives out controller memory to rings, first fit.
#[derive(Debug)]
pub(super) struct DeviceSpace {
    len: u64,
    /// Start and end of each ring, in order.
    used: Vec<(u64, u64)>,
}

impl DeviceSpace {
    /// `len` bytes, none in use.
    pub const fn new(len: u64) -> Self {
        Self { len, used: Vec::new() }
    }

    /// Takes `bytes` bytes at a multiple of the page size.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.next_multiple_of(crate::bus::PAGE as u64);
        let ends = self.used.iter().map(|(_, end)| *end);
        let starts = self.used.iter().map(|(start, _)| *start).chain([self.len]);
        let gaps = [0].into_iter().chain(ends).zip(starts);
        let (at, (start, _)) = gaps.enumerate().find(|(_, (from, to))| to.saturating_sub(*from) >= bytes)?;
        self.used.insert(at, (start, start + bytes));
        Some(start)
    }

    /// Gives back what [`DeviceSpace::take`] gave.
    pub fn give(&mut self, start: u64) {
        self.used.retain(|(at, _)| *at != start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_taken_again() {
        let mut space = DeviceSpace::new(3 * 4096);
        assert_eq!([space.take(1), space.take(4096), space.take(100)], [Some(0), Some(4096), Some(8192)]);
        assert_eq!(space.take(1), None);
        space.give(4096);
        assert_eq!(space.take(8192), None);
        assert_eq!(space.take(4096), Some(4096));
    }
}
