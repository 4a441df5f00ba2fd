//! Compares time: windows of C and of ours in turns, in one process.
//!
//! Ticks are those of the time stamp counter, whatever their length: only the ratio of two that were taken in turns says
//! something.

use crate::meter::{Meter, Nothing, Timer};
use crate::side::{LANES, Side, round};
use crate::work::Operation;

/// Rounds that are not timed.
const WARM_UP: usize = 100;

/// Blocks of windows, each short enough to fit between two switches of the processor to another program.
const BLOCKS: usize = 40;

/// Windows of each side in a block.
const WINDOWS: usize = 50;

/// The quietest blocks count, in which both sides together took least: other programs, and the processor's clock, only
/// ever make a block slower.
const QUIETEST: usize = 5;

/// Ticks for one request or completion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ticks {
    /// The C provider's.
    pub c: f64,
    /// Ours.
    pub ours: f64,
}

/// Times an operation on both sides.
pub fn compare(c: &mut impl Side, ours: &mut impl Side, operation: Operation) -> Ticks {
    for _ in 0..WARM_UP {
        round(c, operation, &mut Nothing);
        round(ours, operation, &mut Nothing);
    }
    let blocks = [(); BLOCKS].map(|()| {
        let mut timers = [(); 3].map(|()| Timer::default());
        let [empty, of_c, of_ours] = &mut timers;
        for _ in 0..WINDOWS {
            empty.window(|_| {});
            round(c, operation, of_c);
            round(ours, operation, of_ours);
        }
        timers.map(|mut timer| timer.quickest(2))
    });
    quietest(&blocks, LANES * operation.per_call())
}

/// Ticks of an empty window, of C's and of ours in all blocks, to ticks for one of `count`.
fn quietest(blocks: &[[f64; 3]], count: usize) -> Ticks {
    let mut blocks = blocks.to_vec();
    blocks.sort_by(|[_, a, b], [_, c, d]| (a + b).total_cmp(&(c + d)));
    blocks.truncate(QUIETEST);
    let each = |of: fn(&[f64; 3]) -> f64| {
        let sum: f64 = blocks.iter().map(|block| (of(block) - block[0]).max(0.0)).sum();
        sum / (blocks.len() * count) as f64
    };
    Ticks { c: each(|block| block[1]), ours: each(|block| block[2]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_figures_come_from_the_quietest_blocks() {
        let mut blocks = vec![[40.0, 840.0, 440.0]; QUIETEST - 1];
        blocks.extend([[40.0, 840.0, 840.0], [30.0, 2000.0, 300.0], [50.0, 1050.0, 5000.0]]);
        let Ticks { c, ours } = quietest(&blocks, 8);
        assert_eq!((c, ours), (100.0, (50.0 * (QUIETEST - 1) as f64 + 100.0) / QUIETEST as f64));
    }
}
