//! What sysfs tells, beside what the device itself tells.

use std::net::{IpAddr, Ipv4Addr};

use directverbs::verbs::{Gid, Mtu};
use directverbs_linux::sysfs::{
    Device, Driver, GidType, GidWish, Lack, LinkError, LinkLayer, Netdev, Peer, PortState, Problem, Sysfs,
    check_link, choose_gid, roce_mtu,
};

use super::{V4, V6, context, device, port, says};
use crate::check::Check;
use crate::machine::network::{self, DEVICE, NEAR};
use crate::machine::wait_for;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(the_device_is_found_and_is_soft_roce),
        Check::of(a_device_that_is_not_there_is_told_with_those_that_are),
        Check::of(guids_are_those_that_the_device_tells),
        Check::of(the_port_is_the_one_that_the_device_tells),
        Check::of(the_gid_table_is_the_one_that_the_device_tells),
        Check::of(the_chosen_gid_is_of_the_peers_family_and_scope),
        Check::of(a_gid_that_does_not_exist_is_told),
        Check::of(a_gid_comes_and_goes_with_its_address),
        Check::of(the_path_mtu_is_the_kernels),
    ]
}

fn the_device_is_found_and_is_soft_roce() {
    let all = Device::all(&Sysfs::default()).expect("devices");
    assert_eq!(all, [device()]);
    let device = device();
    assert_eq!((device.name.as_str(), device.driver), (DEVICE, Driver::Rxe));
    assert_eq!((device.core_abi, device.driver_abi), (6, 2));
    assert_eq!((device.pci, device.address.as_deref()), (None, None));
    device.check_abi().expect("supported");
    assert!(device.path().exists(), "{}", device.path().display());
}

fn a_device_that_is_not_there_is_told_with_those_that_are() {
    let error = Device::find(&Sysfs::default(), "rxe7").expect_err("there is no such device");
    assert!(matches!(error.problem, Problem::NoDevice(_)), "{error}");
    says(&error.to_string(), &["rxe7", "there are rxe0"]);
}

fn guids_are_those_that_the_device_tells() {
    let (device, context) = (device(), context());
    let limits = &context.limits().base;
    assert_eq!(device.node_guid.0, limits.node_guid.get());
    assert_eq!(device.system_guid.0, limits.sys_image_guid.get());
    assert_ne!(device.node_guid.0, 0);
    assert_eq!(limits.phys_port_cnt, 1);
}

fn the_port_is_the_one_that_the_device_tells() {
    let (told, asked) = (port(), context().query_port(1).expect("a port"));
    assert_eq!((told.number, told.state, told.link_layer), (1, PortState::Active, LinkLayer::Ethernet));
    assert_eq!((asked.number, asked.state, asked.link_layer), (told.number, told.state, told.link_layer));
    assert_eq!(told.physical_state, 5);
    assert_eq!(told.netdev, Some((NEAR.to_owned(), 1500)));
    assert!(asked.gids as usize >= told.gids.len() && asked.max_message > 0);
    assert!(asked.gbps() > 0, "{asked:?}");
}

fn the_gid_table_is_the_one_that_the_device_tells() {
    let (told, asked) = (port().gids, context().gids().expect("GIDs"));
    assert!(!told.is_empty());
    let near = Netdev::Index(network::index(NEAR));
    assert!(told.iter().all(|gid| gid.netdev == Some(Netdev::Name(NEAR.to_owned()))), "{told:?}");
    assert!(asked.iter().all(|gid| gid.netdev == Some(near.clone())), "{asked:?}");
    let plain = |gids: &[directverbs_linux::sysfs::GidEntry]| {
        gids.iter().map(|g| (g.port, g.index, g.gid, g.gid_type)).collect::<Vec<_>>()
    };
    assert_eq!(plain(&told), plain(&asked));
    assert!(told.iter().all(|gid| gid.gid_type == GidType::RoceV2), "{told:?}");
    for address in [V4, V6] {
        assert!(told.iter().any(|entry| entry.gid == gid(address)), "{address}: {told:?}");
    }
}

fn the_chosen_gid_is_of_the_peers_family_and_scope() {
    let table = port().gids;
    let chosen = |peer| choose_gid(&table, &GidWish { peer, ..GidWish::default() }).expect("one fits").gid;
    let peer = |address: &str| Peer::Gid(gid(address.parse().expect("an address")));
    assert_eq!(chosen(peer("10.99.0.2")), gid(V4));
    assert_eq!(chosen(Peer::V4), gid(V4));
    assert_eq!(chosen(peer("fd99::2")), gid(V6));
    let local = chosen(peer("fe80::2"));
    assert_eq!(local.0[..2], [0xfe, 0x80]);
    // Not knowing the peer, a routed one: it may be either family's.
    assert!([gid(V4), gid(V6)].contains(&chosen(Peer::Unknown)));
}

fn a_gid_that_does_not_exist_is_told() {
    let table = port().gids;
    let why = |wish| choose_gid(&table, &wish).expect_err("none fits");
    let index = why(GidWish { index: Some(99), ..GidWish::default() });
    says(&index.to_string(), &["there is no GID with index 99"]);
    let netdev = why(GidWish { netdev: Some("lo".to_owned()), ..GidWish::default() });
    assert_eq!(netdev.lacks, [(Lack::Netdev, table.len())]);
}

fn a_gid_comes_and_goes_with_its_address() {
    let address = IpAddr::V4(Ipv4Addr::new(10, 99, 7, 7));
    let there = || port().gids.iter().any(|entry| entry.gid == gid(address));
    network::set_address(NEAR, address, 24, true);
    wait_for("the GID", || there().then_some(()));
    network::set_address(NEAR, address, 24, false);
    wait_for("the GID to go", || (!there()).then_some(()));
}

fn the_path_mtu_is_the_kernels() {
    let (port, context) = (port(), context());
    let active = context.query_port(1).expect("a port").active_mtu;
    assert_eq!((active, roce_mtu(1500)), (Some(Mtu::B1024), Some(Mtu::B1024)));
    check_link(&port, Some(Mtu::B1024)).expect("fits");
    let error = check_link(&port, Some(Mtu::B4096)).expect_err("too large");
    let LinkError::Mtu { needed, .. } = error else { panic!("{error}") };
    // What it says to raise the MTU to is what the kernel takes.
    network::set_mtu(needed);
    wait_for("the path MTU", || {
        (context.query_port(1).expect("a port").active_mtu == Some(Mtu::B4096)).then_some(())
    });
    network::set_mtu(1500);
    wait_for("the path MTU", || {
        (context.query_port(1).expect("a port").active_mtu == Some(Mtu::B1024)).then_some(())
    });
}

/// The GID of an address.
pub fn gid(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(v4) => Gid::v4(v4),
        IpAddr::V6(v6) => Gid::v6(v6),
    }
}
