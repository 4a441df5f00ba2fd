//! A NIC that this process brings up itself.

use directverbs::verbs::Device;
use directverbs_bare::vfio::{Function, FunctionAddress};
use directverbs_softnic::open::VisitOne;

use super::InfoArgs;
use super::facts::{Facts, Info, Section, Value};
use super::soft::{direct, limits, port_of};
use crate::Failure;
use crate::device::DeviceName;
use crate::pci;

pub fn info(args: &InfoArgs, address: FunctionAddress) -> Result<Info, Failure> {
    let name = DeviceName::Pci(address);
    let function = Function::find(address, &args.places.vfio());
    let function = function.map_err(|error| Failure::Fault(format!("{name}: {error}")))?;
    let vfio = args.pci.take(address, &args.places)?;
    let up = pci::Up { args: &args.pci, wqe_mode: args.wqe_mode };
    pci::with(address, &vfio, up, Look { name, function })
}

struct Look {
    name: DeviceName,
    function: Function,
}

impl VisitOne for Look {
    type Out = Info;

    fn run<D: Device + Send>(self, device: D) -> Info {
        let (attributes, (vendor, part)) = (device.attributes(), self.function.id);
        let identity = Facts(vec![
            ("family", Value::text(attributes.family)),
            ("PCI id", Value::Text(format!("{vendor:04x}:{part:04x}"))),
            ("driver", Value::optional(self.function.driver)),
            ("IOMMU group", Value::optional(self.function.group)),
        ]);
        let sections = vec![
            Section { name: "device", facts: identity },
            limits(&attributes),
            Section { name: "direct verbs", facts: Facts(direct(&attributes).into()) },
        ];
        Info { device: self.name.to_string(), sections, ports: vec![port_of(&device.port())] }
    }
}
