//! The ways between the NICs of two daemons: the workload crosses each.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

use directverbs::bnxt_re::caps::Generation;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{Gid, Mac, Mtu};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::host::bnxt_re::{BnxtReDevice, BnxtReOptions};
use directverbs_softnic::host::ionic::{IonicDevice, IonicOptions};
use directverbs_softnicd::wire::{self, Wire};
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

/// Two fabrics with a NIC each, led out by `ends`. A packet fits a frame of 1500 bytes.
fn crosses(ends: &[Wire; 2]) {
    let fabrics = ends.each_ref().map(|end| {
        let fabric = Fabric::new(FabricOptions { threaded: true, ..FabricOptions::default() });
        wire::join(&fabric, end).unwrap_or_else(|error| panic!("{end}: {error}"));
        fabric
    });
    let p7 = BnxtReOptions::new(Generation::P7, WqeMode::Static);
    let mut a = BnxtReDevice::attach(&fabrics[0], config(1), p7);
    let mut b = IonicDevice::attach(&fabrics[1], config(2), IonicOptions::new(RdmaVersion::V2));
    for op in Op::ALL.into_iter().filter(|op| *op != Op::SendInv) {
        let size = if op.is_atomic() { 8 } else { 1000 };
        let job = Job { op, size, iterations: 8, mtu: Some(Mtu::B1024), ..Job::default() };
        let report = run_pair(&mut a, &mut b, &job, &mut |_| {}).unwrap_or_else(|e| panic!("{op}: {e}"));
        assert!(report.verified_bytes() >= 16 * u64::from(size), "{op}");
    }
}

#[test]
fn the_workload_crosses_datagrams() {
    let ports = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
    let [local, peer] = ports.each_ref().map(|socket| socket.local_addr().unwrap());
    drop(ports);
    crosses(&[Wire::Udp { local, peer }, Wire::Udp { local: peer, peer: local }]);
}

#[test]
#[ignore = "needs the command ip, and the right to make interfaces"]
fn the_workload_crosses_interfaces() {
    // SAFETY: no memory is involved. Only this thread, and what it starts from now on, is in a network of its own.
    let alone = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(alone, 0, "a network of its own is refused: {}", std::io::Error::last_os_error());
    let commands =
        ["link add name one type veth peer name two", "link set dev one up", "link set dev two up"];
    for command in commands {
        let output = Command::new("ip").args(command.split(' ')).output().expect("the command ip");
        assert!(output.status.success(), "ip {command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    crosses(&["one", "two"].map(|name| Wire::Interface(name.into())));
}
