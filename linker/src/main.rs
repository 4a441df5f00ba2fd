//! The example image: boots without an operating system, brings up the NICs that it finds on the PCI bus, and runs
//! the workload on them.
//!
//! Everything that it uses is in its image: no heap, no firmware tables, no interrupts. `cargo lab vm unikernel` builds and
//! runs it.
#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(target_os = "none", no_main)]

#[cfg(all(target_os = "none", target_arch = "aarch64"))]
#[path = "aarch64/mod.rs"]
mod arch;
#[cfg(all(target_os = "none", target_arch = "x86_64"))]
#[path = "x86_64/mod.rs"]
mod arch;
#[cfg(target_os = "none")]
mod console;
#[cfg(target_os = "none")]
mod copier;
#[cfg(target_os = "none")]
mod device;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod nics;
#[cfg(target_os = "none")]
mod peer;
#[cfg(target_os = "none")]
mod queues;
#[cfg(target_os = "none")]
mod report;
#[cfg(target_os = "none")]
mod run;

#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    eprintln!("This is a program without an operating system: `cargo lab vm unikernel` builds and boots it.");
    std::process::ExitCode::FAILURE
}
