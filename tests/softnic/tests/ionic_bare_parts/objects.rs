//! Objects: who outlives whom, what refers to what, how many there can be, and memory of the caller's own.

use core::net::Ipv4Addr;

use directverbs::ionic::admin::PageError;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::text;
use directverbs::verbs::{
    AccessFlags, AddressVector, CompletionQueue as _, Device as _, FastRegister, Gid, Mac, MemoryRegion as _,
    MwType, PageTable, PlanError, QpAttributes, QpCapabilities, QpInit, QpState, QpType, QueuePair as _,
    RKey, SendOp, SendRequest, Slices, StateError, WcStatus, WorkCompletion,
};
use directverbs_bare::ionic::{Cause, CompletionQueue, Config, Device, PdConfig, QueuePair};
use directverbs_bare::{Clock as _, DmaMemory as _, Host as _, Objects};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::Slot;

use super::faults::plug;
use super::rig::Rig;
use crate::rts::transitions;

fn init<'a, 'n>(
    qp_type: QpType,
    cq: &'a CompletionQueue<'n, Slot>,
) -> QpInit<'a, CompletionQueue<'n, Slot>, directverbs::ionic::qp::NoSharedReceiveQueue> {
    let capabilities = QpCapabilities {
        max_send_wr: 4,
        max_recv_wr: 4,
        max_send_sge: 1,
        max_recv_sge: 1,
        ..Default::default()
    };
    QpInit { qp_type, capabilities, send_cq: cq, recv_cq: cq, srq: None, signal_all: true }
}

#[test]
fn what_is_in_use_is_not_destroyed_and_what_is_dropped_is_counted_and_taken_back() {
    let rig = plug();
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    let pd = device.alloc_pd().expect("a number");
    let cq = device.create_cq(4).expect("created");
    let mut qp = device.create_qp(&pd, &init(QpType::Ud, &cq)).expect("created");
    let early = device.modify_qp(&mut qp, &mut [], &QpAttributes::to(QpState::Rts)).unwrap_err();
    assert!(matches!(early.cause, Cause::State(StateError::NoSuchTransition { .. })));
    assert_eq!(device.dealloc_mw(RKey::truncated(0x500)).unwrap_err().cause, Cause::NoSuch);
    let mr = device.alloc_mr(&pd, 100, AccessFlags::empty()).expect("registered");
    assert_eq!(device.dealloc_mw(mr.rkey()).unwrap_err().cause, Cause::NoSuch, "a region is no window");
    let commands = rig.slot.command_faults().commands();
    assert_eq!(device.destroy_cq(cq).unwrap_err().cause, Cause::InUse(1));
    assert_eq!(device.dealloc_pd(pd).unwrap_err().cause, Cause::InUse(2));
    assert_eq!(rig.slot.command_faults().commands(), commands, "the device was not asked");
    drop((qp, mr));
    assert!(!device.has_failed() && rig.slot.abandoned() > 0);
    let left = Objects { pds: 1, regions: 1, cqs: 1, qps: 1, ..Objects::default() };
    assert_eq!(nic.objects(), left);
    let error = nic.close().unwrap_err();
    assert_eq!(error.cause, Cause::Left(left));
    assert!(error.to_string().starts_with("device: not destroyed before the device was closed: 4 objects"));
    rig.assert_clean();
}

#[test]
fn a_reset_takes_back_what_was_dropped_and_the_nic_works_again() {
    let rig = plug();
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    let pd = device.alloc_pd().expect("a number");
    drop(device.alloc_mr(&pd, 4096, AccessFlags::empty()).expect("registered"));
    drop(device.create_cq(4).expect("created"));
    assert_eq!(
        nic.reset(Config::default()),
        Ok(Objects { pds: 1, regions: 1, cqs: 1, ..Objects::default() })
    );
    assert_eq!((nic.objects().total(), rig.slot.abandoned()), (0, 0));
    nic.add_gid(rig.gid, None).expect("an empty table");
    let mut device = nic.device();
    let cq = device.create_cq(4).expect("created");
    device.destroy_cq(cq).expect("destroyed");
    nic.close().expect("closes");
    rig.assert_clean();
}

