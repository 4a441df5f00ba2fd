//! What Linux's drivers ask an ionic NIC when they probe it, step by step, and what they need to hear. Commands and answers are
//! built by offset, so that the library's own encoders are not the judge of themselves.

mod ionic_probe_parts;

use directverbs_bare::pci::Config as _;
use directverbs_bare::pci::Msix;
use directverbs_bare::{Clock as _, Host as _, Registers as _};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use ionic_probe_parts::host::{Cmd, DATA, Driver, INTERRUPTS, PAGE, Shared, cmd, le, plug};

const TXQ: u8 = 3;
const RXQ: u8 = 2;

fn driver() -> Driver {
    plug(&Fabric::new(FabricOptions::default()), 1)
}

/// The LIF's identity, as the window has it.
fn lif_identity(driver: &Driver) -> Vec<u8> {
    driver.dev(cmd(20).u8(1, 0).u8(2, 1));
    driver.window(648)
}

/// Device commands 1 to 12, in order. Gives the page that the device keeps up to date about the LIF, and that of the port.
fn probe(driver: &mut Driver) -> [Shared; 2] {
    driver.dev(cmd(3));
    // The driver's identity goes with IDENTIFY.
    driver.try_dev(cmd(1).u8(1, 2), &[1, 0, 0, 0]).expect("IDENTIFY");
    let device = driver.window(56);
    let (intrs, pages) = (le::<4>(&device, 12), le::<4>(&device, 16));
    assert!(le::<4>(&device, 8) == 1 && intrs >= 1 + 16 + 4 && pages >= 2, "{device:?}");
    assert!(le::<4>(&device, 20) > 0 && le::<4>(&device, 24) > 0, "coalescing factors");
    let lif = lif_identity(driver);
    assert_eq!(le::<8>(&lif, 0), 3, "Ethernet and RDMA");
    driver.dev(cmd(2));
    driver.dev(cmd(10).u8(2, 1));
    let port = driver.window(384);
    assert!(le::<4>(&port, 20) >= 10_000 && le::<4>(&port, 8) > 1500, "speeds and frames of the port");
    let port_info = driver.memory(4096);
    driver.try_dev(cmd(11).u64(8, port_info.at()), &port[128..144]).expect("PORT_INIT");
    driver.dev(cmd(14).u8(2, 0).u8(4, 2));
    assert_eq!(port_info.read(256, 9)[8], 1, "the port is up");
    assert_eq!(lif_identity(driver), lif, "asked again, the same is told");
    for (kind, version, desc, comp) in [(0u8, 0u8, 64, 16), (1, 0, 64, 64), (2, 2, 16, 16), (3, 3, 16, 16)] {
        let told = driver.dev(cmd(39).u8(4, kind).u8(5, version));
        let queue = driver.window(32);
        assert!(told[4] == queue[0] && queue[0] <= version, "version of queues of kind {kind}");
        assert_eq!((le::<2>(&queue, 16), le::<2>(&queue, 18)), (desc, comp), "kind {kind}");
    }
    let lif_info = driver.memory(1344);
    let made = driver.dev(cmd(21).u64(8, lif_info.at()));
    driver.admin_up(le::<2>(&made, 2), pages);
    let has = driver.slot.bar_len(2);
    assert!(has >= PAGE as u64 * pages * (le::<2>(&made, 2) + 1), "doorbell BAR of {has:#x} bytes");
    [lif_info, port_info]
}

/// Commands 1 to 5 of the admin queue. Gives the notify queue.
fn lif_up(driver: &mut Driver) -> Shared {
    let notify = driver.memory(64 * 64);
    let made = driver.admin(cmd(40).u8(4, 1).u16(14, 0).u16(16, 3).u8(19, 6).u64(20, notify.at()));
    assert!(made[8] < 8, "register of the notify queue");
    let wanted = 0x3ff;
    let granted = le::<8>(&driver.admin(cmd(24).u8(1, 4).u64(4, wanted))[..12], 4);
    assert!(granted & !wanted == 0 && granted & 1 << 5 != 0, "features {granted:#x}");
    assert_eq!(driver.admin(cmd(23).u8(1, 3))[4..10], driver.mac.0, "the station's address");
    let mac = driver.mac.0;
    let filter = driver.admin(cmd(31).u16(8, 1).put(10, &mac));
    assert!(le::<4>(&filter, 4) > 0, "a filter has a number");
    driver.admin(cmd(24).u8(1, 1).put(4, b"eth7\0"));
    notify
}

