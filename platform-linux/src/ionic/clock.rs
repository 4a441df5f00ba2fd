//! The clock page.

use directverbs::ionic::clock::{Clock, ClockBusy, ClockInfo};
use zerocopy::{FromBytes, IntoBytes};

use crate::uverbs::Mapping;

/// The mapped page by which ticks of the device become nanoseconds.
#[derive(Debug)]
pub struct ClockPage {
    mapping: Mapping,
}

impl ClockPage {
    pub(super) const fn new(mapping: Mapping) -> Self {
        Self { mapping }
    }

    /// Its address, for code on a device that reads it by itself.
    pub fn address(&self) -> u64 {
        self.mapping.address().as_ptr() as u64
    }

    /// A consistent copy.
    ///
    /// # Errors
    /// The kernel was writing it each time.
    pub fn read(&self) -> Result<Clock, ClockBusy> {
        Clock::read(|| {
            const WORDS: usize = size_of::<ClockInfo>() / size_of::<u32>();
            let words: [u32; WORDS] =
                std::array::from_fn(|i| self.mapping.load_u32(i * size_of::<u32>()).unwrap_or(0));
            ClockInfo::read_from_bytes(words.as_bytes()).unwrap_or(ClockInfo::ZERO)
        })
    }
}