#[test]
fn objects_of_another_nic_are_refused() {
    let fabric = Fabric::new(FabricOptions::default());
    let rigs = [1, 2].map(|nth| Rig::plug(&fabric, RdmaVersion::V2, nth));
    let [mut a, mut b] = rigs.each_ref().map(|rig| rig.open(Config::default()));
    {
        let (mut a, mut b) = (a.device(), b.device());
        let (pd_a, pd_b) = (a.alloc_pd().expect("a number"), b.alloc_pd().expect("a number"));
        let cq_a = a.create_cq(4).expect("created");
        let mr_a = a.alloc_mr(&pd_a, 1, AccessFlags::empty()).expect("registered");
        let path = AddressVector::new(rigs[0].gid, Mac::default());
        assert_eq!(b.create_qp(&pd_b, &init(QpType::Rc, &cq_a)).map(drop).unwrap_err().cause, Cause::Foreign);
        assert_eq!(b.alloc_mr(&pd_a, 1, AccessFlags::empty()).map(drop).unwrap_err().cause, Cause::Foreign);
        assert_eq!(b.alloc_mw(&pd_a, MwType::Type1).unwrap_err().cause, Cause::Foreign);
        assert_eq!(b.create_ah(&pd_a, &path).unwrap_err().cause, Cause::Foreign);
        assert_eq!(b.alloc_fast_key(&pd_a, 1).unwrap_err().cause, Cause::Foreign);
        assert_eq!(b.dealloc_mr(mr_a).unwrap_err().cause, Cause::Foreign);
        assert_eq!(b.destroy_cq(cq_a).unwrap_err().cause, Cause::Foreign);
        assert_eq!(b.dealloc_pd(pd_a).unwrap_err().cause, Cause::Foreign);
    }
    drop((a, b));
    rigs.iter().for_each(Rig::assert_clean);
}

#[test]
fn there_are_as_many_objects_as_the_caller_has_said() {
    let rig = plug();
    let mut nic = rig.open(Config { objects: 5, gids: 2, ..Config::default() });
    let gid = |last| Gid::v4(Ipv4Addr::new(10, 0, 1, last));
    assert_eq!([nic.add_gid(gid(1), Some(5)), nic.add_gid(gid(1), Some(5))], [Ok(1), Ok(1)]);
    assert_eq!(nic.add_gid(gid(1), None).unwrap_err().cause, Cause::Exhausted(2));
    let mut device = nic.device();
    let pds: Vec<_> = (0..5).map(|_| device.alloc_pd().expect("room")).collect();
    assert_eq!(device.alloc_pd().unwrap_err().cause, Cause::Exhausted(5));
    assert_eq!(device.create_cq(4).map(drop).unwrap_err().cause, Cause::Exhausted(5));
    let mw = device.alloc_mw(&pds[0], MwType::Type2).unwrap_err();
    assert_eq!(mw.cause, Cause::Exhausted(5));
    for pd in pds {
        device.dealloc_pd(pd).expect("unused");
    }
    let pd = device.alloc_pd().expect("room");
    let key = device.alloc_mw(&pd, MwType::Type2).expect("room");
    device.dealloc_mw(key).expect("there");
    let other = device.alloc_mw(&pd, MwType::Type2).expect("room");
    assert!(
        other.get() >> 8 != key.get() >> 8 && other.get() & 0xff != key.get() & 0xff,
        "not again at once"
    );
    device.dealloc_mw(other).expect("there");
    device.dealloc_pd(pd).expect("unused");
    nic.close().expect("closes");
    rig.assert_clean();
}

#[test]
fn numbers_end_where_the_device_says() {
    let rig = Rig::plug_changed(&Fabric::new(FabricOptions::default()), RdmaVersion::V2, 1, |config| {
        (config.regions, config.address_handles, config.page_table_entries) = (4, 3, 8);
    });
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    let pd = device.alloc_pd().expect("a number");
    let keys: Vec<_> = (0..3).map(|_| device.alloc_fast_key(&pd, 8).expect("a key")).collect();
    assert_eq!(device.alloc_mw(&pd, MwType::Type1).unwrap_err().cause, Cause::Exhausted(3));
    let over = PlanError::OverDevice { what: text!("pages"), asked: 9, max: 8 };
    assert_eq!(device.alloc_fast_key(&pd, 9).unwrap_err().cause, Cause::Plan(over));
    let path = AddressVector::new(rig.gid, Mac([2, 0, 0, 0, 0, 9]));
    let cq = device.create_cq(4).expect("created");
    // A queue pair keeps one of the two handles.
    let qp = device.create_qp(&pd, &init(QpType::Rc, &cq)).expect("created");
    let ah = device.create_ah(&pd, &path).expect("the other one");
    assert_eq!(device.create_ah(&pd, &path).unwrap_err().cause, Cause::Exhausted(2));
    device.destroy_ah(ah).expect("there");
    device.destroy_qp(qp, &mut []).expect("destroyed");
    for key in keys {
        device.deregister(RKey::truncated(key.get())).expect("there");
        assert_eq!(device.deregister(RKey::truncated(key.get())).unwrap_err().cause, Cause::NoSuch);
    }
    device.destroy_cq(cq).expect("destroyed");
    device.dealloc_pd(pd).expect("unused");
    nic.close().expect("closes");
    rig.assert_clean();
}