/// Creates transmit or receive queue 0 with 16 entries, lists and interrupt `intr`, and starts it.
struct EthQueue {
    kind: u8,
    ring: Shared,
    completions: Shared,
    lists: Shared,
    head: u16,
    taken: u16,
    id: u64,
    qtype: u8,
}

impl EthQueue {
    fn create(driver: &mut Driver, kind: u8, intr: u16) -> Self {
        let [ring, completions, lists] = [16 * 16, 16 * 16, 16 * 128].map(|bytes| driver.memory(bytes));
        let init = cmd(40).u8(4, kind).u16(14, intr).u16(16, 1 | 4).u8(19, 4);
        let init = init.u64(20, ring.at()).u64(28, completions.at()).u64(36, lists.at());
        let made = driver.admin(init);
        driver.admin(cmd(41).u8(1, kind).u8(8, 1));
        Self { kind, ring, completions, lists, head: 0, taken: 0, id: le::<4>(&made, 4), qtype: made[8] }
    }

    fn post(&mut self, driver: &Driver, desc: &[u8; 16], list: &[u8]) {
        let entry = usize::from(self.head % 16);
        self.ring.write(entry * 16, desc);
        self.lists.write(entry * 128, list);
        self.head += 1;
        driver.ring(self.qtype, self.id, self.head % 16);
    }

    /// The next completion, if there is one.
    fn poll(&mut self) -> Option<Vec<u8>> {
        let comp = self.completions.read(usize::from(self.taken % 16) * 16, 16);
        let color = u8::from((self.taken / 16).is_multiple_of(2));
        if comp[15] >> 7 != color {
            return None;
        }
        assert_eq!(le::<2>(&comp, 2), u64::from(self.taken % 16), "comp_index of kind {}", self.kind);
        self.taken += 1;
        Some(comp)
    }
}

fn tx_desc(addr: u64, len: u16, lists: u64) -> [u8; 16] {
    let mut desc = [0; 16];
    desc[..8].copy_from_slice(&(addr << 12 | lists << 8).to_le_bytes());
    desc[8..10].copy_from_slice(&len.to_le_bytes());
    desc
}

fn rx_desc(addr: u64, len: u16, lists: u8) -> [u8; 16] {
    let mut desc = [0; 16];
    desc[0] = lists;
    desc[6..8].copy_from_slice(&len.to_le_bytes());
    desc[8..].copy_from_slice(&addr.to_le_bytes());
    desc
}

fn element(addr: u64, len: u16) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&addr.to_le_bytes());
    bytes[8..10].copy_from_slice(&len.to_le_bytes());
    bytes
}

fn frame(to: [u8; 6], from: [u8; 6], len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = [&to[..], &from, &[0x08, 0x00]].concat();
    frame.extend((frame.len()..len).map(|i| i as u8));
    frame
}

#[test]
fn the_function_is_what_the_driver_looks_for() {
    let driver = driver();
    assert_eq!(driver.slot.id(), Some((0x1dd8, 0x1002)));
    assert_eq!(driver.slot.read32(8) >> 16, 0x0200, "an Ethernet controller");
    assert!(driver.slot.bar_len(0) >= 0x8000 && driver.slot.bar_len(4) > 0);
    assert!(Msix::find(&driver.slot).unwrap().unwrap().vectors >= 1 + 16 + 16);
    assert_eq!(driver.bar.read32(0), 0x4445_5649);
    let [_, asic, _, status] = driver.bar.read32(4).to_le_bytes();
    assert!(asic != 0 && asic != 2 && status & 1 == 1 && status != 0xff);
    let mut text = [0; 64];
    driver.bar.read_words(12, &mut text);
    assert!(text.iter().all(|byte| *byte == 0 || byte.is_ascii_graphic()));
    let beat = driver.bar.read32(8);
    (0..400).for_each(|_| driver.slot.relax());
    assert!(beat > 0 && driver.bar.read32(8) > beat, "the heart beats");
}

