//! The first program of a guest: `/init` of a machine that has nothing but a kernel, its modules and this file.
//!
//! It tries `directverbs-linux` on that kernel with soft-RoCE over a virtual Ethernet interface, and says on the second
//! serial port what held. The first one is the kernel's console. `cargo lab vm linux` starts the machine and counts.
//! Started with `vfio`, it tries `dv`, which is beside it then, on NICs behind an IOMMU; so does `cargo lab vm vfio`.

mod check;
mod checks;
mod machine;

use std::process::ExitCode;

use check::Stage;

fn main() -> ExitCode {
    // The kernel may give the first program words of its own command line; others are started by a check.
    if std::process::id() != 1 {
        let argument = std::env::args().nth(1).unwrap_or_default();
        let Some(checks) = checks::unprivileged::checks_of(&argument) else {
            eprintln!(
                "directverbs-guest: this is the first program of a guest: it mounts, loads modules and powers off"
            );
            return ExitCode::FAILURE;
        };
        check::run(checks);
        return ExitCode::SUCCESS;
    }
    if let Err(error) = machine::begin() {
        eprintln!("directverbs-guest: {error}");
        machine::power_off();
    }
    // Words of the kernel's own come first.
    let is_vfio = std::env::args().any(|word| word == "vfio");
    let stages = if is_vfio { checks::vfio::stages() } else { checks::stages() };
    check::plan(stages.iter().map(|stage| stage.checks.len() + stage.others).sum());
    for Stage { prepare, checks, .. } in stages {
        if check::prepare(prepare) {
            check::run(checks);
        }
    }
    check::end();
    machine::power_off();
}
