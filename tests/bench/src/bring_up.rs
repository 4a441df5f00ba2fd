//! What it costs to bring a NIC up without an operating system, as the software NICs count it: commands and register accesses
//! from the reset to the first completion, and memory for DMA with queue pairs open.

use std::error::Error;

use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{Device, Gid, Mac, Mtu, QpCapabilities, QpInit, QpType, RKey};
use directverbs_bare::{bnxt_re, ionic};
use directverbs_softnic::bnxt_re::control::{BnxtFunction, Chip};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::ionic::control::{ControlConfig, IonicFunction};
use directverbs_softnic::pci::{Function, Port, Slot, Trace};
use directverbs_workload::{Job, Op, Role, Side};

use crate::work::Family;

/// Queue pairs that are open when memory is counted.
pub const QPS: usize = 64;
/// Requests in each direction that each of them has room for.
const DEPTH: u32 = 64;
/// Steps after which a completion does not come any more.
const PATIENCE: u32 = 100_000;

/// A kind of NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Name in the table.
    pub name: &'static str,
    /// Family.
    pub family: Family,
    /// Commands of the Linux drivers from the probe to the first completion of `ibv_rc_pingpong`, as RESULTS.md counts them.
    pub linux_commands: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    P5,
    P7,
    Ionic(RdmaVersion),
}

impl Nic {
    /// All.
    pub const ALL: [Self; 4] = [
        Self { name: "P5", family: Family::BnxtRe, linux_commands: 67, kind: Kind::P5 },
        Self { name: "P7", family: Family::BnxtRe, linux_commands: 84, kind: Kind::P7 },
        Self { name: "v1", family: Family::Ionic, linux_commands: 46, kind: Kind::Ionic(RdmaVersion::V1) },
        Self { name: "v2", family: Family::Ionic, linux_commands: 46, kind: Kind::Ionic(RdmaVersion::V2) },
    ];

    /// The `nth` of a fabric.
    fn plug(self, fabric: &Fabric, nth: u8) -> Slot {
        let mac = Mac([2, 0, 0, 0, 0, nth]);
        let function = |port: Port| -> Box<dyn Function> {
            match self.kind {
                Kind::P5 => Box::new(BnxtFunction::new(fabric, Chip::p5(mac), port)),
                Kind::P7 => Box::new(BnxtFunction::new(fabric, Chip::p7(mac), port)),
                Kind::Ionic(version) => {
                    let nic = NicConfig {
                        mac,
                        gids: Vec::new(),
                        mtu: Mtu::B4096,
                        device_memory: 0,
                        all_memory_key: Some(RKey::truncated(0)),
                    };
                    Box::new(IonicFunction::attach(fabric, port, ControlConfig::new(version, nic)))
                }
            }
        };
        Slot::plug(fabric, Trace::default(), function)
    }
}

/// What it costs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Commands on all channels, from the reset to the first completion.
    pub commands: u64,
    /// Loads and stores of registers, doorbells and polls among them, over the same time.
    pub accesses: u64,
    /// Most bytes for DMA with [`QPS`] queue pairs open.
    pub memory: usize,
}

/// Why there are no figures.
pub type Failure = Box<dyn Error>;

/// Brings NICs of a kind up, and counts.
///
/// # Errors
/// Something fails.
pub fn cost(nic: Nic) -> Result<Cost, Failure> {
    let fabric = Fabric::new(FabricOptions::default());
    let slots = [1, 2].map(|nth| nic.plug(&fabric, nth));
    match nic.family {
        Family::BnxtRe => {
            let open = |slot: &Slot| bnxt_re::Nic::open(slot.clone(), &bnxt_re::Config::default());
            let [mut a, mut b] = [open(&slots[0])?, open(&slots[1])?];
            counted(&slots[0], &mut a.device(), &mut b.device())
        }
        Family::Ionic => {
            let open = |slot: &Slot| {
                let mut nic = ionic::Nic::open(slot.clone(), ionic::Config::default())?;
                nic.add_gid(Gid::link_local(nic.mac()), None)?;
                Ok::<_, ionic::Error>(nic)
            };
            let [mut a, mut b] = [open(&slots[0])?, open(&slots[1])?];
            counted(&slots[0], &mut a.device(), &mut b.device())
        }
    }
}

fn counted<D: Device>(slot: &Slot, a: &mut D, b: &mut D) -> Result<Cost, Failure>
where
    D::Error: 'static,
{
    first_completion(a, b)?;
    let counts = slot.counts();
    let (commands, accesses) = (slot.command_faults().commands(), counts.loads + counts.stores);
    open_all(a)?;
    Ok(Cost { commands, accesses, memory: slot.counts().memory })
}

/// Sends one message, until `a` has its first completion.
fn first_completion<D: Device>(a: &mut D, b: &mut D) -> Result<(), Failure>
where
    D::Error: 'static,
{
    let job = Job { op: Op::Send, size: 64, iterations: 1, ..Job::default() };
    let (mut first, mut second) = (Side::setup(a, &job, Role::First)?, Side::setup(b, &job, Role::Second)?);
    let (one, two) = (first.contact(), second.contact());
    second.connect(b, &one)?;
    first.connect(a, &two)?;
    for _ in 0..PATIENCE {
        second.step(b, &mut |_| {})?;
        first.step(a, &mut |_| {})?;
        if first.report().completions > 0 {
            first.teardown(a)?;
            return Ok(());
        }
        a.progress();
        b.progress();
    }
    Err("no completion came".into())
}

/// Opens all queue pairs. They stay open until the device goes.
fn open_all<D: Device>(device: &mut D) -> Result<(), Failure>
where
    D::Error: 'static,
{
    let pd = device.alloc_pd()?;
    let capabilities = QpCapabilities {
        max_send_wr: DEPTH,
        max_recv_wr: DEPTH,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let mut open = Vec::new();
    for _ in 0..QPS {
        let cq = device.create_cq(2 * DEPTH)?;
        let init = QpInit {
            qp_type: QpType::Rc,
            capabilities,
            send_cq: &cq,
            recv_cq: &cq,
            srq: None,
            signal_all: false,
        };
        let qp = device.create_qp(&pd, &init)?;
        open.push((qp, cq));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nic_comes_up_with_fewer_commands_than_on_linux() {
        for nic in Nic::ALL {
            let cost = cost(nic).unwrap_or_else(|error| panic!("{}: {error}", nic.name));
            assert!(cost.commands > 10 && cost.commands < nic.linux_commands.into(), "{} {cost:?}", nic.name);
            assert!(cost.accesses > cost.commands && cost.memory > 1 << 16, "{} {cost:?}", nic.name);
        }
    }
}
