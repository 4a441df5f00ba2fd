//! Hostile devices: random rings, completions, doorbells and frames, and the corpus of the fuzz targets.

use std::fs;
use std::path::{Path, PathBuf};

use directverbs_softnic::fault::Random;
use directverbs_suites::hostile::{bnxt_re_decode, bnxt_re_poll, ionic_decode, ionic_poll, roce_frame};

/// A fuzz target: its name and its body.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 5] = [
    ("bnxt_re_poll", |data| {
        bnxt_re_poll(data);
    }),
    ("ionic_poll", |data| {
        ionic_poll(data);
    }),
    ("bnxt_re_decode", bnxt_re_decode),
    ("ionic_decode", ionic_decode),
    ("roce_frame", roce_frame),
];

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target)
}

#[test]
fn the_corpus_of_every_fuzz_target_replays() {
    for (target, body) in TARGETS {
        let files = fs::read_dir(corpus(target)).unwrap();
        let mut count = 0;
        for file in files {
            body(&fs::read(file.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count >= SEEDS, "{target}: {count} files");
    }
}

/// Files of each target's corpus that [`the_seeds_of_the_corpus`] writes.
const SEEDS: u64 = 8;

#[test]
#[ignore = "writes files: run it when the meaning of the bodies' input has changed"]
fn the_seeds_of_the_corpus() {
    let mut random = Random::new(1);
    for (target, body) in TARGETS {
        fs::create_dir_all(corpus(target)).unwrap();
        for seed in 0..SEEDS {
            let mut data = bytes(&mut random, 64 << (seed % 4));
            // The first byte chooses what is built: each kind gets a seed.
            data[0] = seed as u8;
            body(&data);
            fs::write(corpus(target).join(format!("seed-{seed}")), data).unwrap();
        }
    }
}

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

/// Runs `body` on random bytes.
fn run_many(seed: u64, cases: u64, body: fn(&[u8])) {
    let mut random = Random::new(seed);
    for _ in 0..cases {
        let len = random.below(4096) as usize;
        body(&bytes(&mut random, len));
    }
}

#[test]
fn a_hostile_driver_of_an_ionic_nic() {
    run_many(3, 500, ionic_decode);
}

#[test]
fn a_hostile_driver_of_a_bnxt_re_nic() {
    run_many(4, 500, bnxt_re_decode);
}

#[test]
fn a_hostile_peer() {
    run_many(5, 1000, roce_frame);
}
