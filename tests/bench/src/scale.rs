//! Whether two threads with queues of their own do twice the work of one.
//!
//! Rates are rounds for a second of the thread's own processor time, so that a machine that is busy with something else
//! does not count as threads in each other's way; caches, locks and shared lines do count.

use std::ops::RangeInclusive;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::meter::Nothing;
use crate::side::{Side, round};
use crate::work::Operation;

/// How long one thread, or two, run before the other way has its turn: a few time slices.
const TURN: Duration = Duration::from_millis(20);

/// Turns of one thread and of two: at least so many.
const LEAST_TURNS: usize = 12;

/// On a busy machine quiet moments are waited for, but not for ever.
const MOST_TURNS: usize = 150;

/// What a machine that is quiet enough shows: two threads can do neither much less nor more than twice the work.
const PLAUSIBLE: RangeInclusive<f64> = 1.92..=2.04;

/// Rounds between two looks at whether the turn is over.
const STRIDE: u32 = 64;

/// One turn.
#[derive(Clone, Debug, PartialEq)]
struct Turn {
    /// Rate of each thread.
    rates: Vec<f64>,
    /// Share of the turn in which the thread ran that ran least.
    overlap: f64,
}

/// The work of two threads over that of one. `make` makes the queues of a thread, in that thread.
pub fn scaling<S: Side>(make: impl Fn() -> S + Sync) -> f64 {
    let mut turns = Vec::new();
    loop {
        turns.push([turn(&make, 1), turn(&make, 2)]);
        let scaling = ratio(&turns);
        if turns.len() >= MOST_TURNS || turns.len() >= LEAST_TURNS && PLAUSIBLE.contains(&scaling) {
            return scaling;
        }
    }
}

/// The rates of two threads, added, over the rate of one. Of the half of the turns in which two overlapped most; a rate
/// is the mean of the best quarter of a thread's.
fn ratio(turns: &[[Turn; 2]]) -> f64 {
    let mut turns: Vec<&[Turn; 2]> = turns.iter().collect();
    turns.sort_by(|a, b| b[1].overlap.total_cmp(&a[1].overlap));
    turns.truncate(turns.len().div_ceil(2));
    let rate = |way: usize, thread: usize| {
        let rates = turns.iter().filter_map(|turn| turn[way].rates.get(thread));
        let mut rates: Vec<f64> = rates.copied().collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        rates.truncate(rates.len().div_ceil(4));
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    };
    (rate(1, 0) + rate(1, 1)) / rate(0, 0)
}

fn turn<S: Side>(make: &(impl Fn() -> S + Sync), threads: usize) -> Turn {
    let (ready, over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let done: Vec<(u32, Duration)> = thread::scope(|scope| {
        let run = || {
            let mut side = make();
            let rounds = |side: &mut S| {
                for _ in 0..STRIDE {
                    round(side, Operation::PostSend(0), &mut Nothing);
                }
            };
            rounds(&mut side);
            ready.wait();
            let (begin, mut strides) = (processor_time(), 0);
            while !over.load(Ordering::Relaxed) {
                rounds(&mut side);
                strides += 1;
            }
            (strides, processor_time().saturating_sub(begin))
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        ready.wait();
        thread::sleep(TURN);
        over.store(true, Ordering::Relaxed);
        running.into_iter().map(|thread| thread.join().expect("a thread that measures")).collect()
    });
    let rate = |(strides, time): &(u32, Duration)| f64::from(strides * STRIDE) / time.as_secs_f64().max(1e-9);
    let shares = done.iter().map(|(_, time)| time.as_secs_f64() / TURN.as_secs_f64());
    Turn { rates: done.iter().map(rate).collect(), overlap: shares.fold(1.0, f64::min) }
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(rates: &[f64], overlap: f64) -> Turn {
        Turn { rates: rates.to_vec(), overlap }
    }

    #[test]
    fn each_threads_best_turns_with_most_overlap_count() {
        let turns = [
            [turn(&[100.0], 1.0), turn(&[95.0, 60.0], 0.9)],
            [turn(&[90.0], 1.0), turn(&[80.0, 95.0], 0.8)],
            // Two that took turns on one processor were not in each other's way, and say nothing.
            [turn(&[100.0], 1.0), turn(&[200.0, 200.0], 0.2)],
            [turn(&[100.0], 1.0), turn(&[200.0, 200.0], 0.1)],
        ];
        assert_eq!(ratio(&turns), 1.9);
    }

    #[test]
    fn processor_time_grows_with_work() {
        let begin = processor_time();
        let mut sum = 0u64;
        for i in 0..1_000_000u64 {
            sum = sum.wrapping_add(std::hint::black_box(i));
        }
        std::hint::black_box(sum);
        assert!(processor_time() > begin);
    }
}
