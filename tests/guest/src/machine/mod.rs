//! The machine: file systems, modules, network interfaces, power.

pub mod dmabuf;
pub mod netlink;
pub mod network;

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, init_module, reboot};

/// Serial port for the host.
const REPORT: &str = "/dev/ttyS1";

/// Folder of the modules: `NAME.ko`, and `NAME.needs`, which names the modules that must be loaded before, in order.
const MODULES: &str = "/modules";

/// Mounts what programs expect, and sends standard output to the host.
///
/// # Errors
/// The kernel refuses, or there is no second serial port.
pub fn begin() -> io::Result<()> {
    for (kind, folder) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(folder)?;
        mount(kind, folder, kind, MountFlags::empty(), None)?;
    }
    let report = File::options().write(true).open(REPORT)?;
    rustix::stdio::dup2_stdout(&report)?;
    Ok(())
}

/// Ends the machine.
pub fn power_off() -> ! {
    let _ = reboot(RebootCommand::PowerOff);
    // The end of the first program is the end of the kernel, and of the machine.
    std::process::exit(1)
}

/// Loads a module and all that it needs.
pub fn load(name: &str) {
    let needs = Path::new(MODULES).join(format!("{name}.needs"));
    let needs = fs::read_to_string(&needs).unwrap_or_else(|e| panic!("{}: {e}", needs.display()));
    for module in needs.split_whitespace().chain([name]) {
        let path = Path::new(MODULES).join(format!("{module}.ko"));
        let image = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        match init_module(&image, &CString::default()) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => panic!("cannot load {module}: {errno}"),
        }
    }
}

/// Waits until `there` gives something, for a minute at most: the kernel does much in the background, and the machine that it
/// runs on may have other things to do.
pub fn wait_for<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        sleep(Duration::from_millis(5));
    }
}