#[test]
fn probe_brings_the_interface_up() {
    let mut driver = driver();
    let [lif_info, _port] = probe(&mut driver);
    let notify = lif_up(&mut driver);
    driver.admin(cmd(24).u8(1, 2).u32(4, 9000));
    let info = lif_info.read(0, 320);
    assert_eq!((&info[4..9], le::<4>(&info, 20)), (&b"eth7\0"[..], 9000), "what was set is told");
    assert_eq!((&info[24..30], le::<2>(&info, 266)), (&driver.mac.0[..], 1), "the link is up");
    assert_eq!(le::<8>(&info, 256), 0, "no notification so far");
    driver.dev(cmd(14).u8(2, 0).u8(4, 1));
    let event = notify.read(0, 16);
    assert_eq!((le::<8>(&event, 0), le::<2>(&event, 8), le::<2>(&event, 10)), (1, 1, 2), "link down");
    driver.dev(cmd(14).u8(2, 0).u8(4, 2));
    assert_eq!(le::<8>(&notify.read(64, 8), 0), 2, "numbers grow");
    assert_eq!(le::<8>(&lif_info.read(256, 8), 0), 2, "the last number is told with the status");
    driver.assert_clean();
}

#[test]
fn identities_leave_room_for_what_the_drivers_compute() {
    let mut driver = driver();
    let _infos = probe(&mut driver);
    let lif = lif_identity(&driver);
    let spread = le::<2>(&lif, 20);
    assert!(spread > 0 && spread.is_power_of_two(), "rss_ind_tbl_sz {spread}");
    assert!(le::<4>(&lif, 22) < le::<4>(&lif, 26) && le::<4>(&lif, 26) > 1518);
    for kind in 0..4 {
        assert!(le::<4>(&lif, 136 + 40 + 4 * kind) >= 1, "queues of kind {kind}");
    }
    assert!((1..=2).contains(&lif[392]) && lif[393] >= 11 && lif[394] == 19 && lif[395] <= 1);
    assert!(le::<4>(&lif, 396) > 0 && le::<4>(&lif, 400) > 1 && le::<4>(&lif, 404) > 1);
    assert!((6..=16).contains(&lif[408]));
    let shift = lif[414];
    let queues = |at: usize| (lif[at], le::<4>(&lif, at + 4), le::<4>(&lif, at + 8));
    let registers: Vec<u8> = [424, 436, 448, 460, 472].map(|at| queues(at).0).to_vec();
    assert!(registers.iter().all(|qtype| *qtype < 8), "{registers:?}");
    assert_eq!(registers.iter().collect::<std::collections::BTreeSet<_>>().len(), 5);
    assert!((1..=4).contains(&queues(424).1) && queues(472).1 >= 4 && queues(472).2 == 0);
    for at in [436, 460] {
        let (_, count, base) = queues(at);
        assert!(count.is_power_of_two() && count >= 2 << shift && base == 0, "{count} queues");
    }
    assert_eq!(le::<2>(&lif, 484), 0, "no statistics are promised that are not there");
}

#[test]
fn the_interface_opens_and_frames_go_both_ways() {
    let fabric = Fabric::new(FabricOptions::default());
    let mut ends = [1, 2].map(|nth| plug(&fabric, nth));
    let infos = ends.each_mut().map(|end| (probe(end), lif_up(end)));
    let mut queues = ends.each_mut().map(|end| {
        let tx = EthQueue::create(end, TXQ, 2);
        let rx = EthQueue::create(end, RXQ, 1);
        let table = end.memory(128);
        end.admin(cmd(24).u8(1, 5).u64(52, table.at()));
        end.admin(cmd(30).u16(4, 1 | 2 | 4));
        end.credits(1, 0);
        end.credits(2, 0);
        end.interrupts();
        (tx, rx)
    });
    let mut buffers = ends.each_ref().map(|end| [end.memory(4096), end.memory(4096)]);
    let [a, b] = &ends;
    let ([(a_tx, _), (_, b_rx)], [a_buf, b_buf]) = (&mut queues, &mut buffers);
    // A long frame from two buffers into two: the lists work.
    let sent = frame(b.mac.0, a.mac.0, 3000);
    a_buf[0].write(100, &sent[..1000]);
    a_buf[1].write(0, &sent[1000..]);
    let list = [element(b_buf[1].at(), 4096)].concat();
    b_rx.post(b, &rx_desc(b_buf[0].at(), 2048, 1), &list);
    a_tx.post(a, &tx_desc(a_buf[0].at() + 100, 1000, 1), &element(a_buf[1].at(), 2000));
    let done = a_tx.poll().expect("a transmit completion comes at once");
    assert_eq!((done[0], a.interrupts()), (0, vec![2]));
    let mut got = None;
    b.wait("frame", || {
        got = b_rx.poll();
        got.is_some()
    });
    let got = got.unwrap();
    assert_eq!((got[0], got[1], le::<2>(&got, 12), got[15] & 0x7f), (0, 1, 3000, 1));
    assert_eq!([b_buf[0].read(0, 2048), b_buf[1].read(0, 952)].concat(), sent);
    assert_eq!(b.interrupts(), [1]);
    // No buffer is posted: the frame is dropped and counted. One for somebody else is not even that.
    a_buf[0].write(0, &frame([0xff; 6], a.mac.0, 60));
    a_tx.post(a, &tx_desc(a_buf[0].at(), 60, 0), &[]);
    a_buf[0].write(0, &frame([0x02, 9, 9, 9, 9, 9], a.mac.0, 60));
    a_tx.post(a, &tx_desc(a_buf[0].at(), 60, 0), &[]);
    let stat = |info: &Shared, at: usize| le::<8>(&info.read(at, 8), 0);
    let [([a_info, _], _), ([b_info, _], _)] = &infos;
    b.wait("counters", || stat(b_info, 584) == 1);
    a.slot.relax();
    assert_eq!((stat(a_info, 448), stat(a_info, 456), stat(a_info, 488)), (3060, 2, 1), "sent");
    assert_eq!((stat(b_info, 320), stat(b_info, 328)), (3000, 1), "received");
    assert_eq!((stat(b_info, 424), b_rx.poll()), (1, None), "dropped");
    ends.iter().for_each(Driver::assert_clean);
}

