//! Exceptions: each is an error of the program, so it is said, and the image ends.
//!
//! Source: Arm Architecture Reference Manual, D1.3 and D24 (ESR_EL1).

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::console::say;

global_asm!(
    r#"
    .section .text.traps, "ax"
    .balign 2048
    .global vectors
vectors:
    // Sixteen places of 128 bytes.
    .rept 16
    .balign 128
    b 2f
    .endr
    .balign 128
2:  bl {trap}
    "#,
    trap = sym trap,
);

unsafe extern "C" {
    /// The code that exceptions come to.
    #[link_name = "vectors"]
    pub safe static VECTORS: u8;
}

/// Whether an exception was said already: what ends the program may be one itself.
static SAID: AtomicBool = AtomicBool::new(false);

extern "C" fn trap() -> ! {
    let (syndrome, instruction, address): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        asm!("mrs {}, esr_el1", "mrs {}, elr_el1", "mrs {}, far_el1",
            out(reg) syndrome, out(reg) instruction, out(reg) address, options(nomem, nostack));
    }
    if SAID.swap(true, Ordering::Relaxed) {
        super::halt();
    }
    say(format_args!(
        "unikernel: exception, syndrome {syndrome:#x}, at {instruction:#x}, address {address:#x}"
    ));
    super::exit(false)
}
