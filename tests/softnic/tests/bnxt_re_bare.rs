//! The driver without an operating system, over bnxt_re as a PCI function: bring-up, the whole workload, and teardown.

mod bnxt_re_slots;

use bnxt_re_slots::{CHIPS, Machine, mac, with_completion};
use directverbs::bnxt_re::rcfw::event::CompletionError;
use directverbs::bnxt_re::rcfw::event::Status;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::{
    AccessFlags, AddressVector, CompletionQueue, Device as _, MwType, QpAttributes, QpCapabilities, QpInit,
    QpState, QpType, QueuePair, SharedReceiveQueue, SrqInit, StateError,
};
use directverbs_bare::bnxt_re::{
    CompletionQueue as Cq, Config, Device, Error, Event, QueuePair as Qp, SharedReceiveQueue as Srq,
};
use directverbs_bare::pci::Msix;
use directverbs_bare::{Caching, Host as _, Kind, Objects};
use directverbs_softnic::bnxt_re::control::Chip;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::pci::Slot;
use directverbs_workload::{Job, Op, run_pair};

/// Brings up two NICs on one wire, lets `use_them` use them, and takes them back.
fn with_pair(chip: usize, use_them: impl FnOnce(&mut Device<'_, Slot>, &mut Device<'_, Slot>)) {
    let fabric = Fabric::new(FabricOptions::default());
    let machines = [1, 2].map(|nth| Machine::plug(&fabric, CHIPS[chip], nth));
    let [mut a, mut b] = machines
        .each_ref()
        .map(|machine| machine.open().unwrap_or_else(|error| panic!("{error}: {:?}", machine.violations())));
    use_them(&mut a.device(), &mut b.device());
    for (nic, machine) in [a, b].into_iter().zip(&machines) {
        let closed = nic.close();
        assert_eq!(machine.violations(), [""; 0]);
        assert_eq!(closed, Ok(()));
        assert_eq!((machine.slot.memory().allocated(), machine.slot.violations()), (0, 0));
    }
}

fn run(chip: usize, job: &Job) {
    with_pair(chip, |a, b| {
        let report = run_pair(a, b, job, &mut |_| {}).unwrap_or_else(|error| panic!("{job:?}: {error}"));
        assert!(job.size == 0 || report.verified_bytes() > 0, "{job:?}");
    });
}

fn job(op: Op, size: u32) -> Job {
    Job { op, size: if op.is_atomic() { 8 } else { size }, iterations: 8, ..Job::default() }
}

#[test]
fn every_operation_on_both_generations() {
    for chip in 0..CHIPS.len() {
        for op in Op::ALL {
            run(chip, &job(op, 1000));
        }
    }
}

/// Chips of both generations, and one of P7 that leaves the layout of WQEs to the driver.
fn mixed(nth: u8, p7: bool, mode: WqeMode) -> (Chip, Config<'static>) {
    let chip = if p7 { Chip::p7(mac(nth)) } else { Chip::p5(mac(nth)) };
    (Chip { wqe_mode: WqeMode::Static, ..chip }, Config { wqe_mode: Some(mode), ..Config::default() })
}

