//! Post and poll of both families, instantiated as a program would: the functions with fixed names whose object code
//! `cargo lab` searches for calls to panic functions. A name begins with `fast_`; those that begin with `control_` do
//! panic, and show that the search finds it.
//!
//! Nothing here runs.
#![cfg_attr(target_os = "none", no_std)]

mod bnxt_re;
mod control;
mod ionic;
mod page;

#[cfg(target_os = "none")]
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
