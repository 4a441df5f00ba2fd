//! Bring-up and teardown when something goes wrong: each command and each access in turn, in each way.

mod bnxt_re_slots;

use bnxt_re_slots::{CHIPS, Machine, life};
use directverbs_bare::Host as _;
use directverbs_bare::bnxt_re::{Error, Nic};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::{AccessFault, CommandFault, Slot};

/// After whatever has happened the device can be brought up again, and nothing is left.
fn recovers(machine: &Machine, what: &dyn std::fmt::Debug) {
    machine.slot.command_faults().clear();
    machine.slot.access_faults().clear();
    // What a store that was lost has led to is not the driver's fault.
    let before = machine.slot.violations();
    if machine.slot.access_faults().is_removed() {
        machine.slot.replug();
    }
    // Objects that were dropped with an error have given their memory up; it is free when the function is off the bus.
    machine.slot.quiesce().unwrap_or_else(|error| panic!("{what:?}: {error}"));
    assert_eq!(machine.slot.memory().allocated(), 0, "{what:?}: memory is left");
    life(machine).unwrap_or_else(|error| panic!("{what:?}: again: {error}; {:?}", machine.violations()));
    assert_eq!(machine.slot.memory().allocated(), 0, "{what:?}: memory is left after the second life");
    assert_eq!(machine.slot.violations(), before, "{what:?}: DMA outside of what is shared");
}

fn machine(chip: usize) -> Machine {
    Machine::plug(&Fabric::new(FabricOptions::default()), CHIPS[chip], 1)
}

#[test]
fn each_command_fails_in_each_way() {
    for chip in 0..CHIPS.len() {
        let machine = machine(chip);
        machine.slot.command_faults().clear();
        life(&machine).unwrap();
        let commands = machine.slot.command_faults().commands();
        assert!(commands > 30, "{commands}");
        let mut errors = 0;
        for at in 0..commands {
            for fault in CommandFault::ALL {
                machine.slot.command_faults().strike(at, fault);
                errors += u64::from(life(&machine).is_err());
                recovers(&machine, &(chip, at, fault));
            }
        }
        assert!(errors > commands * 5, "{errors} errors of {commands} commands");
    }
}

#[test]
fn a_busy_device_is_asked_again() {
    for chip in 0..CHIPS.len() {
        let machine = machine(chip);
        for at in [0, 1, 5] {
            machine.slot.command_faults().strike(at, CommandFault::Busy);
            assert_eq!(life(&machine), Ok(()));
        }
        assert_eq!(machine.violations(), [""; 0]);
    }
}

#[test]
fn each_error_is_told_apart() {
    let cases: [(CommandFault, fn(&Error) -> bool); 6] = [
        (CommandFault::Refused, |e| matches!(e, Error::Response(_))),
        (CommandFault::Silent, |e| matches!(e, Error::NoResponse { .. })),
        (CommandFault::WrongSequence, |e| matches!(e, Error::Response(_))),
        (CommandFault::WrongLength, |e| matches!(e, Error::Response(_))),
        (CommandFault::NotValid, |e| matches!(e, Error::NoResponse { .. })),
        (CommandFault::HotReset, |e| matches!(e, Error::HotReset)),
    ];
    for chip in 0..CHIPS.len() {
        let machine = machine(chip);
        for (fault, is_right) in cases {
            machine.slot.command_faults().strike(2, fault);
            let error = life(&machine).unwrap_err();
            assert!(is_right(&error), "{fault:?}: {error}");
            recovers(&machine, &fault);
        }
        // The command channel does not answer then; the firmware tells why.
        for (fault, is_right) in [
            (CommandFault::HotReset, (|e| matches!(e, Error::HotReset)) as fn(&Error) -> bool),
            (CommandFault::Silent, |e| matches!(e, Error::NoCompletion { .. })),
            (CommandFault::Refused, |e| matches!(e, Error::Completion(_))),
            (CommandFault::WrongSequence, |e| matches!(e, Error::Completion(_))),
            (CommandFault::WrongLength, |e| matches!(e, Error::Short { .. })),
            (CommandFault::Event, |e| matches!(e, Error::Function(0x81))),
        ] {
            let at = first_command(&machine);
            machine.slot.command_faults().strike(at, fault);
            let error = life(&machine).unwrap_err();
            assert!(is_right(&error), "{fault:?}: {error}");
            recovers(&machine, &fault);
        }
    }
}

/// Which of the commands is QUERY_FUNC, the first of the command channel: with it refused, its error is that of a completion.
fn first_command(machine: &Machine) -> u64 {
    let found = (0..100).find(|at| {
        machine.slot.command_faults().strike(*at, CommandFault::Refused);
        matches!(life(machine), Err(Error::Completion(_)))
    });
    machine.slot.command_faults().clear();
    found.expect("there are commands")
}

/// Fails each access of a life in turn in one way. Gives the accesses, and how many of the lives ended in an error.
fn each_access_fails(chip: usize, fault: AccessFault) -> (u64, u64) {
    let machine = machine(chip);
    machine.slot.access_faults().clear();
    life(&machine).unwrap();
    let accesses = machine.slot.access_faults().accesses();
    let mut errors = 0;
    for at in 0..accesses {
        machine.slot.access_faults().strike(at, fault);
        errors += u64::from(life(&machine).is_err());
        recovers(&machine, &(chip, at, fault));
    }
    (accesses, errors)
}

#[test]
fn each_access_fails_in_each_way() {
    let jobs: Vec<_> =
        (0..CHIPS.len()).flat_map(|chip| AccessFault::ALL.map(|fault| (chip, fault))).collect();
    std::thread::scope(|scope| {
        let jobs = jobs
            .into_iter()
            .map(|(chip, fault)| (chip, fault, scope.spawn(move || each_access_fails(chip, fault))));
        for (chip, fault, job) in jobs.collect::<Vec<_>>() {
            let (accesses, errors) = job.join().expect("its assertions hold");
            assert!(accesses > 500, "{chip} {fault:?}: {accesses}");
            // What is pulled out is always found out, but for what comes after the last answer; what hangs too, but for what
            // comes before the first reset, which mends it. A load that gives all ones and a store that is lost may do no
            // harm: a word of a request that is zero anyway.
            let least = match fault {
                AccessFault::Removed => accesses - 16,
                AccessFault::Hung => accesses - 64,
                AccessFault::Ones | AccessFault::Lost => 1,
            };
            assert!(errors >= least, "{chip} {fault:?}: {errors} errors of {accesses} accesses");
        }
    });
}

#[test]
fn a_function_that_is_none_of_ours_is_refused() {
    use directverbs_softnic::pci::{Copier, Trace};
    let fabric = Fabric::new(FabricOptions::default());
    let slot = Slot::plug(&fabric, Trace::default(), |port| Box::new(Copier::new(port)));
    let error = Nic::open(slot, &Default::default()).unwrap_err();
    assert_eq!(error, Error::Unknown { vendor: Copier::VENDOR, device: Copier::DEVICE });
}
