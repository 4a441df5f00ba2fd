//! bnxt_re as a PCI function, below any driver: what it answers, what it refuses, and what it counts as wrong.

mod bnxt_re_slots;

use bnxt_re_slots::{CHIPS, Machine};
use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use directverbs::bnxt_re::hwrm::mailbox::TRIGGER;
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use directverbs::bnxt_re::rcfw::cmdq;
use directverbs_bare::pci::{Command, command};
use directverbs_bare::{Caching, DmaMemory, Host, Registers};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::{ModelRegisters, Slot};

/// No completion ring, the function itself.
const NONE: [u8; 2] = [0xff; 2];
/// What a request that the device does not have is answered with.
const UNSUPPORTED: u16 = 0xffff;

/// Sends bytes to the mailbox, as no driver would.
struct Raw {
    machine: Machine,
    registers: ModelRegisters,
    doorbells: ModelRegisters,
    response: <Slot as Host>::Dma,
    sequence: u16,
}

impl Raw {
    fn new(chip: usize) -> Self {
        let machine = Machine::plug(&Fabric::new(FabricOptions::default()), CHIPS[chip], 1);
        let slot = &machine.slot;
        command::enable(slot, Command::MEMORY | Command::BUS_MASTER);
        let map = |bar, len| slot.map_bar(bar, 0, len, Caching::Uncached).expect("a BAR");
        let (registers, doorbells) = (map(0, 0x1000), map(2, 0x2_0000));
        let response = slot.dma(4096, 4096).expect("memory");
        Self { registers, doorbells, response, machine, sequence: 0 }
    }

    /// Sends a request of 64 bytes with `values` at offsets; gives the error code and the response.
    fn ask(&mut self, req_type: ReqType, values: &[(usize, u32)]) -> (u16, Vec<u8>) {
        self.response.zero();
        let mut request = [0; 64];
        request[..2].copy_from_slice(&req_type.0.to_le_bytes());
        request[2..4].copy_from_slice(&NONE);
        request[4..6].copy_from_slice(&self.sequence.to_le_bytes());
        request[6..8].copy_from_slice(&NONE);
        request[8..16].copy_from_slice(&self.response.device_address().to_le_bytes());
        for (at, value) in values {
            request[*at..*at + 4].copy_from_slice(&value.to_le_bytes());
        }
        self.registers.write_words(0, &request);
        self.registers.write32(TRIGGER, 1);
        let half = |at: usize| u16::from_le_bytes(self.response.load(at).expect("in the page"));
        let (len, error) = (usize::from(half(6)), half(0));
        assert_eq!((half(2), half(4)), (req_type.0, self.sequence), "{req_type}");
        let mut bytes = vec![0; len];
        assert!(self.response.read(0, &mut bytes));
        assert_eq!(bytes.last(), Some(&1), "{req_type}: the valid byte");
        self.sequence += 1;
        (error, bytes)
    }

    fn done(&mut self, req_type: ReqType, values: &[(usize, u32)]) -> Vec<u8> {
        let (error, bytes) = self.ask(req_type, values);
        assert_eq!(error, 0, "{req_type}: {:?}", self.machine.violations());
        bytes
    }

    /// As far as a driver that is registered.
    fn registered(chip: usize) -> Self {
        let mut raw = Self::new(chip);
        for req_type in [ReqType::VER_GET, ReqType::FUNC_RESET, ReqType::FUNC_DRV_RGTR] {
            raw.done(req_type, &[]);
        }
        raw
    }