#[test]
fn the_rings_go_round_and_a_stopped_queue_waits() {
    let mut driver = driver();
    let (_infos, _notify) = (probe(&mut driver), lif_up(&mut driver));
    let mut tx = EthQueue::create(&mut driver, TXQ, 2);
    let mut buffer = driver.memory(4096);
    buffer.write(0, &frame([0xff; 6], driver.mac.0, 60));
    for _ in 0..40 {
        tx.post(&driver, &tx_desc(buffer.at(), 60, 0), &[]);
        assert!(tx.poll().is_some());
    }
    driver.admin(cmd(41).u8(1, TXQ).u8(8, 0));
    tx.post(&driver, &tx_desc(buffer.at(), 60, 0), &[]);
    assert_eq!(tx.poll(), None);
    driver.admin(cmd(41).u8(1, TXQ).u8(8, 1));
    assert!(tx.poll().is_some());
    driver.assert_clean();
    // What was not granted is refused, and the driver is told of.
    let mut tagged = tx_desc(buffer.at(), 60, 0);
    tagged[0] |= 1;
    tx.post(&driver, &tagged, &[]);
    assert_ne!(tx.poll().expect("an error")[0], 0);
    assert_eq!(driver.nic.lock().front_end().violations().len(), 1);
}

#[test]
fn interrupts_obey_mask_credits_and_the_coalescing_timer() {
    let mut driver = driver();
    let _infos = probe(&mut driver);
    assert_eq!(driver.interrupts(), [0u16; 0], "masked from the start");
    let count = |driver: &Driver| driver.bar.read32(INTERRUPTS + 8) & 0xffff;
    driver.admin(cmd(0));
    assert_eq!((driver.interrupts().len(), count(&driver)), (0, 1));
    // Unmasked with a masking interrupt: it comes once until it is unmasked again.
    driver.bar.write32(INTERRUPTS + 12, 1);
    driver.credits(0, 1);
    driver.admin(cmd(0));
    driver.admin(cmd(0));
    assert_eq!((driver.interrupts(), driver.bar.read32(INTERRUPTS + 4), count(&driver)), (vec![0], 1, 2));
    driver.credits(0, 2);
    assert_eq!((driver.interrupts().len(), count(&driver)), (0, 0));
    // 50 units of the timer.
    driver.bar.write32(INTERRUPTS, 50);
    driver.bar.write32(INTERRUPTS + 8, 0x3_0000);
    driver.admin(cmd(0));
    assert!(driver.interrupts().is_empty() && driver.bar.read32(INTERRUPTS + 16) > 0);
    driver.wait("the timer", || !driver.interrupts().is_empty());
    driver.assert_clean();
}

/// The RDMA admin queue, as the document has it.
struct RdmaQueue {
    commands: Shared,
    cqes: Shared,
    head: u16,
    done: u16,
    qtypes: [u8; 2],
}

