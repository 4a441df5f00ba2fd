//! What is put around the calls that are measured.

use crate::valgrind;

/// Measures calls.
pub trait Meter {
    /// One call of the library.
    fn call<R>(&self, f: impl FnOnce() -> R) -> R;
}

/// Measures nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Meter for Nothing {
    #[inline(always)]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// Lets callgrind count the instructions of each call, and no others.
#[derive(Clone, Copy, Debug)]
pub struct Counter;

impl Meter for Counter {
    #[inline(always)]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        valgrind::toggle_collect();
        let result = f();
        valgrind::toggle_collect();
        result
    }
}
