//! Opens software NICs by name, two joined by a wire.
//!
//! Devices are resolved at compile time, so a caller does not get a device: it hands in a [`Visit`] whose method is
//! generic over both, and [`join`] runs it with the types that the names stand for.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use std::fs::File;
use std::net::TcpStream;
use std::sync::Arc;

use directverbs::bnxt_re;
use directverbs::bnxt_re::caps::Generation;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{Device, Gid, Mac, Mtu};

use crate::device::NicConfig;
use crate::fabric::{Fabric, FabricOptions};
use crate::fault::FaultPlan;
use crate::host::bnxt_re::{BnxtReDevice, BnxtReOptions};
use crate::host::ionic::{IonicDevice, IonicOptions};
use crate::uplink;

/// A software NIC that can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NicKind {
    /// Broadcom BCM575xx.
    BnxtReP5,
    /// Broadcom BCM5760x.
    BnxtReP7,
    /// AMD Pensando, RDMA version 1.
    IonicV1,
    /// AMD Pensando, RDMA version 2.
    IonicV2,
}

impl NicKind {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::BnxtReP5, Self::BnxtReP7, Self::IonicV1, Self::IonicV2];

    /// Name, as [`directverbs::verbs::DeviceAttributes::family`] spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BnxtReP5 => "bnxt_re-p5",
            Self::BnxtReP7 => "bnxt_re",
            Self::IonicV1 => "ionic-v1",
            Self::IonicV2 => "ionic",
        }
    }

    /// What it models, in one line.
    pub const fn description(self) -> &'static str {
        match self {
            Self::BnxtReP5 => "Broadcom BCM575xx (P5): extended PSN table",
            Self::BnxtReP7 => "Broadcom BCM5760x (P7): MSN table",
            Self::IonicV1 => "AMD Pensando, RDMA version 1",
            Self::IonicV2 => "AMD Pensando, RDMA version 2",
        }
    }

    /// Whether `mode` can be chosen for it.
    pub const fn has_wqe_mode(self, mode: WqeMode) -> bool {
        matches!((self, mode), (Self::BnxtReP5 | Self::BnxtReP7, _) | (_, WqeMode::Static))
    }
}

impl fmt::Display for NicKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for NicKind {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| UnknownName {
            what: "software NIC",
            name: name.into(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// How a bnxt_re send queue lays out its WQEs; ionic has the static way only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WqeMode {
    /// Every WQE takes 128 bytes.
    #[default]
    Static,
    /// A WQE takes as many 16-byte slots as it needs.
    Variable,
}

impl WqeMode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Static, Self::Variable];

    /// Name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Variable => "variable",
        }
    }
}

impl From<WqeMode> for bnxt_re::wqe::WqeMode {
    fn from(mode: WqeMode) -> Self {
        match mode {
            WqeMode::Static => Self::Static,
            WqeMode::Variable => Self::Variable,
        }
    }
}

impl fmt::Display for WqeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for WqeMode {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| UnknownName {
            what: "WQE mode",
            name: name.into(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// A name that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {what} is called `{name}`; there are: {known}")]
pub struct UnknownName {
    /// What was looked for.
    pub what: &'static str,
    /// The name given.
    pub name: String,
    /// The names there are.
    pub known: String,
}

/// How the two NICs and the wire between them behave.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// WQE mode of the bnxt_re NICs among them.
    pub wqe_mode: WqeMode,
    /// Seed of everything random: faults, and when completions coalesce. The same seed gives the same run.
    pub seed: u64,
    /// Whether the NICs run on threads of their own. Otherwise they move only in [`Device::progress`], on a virtual
    /// clock, and every run is the same.
    pub threaded: bool,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// Whether the NICs' first GIDs, which a workload uses, are IPv6 addresses. Otherwise they are IPv4 addresses.
    pub ipv6: bool,
    /// All frames of the wire are written here, as a pcap file.
    pub capture: Option<Arc<File>>,
}

/// Why two NICs could not be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The NIC has no such WQE mode.
    #[error("{kind} has no {mode} WQE mode")]
    NoSuchMode {
        /// The NIC.
        kind: NicKind,
        /// The mode asked for.
        mode: WqeMode,
    },
    /// A driver has broken the contract between it and its NIC, which is a fault of the driver.
    #[error("the driver has broken its NIC's contract: {0}")]
    Violation(String),
    /// The capture file cannot be written.
    #[error("capture: {0}")]
    Capture(std::io::Error),
    /// The other process cannot be reached.
    #[error("wire: {0}")]
    Wire(std::io::Error),
}

/// What to do with two joined devices whose types are known only to [`join`].
pub trait Visit {
    /// What comes out of it.
    type Out;

