//! Address handles: the kernel finds the Ethernet address of the next hop.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use directverbs::verbs::{AddressVector, Mac};
use directverbs_linux::error::Error;
use directverbs_linux::objects::AddressHandle;
use directverbs_linux::uverbs::Uhw;
use rustix::io::Errno;

use super::discovery::gid;
use super::rxe::{gid_index, to_itself};
use super::{V6, pd, port, refused, says};
use crate::check::Check;
use crate::machine::network::{self, NEAR};

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(the_way_to_a_neighbour_and_to_itself_is_found),
        Check::of(a_gid_index_without_gid_is_refused),
        Check::of(a_peer_that_does_not_answer_is_not_reached),
        Check::of(a_port_that_is_not_there_is_not_asked_for),
    ]
}

const NEIGHBOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2));
const NEIGHBOUR_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 2));

fn create(to: &AddressVector, port: u8) -> Result<AddressHandle, Error> {
    AddressHandle::create(&pd(), to, port, Uhw::none())
}

fn the_way_to_a_neighbour_and_to_itself_is_found() {
    for neighbour in [NEIGHBOUR, NEIGHBOUR_V6] {
        network::add_neighbour(NEAR, neighbour, [2, 0, 0, 0, 0, 9]);
    }
    let v6 = port().gids.iter().find(|entry| entry.gid == gid(V6)).expect("our IPv6 address").index as u8;
    let cases = [
        to_itself(),
        AddressVector { dgid: gid(NEIGHBOUR), flow_label: 0xf_ffff, traffic_class: 0x20, ..to_itself() },
        AddressVector { dgid: gid(NEIGHBOUR_V6), sgid_index: v6, ..to_itself() },
    ];
    for to in cases {
        let handle = create(&to, 1).unwrap_or_else(|error| panic!("{to:?}: {error}"));
        handle.destroy().expect("nothing refers to it");
    }
}

fn a_gid_index_without_gid_is_refused() {
    let unused = AddressVector { sgid_index: 200, ..to_itself() };
    let text = refused(create(&unused, 1), Errno::NODATA);
    says(&text, &["address handle", "CREATE_AH", "no GID with this index"]);
}

fn a_peer_that_does_not_answer_is_not_reached() {
    let silent = AddressVector {
        dgid: gid(IpAddr::V4(Ipv4Addr::new(10, 99, 0, 77))),
        ..AddressVector::new(gid(NEIGHBOUR), Mac::default())
    };
    // The same if no route leads there: the kernel takes the GID's interface, and asks on it.
    let text = refused(create(&AddressVector { sgid_index: gid_index(), ..silent }, 1), Errno::TIMEDOUT);
    says(&text, &["address handle", "CREATE_AH", "the peer does not answer"]);
}

fn a_port_that_is_not_there_is_not_asked_for() {
    for port in [0, 2] {
        let error = create(&to_itself(), port).expect_err("there is one port");
        assert!(matches!(error, Error::Limit { attribute: "port", .. }), "{error}");
    }
    let wide = AddressVector { flow_label: 1 << 20, ..to_itself() };
    assert!(matches!(create(&wide, 1), Err(Error::Limit { attribute: "flow label", .. })));
}
