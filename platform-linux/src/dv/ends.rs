//! The two devices of `dv pingpong` and `dv perf`, and the wire between them.

use std::fs::File;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use directverbs::verbs::Mtu;
use directverbs_fake_uverbs::{Machine, Options as MachineOptions, Profile, Release};
use directverbs_linux::sysfs::{GidWish, Sysfs};
use directverbs_linux::uverbs::{Fake, Kernel, Linux};
use directverbs_linux::{Device, OpenOptions};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::open::{NicKind, Options, Visit, VisitOne, WqeMode, join, lead_out};
use directverbs_softnic::uplink;
use directverbs_workload::{JobError, Role};

use crate::Failure;
use crate::device::{DeviceName, Places};
use crate::pci::{self, PciArgs};
use crate::units;

/// Arguments about devices and wire.
#[derive(Args)]
pub struct Ends {
    /// Device that begins: soft:bnxt_re-p5, soft:bnxt_re (P7), soft:ionic-v1 or soft:ionic (version 2); uverbs:NAME or
    /// pci:ADDRESS for one of this machine; fake:KIND[@KERNEL] for a software NIC behind a made-up kernel
    #[arg(long, value_name = "DEVICE", default_value = "soft:bnxt_re")]
    pub device: DeviceName,
    /// Device at the other end of the wire [default: as --device]
    #[arg(long, value_name = "DEVICE")]
    pub peer_device: Option<DeviceName>,
    /// How bnxt_re send queues lay out their WQEs: static or variable [default: static; fake: and
    /// pci: as the generation has it]
    #[arg(long, value_name = "MODE")]
    pub wqe_mode: Option<WqeMode>,
    /// Port of a device of this machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub device_port: u8,
    /// Index of the GID to use [default: one that is RoCE v2 and routed]
    #[arg(long, value_name = "N")]
    pub gid_index: Option<u32>,
    /// Path MTU: 256, 512, 1024, 2048 or 4096 [default: the largest that both ports have]
    #[arg(long, value_parser = mtu)]
    pub mtu: Option<Mtu>,
    /// Seed of the messages and of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What goes wrong, as NAME=PERCENT,...: lose, duplicate, reorder or corrupt (frames), drop-doorbell, delay-cqe,
    /// duplicate-cqe, corrupt-cqe
    #[arg(long, value_name = "PLAN", value_parser = fault_plan)]
    pub fault_plan: Option<FaultPlan>,
    /// Step the software NICs on a virtual clock: the same arguments give the same run
    #[arg(long)]
    pub stepped: bool,
    /// Write the frames on the wire to a pcap file
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Folder in which fake: devices of several processes meet
    #[arg(long, value_name = "DIR", conflicts_with_all = ["peer_device", "stepped"])]
    pub wire: Option<PathBuf>,
    #[command(flatten)]
    pub pci: PciArgs,
    #[command(flatten)]
    pub places: Places,
}

impl Ends {
    /// The device at the other end.
    pub fn peer(&self) -> &DeviceName {
        self.peer_device.as_ref().unwrap_or(&self.device)
    }

    /// The WQE mode that was asked for.
    pub fn wqe_mode(&self) -> WqeMode {
        self.wqe_mode.unwrap_or_default()
    }

    /// Refuses arguments that the device cannot have.
    pub fn check(&self) -> Result<(), Failure> {
        let device = &self.device;
        if self.wire.is_some() && !matches!(device, DeviceName::Fake(..)) {
            return Err(Failure::Usage(format!(
                "{device} needs no --wire: only fake: devices meet in a folder"
            )));
        }
        let has_one = matches!(device, DeviceName::Pci(_));
        if has_one && (self.device_port != 1 || self.gid_index.is_some_and(|index| index != 0)) {
            return Err(Failure::Usage(format!("{device} has port 1 and GID 0, and no others")));
        }
        Ok(())
    }

    /// Opens both devices, joins them and runs `visit` with them.
    pub fn join<V: Visit>(&self, visit: V) -> Result<V::Out, Failure> {
        match (&self.device, self.peer()) {
            (DeviceName::Soft(a), DeviceName::Soft(b)) => {
                let joined = join(*a, *b, &self.options([*a, *b])?, visit);
                joined.map_err(|error| Failure::Fault(error.to_string()))
            }
            (DeviceName::Uverbs(a), DeviceName::Uverbs(b)) => {
                let (a, b) = (self.of_machine(a)?, self.of_machine(b)?);
                Ok(visit.run(a, b))
            }
            (DeviceName::Fake(a, of_a), DeviceName::Fake(b, of_b)) => {
                let kinds = [*a, *b];
                let machine = self.machine(kinds, &[(*a, *of_a, 1), (*b, *of_b, 2)])?;
                let (a, b) = (self.of_fake(&machine, 0)?, self.of_fake(&machine, 1)?);
                self.judged(&machine, visit.run(a, b))
            }
            (DeviceName::Pci(a), DeviceName::Pci(b)) if a == b => Err(Failure::Usage(format!(
                "{} is one device: name another with --peer-device, or use --listen and --connect",
                self.device
            ))),
            (DeviceName::Pci(a), DeviceName::Pci(b)) => {
                let of_a = self.pci.take(*a, &self.places)?;
                let of_b = self.pci.take_beside(&of_a, *b, &self.places)?;
                pci::with_both((*a, &of_a), (*b, &of_b), self.up(), visit)
            }
            (a, b) => Err(Failure::Usage(format!(
                "{a} and {b} have no common wire: name two of soft:, of fake:, of uverbs: or of pci:"
            ))),
        }
    }