impl RdmaQueue {
    /// Steps 1 to 4 of the RDMA part, with four event queues.
    fn create(driver: &mut Driver, lif: &[u8]) -> (Self, [Shared; 4]) {
        driver.admin(cmd(50));
        let events = [0u32, 1, 2, 3].map(|nth| {
            let ring = driver.memory(512 * 4);
            let queue = cmd(51).u32(4, nth).u32(8, 3 + nth).u8(14, 9).u8(15, 2);
            driver.admin(queue.u64(16, ring.at()));
            ring
        });
        let (commands, cqes) = (driver.memory(512 * 64), driver.memory(256 * 32));
        driver.admin(cmd(52).u32(4, 0).u32(8, 0).u8(14, 8).u8(15, 5).u64(16, cqes.at()));
        driver.admin(cmd(53).u32(4, 0).u32(8, 0).u8(14, 9).u8(15, 6).u64(16, commands.at()));
        (Self { commands, cqes, head: 0, done: 0, qtypes: [lif[424], lif[460]] }, events)
    }

    /// A command with its payload: its CQE has the first stride's index, and the color of its lap.
    fn run(&mut self, driver: &Driver, op: u8, payload: &[u8]) -> Result<(), u32> {
        let mut bytes = vec![op, 0];
        bytes.extend((payload.len() as u16).to_le_bytes());
        bytes.extend(payload);
        let first = self.head % 512;
        for (nth, stride) in bytes.chunks(64).enumerate() {
            self.commands.write((usize::from(first) + nth) % 512 * 64, stride);
        }
        self.head += bytes.len().div_ceil(64) as u16;
        driver.ring(self.qtypes[0], 0, self.head % 512);
        let cqe = self.cqes.read(usize::from(self.done % 256) * 32, 32);
        let be = |at: usize| u32::from_be_bytes(cqe[at..at + 4].try_into().unwrap());
        let word = be(28);
        assert_eq!(word & 1, u32::from((self.done / 256).is_multiple_of(2)), "color of command {op}");
        assert_eq!((word >> 5 & 7, word >> 8), (0, 0), "type and queue");
        assert_eq!(u16::from_be_bytes([cqe[0], cqe[1]]), first, "cmd_idx of command {op}");
        self.done += 1;
        driver.ring(self.qtypes[1], 0, self.done % 256);
        if word & 2 == 0 { Ok(()) } else { Err(be(24)) }
    }
}

fn create_cq(id: u32, eq: u32, ring: u64) -> Cmd {
    Cmd([0; 64]).u32(0, eq).u8(4, 7).u8(5, 5).u8(7, 12).u32(12, id).u32(16, !0).u32(20, 1).u64(24, ring)
}

