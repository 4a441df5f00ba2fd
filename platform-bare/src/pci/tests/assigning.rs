use super::machine::{Fake, Machine};
use crate::pci::assign::{self, AssignError, Windows, assign};
use crate::pci::bar::{self, BarError};
use crate::pci::{Address, Bar, Command, Config, Function, command, configure, walk};

const MIB: u64 = 1 << 20;

fn windows() -> Windows {
    Windows { narrow: 0x1000_0000..0x2000_0000, wide: 0x80_0000_0000..0x81_0000_0000 }
}

fn bars(function: &Function<'_, Machine>) -> [Option<Bar>; 6] {
    bar::all(function, 6).expect("sane BARs")
}

#[test]
fn bars_are_sized_and_keep_what_they_hold() {
    let fake = Fake::endpoint()
        .with_bar(0, 0x1_0000, true, true)
        .with_bar(2, 0x1000, false, false)
        .with(0x1c, &[1])
        .with_bar(4, 1 << 38, true, false);
    let machine = Machine::of(fake);
    let function = machine.only();
    function.write32(0x10, 0xc000_0000);
    function.write32(0x14, 0x12);
    command::enable(&function, Command::MEMORY | Command::BUS_MASTER);
    let bar = |index, wide, prefetchable, len, address| Some(Bar { index, wide, prefetchable, len, address });
    let expected = [
        bar(0, true, true, 0x1_0000, 0x12_c000_0000),
        None,
        bar(2, false, false, 0x1000, 0),
        None,
        bar(4, true, false, 1 << 38, 0),
        None,
    ];
    assert_eq!(bars(&function), expected);
    assert_eq!(bars(&function), expected, "sizing changes nothing");
    assert_eq!(command::get(&function), Command::MEMORY | Command::BUS_MASTER);
}

#[test]
fn bars_that_make_no_sense_are_named() {
    let refused = |fake: Fake| bar::all(&Machine::of(fake).only(), 6).expect_err("hostile");
    let odd = |mask: u32| {
        let mut fake = Fake::endpoint();
        fake.open(0x10, &mask.to_le_bytes());
        fake
    };
    assert_eq!(refused(odd(0xffff_0000).with(0x10, &[2])), BarError::Kind { index: 0, kind: 1 });
    assert_eq!(refused(odd(0xf0ff_0000)), BarError::Size { index: 0, bits: 0xf0ff_0000 });
    assert_eq!(refused(Fake::endpoint().with_bar(5, 0x1000, false, false).with(0x24, &[4])), BarError::Cut);
    assert_eq!(bar::all(&Machine::new([]).only(), 6), Err(BarError::Gone));
    // Only low bits of the address are there: a BAR of that size, which fits no higher.
    let low = bar::all(&Machine::of(odd(0x00ff_0000)).only(), 6).unwrap();
    assert_eq!(low[0].map(|bar| bar.len), Some(0x1_0000));
    // A BAR that is all flags is none.
    assert_eq!(bar::all(&Machine::of(odd(0).with(0x10, &[0xc])).only(), 6), Ok([None; 6]));
}

#[test]
fn bars_behind_bridges_lie_in_their_windows() {
    let nic = || {
        let fake = Fake::endpoint().with_bar(0, 0x1_0000, true, true).with_bar(2, 4 * MIB, true, true);
        fake.with_bar(4, 0x1000, false, false)
    };
    let machine = Machine::new([
        ((1, 0), Fake::bridge([((0, 0), nic())])),
        ((2, 0), Fake::bridge([((0, 0), Fake::bridge([((0, 0), nic())]))])),
        ((3, 0), nic()),
        ((4, 0), Fake::bridge([])),
    ]);
    assert_eq!(configure(&machine, &windows()), Ok(()));
    assert_eq!(assign::lacks_addresses(&machine), Ok(false));

    let at = |bus, device| Function::new(&machine, Address::new(bus, device, 0));
    let placed = |bus, device| {
        let bars = bars(&at(bus, device));
        [0, 2, 4].map(|index| bars[index].expect("a BAR").address)
    };
    assert_eq!(placed(1, 0), [0x80_0000_0000, 0x80_0040_0000, 0x1000_0000]);
    assert_eq!(placed(3, 0), [0x80_0080_0000, 0x80_00c0_0000, 0x1010_0000]);
    assert_eq!(placed(0, 3), [0x80_0100_0000, 0x80_0140_0000, 0x1020_0000]);
    let window = |bus, device| {
        let bridge = at(bus, device);
        [0x20, 0x24, 0x28, 0x2c].map(|register| bridge.read32(register))
    };
    assert_eq!(window(0, 1), [0x1000_1000, 0x0071_0001, 0x80, 0x80]);
    let nested = [0x1010_1010, 0x00f1_0081, 0x80, 0x80];
    assert_eq!((window(0, 2), window(2, 0)), (nested, nested));
    assert_eq!(window(0, 4)[..2], [0x0000_fff0, 0x0001_fff1], "nothing is behind it");
    assert!(command::get(&at(0, 2)).contains(Command::MEMORY | Command::BUS_MASTER));
}

#[test]
fn a_bridge_without_a_wide_window_has_all_below_4_gib() {
    let nic = Fake::endpoint().with_bar(0, 2 * MIB, true, true);
    let bridge = Fake::bridge([((0, 0), nic)]).with(0x24, &[0, 0, 0, 0]);
    let machine = Machine::of(bridge);
    configure(&machine, &windows()).unwrap();
    let nic = Function::new(&machine, Address::new(1, 0, 0));
    assert_eq!(bars(&nic)[0].unwrap().address, 0x1000_0000);
    assert_eq!(machine.only().read32(0x20), 0x1010_1000);
}

#[test]
fn what_firmware_did_is_kept() {
    let machine = Machine::of(Fake::endpoint().with_bar(0, MIB, true, true));
    machine.only().write32(0x10, 0xfe00_0000);
    assert_eq!(configure(&machine, &windows()), Ok(()));
    assert_eq!(bars(&machine.only())[0].unwrap().address, 0xfe00_0000);
}

#[test]
fn addresses_that_run_out_are_an_error() {
    let address = Address::new(0, 1, 0);
    let tried = |fake: Fake, windows: &Windows| assign(&Machine::of(fake), windows);
    let exhausted = |bar, len| Err(AssignError::Exhausted { address, bar, len });
    let big = Fake::endpoint().with_bar(0, 512 * MIB, true, false);
    assert_eq!(tried(big, &windows()), exhausted(0, 512 * MIB));
    let huge = Fake::endpoint().with_bar(2, 1 << 63, true, true);
    assert_eq!(tried(huge, &windows()), exhausted(2, 1 << 63));
    let none = Windows { narrow: 0..0, wide: 0..0 };
    assert_eq!(tried(Fake::endpoint().with_bar(0, 16, false, false), &none), exhausted(0, 16));
    let odd = Windows { narrow: 0x1000_0010..0x1000_0020, wide: 0..0 };
    let machine = Machine::of(Fake::bridge([]));
    walk::number_buses(&machine).unwrap();
    assert_eq!(assign(&machine, &odd), Err(AssignError::Full(address)));
    // Address 0 would say that the BAR has none.
    let from_zero = Windows { narrow: 0..2 * MIB, wide: 0..0 };
    let machine = Machine::of(Fake::endpoint().with_bar(0, 16, false, false));
    assign(&machine, &from_zero).unwrap();
    assert_eq!(bars(&machine.only())[0].unwrap().address, MIB);
}