/// Runs `jobs` between two chips with their configurations.
fn run_mixed(sides: [(Chip, Config<'_>); 2], options: FabricOptions, jobs: impl Iterator<Item = Job>) {
    let fabric = Fabric::new(options);
    let machines = sides
        .each_ref()
        .map(|(chip, _)| Machine::plug_changed(&fabric, chip, |port| port, |function| function));
    let mut nics = [0, 1].map(|i| machines[i].open_with(&sides[i].1).unwrap());
    let [a, b] = &mut nics;
    for job in jobs {
        let report = run_pair(&mut a.device(), &mut b.device(), &job, &mut |_| {});
        let report = report.unwrap_or_else(|error| panic!("{sides:?} {job:?}: {error}"));
        assert!(report.verified_bytes() > 0, "{job:?}");
    }
    for (nic, machine) in nics.into_iter().zip(&machines) {
        assert_eq!((nic.close(), machine.violations()), (Ok(()), vec![]));
    }
}

#[test]
fn generations_and_layouts_of_wqes_mix_on_a_wire() {
    let every = || Op::ALL.into_iter().map(|op| Job { batch: 3, ..job(op, 500) });
    let [p5, fixed, variable] =
        [(false, WqeMode::Static), (true, WqeMode::Static), (true, WqeMode::Variable)]
            .map(|(p7, mode)| move |nth| mixed(nth, p7, mode));
    run_mixed([p5(1), fixed(2)], FabricOptions::default(), every());
    run_mixed([variable(1), p5(2)], FabricOptions::default(), every());
    run_mixed([fixed(1), variable(2)], FabricOptions::default(), every());
    run_mixed([fixed(1), fixed(2)], FabricOptions::default(), every());
}

#[test]
fn a_wire_that_loses_duplicates_and_reorders() {
    let faults = FaultPlan { corrupt_frame: 5_000, ..FaultPlan::LOSSY_WIRE };
    let reliable = || Op::ALL.into_iter().filter(|op| *op != Op::SendTo);
    let jobs = || reliable().map(|op| Job { batch: 4, iterations: 30, timeout: 8, ..job(op, 3000) });
    for (seed, (p7, mode)) in
        [(false, WqeMode::Static), (true, WqeMode::Static), (true, WqeMode::Variable)].into_iter().enumerate()
    {
        let options = FabricOptions { seed: seed as u64, faults, threaded: false };
        run_mixed([mixed(1, p7, mode), mixed(2, true, WqeMode::Variable)], options, jobs());
    }
}

#[test]
fn the_port_counts_what_passes() {
    for chip in 0..CHIPS.len() {
        with_pair(chip, |a, b| {
            let nothing = a.port_counters().unwrap();
            assert_eq!((nothing.0.tx_total_frames.get(), nothing.1.rx_total_frames.get()), (0, 0));
            run_pair(a, b, &job(Op::Write, 1000), &mut |_| {}).unwrap();
            // What is on its way arrives.
            (0..1000).for_each(|_| _ = a.progress());
            let memory = a.host().memory().allocated();
            let ((sent, got), (answered, received)) =
                (a.port_counters().unwrap(), b.port_counters().unwrap());
            assert!(sent.tx_total_frames.get() >= 8 && sent.tx_bytes.get() > 8000, "{sent:?}");
            assert_eq!((sent.tx_good_frames, sent.tx_bytes), (received.rx_good_frames, received.rx_bytes));
            assert_eq!((answered.tx_ucast_frames, answered.tx_bytes), (got.rx_ucast_frames, got.rx_bytes));
            assert!(received.rx_1024b_1518b_frames.get() >= 8, "{received:?}");
            let ((more, _), (_, got)) = (a.more_port_counters().unwrap(), b.more_port_counters().unwrap());
            assert_eq!((more.tx_packets_cos0, more.tx_bytes_cos0), (sent.tx_total_frames, sent.tx_bytes));
            assert_eq!((got.rx_bytes_cos0, got.rx_bits.get()), (sent.tx_bytes, sent.tx_bytes.get() * 8));
            assert_eq!(a.host().memory().allocated(), memory);
        });
    }
}

#[test]
fn batches_inline_data_and_scattered_data() {
    for chip in 0..CHIPS.len() {
        for op in Op::ALL {
            run(chip, &Job { batch: 7, iterations: 100, signal_all: true, one_cq: true, ..job(op, 32) });
        }
        run(chip, &Job { inline: true, ..job(Op::Send, 96) });
        run(chip, &Job { sges: 5, ..job(Op::Write, 1000) });
    }
}

#[test]
fn regions_with_page_lists_of_every_level() {
    for chip in 0..CHIPS.len() {
        with_pair(chip, |device, _| {
            let pd = device.alloc_pd().unwrap();
            for len in [1, 4096, 4097, 512 * 4096, 512 * 4096 + 1] {
                let mr = device.alloc_mr(&pd, len, AccessFlags::LOCAL_WRITE).unwrap();
                device.dealloc_mr(mr).unwrap();
            }
            device.dealloc_pd(pd).unwrap();
        });
        run(chip, &Job { iterations: 2, ..job(Op::Write, 100_000) });
    }
}

#[test]
fn receives_from_a_shared_queue() {
    for chip in 0..CHIPS.len() {
        for op in [Op::Send, Op::WriteImm, Op::SendTo] {
            run(chip, &Job { srq: true, ..job(op, 64) });
        }
    }
}

/// A queue pair with one completion queue, given to `use_it` and destroyed.
fn with_qp<'n>(
    device: &mut Device<'n, Slot>,
    qp_type: QpType,
    use_it: impl FnOnce(&mut Device<'n, Slot>, &mut Qp<'n, Slot>, &mut Cq<'n, Slot>),
) {
    let pd = device.alloc_pd().unwrap();
    let mut cq = device.create_cq(16).unwrap();
    let capabilities = QpCapabilities {
        max_send_wr: 8,
        max_recv_wr: 8,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let init = QpInit { qp_type, capabilities, send_cq: &cq, recv_cq: &cq, srq: None, signal_all: true };
    let mut qp = device.create_qp(&pd, &init).unwrap();
    use_it(device, &mut qp, &mut cq);
    device.destroy_qp(qp, &mut [&mut cq]).unwrap();
    device.destroy_cq(cq).unwrap();
    device.dealloc_pd(pd).unwrap();
}

#[test]
fn a_transition_that_cannot_be_is_refused_before_there_is_a_command() {
    for chip in 0..CHIPS.len() {
        with_pair(chip, |device, _| {
            with_qp(device, QpType::Rc, |device, qp, cq| {
                let before = device.host().command_faults().commands();
                let refused = device.modify_qp(qp, &mut [cq], &QpAttributes::to(QpState::Rts));
                let error = StateError::NoSuchTransition { from: QpState::Reset, to: QpState::Rts };
                assert_eq!(refused, Err(Error::State(error)));
                assert_eq!(device.host().command_faults().commands(), before);
                assert_eq!(qp.state(), QpState::Reset);
                let init = QpAttributes {
                    access: Some(AccessFlags::REMOTE_READ),
                    ..QpAttributes::to(QpState::Init)
                };
                device.modify_qp(qp, &mut [cq], &init).unwrap();
                let told = device.query_qp(qp).unwrap();
                assert_eq!((told.en_sqd_async_notify_state, told.access, told.pkey.get()), (1, 4, 0xffff));
                assert_eq!(told.xid.get(), qp.id().get());
            });
        });
    }
}

#[test]
fn an_armed_queue_tells_of_its_completion_and_interrupts() {
    for chip in 0..CHIPS.len() {
        with_pair(chip, |device, _| {
            // The notification queue has vector 1, that of completions of commands vector 0, which is not armed.
            let slot = device.host().clone();
            let msix = Msix::find(&slot).unwrap().expect("a capability");
            let table = slot.map_bar(4, 0, msix.table_len(), Caching::Uncached).unwrap();
            (0..2).for_each(|vector| msix.set(&table, vector, 0xfee0_0000, vector.into()));
            msix.enable(&slot, true);
            with_completion(device, |device, cq| {
                let event = (0..100).find_map(|_| {
                    device.progress();
                    device.take_event().unwrap()
                });
                let Some(Event::Completion { handle, toggle }) = event else { panic!("{event:?}") };
                assert_eq!(handle, cq.handle());
                cq.acknowledge(toggle);
                let raised = slot.memory().take_interrupts();
                assert!(raised.contains(&1), "{raised:?}");
            });
        });
    }
}

#[test]
fn what_the_device_refuses_leaves_it_as_it_was() {
    for chip in 0..CHIPS.len() {
        with_pair(chip, |device, _| {
            let pd = device.alloc_pd().unwrap();
            let to = AddressVector { sgid_index: 9, ..AddressVector::new(device.port().gid, device.mac()) };
            assert_eq!(device.create_ah(&pd, &to), Err(Error::NoGid(9)));
            let memory = device.host().memory().allocated();
            // More queues than there is context memory for.
            let mut cqs = Vec::new();
            let error = loop {
                match device.create_cq(4) {
                    Ok(cq) => cqs.push(cq),
                    Err(error) => break error,
                }
            };
            let Error::Completion(CompletionError::Refused { status, .. }) = error else { panic!("{error}") };
            assert_eq!(status, Status::RESOURCES);
            assert!(cqs.len() >= 128, "{}", cqs.len());
            for cq in cqs {
                device.destroy_cq(cq).unwrap();
            }
            assert_eq!(device.host().memory().allocated(), memory);
            assert!(!device.has_failed());
            let ah = AddressVector::new(device.port().gid, device.mac());
            let ah = device.create_ah(&pd, &ah).unwrap();
            device.destroy_ah(ah).unwrap();
            assert_eq!(device.packet_counters().unwrap().dup_req.get(), 0);
            assert_eq!(device.error_counters().unwrap().to_retransmits.get(), 0);
            assert_eq!(device.pacing().unwrap().pacing_threshold.get(), 0);
            device.dealloc_pd(pd).unwrap();
        });
    }
}

#[test]
fn bring_up_stays_within_its_memory() {
    for chip in CHIPS {
        let fabric = Fabric::new(FabricOptions::default());
        let machine = Machine::plug(&fabric, chip, 1);
        let nic = machine.open().unwrap();
        let counts = machine.slot.counts();
        assert!(counts.memory <= 16 << 20, "{counts:?}");
        drop(nic);
        assert_eq!(machine.slot.memory().allocated(), 0);
        for limit in [0, 4096, 100_000, 300_000] {
            machine.slot.limit_memory(limit);
            assert!(matches!(machine.open(), Err(Error::Dma(_))), "{limit}");
            assert_eq!(machine.slot.memory().allocated(), 0, "{limit}");
        }
        machine.slot.limit_memory(usize::MAX);
        machine.open().unwrap().close().unwrap();
        assert_eq!(machine.violations(), [""; 0]);
    }
}

/// A queue pair of one request each way.
const fn small<'a, 'n>(
    send_cq: &'a Cq<'n, Slot>,
    recv_cq: &'a Cq<'n, Slot>,
    srq: Option<&'a Srq<'n, Slot>>,
) -> QpInit<'a, Cq<'n, Slot>, Srq<'n, Slot>> {
    let capabilities = QpCapabilities {
        max_send_wr: 1,
        max_recv_wr: 1,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    QpInit { qp_type: QpType::Rc, capabilities, send_cq, recv_cq, srq, signal_all: false }
}

#[test]
fn an_object_in_use_is_not_destroyed_and_the_device_is_not_asked() {
    for chip in CHIPS {
        let fabric = Fabric::new(FabricOptions::default());
        let machine = Machine::plug(&fabric, chip, 1);
        let mut nic = machine.open().unwrap();
        let mut device = nic.device();
        let commands = || machine.slot.command_faults().commands();
        let in_use = |kind, id, users| Err(Error::InUse { kind, id, users });
        let pd = device.alloc_pd().unwrap();
        let mut cq = device.create_cq(4).unwrap();
        let srq = device.create_srq(&pd, SrqInit { max_wr: 4, max_sge: 1 }).unwrap();
        let mr = device.alloc_mr(&pd, 1, AccessFlags::LOCAL_WRITE).unwrap();
        let mw = device.alloc_mw(&pd, MwType::Type2).unwrap();
        let ah = AddressVector::new(device.port().gid, device.mac());
        let ah = device.create_ah(&pd, &ah).unwrap();
        let qp = device.create_qp(&pd, &small(&cq, &cq, Some(&srq))).unwrap();
        let all = Objects { pds: 1, regions: 1, windows: 1, ahs: 1, cqs: 1, srqs: 1, qps: 1 };
        assert_eq!(device.objects(), all);
        let before = commands();
        let srq_id = SharedReceiveQueue::id(&srq).get();
        assert_eq!(device.destroy_srq(srq), in_use(Kind::SharedReceiveQueue, srq_id, 1));
        let other = device.alloc_pd().unwrap();
        assert_eq!(device.dealloc_pd(pd), in_use(Kind::ProtectionDomain, 0, 5));
        device.dealloc_pd(other).unwrap();
        assert_eq!(commands(), before);
        device.destroy_qp(qp, &mut [&mut cq]).unwrap();
        device.destroy_cq(cq).unwrap();
        device.dealloc_mw(mw).unwrap();
        assert!(matches!(device.dealloc_mw(mw), Err(Error::NoSuch { kind: Kind::Window(_), .. })));
        device.destroy_ah(ah).unwrap();
        let gone = Err(Error::NoSuch { kind: Kind::AddressHandle, id: ah.get() });
        assert_eq!(device.destroy_ah(ah), gone);
        device.dealloc_mr(mr).unwrap();
        // Again, with a completion queue that is given up: it is refused, and so is left.
        let pd = device.alloc_pd().unwrap();
        let cq = device.create_cq(4).unwrap();
        let qp = device.create_qp(&pd, &small(&cq, &cq, None)).unwrap();
        let (id, before) = (cq.id().get(), commands());
        assert_eq!(device.destroy_cq(cq), in_use(Kind::CompletionQueue, id, 1));
        assert_eq!(commands(), before);
        device.destroy_qp(qp, &mut []).unwrap();
        let left = Objects { pds: 2, srqs: 1, cqs: 1, ..Objects::default() };
        assert_eq!(nic.objects(), left);
        assert_eq!(nic.close(), Err(Error::Left(left)));
        assert_eq!((machine.slot.memory().allocated(), machine.slot.violations()), (0, 0));
    }
}

#[test]
fn objects_of_another_nic_are_refused_and_keep_their_memory() {
    let fabric = Fabric::new(FabricOptions::default());
    let machines = [1, 2].map(|nth| Machine::plug(&fabric, CHIPS[0], nth));
    let [mut a, mut b] = machines.each_ref().map(|machine| machine.open().unwrap());
    {
        let (mut a, mut b) = (a.device(), b.device());
        let foreign = |kind| Some(Error::Foreign(kind));
        let (pd_a, pd_b) = (a.alloc_pd().unwrap(), b.alloc_pd().unwrap());
        let (cq_a, cq_b) = (a.create_cq(4).unwrap(), b.create_cq(4).unwrap());
        let mr = a.alloc_mr(&pd_a, 100, AccessFlags::LOCAL_WRITE).unwrap();
        let commands = machines[1].slot.command_faults().commands();
        assert_eq!(b.alloc_mr(&pd_a, 1, AccessFlags::LOCAL_WRITE).err(), foreign(Kind::ProtectionDomain));
        assert_eq!(b.create_qp(&pd_b, &small(&cq_b, &cq_a, None)).err(), foreign(Kind::CompletionQueue));
        assert_eq!(b.dealloc_mr(mr).err(), foreign(Kind::Region));
        assert!(machines[0].slot.abandoned() >= 100, "the device may still write there");
        assert_eq!(machines[1].slot.command_faults().commands(), commands);
        a.destroy_cq(cq_a).unwrap();
        b.destroy_cq(cq_b).unwrap();
        b.dealloc_pd(pd_b).unwrap();
    }
    b.close().unwrap();
    assert_eq!(a.close(), Err(Error::Left(Objects { pds: 1, regions: 1, ..Objects::default() })));
    assert_eq!(machines[0].slot.memory().allocated(), 0);
}

#[test]
fn objects_that_are_dropped_are_counted_and_a_reset_takes_them_back() {
    for chip in CHIPS {
        let fabric = Fabric::new(FabricOptions::default());
        let machine = Machine::plug(&fabric, chip, 1);
        let mut nic = machine.open().unwrap();
        let brought_up = machine.slot.memory().allocated();
        let mut device = nic.device();
        let pd = device.alloc_pd().unwrap();
        let mr = device.alloc_mr(&pd, 100, AccessFlags::LOCAL_WRITE).unwrap();
        let cq = device.create_cq(4).unwrap();
        drop((mr, cq));
        assert!(machine.slot.abandoned() > 0, "the device may still write there");
        let left = Objects { pds: 1, regions: 1, cqs: 1, ..Objects::default() };
        assert_eq!(nic.objects(), left);
        assert_eq!(nic.reset(&Config::default()), Ok(left));
        assert_eq!((machine.slot.memory().allocated(), machine.slot.abandoned()), (brought_up, 0));
        assert_eq!(nic.objects(), Objects::default());
        let cq = nic.device().create_cq(4).unwrap();
        drop(cq);
        drop(nic);
        assert_eq!(machine.slot.memory().allocated(), 0);
        machine.open().unwrap().close().unwrap();
        assert_eq!(machine.slot.violations(), 0);
    }
}
