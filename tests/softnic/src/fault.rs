//! Seeded faults: what goes wrong, how often, reproducibly.

/// A small deterministic random number generator (splitmix64).
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// True once in 1,000,000 / `ppm` times. Draws nothing for 0, so that a plan without a fault stays undisturbed.
    pub const fn happens(&mut self, ppm: u32) -> bool {
        ppm != 0 && self.below(1_000_000) < ppm as u64
    }
}

/// Faults of a fabric and its NICs, each in parts per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Frames that the wire loses.
    pub lose_frame: u32,
    /// Frames that the wire delivers twice.
    pub duplicate_frame: u32,
    /// Frames that the wire delivers after later ones.
    pub reorder_frame: u32,
    /// Frames with one bit changed.
    pub corrupt_frame: u32,
    /// Doorbell stores that do not arrive.
    pub drop_doorbell: u32,
    /// CQEs that are written late; later ones of the queue wait behind them.
    pub delay_cqe: u32,
    /// CQEs that are written twice, into two entries.
    pub duplicate_cqe: u32,
    /// CQEs with one bit changed.
    pub corrupt_cqe: u32,
}

impl FaultPlan {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        lose_frame: 0,
        duplicate_frame: 0,
        reorder_frame: 0,
        corrupt_frame: 0,
        drop_doorbell: 0,
        delay_cqe: 0,
        duplicate_cqe: 0,
        corrupt_cqe: 0,
    };

    /// 1 % of frames lost, 1 % duplicated, 1 % reordered.
    pub const LOSSY_WIRE: Self =
        Self { lose_frame: 10_000, duplicate_frame: 10_000, reorder_frame: 10_000, ..Self::NONE };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        // Reference values of splitmix64 for the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn a_fault_happens_as_often_as_planned() {
        let mut random = Random::new(7);
        let hits = (0..100_000).filter(|_| random.happens(10_000)).count();
        assert!((900..1100).contains(&hits), "{hits}");
        assert_eq!((0..1000).filter(|_| random.happens(0)).count(), 0);
    }
}
