use std::string::{String, ToString};
use std::vec::Vec;

use super::machine::{Fake, Machine};
use crate::pci::walk::{self, DEPTH};
use crate::pci::{Address, Header, Step, WalkError, assign};

fn walked(machine: &Machine) -> Vec<String> {
    let mut steps = Vec::new();
    walk::walk(machine, |step| {
        steps.push(match step {
            Step::Function(function, _) => function.address().to_string(),
            Step::Enter(bridge) => std::format!("< {}", bridge.address()),
            Step::Leave(bridge) => std::format!("> {}", bridge.address()),
        });
        Ok::<_, WalkError>(())
    })
    .expect("a sane machine");
    steps
}

/// Two bridges behind a bridge, and one beside it.
fn tree() -> Machine {
    let inner = || Fake::bridge([((0, 0), Fake::endpoint())]);
    Machine::new([
        ((0, 0), Fake::endpoint()),
        ((1, 0), Fake::bridge([((0, 0), inner()), ((1, 0), inner())])),
        ((2, 0), inner()),
    ])
}

#[test]
fn buses_that_nobody_has_numbered_are_numbered_in_depth() {
    let machine = tree();
    assert_eq!(walk::lacks_numbers(&machine), Ok(true));
    assert_eq!(walked(&machine), ["00:00.0", "00:01.0", "00:02.0"]);
    assert_eq!(walk::number_buses(&machine), Ok(()));
    assert_eq!(walk::lacks_numbers(&machine), Ok(false));
    let expected = [
        "00:00.0",
        "00:01.0",
        "< 00:01.0",
        "01:00.0",
        "< 01:00.0",
        "02:00.0",
        "> 01:00.0",
        "01:01.0",
        "< 01:01.0",
        "03:00.0",
        "> 01:01.0",
        "> 00:01.0",
        "00:02.0",
        "< 00:02.0",
        "04:00.0",
        "> 00:02.0",
    ];
    assert_eq!(walked(&machine), expected);
    let buses = |bus, device| {
        let bridge = crate::pci::Function::new(&machine, Address::new(bus, device, 0));
        let buses = crate::pci::bridge::buses(&bridge);
        (buses.primary, buses.secondary, buses.subordinate)
    };
    assert_eq!(
        [buses(0, 1), buses(1, 0), buses(1, 1), buses(0, 2)],
        [(0, 1, 3), (1, 2, 2), (1, 3, 3), (0, 4, 4)]
    );
}

#[test]
fn functions_beside_the_first_count_only_if_it_says_so() {
    let functions = |header: u8| {
        let first = Fake::endpoint().with(0x0e, &[header]);
        Machine::new([((3, 0), first), ((3, 5), Fake::endpoint()), ((4, 1), Fake::endpoint())])
    };
    assert_eq!(walked(&functions(0)), ["00:03.0"]);
    assert_eq!(walked(&functions(0x80)), ["00:03.0", "00:03.5"]);
}

#[test]
fn behind_a_port_of_pci_express_is_one_device() {
    let port = |kind: u8| {
        let express: &[u8] = &[kind << 4 | 2, 0];
        let bridge = Fake::bridge([((0, 0), Fake::endpoint()), ((1, 0), Fake::endpoint())]);
        let machine = Machine::of(bridge.with_capabilities(&[(0x10, 0x40, express)]));
        walk::number_buses(&machine).unwrap();
        walked(&machine).into_iter().filter(|step| step.starts_with("01")).count()
    };
    assert_eq!([port(4), port(6), port(5), port(7)], [1, 1, 2, 2]);
}

#[test]
fn bridges_that_lead_back_are_not_followed() {
    // A bridge to its own bus, two to the same bus, and one to a bus that is lower.
    let looped = |secondary: u8| Fake::bridge([]).with(0x18, &[0, secondary, 0xff]);
    let there = Fake::bridge([((0, 0), Fake::endpoint()), ((1, 0), looped(5)), ((2, 0), looped(3))]);
    let machine =
        Machine::new([((0, 0), looped(0)), ((1, 0), there.with(0x18, &[0, 5, 9])), ((2, 0), looped(5))]);
    let steps = walked(&machine);
    assert_eq!(steps.iter().filter(|step| step.starts_with('<')).count(), 1, "{steps:?}");
}

#[test]
fn too_many_bridges_are_an_error() {
    let chain = |len: usize| (0..len).fold(Fake::endpoint(), |inner, _| Fake::bridge([((0, 0), inner)]));
    assert_eq!(walk::number_buses(&Machine::of(chain(DEPTH - 1))), Ok(()));
    let deepest = Address::new(DEPTH as u8 - 1, 0, 0);
    assert_eq!(walk::number_buses(&Machine::of(chain(DEPTH))), Err(WalkError::TooDeep(deepest)));

    let wide = (0..32).flat_map(|device| (0..8).map(move |function| (device, function)));
    let bridge = || Fake::bridge([]).with(0x0e, &[0x81]);
    let machine = Machine::new(wide.map(|at| (at, bridge())));
    assert_eq!(walk::number_buses(&machine), Err(WalkError::NoBus(Address::new(0, 31, 7))));
    let mut few = tree();
    few.buses = 3;
    assert_eq!(walk::number_buses(&few), Err(WalkError::NoBus(Address::new(1, 1, 0))));
}

#[test]
fn a_header_of_another_kind_is_left_alone() {
    let machine = Machine::of(Fake::endpoint().with(0x0e, &[2]));
    assert_eq!(Header::of(&machine.only()), Header::Other(2));
    assert_eq!(walked(&machine), ["00:01.0"]);
}

#[test]
fn a_function_is_found_behind_bridges() {
    let machine = tree();
    walk::number_buses(&machine).unwrap();
    let found = assign::find(&machine, |vendor, device| (vendor, device) == (0x1234, 0x5678)).unwrap();
    assert_eq!(found.expect("it is there").address(), Address::new(0, 0, 0));
    assert!(assign::find(&machine, |vendor, _| vendor == 1).unwrap().is_none());
}
