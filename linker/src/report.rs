//! Checks, and how whoever runs the image is told of them: one line each. The other side: `tests/lab/src/vm/outcome.rs`.

use core::fmt::{Arguments, Display};

use directverbs_bare::Clock;

use crate::arch::Machine;
use crate::console::say;

/// What every line begins with.
const MARK: &str = "directverbs-guest:";

/// Counts checks.
pub struct Report<'m> {
    machine: &'m Machine,
    planned: usize,
    ran: usize,
    failed: usize,
    has_verified: bool,
}

impl<'m> Report<'m> {
    /// A report of nothing yet.
    pub fn new(machine: &'m Machine) -> Self {
        Self { machine, planned: 0, ran: 0, failed: 0, has_verified: false }
    }

    /// Says that so many more checks will be run, before the first of them is.
    pub fn plan(&mut self, checks: usize) {
        self.planned += checks;
        say(format_args!("{MARK} plan {}", self.planned));
    }

    /// Runs a check; `true` if it held. Its name has no spaces.
    pub fn check<E: Display>(
        &mut self,
        name: Arguments<'_>,
        run: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> bool {
        say(format_args!("{MARK} begin {name}"));
        let began = self.machine.clock().now_ns();
        let result = run(self);
        self.ended(name, began, result.as_ref().err().map(|why| why as &dyn Display));
        result.is_ok()
    }

    fn ended(&mut self, name: Arguments<'_>, began: u64, failure: Option<&dyn Display>) {
        self.ran += 1;
        if let Some(why) = failure {
            self.failed += 1;
            return say(format_args!("{MARK} failed {name} {why}"));
        }
        let micros = (self.machine.clock().now_ns() - began) / 1000;
        say(format_args!("{MARK} passed {name} {micros} us"));
    }

    /// Whether all checks so far held.
    pub const fn holds(&self) -> bool {
        self.failed == 0
    }

    /// Data that a NIC has brought were verified. The first time is said, as time since the image began.
    pub fn verified(&mut self) {
        if !self.has_verified {
            self.has_verified = true;
            let micros = self.machine.clock().now_ns() / 1000;
            say(format_args!("{MARK} first-verified {micros} us"));
        }
    }

    /// Says that all have been run. `true` if all held.
    pub fn end(self) -> bool {
        say(format_args!("{MARK} end"));
        self.holds() && self.ran == self.planned
    }
}
