use core::time::Duration;

use super::machine::{Fake, Machine};
use crate::clock::Timeout;
use crate::host::ResetError;
use crate::pci::{Command, Config, command, reset};

/// A function with FLR, whose device status is `status`.
fn fake(status: u8) -> Fake {
    let express: &[u8] = &[2, 0, 0, 0, 0, 0x10, 0, 0, status, 0];
    let mut fake =
        Fake::endpoint().with_bar(0, 0x1000, true, true).with_capabilities(&[(0x10, 0x40, express)]);
    fake.open(0x48, &[0xff, 0xff]);
    fake
}

/// What the device does when the reset begins: BARs and command are forgotten, and `then`.
fn resets(machine: &Machine, then: impl Fn(&mut Fake) + 'static) {
    *machine.hook.borrow_mut() = Some(std::boxed::Box::new(move |function: &mut Fake, offset, value| {
        if offset == 0x48 && value & 0x8000 != 0 {
            function.bytes[0x10..0x18].copy_from_slice(&[0xc, 0, 0, 0, 0, 0, 0, 0]);
            function.bytes[4] = 0;
            then(function);
        }
    }));
}

#[test]
fn a_reset_brings_bars_back_and_takes_its_time() {
    let machine = Machine::of(fake(0));
    let function = machine.only();
    function.write32(0x10, 0xfe00_0000);
    function.write32(0x14, 0x12);
    command::enable(&function, Command::MEMORY | Command::BUS_MASTER);
    resets(&machine, |_| {});
    assert_eq!(reset::function_level(&function, &machine), Ok(()));
    assert_eq!((function.read32(0x10), function.read32(0x14)), (0xfe00_000c, 0x12));
    assert_eq!(command::get(&function), Command::empty());
    assert!(machine.now.get() >= Duration::from_millis(100).as_nanos() as u64);
}

#[test]
fn what_cannot_be_reset_says_why() {
    let refused = |machine: &Machine| reset::function_level(&machine.only(), machine).expect_err("no reset");
    assert_eq!(refused(&Machine::of(Fake::endpoint())), ResetError::Unsupported);
    let without = Fake::endpoint().with_capabilities(&[(0x10, 0x40, &[2, 0, 0, 0, 0, 0])]);
    assert_eq!(refused(&Machine::of(without)), ResetError::Unsupported);
    assert_eq!(refused(&Machine::new([])), ResetError::Gone);
    let silent = |seconds: u64, millis: u32| {
        ResetError::Silent(Timeout { limit: Duration::new(seconds, millis * 1_000_000) })
    };
    let busy = Machine::of(fake(0x20));
    assert_eq!(refused(&busy), silent(1, 500));
    let lost = Machine::of(fake(0));
    resets(&lost, |function| function.bytes.fill(0xff));
    assert_eq!(refused(&lost), silent(60, 0));
}

#[test]
fn a_function_at_rest_has_no_bus_mastering() {
    let machine = Machine::of(fake(0));
    command::enable(&machine.only(), Command::MEMORY | Command::BUS_MASTER);
    assert_eq!(reset::quiesce(&machine.only(), &machine), Ok(()));
    assert_eq!(command::get(&machine.only()), Command::MEMORY);
    assert_eq!(reset::quiesce(&Machine::new([]).only(), &machine), Ok(()), "what is gone is at rest");
}