#[test]
fn a_path_that_is_none_is_refused_and_a_gid_has_its_vlan() {
    let rig = plug();
    let mut nic = rig.open(Config::default());
    let tagged = nic.add_gid(rig.gid, Some(0x2005)).expect("room");
    let mut device = nic.device();
    let pd = device.alloc_pd().expect("a number");
    let to = AddressVector::new(rig.gid, Mac([2, 0, 0, 0, 0, 9]));
    let wrong = AddressVector { sgid_index: 9, ..to };
    assert_eq!(device.create_ah(&pd, &wrong).unwrap_err().cause, Cause::NoGid(9));
    let other_family = AddressVector { dgid: Gid([0xfd; 16]), ..to };
    assert!(matches!(device.create_ah(&pd, &other_family).unwrap_err().cause, Cause::Path(_)));
    let mut cq = device.create_cq(4).expect("created");
    let mut qp = device.create_qp(&pd, &init(QpType::Rc, &cq)).expect("created");
    let path = AddressVector { sgid_index: tagged, traffic_class: 0x28, ..to };
    let [initial, ready_to_receive, _] = transitions(path);
    device.modify_qp(&mut qp, &mut [&mut cq], &initial).expect("INIT");
    device.modify_qp(&mut qp, &mut [&mut cq], &ready_to_receive).expect("RTR");
    // What the device tells is what was meant: with the VLAN of the GID. The table's first entry with this GID is its index.
    let read = device.query_qp(&mut qp).expect("read").path.expect("a path");
    assert_eq!(read, AddressVector { sgid_index: 0, vlan: Some(0x2005), ..path });
    device.destroy_qp(qp, &mut [&mut cq]).expect("destroyed");
    device.destroy_cq(cq).expect("destroyed");
    device.dealloc_pd(pd).expect("unused");
    nic.close().expect("closes");
    rig.assert_clean();
}

#[test]
fn memory_is_registered_by_its_pages() {
    let rig = plug();
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    let pd = device.alloc_pd().expect("a number");
    let blocks: Vec<_> = (0..3).map(|_| rig.slot.dma(4096, 4096).expect("memory")).collect();
    let large = rig.slot.dma(3 << 20, 1 << 21).expect("memory");
    let pages: Vec<u64> = blocks.iter().rev().map(|block| block.device_address()).collect();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let mut keys = Vec::new();
    // SAFETY: the blocks live until the keys are given back.
    let mut register =
        |va, len, log2, pages: &[u64]| unsafe { device.register(&pd, va, len, log2, pages, access) };
    keys.push(register(0x7000_0100, 2 * 4096, 12, &pages).expect("three pages"));
    keys.push(register(0x1010, 16, 12, &pages[..1]).expect("one page"));
    let at = large.device_address();
    keys.push(register(at, 3 << 20, 21, &[at, at + (1 << 21)]).expect("two large pages"));
    let few = register(0, 3 * 4096, 12, &pages[..2]).unwrap_err();
    assert_eq!(few.cause, Cause::Pages(PageError::Count { given: 2, needed: 3 }));
    assert_eq!(register(0, 16, 13, &pages[..1]).unwrap_err().cause, Cause::Pages(PageError::Size(13)));
    // SAFETY: as above.
    let contiguous = unsafe { device.register_contiguous(&pd, 0x4000_0000, at, 3 << 20, access) };
    keys.push(contiguous.expect("the same offset in each size"));
    // SAFETY: as above.
    let odd = unsafe { device.register_contiguous(&pd, 1, at, 16, access) }.unwrap_err();
    assert!(matches!(odd.cause, Cause::Pages(PageError::Offset { .. })));
    for key in keys {
        device.deregister(key).expect("registered");
    }
    device.dealloc_pd(pd).expect("unused");
    nic.close().expect("closes");
    drop((blocks, large));
    rig.assert_clean();
}

/// Waits for one completion.
fn wait<'n>(
    device: &mut Device<'n, Slot>,
    qp: &mut QueuePair<'n, Slot>,
    cq: &mut CompletionQueue<'n, Slot>,
) -> WorkCompletion {
    let mut done = [WorkCompletion::default()];
    for _ in 0..10_000 {
        let srqs: &mut [directverbs::ionic::qp::NoSharedReceiveQueue] = &mut [];
        let mut endpoints = Slices { qps: core::slice::from_mut(qp), srqs };
        if cq.poll(&mut endpoints, &mut done).expect("a queue in order") == 1 {
            return done[0];
        }
        device.progress();
    }
    panic!("nothing came in {} ns", device.now_ns());
}

