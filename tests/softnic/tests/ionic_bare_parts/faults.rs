//! Each register access and each command of ionic's bring-up and of the life of its objects fails, in each way: every path
//! ends, with success or a typed error, and a second bring-up works, with nothing left behind.

use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{
    AccessFlags, AddressVector, Device as _, MemoryRegion as _, MwType, QpCapabilities, QpInit, QpState,
    QpType, RKey,
};
use directverbs_bare::ionic::{Config, Error, Nic};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::{AccessFault, CommandFault, Slot};

use super::placement;
use super::rig::Rig;
use crate::rts::transitions;

pub fn plug() -> Rig {
    Rig::plug(&Fabric::new(FabricOptions::default()), RdmaVersion::V2, 1)
}

/// Opens the device, makes one of each object, takes a queue pair through its states, destroys everything, and closes.
pub fn life(rig: &Rig) -> Result<(), Error> {
    let mut nic = Nic::open(rig.slot.clone(), Config { pd: placement::required(true), ..Config::default() })?;
    let index = nic.add_gid(rig.gid, None)?;
    let mut device = nic.device();
    let path = AddressVector { sgid_index: index, ..AddressVector::new(rig.gid, device.port().mac) };
    let pd = device.alloc_pd()?;
    let mr = device.alloc_mr(&pd, 10_000, AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ)?;
    assert_eq!(mr.len(), 10_000);
    let mw = device.alloc_mw(&pd, MwType::Type2)?;
    let ah = device.create_ah(&pd, &path)?;
    let mut cq = device.create_cq(64)?;
    let capabilities = QpCapabilities {
        max_send_wr: 16,
        max_recv_wr: 16,
        max_send_sge: 1,
        max_recv_sge: 1,
        ..Default::default()
    };
    let init = QpInit {
        qp_type: QpType::Rc,
        capabilities,
        send_cq: &cq,
        recv_cq: &cq,
        srq: None,
        signal_all: false,
    };
    let mut qp = device.create_qp(&pd, &init)?;
    for attributes in transitions(path) {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes)?;
    }
    let read = device.query_qp(&mut qp)?;
    assert_eq!((read.state, read.path.map(|path| path.dgid)), (Some(QpState::Rts), Some(rig.gid)));
    let fast = device.alloc_fast_key(&pd, 16)?;
    device.deregister(RKey::truncated(fast.get()))?;
    device.destroy_qp(qp, &mut [&mut cq])?;
    device.destroy_cq(cq)?;
    device.destroy_ah(ah)?;
    device.dealloc_mw(mw)?;
    device.dealloc_mr(mr)?;
    device.dealloc_pd(pd)?;
    nic.reset_statistics()?;
    nic.check()?;
    nic.close()
}

/// What became of the paths.
#[derive(Debug, Default)]
struct Outcome {
    errors: usize,
    harmless: usize,
}

impl Outcome {
    /// Lives once with what goes wrong, and once more without. `obeys` says that the device gets to know what the driver tells
    /// it, or nothing: it must not touch memory that is not its own then.
    fn try_once(&mut self, rig: &Rig, obeys: bool, what: &dyn std::fmt::Debug) {
        match life(rig) {
            Ok(()) => self.harmless += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                self.errors += 1;
            }
        }
        rig.slot.access_faults().clear();
        rig.slot.command_faults().clear();
        if rig.slot.access_faults().is_removed() {
            rig.slot.replug();
        }
        life(rig).unwrap_or_else(|error| panic!("second bring-up after {what:?}: {error}"));
        assert_eq!((rig.slot.memory().allocated(), rig.slot.abandoned()), (0, 0), "after {what:?}");
        assert!(!obeys || rig.slot.violations() == 0, "DMA outside of what was shared after {what:?}");
    }
}

/// How many there are of something in one life.
fn count(of: impl Fn(&Slot) -> u64) -> u64 {
    let rig = plug();
    rig.slot.access_faults().clear();
    rig.slot.command_faults().clear();
    life(&rig).unwrap_or_else(|error| panic!("{error}"));
    rig.assert_clean();
    of(&rig.slot)
}

#[test]
fn every_command_fails_in_every_way() {
    let commands = count(|slot| slot.command_faults().commands());
    assert!(commands > 30, "{commands}");
    let mut outcome = Outcome::default();
    for fault in CommandFault::ALL {
        let rig = plug();
        for at in 0..commands {
            rig.slot.command_faults().strike(at, fault);
            outcome.try_once(&rig, true, &(fault, at));
        }
    }
    // A refusal, silence, a wrong number and a reset of its own are always an error.
    assert!(outcome.errors as u64 > 3 * commands && outcome.harmless > 0, "{outcome:?}");
}

#[test]
fn every_access_fails_in_every_way() {
    let accesses = count(|slot| slot.access_faults().accesses());
    assert!(accesses > 500, "{accesses}");
    let mut outcome = Outcome::default();
    for fault in AccessFault::ALL {
        let rig = plug();
        // Half of an address may be what was lost.
        let obeys = fault != AccessFault::Lost;
        for at in 0..accesses {
            rig.slot.access_faults().strike(at, fault);
            outcome.try_once(&rig, obeys, &(fault, at));
        }
    }
    assert!(outcome.errors as u64 > accesses && outcome.harmless > 0, "{outcome:?}");
}

#[test]
fn memory_runs_out_at_every_step() {
    let rig = plug();
    life(&rig).unwrap_or_else(|error| panic!("{error}"));
    let needed = rig.slot.counts().memory;
    assert!(needed <= 4 << 20, "{needed}");
    let mut errors = 0;
    for limit in (0..needed).step_by(4096) {
        rig.slot.limit_memory(limit);
        errors += usize::from(life(&rig).is_err());
        rig.assert_released();
    }
    assert_eq!(errors, needed / 4096);
    rig.slot.limit_memory(needed);
    assert_eq!(life(&rig), Ok(()));
    rig.assert_clean();
}
