//! NICs that this process brings up itself: PCI functions, through VFIO.

use clap::{Args, ValueEnum};
use directverbs::verbs::{Device, Gid};
use directverbs_bare::vfio::{FunctionAddress, Interface, Options, Vfio};
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
}

impl PciArgs {
    /// Takes a function.
    pub fn take(&self, address: FunctionAddress, places: &Places) -> Result<Vfio, Failure> {
        let options = Options {
            memory: self.dma_memory as usize,
            huge_pages: self.huge_pages,
            interface: match self.vfio {
                None => Interface::Either,
                Some(Way::Group) => Interface::Group,
                Some(Way::Cdev) => Interface::Device,
            },
            places: places.vfio(),
        };
        let vfio = Vfio::open(address, &options).map_err(|error| fault(address, error))?;
        if let Some(errno) = vfio.small_pages() {
            let name = DeviceName::Pci(address);
            eprintln!(
                "{name}: no huge pages: {errno}: reserve more (vm.nr_hugepages); goes on with small ones"
            );
        }
        Ok(vfio)
    }
}

/// Brings a function up and runs `visit` with it.
pub fn with<V: VisitOne>(
    address: FunctionAddress,
    vfio: &Vfio,
    wqe_mode: Option<WqeMode>,
    visit: V,
) -> Result<V::Out, Failure> {
    let id = vfio.config().id().unwrap_or_default();
    match Family::of(id) {
        Some(Family::BnxtRe) => {
            let config = bnxt_re::Config { wqe_mode: wqe_mode.map(Into::into), ..Default::default() };
            let mut nic = bnxt_re::Nic::open(vfio, &config).map_err(|error| fault(address, error))?;
            let out = visit.run(nic.device());
            say(address, nic.close());
            Ok(out)
        }
        Some(Family::Ionic) => {
            if let Some(mode @ WqeMode::Variable) = wqe_mode {
                let name = DeviceName::Pci(address);
                return Err(Failure::Usage(format!("{name} has no {mode} WQE mode: leave --wqe-mode out")));
            }
            let opened = ionic::Nic::open(vfio, ionic::Config::default());
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
pub fn with_both<V: Visit>(
    a: (FunctionAddress, &Vfio),
    b: (FunctionAddress, &Vfio),
    wqe_mode: Option<WqeMode>,
    visit: V,
) -> Result<V::Out, Failure> {
    with(a.0, a.1, wqe_mode, First { b, wqe_mode, visit })?
}

struct First<'a, V> {
    b: (FunctionAddress, &'a Vfio),
    wqe_mode: Option<WqeMode>,
    visit: V,
}

impl<V: Visit> VisitOne for First<'_, V> {
    type Out = Result<V::Out, Failure>;

    fn run<A: Device + Send>(self, a: A) -> Self::Out {
        with(self.b.0, self.b.1, self.wqe_mode, Second { a, visit: self.visit })
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
