//! bnxt_re as a PCI function, below any driver: what it answers, what it refuses, and what it counts as wrong.

mod bnxt_re_raw;
mod bnxt_re_slots;

use bnxt_re_raw::{Raw, UNSUPPORTED, half};
use bnxt_re_slots::CHIPS;
use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use directverbs::bnxt_re::hwrm::mailbox::TRIGGER;
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use directverbs::bnxt_re::rcfw::cmdq;
use directverbs_bare::{Caching, Clock, DmaMemory, Host, Registers};

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
        // The time, and what opening the interface of Ethernet asks for.
        for supported in [
            ReqType::FW_SET_TIME,
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

#[test]
fn statistics_are_written_to_the_host_once_a_period() {
    for chip in 0..CHIPS.len() {
        let mut raw = Raw::registered(chip);
        raw.done(ReqType::FUNC_CFG, &[(16, 0xffff), (24, 0x100), (44, 2)]);
        let slot = raw.machine.slot.clone();
        let mut block = slot.dma(4096, 4096).unwrap();
        assert!(block.write(0, &[0xff; 4096]));
        let [low, high] = [block.device_address() as u32, (block.device_address() >> 32) as u32];
        // Every second, 160 bytes, of RoCE.
        let asked = [(16, low), (20, high), (24, 1000), (28, 1 | 160 << 16)];
        let id = u32::from(half(&raw.done(ReqType::STAT_CTX_ALLOC, &asked), 8));
        let written = |block: &<directverbs_softnic::pci::Slot as Host>::Dma| {
            let mut bytes = [0; 161];
            assert!(block.read(0, &mut bytes));
            (bytes[..160] == [0; 160], bytes[160])
        };
        let pass = |ms: u64| {
            let until = slot.now_ns() + ms * 1_000_000;
            while slot.now_ns() < until {
                slot.relax();
            }
        };
        pass(900);
        assert_eq!(written(&block), (false, 0xff), "too early");
        pass(200);
        slot.relax();
        assert_eq!(written(&block), (true, 0xff));
        raw.done(ReqType::STAT_CTX_FREE, &[(16, id)]);
        assert!(block.write(0, &[0xff; 4096]));
        pass(2100);
        assert_eq!(written(&block), (false, 0xff), "it is gone");
        // One that would be written where no memory is, is refused.
        let nowhere = [(16, 0x1000), (20, 0), (24, 1000), (28, 1 | 160 << 16)];
        assert_eq!(raw.ask(ReqType::STAT_CTX_ALLOC, &nowhere).0, 2);
        assert_eq!((raw.violations(), slot.violations()), (1, 1));
    }
}