    /// Does it.
    fn run<A, B>(self, a: A, b: B) -> Self::Out
    where
        A: Device + Send,
        B: Device + Send;
}

/// Opens one NIC of kind `a` and one of kind `b`, joins them by a wire, and runs `visit` with both.
///
/// # Errors
/// The combination that cannot be opened; or what a driver did wrong in the eyes of its NIC, however `visit` ended.
pub fn join<V: Visit>(a: NicKind, b: NicKind, options: &Options, visit: V) -> Result<V::Out, OpenError> {
    if ![a, b].iter().any(|kind| kind.has_wqe_mode(options.wqe_mode)) {
        return Err(OpenError::NoSuchMode { kind: a, mode: options.wqe_mode });
    }
    let fabric = fabric(options)?;
    let mut judges = Vec::new();
    let out = match a {
        NicKind::BnxtReP5 | NicKind::BnxtReP7 => {
            let a = bnxt_re(&fabric, 1, a, options, &mut judges);
            second(&fabric, a, b, options, visit, &mut judges)
        }
        NicKind::IonicV1 | NicKind::IonicV2 => {
            let a = ionic(&fabric, 1, a, options, &mut judges);
            second(&fabric, a, b, options, visit, &mut judges)
        }
    };
    judged(&fabric, options, judges, out)
}

/// What to do with one device, whose peer is in another process.
pub trait VisitOne {
    /// What comes out of it.
    type Out;

