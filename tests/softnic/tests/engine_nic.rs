//! What a NIC does between engine and host: rings, CQE writes, doorbells, and the faults of these.

mod engine_common;

use std::sync::Arc;

use directverbs::verbs::{CqId, Gid, Mtu};
use directverbs_softnic::bus::{Bus, BusError, HostBlock, HostMemory};
use directverbs_softnic::clock::Clock;
use directverbs_softnic::device::{CqConfig, Memory, NicConfig, Notification, RingConfig};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::nic::Nic;
use engine_common::{Recorder, mac};

const ENTRIES: u32 = 64;
const CERTAIN: u32 = 1_000_000;

struct Rig {
    nic: Nic<Recorder>,
    memory: Arc<HostMemory>,
    ring: HostBlock,
    cq: CqId,
    clock: Clock,
}

impl Rig {
    fn new(faults: FaultPlan) -> Self {
        let memory = HostMemory::new();
        let ring = memory.alloc(4096);
        let config = NicConfig {
            mac: mac(1),
            gids: vec![Gid::default()],
            mtu: Mtu::B1024,
            device_memory: 256,
            all_memory_key: None,
        };
        let clock = Clock::simulated();
        let mut nic = Nic::new(Recorder::default(), config, memory.clone(), clock.clone());
        nic.set_faults(faults, 3);
        let at = RingConfig { memory: Memory::Host(ring.addr()), entries: ENTRIES, stride: 64 };
        let cq = nic.create_cq(&CqConfig { id: None, ring: at, handle: 0, vector: 6 }).unwrap();
        Self { nic, memory, ring, cq, clock }
    }

    /// Writes a CQE that holds its position.
    fn push(&mut self) {
        self.nic.hardware().push_cqe(self.cq, |position| (position + 1).to_le_bytes());
    }

    fn entry(&self, index: u32) -> u64 {
        let mut bytes = [0; 8];
        assert!(self.ring.read(64 * index as usize, &mut bytes));
        u64::from_le_bytes(bytes)
    }
}

#[test]
fn cqes_follow_each_other_around_the_ring() {
    let mut rig = Rig::new(FaultPlan::NONE);
    for _ in 0..ENTRIES + 3 {
        rig.push();
    }
    assert_eq!([rig.entry(2), rig.entry(3), rig.entry(63)], [67, 4, 64]);
    assert_eq!(rig.nic.hardware().cq_position(rig.cq), Some(67));
}

#[test]
fn a_late_cqe_holds_up_the_later_ones_and_their_notification() {
    let mut rig = Rig::new(FaultPlan { delay_cqe: CERTAIN, ..FaultPlan::NONE });
    rig.push();
    rig.nic.set_faults(FaultPlan::NONE, 3);
    rig.push();
    rig.nic.hardware().notify_cq(rig.cq);
    assert_eq!([rig.entry(0), rig.entry(1)], [0, 0]);
    assert_eq!(rig.nic.take_notification(), None);
    let due = rig.nic.next_timer().unwrap();
    rig.clock.advance_to(due - 1);
    assert!(!rig.nic.step());
    rig.clock.advance_to(due);
    assert!(rig.nic.step());
    assert_eq!([rig.entry(0), rig.entry(1)], [1, 2]);
    assert_eq!(rig.nic.take_notification(), Some(Notification::Cq(rig.cq)));
    assert_eq!(rig.memory.take_interrupts(), [6]);
    assert_eq!(rig.nic.next_timer(), None);
}

#[test]
fn a_doubled_cqe_takes_two_entries() {
    let mut rig = Rig::new(FaultPlan { duplicate_cqe: CERTAIN, ..FaultPlan::NONE });
    rig.push();
    assert_eq!([rig.entry(0), rig.entry(1), rig.entry(2)], [1, 2, 0], "encoded for each place");
}

#[test]
fn a_corrupt_cqe_differs_in_one_bit() {
    let mut rig = Rig::new(FaultPlan { corrupt_cqe: CERTAIN, ..FaultPlan::NONE });
    rig.push();
    assert_eq!((rig.entry(0) ^ 1).count_ones(), 1);
}

#[test]
fn a_cqe_without_memory_is_told_to_the_host() {
    let mut rig = Rig::new(FaultPlan::NONE);
    let gone = RingConfig { memory: Memory::Host(64), entries: ENTRIES, stride: 64 };
    rig.nic.hardware().switch_cq(rig.cq, gone, 0);
    rig.push();
    assert_eq!(rig.nic.take_notification(), Some(Notification::CqError(rig.cq)));
}

#[test]
fn a_ring_may_lie_in_pages_or_in_the_device() {
    let mut rig = Rig::new(FaultPlan::NONE);
    let (one, two) = (rig.memory.alloc(4096), rig.memory.alloc(4096));
    let pages = Memory::Pages { shift: 12, first: 0, pages: [two.addr(), one.addr()].into() };
    let scattered = RingConfig { memory: pages, entries: 128, stride: 64 };
    let inside = RingConfig { memory: Memory::Device(128), entries: 2, stride: 64 };
    let hardware = rig.nic.hardware();
    for (ring, offset) in [(&scattered, 4090), (&inside, 100)] {
        hardware.write_ring(ring, offset, b"across pages").unwrap();
        let mut bytes = [0; 12];
        hardware.read_ring(ring, offset, &mut bytes).unwrap();
        assert_eq!(&bytes, b"across pages");
        let end = ring.bytes();
        assert!(hardware.read_ring(ring, end - 11, &mut bytes).is_err());
        assert!(hardware.write_ring(ring, u64::MAX, &bytes).is_err());
    }
    assert_eq!(&hardware.device_memory()[228..240], b"across pages");
    let mut bytes = [0; 6];
    assert!(one.read(0, &mut bytes));
    assert_eq!(&bytes, b" pages");
}

#[test]
fn a_store_to_device_memory_stays_inside() {
    let mut rig = Rig::new(FaultPlan::NONE);
    rig.nic.device_store(250, &[7; 6]);
    rig.nic.device_store(251, &[9; 6]);
    rig.nic.device_store(u64::MAX, &[9; 6]);
    let hardware = rig.nic.hardware();
    assert_eq!(hardware.device_memory()[249..], [0, 7, 7, 7, 7, 7, 7]);
}

#[test]
fn the_bus_reaches_blocks_and_nothing_else() {
    let memory = HostMemory::new();
    let block = memory.alloc(5000);
    assert_eq!(block.len(), 8192, "whole pages");
    let addr = block.addr();
    let mut bytes = [0; 8];
    memory.publish(addr + 8184, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    memory.read(addr + 8184, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
    for at in [addr - 1, addr + 8185, 0, u64::MAX] {
        assert_eq!(memory.read(at, &mut bytes), Err(BusError { addr: at, len: 8 }));
        assert!(memory.write(at, &bytes).is_err());
    }
    drop(block);
    assert!(memory.read(addr, &mut bytes).is_err(), "freed memory is gone from the bus");
}
