//! Compares time: windows of C and of ours in turns, in one process.
//!
//! Ticks are those of the time stamp counter, whatever their length: only the ratio of two that were taken in turns says
//! something.

use crate::meter::{Meter, Nothing, Timer};
use crate::side::{LANES, Side, round};
use crate::work::Operation;

/// Rounds that are not timed.
const WARM_UP: usize = 100;

/// Blocks of windows. The quietest block counts, in which both sides together took least: other programs on the machine,
/// and the processor's clock, only ever make a block slower.
const BLOCKS: usize = 9;

/// Windows of each side in a block.
const WINDOWS: usize = 150;

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
        timers.map(|mut timer| timer.median())
    });
    quietest(&blocks, LANES * operation.per_call())
}

/// Medians of the empty window, C's and ours, of all blocks, to ticks for one of `count`.
fn quietest(blocks: &[[u64; 3]], count: usize) -> Ticks {
    let quietest = blocks.iter().min_by_key(|[_, c, ours]| c + ours).copied().unwrap_or_default();
    let [empty, c, ours] = quietest;
    let each = |ticks: u64| ticks.saturating_sub(empty) as f64 / count as f64;
    Ticks { c: each(c), ours: each(ours) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_figures_come_from_the_quietest_block() {
        let blocks = [[50, 1050, 500], [40, 840, 440], [30, 2000, 300]];
        assert_eq!(quietest(&blocks, 8), Ticks { c: 100.0, ours: 50.0 });
    }
}
