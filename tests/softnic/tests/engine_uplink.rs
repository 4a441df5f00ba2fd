//! Two wires joined by uplinks: NICs on one reach those on the other.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use directverbs::bnxt_re::caps::Generation;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{Gid, Mac, Mtu};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::host::bnxt_re::{BnxtReDevice, BnxtReOptions};
use directverbs_softnic::host::ionic::{IonicDevice, IonicOptions};
use directverbs_softnic::uplink::{self, Inlet, Outlet, Uplink};
use directverbs_workload::{Job, Op, run_pair};

fn config(nth: u8) -> NicConfig {
    NicConfig {
        mac: Mac([2, 0, 0, 0, 0, nth]),
        gids: vec![Gid::v4(Ipv4Addr::new(10, 0, 0, nth))],
        mtu: Mtu::B4096,
        device_memory: 0,
        all_memory_key: None,
    }
}

/// Carries both wires by the same way, and the workload across.
fn crosses(mut lead: impl FnMut(Inlet) -> io::Result<Uplink>) {
    let options = FabricOptions { threaded: true, ..FabricOptions::default() };
    let (here, there) = (Fabric::new(options), Fabric::new(options));
    let p7 = BnxtReOptions::new(Generation::P7, WqeMode::Static);
    let mut a = BnxtReDevice::attach(&here, config(1), p7);
    let mut b = IonicDevice::attach(&there, config(2), IonicOptions::new(RdmaVersion::V2));
    here.lead_out(&mut lead).expect("an uplink");
    there.lead_out(&mut lead).expect("an uplink");
    for op in [Op::Send, Op::Write, Op::Read] {
        let job = Job { op, size: 10_000, iterations: 8, ..Job::default() };
        let report = run_pair(&mut a, &mut b, &job, &mut |_| {}).expect("verified");
        assert!(report.verified_bytes() >= 80_000, "{op:?}");
    }
    assert_eq!(here.counters().unknown + there.counters().unknown, 0);
}

#[test]
fn the_workload_crosses_a_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    let mut ends = vec![to, listener.accept().expect("accepted").0];
    crosses(|inlet| uplink::stream(ends.pop().expect("two"), inlet));
}

#[test]
fn the_workload_crosses_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    crosses(|inlet| uplink::folder(folder.path(), &inlet));
}

/// Must be sent nothing.
#[derive(Debug)]
struct Unused;

impl Outlet for Unused {
    fn send(&mut self, frame: &[u8]) -> bool {
        panic!("it came from there: {frame:x?}");
    }

    fn waiting(&self) -> usize {
        0
    }
}

#[test]
fn what_nobody_knows_does_not_come_back() {
    let fabric = Fabric::new(FabricOptions::default());
    let mut inlet = None;
    let led = fabric.lead_out(|given| {
        inlet = Some(given);
        Ok(Uplink::new(Unused, ()))
    });
    led.expect("nothing fails");
    inlet.expect("given").arrive(vec![2; 64]);
    assert_eq!(fabric.counters().unknown, 1);
}
