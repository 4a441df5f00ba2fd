//! Hostile devices: random rings, completions, doorbells and frames, and the corpus of the fuzz targets.

use directverbs_softnic::fault::Random;
use directverbs_suites::hostile::{bnxt_re_poll, ionic_decode, ionic_poll};

/// Random hostile polls of each family.
const POLLS: u64 = 500_000;

/// Random bytes for a fuzz body.
fn bytes(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        std::iter::repeat_with(|| random.next().to_le_bytes()).take(len / 8 + 1).flatten().collect();
    bytes.truncate(len);
    bytes
}

/// Polls at least [`POLLS`] times, in cases of some hundred polls.
fn poll_many(seed: u64, body: fn(&[u8]) -> u64) {
    let mut random = Random::new(seed);
    let mut polls = 0;
    while polls < POLLS {
        let len = 1024 + random.below(16 * 1024) as usize;
        polls += body(&bytes(&mut random, len));
    }
}

#[test]
fn half_a_million_polls_of_a_hostile_ionic_device() {
    poll_many(0x10_71c0, ionic_poll);
}

#[test]
fn half_a_million_polls_of_a_hostile_bnxt_re_device() {
    poll_many(0xb_0e77, bnxt_re_poll);
}

#[test]
fn a_hostile_driver_of_an_ionic_nic() {
    let mut random = Random::new(3);
    for _ in 0..500 {
        let len = random.below(4096) as usize;
        ionic_decode(&bytes(&mut random, len));
    }
}