#[test]
fn the_rdma_part_comes_up_with_its_management_queue_pair() {
    let mut driver = driver();
    let (_infos, _notify) = (probe(&mut driver), lif_up(&mut driver));
    let lif = lif_identity(&driver);
    let (mut rdma, events) = RdmaQueue::create(&mut driver, &lif);
    let shift = lif[414];
    // A completion queue on each of the two pipelines.
    let rings = [driver.memory(4096), driver.memory(4096)];
    for (id, ring) in [1u32, 1 << shift].into_iter().zip(&rings) {
        rdma.run(&driver, 1, &create_cq(id, 2, ring.at()).0[..34]).expect("CREATE_CQ");
    }
    let [sq, mut rq] = [driver.memory(4096), driver.memory(4096)];
    // Queue pair 1: datagrams, 64 entries of 64 bytes each way. It takes two strides.
    let qp = Cmd([0; 64])
        .u32(4, 0x8000u32.swap_bytes())
        .u32(8, 1)
        .u8(12, 6)
        .u8(13, 6)
        .u8(15, 12)
        .u32(16, !0)
        .u32(20, 1)
        .u64(24, sq.at())
        .u32(32, 1)
        .u8(36, 6)
        .u8(37, 6)
        .u8(39, 12)
        .u32(40, !0)
        .u32(44, 1)
        .u64(48, rq.at())
        .u32(56, 1)
        .u8(62, 3);
    rdma.run(&driver, 2, &qp.0).expect("CREATE_QP");
    let modify = |to_from: u8, mask: u32| {
        let cmd = Cmd([0; 64]).u32(0, mask.swap_bytes()).u8(39, to_from).u32(40, !0).u32(44, !0);
        cmd.u32(16, 0x8001_0000).u32(56, 1)
    };
    // INIT: state, P_Key, port and Q_Key; RTR: state; RTS: state and PSN.
    for (to_from, mask) in [(0x01, 0x71), (0x12, 1), (0x23, 0x1_0001)] {
        rdma.run(&driver, 9, &modify(to_from, mask).0[..60]).expect("MODIFY_QP");
    }
    // A receive request into memory by the reserved key.
    let mut wqe = [0; 64];
    wqe[9] = 1;
    wqe[12..16].copy_from_slice(&2048u32.to_be_bytes());
    wqe[32..40].copy_from_slice(&sq.at().to_be_bytes());
    wqe[40..44].copy_from_slice(&2048u32.to_be_bytes());
    rq.write(0, &wqe);
    driver.ring(lif[448], 1, 1);
    // QUERY_QP writes both halves, big-endian.
    let told = driver.memory(4096);
    let query = Cmd([0; 64]).u64(8, told.at()).u64(16, told.at() + 256).u32(28, 1);
    rdma.run(&driver, 10, &query.0[..34]).expect("QUERY_QP");
    assert_eq!(told.read(256, 1)[0] >> 4, 3, "ready to send");
    assert_eq!(told.read(8, 4), 0x8001_0000u32.to_be_bytes(), "the queue key");
    // What is not promised is refused and does no harm.
    for (op, len) in [(4, 17), (14, 8), (15, 56)] {
        assert!(rdma.run(&driver, op, &[0; 60][..len]).is_err(), "command {op}");
    }
    driver.assert_clean();
    // An event goes to the queue that the completion queue names, with its interrupt.
    driver.bar.write32(INTERRUPTS + 5 * 32 + 4, 0);
    driver.interrupts();
    // The first arming of any kind: ring 1, counter 1.
    let arm = 1u64 | 1 << 16;
    let pages = driver.pages.as_ref().unwrap();
    pages.write64(usize::from(lif[460]) * 8, arm | 1 << 24);
    rdma.run(&driver, 9, &modify(0x36, 1).0[..60]).expect("to ERR");
    driver.wait("event", || events[2].read(0, 4) != [0; 4]);
    let word = u32::from_be_bytes(events[2].read(0, 4).try_into().unwrap());
    assert_eq!((word & 1, word >> 1 & 7, word >> 4 & 15, word >> 8), (1, 0, 0, 1), "{word:#x}");
    assert_eq!(driver.interrupts(), [5]);
    // And back again.
    rdma.run(&driver, 11, &1u32.to_le_bytes()).expect("DESTROY_QP");
    for id in [1u32, 1 << shift] {
        rdma.run(&driver, 8, &id.to_le_bytes()).expect("DESTROY_CQ");
    }
    driver.assert_clean();
}

#[test]
fn the_interface_closes_and_the_firmware_can_be_asked_all_over() {
    let mut driver = driver();
    let (_infos, _notify) = (probe(&mut driver), lif_up(&mut driver));
    for kind in [TXQ, RXQ] {
        EthQueue::create(&mut driver, kind, 1);
        driver.admin(cmd(41).u8(1, kind).u8(8, 0));
    }
    let mac = driver.mac.0;
    let twice = driver.try_admin(cmd(31).u16(8, 1).put(10, &mac));
    assert_eq!(twice, Err(13), "EEXIST, which the driver takes for done");
    driver.admin(cmd(24).u8(1, 6));
    driver.admin(cmd(32).u32(4, 1));
    driver.dev(cmd(22));
    let _again = probe(&mut driver);
    driver.assert_clean();
}

#[test]
fn commands_that_this_device_does_not_have_are_refused_without_blame() {
    let driver = driver();
    driver.dev(cmd(3));
    for opcode in [4, 5, 60, 61, 240, 252, 253] {
        assert_eq!(driver.try_dev(cmd(opcode), &[]), Err(2), "opcode {opcode}");
    }
    driver.dev(cmd(80));
    let areas = driver.window(264);
    let count = le::<4>(&areas, 0) as usize;
    assert!((1..=16).contains(&count) && le::<4>(&areas, 4) == 1, "{count} areas, express doorbells");
    let end = (0..count).map(|i| le::<4>(&areas, 8 + i * 16 + 8) + le::<4>(&areas, 8 + i * 16 + 12)).max();
    assert!(end.unwrap() << 16 <= driver.slot.bar_len(4));
    driver.bar.write_words(DATA, &[0; 8]);
    driver.assert_clean();
}
