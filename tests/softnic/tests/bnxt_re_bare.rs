//! The driver without an operating system, over bnxt_re as a PCI function: bring-up, the whole workload, and teardown.

mod bnxt_re_slots;

use bnxt_re_slots::{CHIPS, Machine};
use directverbs::bnxt_re::rcfw::event::CompletionError;
use directverbs::bnxt_re::rcfw::event::Status;
use directverbs::verbs::{
    AccessFlags, AddressVector, CompletionQueue, Device as _, QpAttributes, QpCapabilities, QpInit, QpState,
    QpType, QueuePair, StateError,
};
use directverbs_bare::bnxt_re::{Device, Error, Event};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::Slot;
use directverbs_workload::{Job, Op, run_pair};

/// Brings up two NICs on one wire, lets `use_them` use them, and takes them back.
fn with_pair(chip: usize, use_them: impl FnOnce(&mut Device<Slot>, &mut Device<Slot>)) {
    let fabric = Fabric::new(FabricOptions::default());
    let machines = [1, 2].map(|nth| Machine::plug(&fabric, CHIPS[chip], nth));
    let [mut a, mut b] = machines
        .each_ref()
        .map(|machine| machine.open().unwrap_or_else(|error| panic!("{error}: {:?}", machine.violations())));
    use_them(&mut a, &mut b);
    for (device, machine) in [a, b].into_iter().zip(&machines) {
        let closed = device.close();
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
fn with_qp(
    device: &mut Device<Slot>,
    qp_type: QpType,
    use_it: impl FnOnce(
        &mut Device<Slot>,
        &mut directverbs_bare::bnxt_re::QueuePair<Slot>,
        &mut directverbs_bare::bnxt_re::CompletionQueue<Slot>,
    ),
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
fn an_armed_queue_tells_of_its_completion() {
    for chip in 0..CHIPS.len() {
        with_pair(chip, |device, _| {
            with_qp(device, QpType::Ud, |device, qp, cq| {
                cq.arm(false);
                let receive = directverbs::verbs::RecvRequest::new(1, &[]);
                for state in [QpState::Init, QpState::Rtr] {
                    let attributes = QpAttributes {
                        qkey: (state == QpState::Init).then(|| directverbs::verbs::QKey::truncated(1)),
                        ..QpAttributes::to(state)
                    };
                    device.modify_qp(qp, &mut [cq], &attributes).unwrap();
                }
                qp.post_recv(cq, &[receive]).unwrap();
                assert_eq!(device.take_event(), Ok(None));
                // In error the device flushes, and tells so by a completion.
                device.modify_qp(qp, &mut [cq], &QpAttributes::to(QpState::Err)).unwrap();
                let event = (0..100).find_map(|_| {
                    device.progress();
                    device.take_event().unwrap()
                });
                let Some(Event::Completion { handle, toggle }) = event else { panic!("{event:?}") };
                assert_eq!(handle, cq.handle());
                cq.acknowledge(toggle);
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
        });
    }
}

#[test]
fn bring_up_stays_within_its_memory() {
    for chip in CHIPS {
        let fabric = Fabric::new(FabricOptions::default());
        let machine = Machine::plug(&fabric, chip, 1);
        let device = machine.open().unwrap();
        let counts = machine.slot.counts();
        assert!(counts.memory <= 16 << 20, "{counts:?}");
        drop(device);
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

#[test]
fn objects_that_outlive_their_device_keep_their_memory_until_the_function_is_quiet() {
    let fabric = Fabric::new(FabricOptions::default());
    let machine = Machine::plug(&fabric, CHIPS[0], 1);
    let mut device = machine.open().unwrap();
    let pd = device.alloc_pd().unwrap();
    let mr = device.alloc_mr(&pd, 100, AccessFlags::LOCAL_WRITE).unwrap();
    let cq = device.create_cq(4).unwrap();
    drop(device);
    assert!(machine.slot.memory().allocated() > 0, "the objects' own");
    drop((mr, cq));
    assert!(machine.slot.abandoned() > 0);
    machine.open().unwrap().close().unwrap();
    assert_eq!(machine.slot.memory().allocated(), 0);
}
