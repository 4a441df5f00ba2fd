//! Random numbers that repeat.

use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;

/// The generator of a case.
#[derive(Clone, Debug)]
pub struct Rng(XorShiftRng);

impl Rng {
    /// The generator for `seed` in the mode called `mode`: the same pair gives the same numbers on every machine.
    pub fn new(mode: &str, seed: u64) -> Self {
        // FNV-1a, so that modes differ and nothing depends on a hasher that may change.
        let hash = mode.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(XorShiftRng::seed_from_u64(hash ^ seed))
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        if n == 0 { 0 } else { self.0.random_range(0..n) }
    }

    /// A number from `low` up to and with `high`.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        self.0.random_range(low..=high.max(low))
    }

    /// 32 bits.
    pub fn bits(&mut self) -> u32 {
        self.0.random()
    }

    /// 64 bits.
    pub fn long(&mut self) -> u64 {
        self.0.random()
    }

    /// `true` once in `n` times.
    pub fn once_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// One of `all`, which is not empty.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u32) as usize]
    }

    /// `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.fill(&mut bytes);
        bytes
    }

    /// A throw for later.
    pub fn dice(&mut self) -> Dice {
        Dice(self.bits())
    }
}

/// A throw whose range is known only when the step is carried out: which of the outstanding requests, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dice(pub u32);

impl Dice {
    /// A number below `n`; 0 if `n` is 0.
    pub const fn below(self, n: u32) -> u32 {
        (self.0 as u64 * n as u64 >> 32) as u32
    }
}
