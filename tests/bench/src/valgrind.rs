//! Requests to valgrind's callgrind, by which a program says what is to be counted.
//!
//! A request is a sequence of instructions that does nothing, and that valgrind knows. The crates that have it need
//! valgrind's headers or an unstable compiler to be built. Source: `valgrind.h`, `callgrind.h`.

use std::ffi::CStr;

/// Base of callgrind's requests: its letters, `C` and `T`.
const CALLGRIND: u64 = 0x4354_0000;
const TOGGLE_COLLECT: u64 = CALLGRIND + 2;
const DUMP_STATS_AT: u64 = CALLGRIND + 3;
/// Asks whether valgrind is there: the answer counts valgrinds, one inside the other.
const RUNNING_ON_VALGRIND: u64 = 0x1001;

/// Begins or ends counting. Never inlined: then what it costs itself is the same everywhere.
#[inline(never)]
pub fn toggle_collect() {
    request(TOGGLE_COLLECT, 0);
}

/// Writes what was counted since the last time, under `name`, and starts again from zero.
pub fn dump(name: &CStr) {
    request(DUMP_STATS_AT, name.as_ptr() as u64);
}

/// Whether this process runs under valgrind.
pub fn is_running() -> bool {
    request(RUNNING_ON_VALGRIND, 0) != 0
}

/// Makes a request, and gives the answer; 0 if there is no valgrind.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn request(number: u64, argument: u64) -> u64 {
    let arguments = [number, argument, 0, 0, 0, 0];
    let mut answer = 0u64;
    // SAFETY: rotates a register by 128 bits in all and exchanges another with itself, so nothing changes. valgrind reads
    // `arguments`, and the string of a dump, and changes the answer only.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") answer, inout("rdi") 0u64 => _,
        );
    }
    answer
}

/// Makes a request, and gives the answer; 0 if there is no valgrind.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn request(number: u64, argument: u64) -> u64 {
    let arguments = [number, argument, 0, 0, 0, 0];
    let mut answer = 0u64;
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3", "ror x12, x12, #13", "ror x12, x12, #51", "ror x12, x12, #61", "orr x10, x10, x10",
            in("x4") arguments.as_ptr(), inout("x3") answer, inout("x12") 0u64 => _,
        );
    }
    answer
}
