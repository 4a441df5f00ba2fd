//! All checks, in the order in which the machine comes to life and dies.

mod altered;
mod completion;
mod context;
mod discovery;
mod dmabuf;
mod events;
mod failures;
mod memory;
mod packets;
mod path;
mod process;
mod queues;
mod removal;
mod rings;
mod rxe;
mod subsystem;
mod traffic;
pub mod unprivileged;
pub mod vfio;
mod written;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use directverbs_linux::error::Error;
use directverbs_linux::objects::{Context, ProtectionDomain};
use directverbs_linux::sysfs::{Device, PortInfo, PortState, Sysfs};
use directverbs_linux::uverbs::{Kernel, Linux, Uhw};
use rustix::io::Errno;

use crate::check::Stage;
use crate::machine::network::{self, DEVICE, FAR, NEAR};
use crate::machine::{load, wait_for};

/// Our addresses.
const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 1));
const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 1));

/// The stages.
pub fn stages() -> Vec<Stage> {
    let stage = |prepare, checks| Stage { prepare, checks, others: 0 };
    vec![
        stage(|| {}, subsystem::without_modules()),
        stage(make_device, subsystem::without_uverbs()),
        stage(
            load_uverbs,
            [
                discovery::checks(),
                context::checks(),
                memory::checks(),
                dmabuf::checks(),
                path::checks(),
                queues::checks(),
                completion::checks(),
                traffic::checks(),
                written::checks(),
                packets::checks(),
                failures::checks(),
                events::checks(),
                process::checks(),
            ]
            .into_iter()
            .flatten()
            .collect(),
        ),
        unprivileged::stage(),
        stage(|| {}, removal::checks()),
    ]
}

/// The interface with its addresses, and the RDMA device over it.
fn make_device() {
    load("veth");
    network::add_pair();
    for name in [NEAR, FAR, "lo"] {
        network::set_up(name, true);
    }
    network::set_address(NEAR, V4, 24, true);
    network::set_address(NEAR, V6, 64, true);
    load("rdma_rxe");
    network::add_rdma();
}

fn load_uverbs() {
    load("ib_uverbs");
    wait_for("the device's file", || device().path().exists().then_some(()));
    // Both families, and a link-local address, each as RoCEv2.
    wait_for("the GIDs", || (port().gids.len() >= 3).then_some(()));
    wait_for("the link", || (port().state == PortState::Active).then_some(()));
}

/// The device as sysfs tells it.
fn device() -> Device {
    Device::find(&Sysfs::default(), DEVICE).expect("the device")
}

/// Its port as sysfs tells it.
fn port() -> PortInfo {
    let mut ports = device().ports().expect("ports");
    assert_eq!(ports.len(), 1);
    ports.remove(0)
}

/// The real kernel.
fn kernel() -> Arc<dyn Kernel> {
    Arc::new(Linux)
}

/// The device, opened.
fn context() -> Context {
    Context::open(kernel(), &device(), Uhw::none()).expect("a context")
}

/// A protection domain of a context of its own.
fn pd() -> ProtectionDomain {
    ProtectionDomain::alloc(&context(), Uhw::none()).expect("a protection domain")
}

/// What was refused with `errno`: the message.
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, errno: Errno) -> String {
    let error = result.expect_err("this must be refused");
    assert_eq!(error.errno(), Some(errno), "{error}");
    error.to_string()
}

/// A message has all of `parts`, in one line.
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
    assert!(!text.contains('\n'), "{text:?}");
}
