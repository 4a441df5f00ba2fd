//! A software NIC.

use directverbs::verbs::{Device, DeviceAttributes, PortAttributes};
use directverbs_softnic::open::{NicKind, Options, Visit, WqeMode, join};

use super::facts::{Facts, Gid, Info, Port, Section, Value};
use crate::Failure;
use crate::device::DeviceName;

struct Look;

impl Visit for Look {
    type Out = (DeviceAttributes, PortAttributes);

    fn run<A: Device + Send, B: Device + Send>(self, a: A, _: B) -> Self::Out {
        (a.attributes(), a.port())
    }
}

pub fn info(kind: NicKind, wqe_mode: WqeMode) -> Result<Info, Failure> {
    if !kind.has_wqe_mode(wqe_mode) {
        let name = DeviceName::Soft(kind);
        return Err(Failure::Usage(format!("{name} has no {wqe_mode} WQE mode: leave --wqe-mode out")));
    }
    let options = Options { wqe_mode, ..Options::default() };
    let (attributes, port) =
        join(kind, kind, &options, Look).map_err(|error| Failure::Fault(error.to_string()))?;
    let modes = WqeMode::ALL.into_iter().filter(|mode| kind.has_wqe_mode(*mode));
    let modes = [
        ("WQE mode", Value::text(wqe_mode)),
        ("WQE modes", Value::List(modes.map(|mode| mode.to_string()).collect())),
    ];
    let sections = vec![
        Section {
            name: "device",
            facts: Facts(vec![
                ("description", Value::text(kind.description())),
                ("family", Value::text(attributes.family)),
                ("runs", Value::text("in this process")),
            ]),
        },
        limits(&attributes),
        Section {
            name: "direct verbs",
            facts: Facts(modes.into_iter().chain(direct(&attributes)).collect()),
        },
    ];
    Ok(Info { device: DeviceName::Soft(kind).to_string(), sections, ports: vec![port_of(&port)] })
}

/// What a device in this process can do.
pub fn limits(attributes: &DeviceAttributes) -> Section {
    let qp = &attributes.max_qp;
    let count = |value: u32| Value::Count(value.into());
    Section {
        name: "limits",
        facts: Facts(vec![
            ("send requests of a queue pair", count(qp.max_send_wr)),
            ("receive requests of a queue pair", count(qp.max_recv_wr)),
            ("SGEs of a send request", count(qp.max_send_sge)),
            ("SGEs of a receive request", count(qp.max_recv_sge)),
            ("inline data", Value::Of(qp.max_inline_data.into(), "bytes")),
            ("completions of a completion queue", count(attributes.max_cqe)),
            ("requests of a shared receive queue", count(attributes.max_srq_wr)),
            ("READs and atomics outstanding", Value::Count(attributes.max_rd_atomic.into())),
        ]),
    }
}

/// What it can do beyond that.
pub fn direct(attributes: &DeviceAttributes) -> [(&'static str, Value); 2] {
    [("atomics", Value::Flag(attributes.atomics)), ("memory windows", Value::Flag(attributes.memory_windows))]
}

/// Its port.
pub fn port_of(port: &PortAttributes) -> Port {
    Port {
        number: 1,
        facts: Facts(vec![
            ("state", Value::text(if port.active { "active" } else { "down" })),
            ("largest path MTU", Value::Of(port.mtu.bytes().into(), "bytes")),
            ("MAC", Value::text(port.mac)),
        ]),
        gids: vec![Gid {
            index: port.gid_index.into(),
            gid: port.gid.to_string(),
            kind: "RoCE v2".into(),
            netdev: None,
        }],
    }
}
