//! Checks, and how whoever runs the image is told of them: one line each. The other side: `tests/lab/src/vm/outcome.rs`.

use core::fmt::{Arguments, Display};

use directverbs_bare::Clock;

use crate::console::say;

/// What every line begins with.
const MARK: &str = "directverbs-guest:";

/// Counts checks.
#[derive(Debug, Default)]
pub struct Report {
    ran: usize,
    failed: usize,
}

impl Report {
    /// Runs a check. Its name has no spaces.
    pub fn check<E: Display>(
        &mut self,
        clock: &impl Clock,
        name: Arguments<'_>,
        run: impl FnOnce() -> Result<(), E>,
    ) {
        say(format_args!("{MARK} begin {name}"));
        let began = clock.now_ns();
        let result = run();
        self.ran += 1;
        match result {
            Ok(()) => {
                let micros = (clock.now_ns() - began) / 1000;
                say(format_args!("{MARK} passed {name} {micros} us"));
            }
            Err(why) => {
                self.failed += 1;
                say(format_args!("{MARK} failed {name} {why}"));
            }
        }
    }

    /// Says that all have been run. `true` if all held.
    pub fn end(self) -> bool {
        say(format_args!("{MARK} plan {}", self.ran));
        say(format_args!("{MARK} end"));
        self.failed == 0 && self.ran > 0
    }
}