    /// How the first device is joined with others: `hardware`, or a wire that this process makes.
    pub const fn kind_of_wire(&self) -> &'static str {
        match (&self.device, &self.wire) {
            (DeviceName::Soft(_), _) => "between software NICs",
            (DeviceName::Fake(..), None) => "between made-up kernels",
            (DeviceName::Fake(..), Some(_)) => "a folder",
            (DeviceName::Uverbs(_) | DeviceName::Pci(_), _) => "hardware",
        }
    }

    /// Whether a stream to the peer's process must carry it.
    pub const fn needs_stream(&self) -> bool {
        let wired = matches!(self.device, DeviceName::Uverbs(_) | DeviceName::Pci(_));
        !wired && !matches!((&self.device, &self.wire), (DeviceName::Fake(..), Some(_)))
    }

    /// Opens the first device and runs `visit` with it. A wire that this process makes leads over `stream` or meets others in
    /// the folder; `role` has a place of its own there.
    pub fn open<V: VisitOne>(
        &self,
        role: Role,
        stream: Option<TcpStream>,
        visit: V,
    ) -> Result<V::Out, Failure> {
        let place = if role == Role::First { 1 } else { 2 };
        match (&self.device, stream) {
            (DeviceName::Uverbs(name), _) => Ok(visit.run(self.of_machine(name)?)),
            (DeviceName::Pci(address), _) => {
                let vfio = self.pci.take(*address, &self.places)?;
                pci::with(*address, &vfio, self.up(), visit)
            }
            (DeviceName::Soft(kind), Some(stream)) => {
                lead_out(*kind, place, &self.options([*kind; 2])?, stream, visit)
                    .map_err(|error| Failure::Fault(error.to_string()))
            }
            (DeviceName::Fake(kind, release), stream) if stream.is_some() || self.wire.is_some() => {
                let machine = self.machine([*kind; 2], &[(*kind, *release, place)])?;
                if let Some(stream) = stream {
                    let led = machine.fabric().lead_out(|inlet| uplink::stream(stream, inlet));
                    led.map_err(|error| Failure::Fault(format!("wire: {error}")))?;
                }
                let device = self.of_fake(&machine, 0)?;
                self.judged(&machine, visit.run(device))
            }
            (name, _) => Err(Failure::Fault(format!("{name}: its wire leads nowhere"))),
        }
    }

    const fn up(&self) -> pci::Up<'_> {
        pci::Up { args: &self.pci, wqe_mode: self.wqe_mode }
    }

    /// A device of this machine.
    fn of_machine(&self, name: &str) -> Result<Device, Failure> {
        let opened = self.opening().sysfs(self.places.tree()).open(name);
        opened.map_err(|error| Failure::Fault(format!("uverbs:{name}: {error}")))
    }

    /// A device of a made-up machine.
    fn of_fake(&self, machine: &Machine, number: usize) -> Result<Device, Failure> {
        let names = machine.devices();
        let name = names.get(number).map(String::as_str).unwrap_or_default();
        let opening = self.opening().kernel(Arc::new(Fake(machine.clone())));
        let opened = opening.sysfs(Sysfs::at(machine.sysfs())).open(name);
        opened.map_err(|error| Failure::Fault(format!("fake:{name}: {error}")))
    }

    fn opening(&self) -> OpenOptions {
        let wish = GidWish { index: self.gid_index, ..GidWish::default() };
        OpenOptions::new().port(self.device_port).gid(wish)
    }

    /// A made-up machine with devices at places of the wire.
    fn machine(&self, kinds: [NicKind; 2], devices: &[(NicKind, Release, u8)]) -> Result<Machine, Failure> {
        let Options { seed, threaded, faults, capture, .. } = self.options(kinds)?;
        let profile = |(nic, release, place): &(NicKind, Release, u8)| {
            let usual = Profile::new(*nic, *release, *place);
            let wqe_mode = self.wqe_mode.filter(|mode| nic.has_wqe_mode(*mode)).unwrap_or(usual.wqe_mode);
            Profile { wqe_mode, ..usual }
        };
        let profiles: Vec<_> = devices.iter().map(profile).collect();
        let failed = |error: std::io::Error| Failure::Fault(format!("made-up kernel: {error}"));
        let options = MachineOptions { threaded, seed, faults, wire: self.wire.clone() };
        let machine = Machine::new(&options, &profiles).map_err(failed)?;
        // As the real kernel would: what this process may pin is its limit here too.
        machine.set_memlock_limit(Linux.memlock_limit());
        if let Some(file) = capture {
            machine.fabric().capture(Box::new(file)).map_err(failed)?;
        }
        Ok(machine)
    }

    /// `out`, unless a driver has broken its NIC's contract without having been told nonsense.
    fn judged<T>(&self, machine: &Machine, out: T) -> Result<T, Failure> {
        machine.fabric().end_capture();
        let faults = self.fault_plan.unwrap_or_default();
        let told_nonsense = faults.corrupt_cqe != 0 || faults.duplicate_cqe != 0;
        match machine.violations().first().filter(|_| !told_nonsense) {
            Some(violation) => {
                Err(Failure::Fault(format!("the driver has broken its NIC's contract: {violation}")))
            }
            None => Ok(out),
        }
    }

    fn options(&self, kinds: [NicKind; 2]) -> Result<Options, Failure> {
        let wqe_mode = self.wqe_mode();
        if wqe_mode == WqeMode::Variable && !kinds.iter().any(|kind| kind.has_wqe_mode(wqe_mode)) {
            let having = NicKind::ALL.into_iter().filter(|kind| kind.has_wqe_mode(wqe_mode));
            let having: Vec<_> = having.map(|kind| DeviceName::Soft(kind).to_string()).collect();
            return Err(Failure::Usage(format!(
                "{} has no variable WQE mode: leave --wqe-mode out, or use a device that has it ({})",
                self.device,
                having.join(", ")
            )));
        }
        let capture = match &self.pcap {
            Some(path) => {
                let file = File::create(path)
                    .map_err(|error| Failure::Usage(format!("--pcap {}: {error}", path.display())))?;
                Some(Arc::new(file))
            }
            None => None,
        };
        Ok(Options {
            wqe_mode,
            seed: self.seed,
            threaded: !self.stepped,
            faults: self.fault_plan.unwrap_or_default(),
            capture,
            ..Options::default()
        })
    }
}

