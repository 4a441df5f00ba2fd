//! Checks, and how the host is told of them: one line each, on standard output.

use std::any::type_name;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

/// What every line for the host begins with. The host's side: `tests/lab/src/vm/outcome.rs`.
const MARK: &str = "directverbs-guest:";

/// Something that must hold; it panics if it does not.
pub struct Check {
    name: &'static str,
    run: Box<dyn Fn()>,
}

impl Check {
    /// The check that a function is; its name is the function's.
    pub fn of<F: Fn() + 'static>(function: F) -> Self {
        let path = type_name::<F>();
        Self { name: path.split_once("checks::").map_or(path, |(_, name)| name), run: Box::new(function) }
    }
}

/// Checks that find the machine in the same state.
pub struct Stage {
    /// Brings the machine to that state.
    pub prepare: fn(),
    /// The checks.
    pub checks: Vec<Check>,
    /// Checks that other processes run, which these start.
    pub others: usize,
}

/// Says how many checks there are.
pub fn plan(count: usize) {
    println!("{MARK} plan {count}");
}

/// Says that all have been run.
pub fn end() {
    println!("{MARK} end");
}

/// Runs what comes before the checks of a stage. `false`, and said, if it could not be done.
pub fn prepare(prepare: fn()) -> bool {
    match outcome(&prepare) {
        Ok(()) => true,
        Err(why) => {
            println!("{MARK} failed prepare {why}");
            false
        }
    }
}

/// Runs checks one after the other.
pub fn run(checks: Vec<Check>) {
    for check in checks {
        println!("{MARK} begin {}", check.name);
        let begun = Instant::now();
        let result = outcome(&check.run);
        let time = begun.elapsed().as_millis();
        match result {
            Ok(()) => println!("{MARK} passed {} {time} ms", check.name),
            Err(why) => println!("{MARK} failed {} {why}", check.name),
        }
    }
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Whether `function` comes back, or with what it panics, in one line.
fn outcome(function: &dyn Fn()) -> Result<(), String> {
    panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|text| {
            *text = info.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
        });
    }));
    panic::catch_unwind(AssertUnwindSafe(function)).map_err(|_| PANIC.take())
}
