//! NICs that this process brings up itself: PCI functions, through VFIO.

use std::time::Duration;

use clap::{Args, ValueEnum};
use directverbs::verbs::{Device, Gid};
use directverbs_bare::vfio::{FunctionAddress, Interface, Options, Vfio, VfioError};
use directverbs_bare::{Family, Host, bnxt_re, ionic, pci::Config};
use directverbs_softnic::open::{Visit, VisitOne, WqeMode};

use crate::Failure;
use crate::device::{DeviceName, Places};
use crate::units;

/// How a function is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// By its IOMMU group, and a container
    Group,
    /// By its character device, and iommufd
    Cdev,
}

/// Arguments about pci: devices.
#[derive(Args, Clone, Debug)]
pub struct PciArgs {
    /// How a pci: device is taken [default: cdev if the kernel has it]
    #[arg(long, value_name = "INTERFACE")]
    vfio: Option<Way>,
    /// Bytes of memory that a pci: device may reach: a number, or one with k, M or G for powers of 1024
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "32M")]
    dma_memory: u32,
    /// Take that memory from huge pages, if there are enough
    #[arg(long)]
    huge_pages: bool,
    /// How long a pci: device may take for a command: seconds, or with ms, s or m [default: what the device says]
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    command_limit: Option<u64>,
}

impl PciArgs {
    /// Takes a function.
    pub fn take(&self, address: FunctionAddress, places: &Places) -> Result<Vfio, Failure> {
        said(address, Vfio::open(address, &self.options(places)))
    }

    /// Takes one more function, which may be of the group of the first.
    pub fn take_beside(
        &self,
        first: &Vfio,
        address: FunctionAddress,
        places: &Places,
    ) -> Result<Vfio, Failure> {
        said(address, first.open_beside(address, &self.options(places)))
    }

    fn options(&self, places: &Places) -> Options {
        Options {
            memory: self.dma_memory as usize,
            huge_pages: self.huge_pages,
            interface: match self.vfio {
                None => Interface::Either,
                Some(Way::Group) => Interface::Group,
                Some(Way::Cdev) => Interface::Device,
            },
            places: places.vfio(),
        }
    }

    fn limit(&self) -> Option<Duration> {
        self.command_limit.map(Duration::from_nanos)
    }
}

/// A function that was taken, and said if it is not as it was asked for.
fn said(address: FunctionAddress, taken: Result<Vfio, VfioError>) -> Result<Vfio, Failure> {
    let vfio = taken.map_err(|error| fault(address, error))?;
    if let Some(errno) = vfio.small_pages() {
        let name = DeviceName::Pci(address);
        eprintln!("{name}: no huge pages: {errno}: reserve more (vm.nr_hugepages); goes on with small ones");
    }
    Ok(vfio)
}

/// How a NIC is brought up.
#[derive(Clone, Copy, Debug)]
pub struct Up<'a> {
    /// Arguments about it.
    pub args: &'a PciArgs,
    /// Layout of WQEs.
    pub wqe_mode: Option<WqeMode>,
}

/// Brings a function up and runs `visit` with it.
pub fn with<V: VisitOne>(
    address: FunctionAddress,
    vfio: &Vfio,
    up: Up<'_>,
    visit: V,
) -> Result<V::Out, Failure> {
    let (id, limit) = (vfio.config().id().unwrap_or_default(), up.args.limit());
    match Family::of(id) {
        Some(Family::BnxtRe) => {
            let usual = bnxt_re::Config::default();
            let config = bnxt_re::Config {
                wqe_mode: up.wqe_mode.map(Into::into),
                command_limit: limit.unwrap_or(usual.command_limit),
                request_limit: limit.unwrap_or(usual.request_limit),
                ..usual
            };
            let mut nic = bnxt_re::Nic::open(vfio, &config).map_err(|error| fault(address, error))?;
            let out = visit.run(nic.device());
            say(address, nic.close());
            Ok(out)
        }
        Some(Family::Ionic) => {
            if let Some(mode @ WqeMode::Variable) = up.wqe_mode {
                let name = DeviceName::Pci(address);
                return Err(Failure::Usage(format!("{name} has no {mode} WQE mode: leave --wqe-mode out")));
            }
            let usual = ionic::Config::default();
            let command_limit = limit.unwrap_or(usual.command_limit);
            let opened = ionic::Nic::open(vfio, ionic::Config { command_limit, ..usual });
            let mut nic = opened.map_err(|error| fault(address, error))?;
            nic.add_gid(Gid::link_local(nic.mac()), None).map_err(|error| fault(address, error))?;
            let out = visit.run(nic.device());
            say(address, nic.close());
            Ok(out)
        }
        None => Err(fault(address, format_args!("{:04x}:{:04x} is of neither family", id.0, id.1))),
    }
}

/// Brings two functions up and runs `visit` with both.
pub fn with_both<'a, V: Visit>(
    a: (FunctionAddress, &'a Vfio),
    b: (FunctionAddress, &'a Vfio),
    up: Up<'a>,
    visit: V,
) -> Result<V::Out, Failure> {
    with(a.0, a.1, up, First { b, up, visit })?
}

struct First<'a, V> {
    b: (FunctionAddress, &'a Vfio),
    up: Up<'a>,
    visit: V,
}

impl<V: Visit> VisitOne for First<'_, V> {
    type Out = Result<V::Out, Failure>;

    fn run<A: Device + Send>(self, a: A) -> Self::Out {
        with(self.b.0, self.b.1, self.up, Second { a, visit: self.visit })
    }
}

struct Second<A, V> {
    a: A,
    visit: V,
}

impl<A: Device + Send, V: Visit> VisitOne for Second<A, V> {
    type Out = V::Out;

    fn run<B: Device + Send>(self, b: B) -> V::Out {
        self.visit.run(self.a, b)
    }
}

/// Says what was wrong at the end. What there is of the NIC is taken back all the same.
fn say<E: std::fmt::Display>(address: FunctionAddress, closed: Result<(), E>) {
    if let Err(error) = closed {
        eprintln!("{}: {error}", DeviceName::Pci(address));
    }
}

fn fault(address: FunctionAddress, why: impl std::fmt::Display) -> Failure {
    Failure::Fault(format!("{}: {why}", DeviceName::Pci(address)))
}
