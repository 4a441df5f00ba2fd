//! Exceptions: each is an error of the program, so it is said, and the image ends.
//!
//! Source: Intel SDM volume 3, chapter 6.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;

use crate::console::say;

const VECTORS: usize = 32;
/// Bytes of the code of each vector.
const STUB: usize = 16;
/// A gate that is there, to code of segment 8, with interrupts off.
const GATE: u64 = 0x8e00 << 32 | 8 << 16;

/// What is on the stack when `trap` is called.
#[repr(C)]
struct Frame {
    vector: u64,
    error: u64,
    instruction: u64,
}

global_asm!(
    r#"
    .section .text.traps, "ax"
    .balign 16
traps:
    .set vector, 0
    .rept {vectors}
    .balign {stub}
    // The processor pushes an error code for some; the others get a zero.
    .if vector != 8 && (vector < 10 || vector > 14) && vector != 17 && vector != 21 && vector != 29 && vector != 30
    push 0
    .endif
    push vector
    jmp 2f
    .set vector, vector + 1
    .endr
2:  mov rdi, rsp
    and rsp, -16
    call {trap}
    ud2
    "#,
    vectors = const VECTORS,
    stub = const STUB,
    trap = sym trap,
);

unsafe extern "C" {
    safe static traps: u8;
}

extern "C" fn trap(frame: &Frame) -> ! {
    let Frame { vector, error, instruction } = frame;
    let address: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) address) };
    say(format_args!(
        "unikernel: exception {vector}, error {error:#x}, at {instruction:#x}, address {address:#x}"
    ));
    super::exit(false)
}

#[repr(C, align(16))]
struct Table(UnsafeCell<[[u64; 2]; VECTORS]>);

// SAFETY: one processor writes it, once.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new([[0; 2]; VECTORS]));

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

/// From now on exceptions are said.
pub fn install() {
    let first = &raw const traps as u64;
    // SAFETY: called once, by the only processor, before any exception.
    let table = unsafe { &mut *TABLE.0.get() };
    for (vector, gate) in table.iter_mut().enumerate() {
        let to = first + (vector * STUB) as u64;
        *gate = [GATE | to & 0xffff | (to >> 16 & 0xffff) << 48, to >> 32];
    }
    let pointer = Pointer { limit: (size_of::<Table>() - 1) as u16, base: TABLE.0.get() as u64 };
    // SAFETY: the table stays, and its gates lead to the stubs.
    unsafe { asm!("lidt [{}]", in(reg) &raw const pointer) };
}
