//! Functions that panic, each in another way that compiles into another call.

use directverbs::verbs::WorkCompletion;

/// A bounds check.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn control_index(out: &mut [WorkCompletion], at: usize) -> u64 {
    out[at].wr_id
}

/// A panic one call away.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn control_call(out: &mut [WorkCompletion], at: usize) -> u64 {
    control_index(out, at).rotate_left(3)
}

/// A division by what may be zero.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn control_divide(a: u32, b: u32) -> u32 {
    a / b
}

/// A value that may not be there.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn control_unwrap(out: &[WorkCompletion]) -> u64 {
    out.first().unwrap().wr_id
}

/// Slices of unequal length.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn control_copy(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

/// A panic behind a pointer: a table in data that refers to a function that panics.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn control_pointer(a: u32, b: u32, which: usize) -> u32 {
    static TABLE: [fn(u32, u32) -> u32; 2] = [u32::wrapping_add, control_divide];
    TABLE.get(which).map_or(0, |f| f(a, b))
}