    /// Does it.
    fn run<D>(self, device: D) -> Self::Out
    where
        D: Device + Send;
}

/// Opens a NIC whose wire leads over `stream` to another process, where this is called too, and runs `visit` with it.
/// The two have places of their own on the wire: `place` is 1 at one end, 2 at the other. Its NIC is threaded, whatever
/// `options` say.
///
/// # Errors
/// As for [`join`]; or the stream cannot be used.
pub fn lead_out<V: VisitOne>(
    kind: NicKind,
    place: u8,
    options: &Options,
    stream: TcpStream,
    visit: V,
) -> Result<V::Out, OpenError> {
    if !kind.has_wqe_mode(options.wqe_mode) {
        return Err(OpenError::NoSuchMode { kind, mode: options.wqe_mode });
    }
    let options = &Options { threaded: true, ..options.clone() };
    let fabric = fabric(options)?;
    let mut judges = Vec::new();
    let out = match kind {
        NicKind::BnxtReP5 | NicKind::BnxtReP7 => {
            let device = bnxt_re(&fabric, place, kind, options, &mut judges);
            fabric.lead_out(|inlet| uplink::stream(stream, inlet)).map_err(OpenError::Wire)?;
            visit.run(device)
        }
        NicKind::IonicV1 | NicKind::IonicV2 => {
            let device = ionic(&fabric, place, kind, options, &mut judges);
            fabric.lead_out(|inlet| uplink::stream(stream, inlet)).map_err(OpenError::Wire)?;
            visit.run(device)
        }
    };
    judged(&fabric, options, judges, out)
}

fn fabric(options: &Options) -> Result<Fabric, OpenError> {
    let fabric =
        Fabric::new(FabricOptions { seed: options.seed, faults: options.faults, threaded: options.threaded });
    if let Some(file) = &options.capture {
        fabric.capture(Box::new(file.clone())).map_err(OpenError::Capture)?;
    }
    Ok(fabric)
}

/// `out`, unless a driver has broken its NIC's contract.
fn judged<T>(fabric: &Fabric, options: &Options, judges: Vec<Judge>, out: T) -> Result<T, OpenError> {
    fabric.end_capture();
    // A driver that was told nonsense has an excuse.
    let told_nonsense = options.faults.corrupt_cqe != 0 || options.faults.duplicate_cqe != 0;
    match judges.into_iter().find_map(|judge| judge()).filter(|_| !told_nonsense) {
        Some(violation) => Err(OpenError::Violation(violation)),
        None => Ok(out),
    }
}

/// Tells what the driver of a NIC did wrong, once it is done.
type Judge = Box<dyn FnOnce() -> Option<String>>;

fn second<V, A>(
    fabric: &Fabric,
    a: A,
    b: NicKind,
    options: &Options,
    visit: V,
    judges: &mut Vec<Judge>,
) -> V::Out
where
    V: Visit,
    A: Device + Send,
{
    match b {
        NicKind::BnxtReP5 | NicKind::BnxtReP7 => visit.run(a, bnxt_re(fabric, 2, b, options, judges)),
        NicKind::IonicV1 | NicKind::IonicV2 => visit.run(a, ionic(fabric, 2, b, options, judges)),
    }
}

/// The `nth` NIC on the wire.
fn nic_config(nth: u8, options: &Options) -> NicConfig {
    let mut gids = vec![
        Gid::v4(Ipv4Addr::new(10, 0, 0, nth)),
        Gid::v6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, nth.into())),
    ];
    if options.ipv6 {
        gids.reverse();
    }
    NicConfig {
        mac: Mac([0x02, 0, 0, 0, 0, nth]),
        gids,
        mtu: Mtu::B4096,
        device_memory: 0,
        all_memory_key: None,
    }
}

/// How often a send completion of an ionic NIC lets later ones pass, in parts per million.
const REORDER: u32 = 250_000;

fn bnxt_re(
    fabric: &Fabric,
    nth: u8,
    kind: NicKind,
    options: &Options,
    judges: &mut Vec<Judge>,
) -> BnxtReDevice {
    let generation = match kind {
        NicKind::BnxtReP5 => Generation::P5,
        _ => Generation::P7,
    };
    let seed = options.seed.wrapping_add(nth.into());
    let device = BnxtReOptions { seed, ..BnxtReOptions::new(generation, options.wqe_mode.into()) };
    let device = BnxtReDevice::attach(fabric, nic_config(nth, options), device);
    let nic = device.nic().clone();
    judges.push(Box::new(move || {
        let mut nic = nic.lock();
        nic.front_end().violations().last().next().map(|violation| format!("{kind}: {violation}"))
    }));
    device
}

fn ionic(fabric: &Fabric, nth: u8, kind: NicKind, options: &Options, judges: &mut Vec<Judge>) -> IonicDevice {
    let version = match kind {
        NicKind::IonicV1 => RdmaVersion::V1,
        _ => RdmaVersion::V2,
    };
    let mut device = IonicOptions::new(version);
    device.device.seed = options.seed.wrapping_add(nth.into());
    device.device.reorder = REORDER;
    let device = IonicDevice::attach(fabric, nic_config(nth, options), device);
    let nic = device.nic().clone();
    judges.push(Box::new(move || {
        let mut nic = nic.lock();
        nic.front_end().violations().first().map(|violation| format!("{kind}: {violation}"))
    }));
    device
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_opens_what_it_stands_for() {
        for kind in NicKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let error = "mlx5".parse::<NicKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no software NIC is called `mlx5`; there are: bnxt_re-p5, bnxt_re, ionic-v1, ionic"
        );
        assert_eq!("variable".parse(), Ok(WqeMode::Variable));
        assert!("huge".parse::<WqeMode>().is_err());
    }
}
