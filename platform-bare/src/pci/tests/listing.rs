use std::vec::Vec;

use super::machine::{Fake, Machine};
use crate::pci::capability::{self, Capabilities, CapabilityError, id};
use crate::pci::{Capability, Config, Msix};

fn list(fake: Fake) -> Vec<Result<Capability, CapabilityError>> {
    let machine = Machine::of(fake);
    Capabilities::new(machine.only()).collect()
}

#[test]
fn capabilities_come_in_the_order_of_the_list() {
    let fake = Fake::endpoint().with_capabilities(&[(1, 0x80, &[]), (0x11, 0x40, &[]), (0x10, 0xfc, &[])]);
    let entry = |id, offset| Ok(Capability { id, offset });
    assert_eq!(list(fake), [entry(1, 0x80), entry(0x11, 0x40), entry(0x10, 0xfc)]);
    assert_eq!(list(Fake::endpoint().with(0x34, &[0x40])), [], "status says that there is none");
}

#[test]
fn a_list_without_end_ends() {
    let own = Fake::endpoint().with_capabilities(&[(1, 0x40, &[])]).with(0x41, &[0x40]);
    let listed = list(own);
    assert_eq!((listed.len(), listed.last()), (49, Some(&Err(CapabilityError::Endless))));
    let circle = Fake::endpoint().with_capabilities(&[(1, 0x40, &[]), (2, 0x50, &[])]).with(0x51, &[0x40]);
    let machine = Machine::of(circle);
    assert_eq!(capability::find(&machine.only(), id::MSIX), Err(CapabilityError::Endless));
    assert_eq!(capability::find(&machine.only(), 2), Ok(Some(Capability { id: 2, offset: 0x50 })));
}

#[test]
fn an_entry_in_the_header_is_an_error() {
    let fake = Fake::endpoint().with_capabilities(&[(1, 0x40, &[])]).with(0x41, &[0x3c]);
    assert_eq!(list(fake)[1..], [Err(CapabilityError::Offset(0x3c))]);
}

#[test]
fn a_function_that_vanishes_while_it_is_listed_is_gone() {
    let fake = Fake::endpoint().with_capabilities(&[(1, 0x40, &[])]).with(0x40, &[0xff, 0xff]);
    assert_eq!(list(fake), [Err(CapabilityError::Gone)]);
    let machine = Machine::new([]);
    assert_eq!(capability::find(&machine.only(), id::MSIX), Err(CapabilityError::Gone));
    assert_eq!(machine.only().id(), None);
}

#[test]
fn the_msix_table_is_found_where_the_capability_says() {
    let fake = Fake::endpoint().with_capabilities(&[(0x11, 0x40, &[0x0f, 0, 4, 0x80, 0, 0, 4, 0xc0, 0, 0])]);
    let msix = Msix::find(&Machine::of(fake).only()).unwrap().expect("a capability");
    assert_eq!((msix.vectors, msix.bar, msix.offset, msix.table_len()), (16, 4, 0x8000, 256));
}
