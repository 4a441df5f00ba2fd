//! Whether two threads with queues of their own do twice the work of one.
//!
//! What a thread does in a time is taken from its quickest windows, each far shorter than a time slice, so that a machine that
//! is busy with something else does not count as threads in each other's way. While one thread is measured, another process
//! does the same work, so that two processors that share a core, or a clock that falls when both are busy, do not count
//! either. Caches, locks and shared lines do count.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, waitpid};
use rustix::time::{ClockId, clock_gettime};

use crate::meter::{Meter, Nothing, Timer};
use crate::side::{Side, round};
use crate::work::Operation;

/// How long one thread, or two, run before the other way has its turn: a few time slices.
const TURN: Duration = Duration::from_millis(20);

/// Turns of one thread and of two: at least so many.
const LEAST_TURNS: usize = 12;

/// On a busy machine quiet moments are waited for, but not for ever.
const MOST_TURNS: usize = 100;

/// What a machine that is quiet enough shows: two threads can do neither much less nor more than twice the work.
const PLAUSIBLE: RangeInclusive<f64> = 1.92..=2.04;

/// Rounds of a window.
const ROUNDS: usize = 16;

/// Of a thread's windows, one of so many counts: the quickest.
const QUICKEST: usize = 4;

/// One turn.
#[derive(Clone, Debug, Default)]
struct Turn {
    /// Windows of each thread.
    threads: Vec<Timer>,
    /// Share of the turn in which the thread ran that ran least.
    overlap: f64,
}

/// The work of two threads over that of one. `make` makes the queues of a thread, in that thread.
pub fn scaling<S: Side>(make: impl Fn() -> S + Sync) -> f64 {
    let companion = Companion::start(&make);
    let mut turns = Vec::new();
    loop {
        companion.signal(Signal::CONT);
        let one = turn(&make, 1);
        companion.signal(Signal::STOP);
        turns.push([one, turn(&make, 2)]);
        let scaling = ratio(&turns);
        if turns.len() >= MOST_TURNS || turns.len() >= LEAST_TURNS && PLAUSIBLE.contains(&scaling) {
            return scaling;
        }
    }
}

/// A process that does the work of a thread until it is ended.
#[derive(Debug)]
struct Companion(Pid);

impl Companion {
    /// Starts it.
    fn start<S: Side>(make: &impl Fn() -> S) -> Self {
        let parent = getpid();
        // SAFETY: the threads of earlier turns have ended, so no lock is held that the child could wait for.
        match unsafe { libc::fork() } {
            0 => {
                let mut side = make();
                while getppid() == Some(parent) {
                    (0..ROUNDS).for_each(|_| round(&mut side, Operation::PostSend(0), &mut Nothing));
                }
                std::process::exit(0)
            }
            child => Self(Pid::from_raw(child).expect("a process to compare with")),
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.0, signal).expect("the process to compare with is there");
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // It may have ended by itself, by a panic that it has told.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}

/// The rates of two threads, added, over the rate of one. Of the half of the turns in which two overlapped most.
fn ratio(turns: &[[Turn; 2]]) -> f64 {
    let mut turns: Vec<&[Turn; 2]> = turns.iter().collect();
    turns.sort_by(|a, b| b[1].overlap.total_cmp(&a[1].overlap));
    turns.truncate(turns.len().div_ceil(2));
    let ticks = |way: usize, thread: usize| {
        let timers = turns.iter().filter_map(|turn| turn[way].threads.get(thread));
        let mut all = Timer { windows: timers.flat_map(|timer| timer.windows.iter().copied()).collect() };
        all.quickest(QUICKEST)
    };
    let one = ticks(0, 0);
    one / ticks(1, 0) + one / ticks(1, 1)
}

fn turn<S: Side>(make: &(impl Fn() -> S + Sync), threads: usize) -> Turn {
    let (ready, over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    // What is not measured need not be at once; the library opens one device after the other.
    let making = Mutex::new(());
    let done: Vec<(Timer, Duration)> = thread::scope(|scope| {
        let run = || {
            let _guard = EndOnPanic;
            let made = making.lock().map(|_one_at_a_time| make());
            let (mut side, mut timer) = (made.expect("a side"), Timer::default());
            let mut window = || {
                timer.window(|_| {
                    (0..ROUNDS).for_each(|_| round(&mut side, Operation::PostSend(0), &mut Nothing));
                });
            };
            (0..ROUNDS).for_each(|_| window());
            ready.wait();
            let begin = processor_time();
            while !over.load(Ordering::Relaxed) {
                window();
            }
            (timer, processor_time().saturating_sub(begin))
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        ready.wait();
        thread::sleep(TURN);
        over.store(true, Ordering::Relaxed);
        running.into_iter().map(|thread| thread.join().expect("a thread that measures")).collect()
    });
    let shares = done.iter().map(|(_, time)| time.as_secs_f64() / TURN.as_secs_f64());
    let overlap = shares.fold(1.0, f64::min);
    Turn { threads: done.into_iter().map(|(timer, _)| timer).collect(), overlap }
}

/// Ends the process when its thread panics: the others would wait for it for ever.
struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::exit(101);
        }
    }
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(threads: &[&[u64]], overlap: f64) -> Turn {
        let threads = threads.iter().map(|windows| Timer { windows: windows.to_vec() }).collect();
        Turn { threads, overlap }
    }

    #[test]
    fn the_quickest_windows_of_the_turns_with_most_overlap_count() {
        let turns = [
            [turn(&[&[190, 190, 900, 190]], 1.0), turn(&[&[200, 900, 900, 900], &[999; 4]], 0.9)],
            [turn(&[&[250, 250, 250, 250]], 1.0), turn(&[&[900, 200, 900, 900], &[200, 200, 999, 999]], 0.8)],
            // Two that took turns on one processor were not in each other's way, and say nothing.
            [turn(&[&[190]], 1.0), turn(&[&[10], &[10]], 0.2)],
            [turn(&[&[190]], 1.0), turn(&[&[10], &[10]], 0.1)],
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