    fn violations(&self) -> usize {
        self.machine.violations().len()
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[test]
fn what_linux_asks_at_probe_is_answered_as_it_expects() {
    for chip in 0..CHIPS.len() {
        let mut raw = Raw::new(chip);
        let version = raw.done(ReqType::VER_GET, &[]);
        assert_eq!(version.len(), 176);
        assert_eq!(half(&version, 112), [0x1750, 0x1760][chip]);
        assert_eq!((half(&version, 118), version[127]), (128, 1));
        assert!(half(&version, 168) >= 336, "requests of host memory");
        assert_ne!(version[80], 0, "the package has a name");
        raw.done(ReqType::FUNC_RESET, &[]);
        let qcaps = raw.done(ReqType::FUNC_QCAPS, &[(16, 0xffff)]);
        assert_eq!(
            (qcaps.len(), qcaps[12] & 0x18, qcaps[16..22].to_vec()),
            (144, 0x18, vec![2, 0, 0, 0, 0, 1])
        );
        let queues = raw.done(ReqType::QUEUE_QPORTCFG, &[]);
        assert!(queues[8] >= 1);
        let backing = [ReqType::FUNC_BACKING_STORE_QCAPS, ReqType::FUNC_BACKING_STORE_QCAPS_V2];
        assert_eq!(raw.ask(backing[1 - chip], &[]).0, UNSUPPORTED, "the other version");
        raw.done(backing[chip], &[]);
        raw.done(ReqType::FUNC_RESOURCE_QCAPS, &[]);
        raw.done(ReqType::FUNC_DRV_RGTR, &[]);
        // 16 MSI-X vectors, 16 completion rings, 4 of each kind of ring, 2 VNICs, 8 statistics contexts.
        let enables = 0x20_0000 | 0x8 | 0x10 | 0x20 | 0x80 | 0x100;
        let rings = [
            (16, 16 << 16 | 0xffff),
            (24, enables),
            (32, 16 << 16),
            (36, 4 << 16 | 4),
            (40, 2 << 16),
            (44, 8),
        ];
        raw.done(ReqType::FUNC_CFG, &rings);
        let qcfg = raw.done(ReqType::FUNC_QCFG, &[]);
        assert_eq!(qcfg.len(), 176);
        for (at, reserved) in [(26, 16), (28, 4), (30, 4), (34, 2), (70, 8), (72, 16)] {
            assert_eq!(half(&qcfg, at), reserved, "byte {at}");
        }
        let link = raw.done(ReqType::PORT_PHY_QCFG, &[]);
        assert_eq!((link[8], half(&link, 10), link[12]), (2, 0x3e8, 1));
        for unsupported in [
            ReqType::NVM_GET_DEV_INFO,
            ReqType::FW_SET_TIME,
            ReqType::QUEUE_PFCWD_TIMEOUT_QCAPS,
            ReqType::PORT_LED_QCAPS,
            ReqType::SELFTEST_QLIST,
            ReqType::QUEUE_DSCP_QCAPS,
            ReqType::TEMP_MONITOR_QUERY,
            ReqType::PORT_MAC_QCAPS,
            ReqType::RING_AGGINT_QCAPS,
        ] {
            let (error, bytes) = raw.ask(unsupported, &[]);
            assert_eq!((error, bytes.len()), (UNSUPPORTED, 16), "{unsupported}");
        }
        // What opening the interface of Ethernet asks for.
        for supported in [
            ReqType::VNIC_QCAPS,
            ReqType::PORT_PHY_QCAPS,
            ReqType::STAT_CTX_ALLOC,
            ReqType::RING_ALLOC,
            ReqType::VNIC_ALLOC,
            ReqType::VNIC_CFG,
            ReqType::VNIC_RSS_CFG,
            ReqType::VNIC_RSS_QCFG,
            ReqType::CFA_L2_FILTER_ALLOC,
            ReqType::CFA_L2_SET_RX_MASK,
            ReqType::RING_CMPL_RING_CFG_AGGINT_PARAMS,
            ReqType::PORT_QSTATS,
            ReqType::PORT_QSTATS_EXT,
            ReqType::CFA_L2_FILTER_FREE,
            ReqType::VNIC_FREE,
            ReqType::STAT_CTX_FREE,
        ] {
            raw.done(supported, &[]);
        }
        assert_eq!(raw.machine.violations(), [""; 0]);
    }
}

#[test]
fn a_driver_that_breaks_the_order_is_refused_and_counted() {
    for chip in 0..CHIPS.len() {
        let mut raw = Raw::new(chip);
        raw.done(ReqType::FUNC_QCAPS, &[]);
        assert_eq!(raw.violations(), 1, "a request before VER_GET");
        assert_eq!(raw.ask(ReqType::RING_ALLOC, &[]).0, 3, "access denied");
        assert!(raw.machine.violations().last().is_some_and(|last| last.contains("without a driver")));
        let mut raw = Raw::registered(chip);
        assert_eq!(raw.ask(ReqType::STAT_CTX_ALLOC, &[]).0, 4, "nothing is reserved");
        assert_eq!(raw.violations(), 0);
        raw.done(ReqType::FUNC_CFG, &[(16, 4 << 16 | 0xffff), (24, 0x20_0000)]);
        // A notification queue of 256 entries at an address that is no memory, and at one that is not aligned.
        for (n, address) in [0x5000, raw.response.device_address() as u32 | 8].into_iter().enumerate() {
            let (error, _) = raw.ask(ReqType::RING_ALLOC, &[(20, 5), (24, address), (40, 256)]);
            assert_eq!((error, raw.violations()), (2, n + 1));
        }
        for (ring_type, ring) in [(5, 0), (0, 9)] {
            assert_eq!(raw.ask(ReqType::RING_FREE, &[(16, ring << 16 | ring_type)]).0, 2);
        }
        assert_eq!(raw.ask(ReqType::STAT_CTX_FREE, &[(16, 7)]).0, 2);
        assert_eq!(raw.violations(), 5);
    }
}

#[test]
fn stores_to_places_where_nothing_belongs_are_counted() {
    for chip in 0..CHIPS.len() {
        let raw = Raw::registered(chip);
        raw.registers.write32(TRIGGER, 2);
        raw.registers.write32(cmdq::TRIGGER, 1);
        raw.registers.write32(cmdq::PRODUCER, cmdq::FIRST | 1);
        raw.registers.write32(cmdq::TRIGGER, 1);
        let nq =
            |id| DbWord::ring(DbType::NQ, Xid::ring(id), DbIndex::ZERO, Epoch(false), Toggle::ZERO).to_u64();
        raw.doorbells.write64(0x1_0000, nq(3));
        raw.doorbells.write64(0x8000, nq(3));
        assert_eq!(raw.violations(), 5, "{:?}", raw.machine.violations());
        // Registers that are not there take stores and read as zeros; the status says that all is well.
        raw.registers.write32(0x408, 0x0310_0000);
        assert_eq!((raw.registers.read32(0x408), raw.registers.read32(0x520)), (0, 0x8000));
        assert_eq!(raw.violations(), 5);
    }
}

#[test]
fn a_doorbell_may_come_in_two_halves() {
    let raw = Raw::registered(0);
    let word = DbWord::ring(DbType::NQ, Xid::ring(3), DbIndex::ZERO, Epoch(false), Toggle::ZERO).to_u64();
    raw.doorbells.write32(0x1_0000, word as u32);
    assert_eq!(raw.violations(), 0);
    raw.doorbells.write32(0x1_0004, (word >> 32) as u32);
    assert_eq!(raw.machine.violations(), ["device: NQ doorbell, no ring 3"]);
}

#[test]
fn an_armed_ring_interrupts_once() {
    let mut raw = Raw::registered(0);
    raw.done(ReqType::FUNC_CFG, &[(16, 4 << 16 | 0xffff), (24, 0x20_0000)]);
    let slot = raw.machine.slot.clone();
    let msix = directverbs_bare::pci::Msix::find(&slot).unwrap().expect("a capability");
    let table = slot.map_bar(4, 0, msix.table_len(), Caching::Uncached).unwrap();
    msix.set(&table, 2, 0xfee0_0000, 0x42);
    msix.enable(&slot, true);
    let ring = slot.dma(4096, 4096).unwrap();
    let [low, high] = [ring.device_address() as u32, (ring.device_address() >> 32) as u32];
    let made = raw.done(ReqType::RING_ALLOC, &[(20, 5), (24, low), (28, high), (40, 256), (44, 2)]);
    let id = half(&made, 8);
    assert_eq!(slot.memory().take_interrupts(), [0; 0]);
    let arm = DbWord::ring(DbType::NQ_ARM, Xid::ring(id), DbIndex::ZERO, Epoch(false), Toggle::ZERO).to_u64();
    raw.doorbells.write64(0x1_0000, arm);
    let mut commands = slot.dma(4096, 4096).unwrap();
    // QUERY_VERSION, twice.
    for n in 0..2u8 {
        assert!(commands.write(16 * usize::from(n), &[0x8b, 1, 0, 0, n, 0]));
    }
    raw.registers.write_words(cmdq::MAILBOX, &commands.device_address().to_le_bytes());
    raw.registers.write32(cmdq::MAILBOX + 8, 16 << 2 | u32::from(id) << 16);
    for (producer, interrupts) in [(cmdq::FIRST | 1, vec![2]), (2, vec![])] {
        raw.registers.write32(cmdq::PRODUCER, producer);
        raw.registers.write32(cmdq::TRIGGER, 1);
        assert_eq!(slot.memory().take_interrupts(), interrupts, "{producer:#x}");
    }
    // Armed again while entries wait, it interrupts at once.
    raw.doorbells.write64(0x1_0000, arm);
    assert_eq!(slot.memory().take_interrupts(), [2]);
    assert_eq!(raw.machine.violations(), [""; 0]);
}