fn post<'n>(
    qp: &mut QueuePair<'n, Slot>,
    cq: &mut CompletionQueue<'n, Slot>,
    op: SendOp,
) -> Result<(), directverbs::verbs::BatchError> {
    qp.post_send(cq, &[SendRequest::new(op).wr_id(5).signaled()])
}

#[test]
fn a_fast_registered_key_opens_the_pages_that_a_request_names() {
    let rig = plug();
    let mut nic = rig.open(Config { pd: PdConfig::default(), ..Config::default() });
    let mut device = nic.device();
    let pd = device.alloc_pd().expect("a number");
    let mut cq = device.create_cq(16).expect("created");
    let mut qp = device.create_qp(&pd, &init(QpType::Rc, &cq)).expect("created");
    let path = AddressVector::new(rig.gid, Mac([2, 0, 0, 0, 0, 9]));
    for attributes in transitions(path) {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes).expect("a transition");
    }
    let pages: Vec<_> = (0..2).map(|_| rig.slot.dma(4096, 4096).expect("memory")).collect();
    let mut list = rig.slot.dma(4096, 4096).expect("memory");
    for (i, page) in pages.iter().enumerate() {
        assert!(list.write(i * 8, &page.device_address().to_le_bytes()));
    }
    let key = device.alloc_fast_key(&pd, 2).expect("a key");
    let register = FastRegister {
        key,
        addr: 0x10_0000,
        length: 8192,
        page_shift: 12,
        pages: 2,
        table: PageTable::Level1(list.device_address()),
        access: AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ,
    };
    post(&mut qp, &mut cq, SendOp::FastRegister(register)).expect("posted");
    assert_eq!(wait(&mut device, &mut qp, &mut cq).status, WcStatus::Success);
    post(&mut qp, &mut cq, SendOp::LocalInv(RKey::truncated(key.get()))).expect("posted");
    assert_eq!(wait(&mut device, &mut qp, &mut cq).status, WcStatus::Success);
    device.destroy_qp(qp, &mut [&mut cq]).expect("destroyed");
    device.deregister(RKey::truncated(key.get())).expect("there");
    device.destroy_cq(cq).expect("destroyed");
    device.dealloc_pd(pd).expect("unused");
    nic.close().expect("closes");
    drop((pages, list));
    rig.assert_clean();
}

#[test]
fn the_device_counts_and_starts_again_from_zero() {
    let fabric = Fabric::new(FabricOptions::default());
    let rigs = [1, 2].map(|nth| Rig::plug(&fabric, RdmaVersion::V2, nth));
    let [mut a, mut b] = rigs.each_ref().map(|rig| rig.open(Config::default()));
    let job = directverbs_workload::Job { iterations: 4, size: 1000, ..Default::default() };
    directverbs_workload::run_pair(&mut a.device(), &mut b.device(), &job, &mut |_| {}).expect("runs");
    rigs.iter().for_each(|rig| rig.slot.relax());
    let told = a.statistics().expect("told");
    assert!(told.tx_rdma_ucast_packets.get() >= 4 && told.tx_rdma_ucast_bytes.get() > 4000, "{told:?}");
    assert_eq!(b.statistics().unwrap().rx_rdma_ucast_packets, told.tx_rdma_ucast_packets);
    let [sent, received] = [&a, &b].map(|nic| nic.port_statistics().expect("told"));
    assert!(sent.frames_tx_ok >= told.tx_rdma_ucast_packets && sent.octets_tx_ok.get() > 4000, "{sent:?}");
    let passed = |frames: [zerocopy::little_endian::U64; 3]| frames.map(|count| count.get());
    assert_eq!(
        passed([sent.frames_tx_all, sent.octets_tx_total, sent.frames_tx_1024b_1518b]),
        passed([received.frames_rx_all, received.octets_rx_all, received.frames_rx_1024b_1518b])
    );
    assert_eq!(sent.frames_rx_unicast, received.frames_tx_unicast);
    assert!(received.frames_rx_1024b_1518b.get() >= 4, "{received:?}");
    a.reset_statistics().expect("done");
    assert_eq!(a.statistics().unwrap().tx_rdma_ucast_packets.get(), 0);
    drop((a, b));
    rigs.iter().for_each(Rig::assert_clean);
}