/// What is wrong with a job, and which arguments would be right.
pub fn usage(error: &JobError) -> Failure {
    let hint = match error {
        JobError::InlineTooLong { max, .. } => format!("say --size {max} or less, or leave out --inline"),
        JobError::Missing { what: "shared receive queue", .. } => {
            "leave out --srq, or use soft:bnxt_re or soft:bnxt_re-p5 at both ends".into()
        }
        JobError::DatagramTooLong { mtu, .. } => format!("say --size {mtu} or less, or another --op"),
        JobError::OverDevice {
            what: "SGEs of a send request" | "SGEs of a receive request", max, ..
        } => {
            format!("say --sges {max} or less")
        }
        _ => return Failure::Usage(error.to_string()),
    };
    Failure::Usage(format!("{error}: {hint}"))
}

fn mtu(text: &str) -> Result<Mtu, String> {
    let found = Mtu::ALL.into_iter().find(|mtu| mtu.bytes().to_string() == text);
    found.ok_or_else(|| "a path MTU is 256, 512, 1024, 2048 or 4096 bytes".into())
}

fn fault_plan(text: &str) -> Result<FaultPlan, String> {
    let mut plan = FaultPlan::NONE;
    for part in text.split(',') {
        let (name, percent) = part.split_once('=').ok_or_else(|| format!("`{part}` is not NAME=PERCENT"))?;
        let ppm = units::parts_per_million(percent)?;
        let fields = [
            ("lose", &mut plan.lose_frame),
            ("duplicate", &mut plan.duplicate_frame),
            ("reorder", &mut plan.reorder_frame),
            ("corrupt", &mut plan.corrupt_frame),
            ("drop-doorbell", &mut plan.drop_doorbell),
            ("delay-cqe", &mut plan.delay_cqe),
            ("duplicate-cqe", &mut plan.duplicate_cqe),
            ("corrupt-cqe", &mut plan.corrupt_cqe),
        ];
        let names = fields.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        let field = fields.into_iter().find(|(known, _)| *known == name);
        let (_, field) = field.ok_or_else(|| format!("no fault is called `{name}`; there are: {names}"))?;
        *field = ppm;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_plan_is_a_list_of_percentages() {
        let plan = fault_plan("lose=1%,duplicate=0.5,corrupt-cqe=100").unwrap();
        assert_eq!((plan.lose_frame, plan.duplicate_frame, plan.corrupt_cqe), (10_000, 5_000, 1_000_000));
        for (wrong, message) in [
            ("lose", "`lose` is not NAME=PERCENT"),
            ("lose=101", "`101` is not a percentage from 0 to 100"),
            ("lose=NaN", "`NaN` is not a percentage from 0 to 100"),
        ] {
            assert_eq!(fault_plan(wrong).unwrap_err(), message);
        }
        assert!(fault_plan("eat=1%").unwrap_err().starts_with("no fault is called `eat`; there are: lose,"));
    }
}
