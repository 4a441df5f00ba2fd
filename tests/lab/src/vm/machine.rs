//! A guest's machine: QEMU that emulates every instruction, because the kernel does not boot under every machine's own
//! virtualisation.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{self, tail};
use crate::progress::Step;
use crate::setup::qemu::Arch;
use crate::setup::{Image, qemu};

const MEMORY: &str = "512M";

/// What the kernel is told: its console; to end with the machine if it panics; and not to measure or to harden what
/// takes time under emulation.
const COMMAND_LINE: &str =
    "console=ttyS0 panic=-1 loglevel=5 mitigations=off nokaslr tsc=reliable no_timer_check lpj=4000000";

/// What a machine has on its bus.
#[derive(Clone, Copy, Debug)]
pub enum Hardware<'a> {
    /// Nothing.
    Plain,
    /// An IOMMU, and slots with a function for each socket. Those of a slot are in one group of the IOMMU.
    /// All DMA goes through the IOMMU: QEMU tells the daemon of each page that is mapped.
    Pci(&'a [&'a [PathBuf]]),
}

/// Gives a machine slots with a function for each socket, each slot behind a port of PCI Express.
pub fn attach<'a>(command: &mut Command, slots: impl IntoIterator<Item = &'a [PathBuf]>) {
    for (nth, sockets) in slots.into_iter().enumerate() {
        command.arg("-device").arg(format!("pcie-root-port,id=port{nth},chassis={nth}"));
        for (function, socket) in sockets.iter().enumerate() {
            let device = serde_json::json!({
                "driver": "vfio-user-pci",
                "bus": format!("port{nth}"),
                "addr": format!("0.{function}"),
                "multifunction": sockets.len() > 1,
                "socket": { "type": "unix", "path": socket },
            });
            command.arg("-device").arg(device.to_string());
        }
    }
}

/// A machine with two serial ports: the kernel's console, and one on which the guest reports.
#[derive(Debug)]
pub struct Machine {
    command: Command,
    console: PathBuf,
}

impl Machine {
    /// A kernel and these first files; `word` is what the first program is started with.
    ///
    /// # Errors
    /// Something was not set up, or a file cannot be written.
    pub fn new(
        lab: &Lab,
        name: &str,
        (kernel, initramfs): (&Image, &[u8]),
        hardware: &Hardware<'_>,
        word: &str,
    ) -> Result<Self> {
        let dir = lab.dir.join("vm");
        fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
        let files = dir.join(format!("{name}.cpio"));
        fs::write(&files, initramfs).map_err(Error::file(&files))?;
        let console = lab.logs().join(format!("vm-{name}-console.log"));
        fs::write(&console, "").map_err(Error::file(&console))?;

        let mut command = qemu::command(lab, Arch::X86_64)?;
        command.args(["-accel", "tcg", "-cpu", "max", "-m", MEMORY, "-smp", "1"]);
        command.args(["-nodefaults", "-nographic", "-no-reboot"]);
        match hardware {
            Hardware::Plain => {
                command.args(["-M", "q35"]);
            }
            Hardware::Pci(slots) => {
                command.args(["-M", "q35,kernel-irqchip=split,memory-backend=mem"]);
                command.arg("-object").arg(format!("memory-backend-memfd,id=mem,size={MEMORY},share=on"));
                // Before the functions, which look for it.
                command.args(["-device", "intel-iommu,intremap=on,caching-mode=on"]);
                attach(&mut command, slots.iter().copied());
            }
        }
        command.arg("-serial").arg(format!("file:{}", console.display()));
        command.args(["-serial", "stdio"]);
        command.arg("-kernel").arg(&kernel.vmlinux).arg("-initrd").arg(files);
        command.arg("-append").arg(format!("{COMMAND_LINE} -- {word}"));
        Ok(Self { command, console })
    }

    /// Runs it to its end and gives what the guest has reported.
    ///
    /// # Errors
    /// It could not be started, or did not end in time. The last lines of the console are in the message.
    pub fn run(&mut self, log: &std::path::Path, step: &mut Step, limit: Duration) -> Result<String> {
        let output = process::run(&mut self.command, log, step, limit)
            .map_err(|error| Error::Unexpected(format!("{error}\n{}", self.console())))?;
        if output.status.success() {
            return Ok(output.text);
        }
        let command = process::spelled(&self.command);
        Err(Error::Failed { command, status: output.status, tail: self.console() })
    }

    /// The last lines of the console, and where all of it is.
    pub fn console(&self) -> String {
        let text = fs::read(&self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).replace('\r', "");
        format!("the kernel's console ({}):\n{}", self.console.display(), tail(&text))
    }
}
