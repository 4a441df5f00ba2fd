//! What the driver without an operating system offers beyond the workload's needs: resized completion queues, memory by its
//! pages, GIDs, queries.

mod bnxt_re_slots;

use std::time::Duration;

use bnxt_re_slots::{CHIPS, Machine, mac};
use directverbs::bnxt_re::pacing::PacingParameters;
use directverbs::bnxt_re::rcfw::parameter::{ModifyCongestion, Parameter};
use directverbs::text;
use directverbs::verbs::{
    AccessFlags, AddressVector, CompletionQueue as _, Device as _, Gid, MwType, QKey, QpAttributes,
    QpCapabilities, QpInit, QpState, QpType, QueuePair as _, RecvRequest, SharedReceiveQueue as _, Slices,
    SrqInit, WcStatus, WorkCompletion,
};
use directverbs_bare::bnxt_re::{Device, Error, Event};
use directverbs_bare::{Clock as _, DmaMemory as _, Host as _};
use directverbs_softnic::bnxt_re::control::Chip;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::{CommandFault, Slot};

/// Brings up a NIC of each chip, lets `use_it` use it, and takes it back: nothing is left.
fn with_each(use_it: impl Fn(usize, &Machine, &mut Device<'_, Slot>)) {
    for (i, chip) in CHIPS.into_iter().enumerate() {
        let machine = Machine::plug(&Fabric::new(FabricOptions::default()), chip, 1);
        let mut nic = machine.open().unwrap();
        let memory = machine.slot.memory().allocated();
        use_it(i, &machine, &mut nic.device());
        assert_eq!(machine.slot.memory().allocated(), memory);
        assert_eq!((nic.close(), machine.violations()), (Ok(()), vec![]));
        assert_eq!((machine.slot.memory().allocated(), machine.slot.violations()), (0, 0));
    }
}

#[test]
fn memory_is_registered_by_its_pages_at_every_level() {
    with_each(|_, machine, device| {
        let pd = device.alloc_pd().unwrap();
        let page = machine.slot.dma(4096, 4096).unwrap();
        let large = machine.slot.dma(1 << 16, 1 << 16).unwrap();
        let all = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE;
        // One page, a list of pages, and a directory of lists; the same page may be there many times.
        for (va, pages, log2, at) in [
            (0x7000_0010, 1, 12, &page),
            (0x7000_0010, 2, 12, &page),
            (0x7000_0000, 512, 12, &page),
            (0x7000_0010, 513, 12, &page),
            (0x7000_0010, 1100, 12, &page),
            (0x7000_0000, 3, 16, &large),
        ] {
            let listed = vec![at.device_address(); pages];
            let len = ((pages as u64) << log2) - (va & ((1 << log2) - 1)) - 1;
            // SAFETY: the blocks stay until the key is given back.
            let key = unsafe { device.register(&pd, va, len, log2, &listed, all) };
            let key = key.unwrap_or_else(|error| panic!("{pages}: {error}; {:?}", machine.violations()));
            assert_eq!(device.objects().regions, 1);
            device.deregister(key).unwrap();
            assert!(matches!(device.deregister(key), Err(Error::NoSuch { .. })));
        }
        let window = device.alloc_mw(&pd, MwType::Type1).unwrap();
        assert!(device.deregister(window).is_err(), "it is no region");
        device.dealloc_mw(window).unwrap();
        device.dealloc_pd(pd).unwrap();
    });
}

#[test]
fn a_gid_is_added_modified_and_deleted_and_others_keep_their_index() {
    with_each(|_, machine, device| {
        let gid = |n| Gid::v4([10, 0, 0, n].into());
        assert_eq!(device.add_gid(gid(1), None), Ok(1));
        assert_eq!(device.add_gid(gid(2), Some(0x6005)), Ok(2));
        let told = device.query_gid(2).unwrap();
        assert_eq!((told.vlan.get(), told.gid_index.get()), (0x9005, 2));
        device.modify_gid(2, gid(3), Some(7)).unwrap();
        let told = device.query_gid(2).unwrap();
        let mut reversed: Vec<u8> = zerocopy::IntoBytes::as_bytes(&told.gid).to_vec();
        reversed.reverse();
        assert_eq!((told.vlan.get(), reversed), (0x9007, gid(3).0.to_vec()));
        device.delete_gid(1).unwrap();
        let gids: Vec<_> = device.gids().collect();
        assert_eq!((gids.len(), gids[1]), (2, (2, gid(3))));
        assert_eq!(device.query_gid(1).err(), Some(Error::NoGid(1)));
        // A GID that the device refuses to change stays as it was.
        machine.slot.command_faults().strike(0, CommandFault::Refused);
        assert!(device.modify_gid(2, gid(4), None).is_err_and(|error| error.is_refusal()));
        machine.slot.command_faults().clear();
        assert_eq!(device.gids().last(), Some((2, gid(3))));
        assert_eq!(device.add_gid(gid(5), None), Ok(1), "the place is free again");
        // Until there is no room.
        let full = (0..32).find_map(|n| device.add_gid(gid(100 + n), None).err());
        assert_eq!(full, Some(Error::Full(text!("GID"))));
    });
}

#[test]
fn a_completion_queue_is_resized_while_it_is_in_use() {
    with_each(|_, machine, device| {
        let pd = device.alloc_pd().unwrap();
        let mut cq = device.create_cq(16).unwrap();
        let before = machine.slot.memory().allocated();
        // A device that refuses leaves it as it was.
        machine.slot.command_faults().strike(0, CommandFault::Refused);
        assert!(device.resize_cq(&mut cq, 500).is_err_and(|error| error.is_refusal()));
        machine.slot.command_faults().clear();
        assert_eq!(machine.slot.memory().allocated(), before);
        assert!(device.resize_cq(&mut cq, 16).is_err(), "it has that size");
        let capabilities =
            QpCapabilities { max_recv_wr: 8, max_send_wr: 8, max_recv_sge: 1, ..QpCapabilities::default() };
        let init = QpInit {
            qp_type: QpType::Ud,
            capabilities,
            send_cq: &cq,
            recv_cq: &cq,
            srq: None,
            signal_all: true,
        };
        let mut qp = device.create_qp(&pd, &init).unwrap();
        for state in [QpState::Init, QpState::Rtr] {
            let qkey = (state == QpState::Init).then(|| QKey::truncated(1));
            device
                .modify_qp(&mut qp, &mut [&mut cq], &QpAttributes { qkey, ..QpAttributes::to(state) })
                .unwrap();
        }
        for (cqe, wr_id) in [(500, 1), (20, 2)] {
            device.resize_cq(&mut cq, cqe).unwrap();
            assert_eq!(device.resize_cq(&mut cq, 90), Err(Error::Resizing));
            qp.post_recv(&mut cq, &[RecvRequest::new(wr_id, &[])]).unwrap();
            let mut found = Vec::new();
            for _ in 0..1000 {
                let mut out = [WorkCompletion::default(); 4];
                let mut ours = Slices { qps: core::slice::from_mut(&mut qp), srqs: &mut [] };
                let count = cq.poll(&mut ours, &mut out).unwrap();
                found.extend_from_slice(&out[..count]);
                if cq.reclaim() {
                    break;
                }
                device.progress();
            }
            assert!(cq.reclaim(), "the old ring is free: {:?}", machine.violations());
            assert_eq!(found.len(), 0, "nothing has completed");
        }
        // On the last ring completions come.
        device.modify_qp(&mut qp, &mut [&mut cq], &QpAttributes::to(QpState::Err)).unwrap();
        let mut found = Vec::new();
        for _ in 0..1000 {
            let mut out = [WorkCompletion::default(); 4];
            let mut ours = Slices { qps: core::slice::from_mut(&mut qp), srqs: &mut [] };
            let count = cq.poll(&mut ours, &mut out).unwrap();
            found.extend(out[..count].iter().map(|wc| (wc.wr_id, wc.status)));
            if found.len() == 2 {
                break;
            }
            device.progress();
        }
        assert_eq!(found, [(1, WcStatus::WrFlush), (2, WcStatus::WrFlush)]);
        device.destroy_qp(qp, &mut [&mut cq]).unwrap();
        device.destroy_cq(cq).unwrap();
        device.dealloc_pd(pd).unwrap();
    });
}

#[test]
fn the_limit_of_a_shared_queue_is_told_until_it_is_reached() {
    with_each(|_, _, device| {
        let pd = device.alloc_pd().unwrap();
        let mut srq = device.create_srq(&pd, SrqInit { max_wr: 8, max_sge: 1 }).unwrap();
        assert_eq!(device.query_srq(&srq).unwrap().srq_limit.get(), 0);
        for n in 0..4 {
            srq.post_recv(&[RecvRequest::new(n, &[])]).unwrap();
        }
        srq.arm_limit(3);
        let told = device.query_srq(&srq).unwrap();
        assert_eq!((told.srq_limit.get(), told.xid.get()), (3, srq.id().get()));
        // More than there are: the event comes, and nothing is armed any more.
        srq.arm_limit(6);
        let event = (0..1000).find_map(|_| {
            device.progress();
            device.take_event().unwrap()
        });
        assert!(matches!(event, Some(Event::Limit { handle, .. }) if handle == srq.handle()), "{event:?}");
        assert_eq!(device.query_srq(&srq).unwrap().srq_limit.get(), 0);
        device.destroy_srq(srq).unwrap();
        device.dealloc_pd(pd).unwrap();
    });
}

#[test]
fn congestion_parameters_are_changed_and_told() {
    with_each(|_, machine, device| {
        let change = ModifyCongestion::NONE
            .set(Parameter::ENABLE_CC, 1)
            .and_then(|change| change.set(Parameter::TOS_DSCP, 26))
            .and_then(|change| change.set(Parameter::LINK64B_PER_RTT, 123_456))
            .unwrap();
        device.modify_congestion(&change).unwrap();
        let told = device.congestion().unwrap();
        for parameter in Parameter::ALL {
            assert_eq!(told.get(*parameter), change.get(*parameter).unwrap_or(0), "{}", parameter.name());
        }
        // The others stay as they are.
        let other = ModifyCongestion::NONE.set(Parameter::CNP_ECN, 2).unwrap();
        device.modify_congestion(&other).unwrap();
        let after = device.congestion().unwrap();
        assert_eq!((after.get(Parameter::CNP_ECN), after.get(Parameter::TOS_DSCP)), (2, 26));
        machine.slot.command_faults().strike(0, CommandFault::Refused);
        let refused = device.modify_congestion(&change).unwrap_err();
        assert!(refused.is_refusal() && !device.has_failed(), "{refused}");
        assert_eq!(device.congestion(), Ok(after));
    });
}

#[test]
fn doorbells_are_paced_by_the_fill_of_their_fifo() {
    for chip in CHIPS {
        let chip = Chip { pacing: true, ..chip(mac(1)) };
        let fabric = Fabric::new(FabricOptions::default());
        let machine = Machine::plug_changed(&fabric, &chip, |port| port, |function| function);
        let mut nic = machine.open().unwrap();
        let mut pacer = nic.device().pacer(7).unwrap().expect("it has pacing");
        let fill = |filled, drain| machine.nic.lock().front_end().set_fifo(filled, drain);
        let limit = Duration::from_millis(1);
        assert_eq!(pacer.occupancy(), 0);
        fill(1000, 0);
        assert_eq!(pacer.occupancy(), 1000);
        // Few doorbells are looked at, but sooner or later one is: then it does not get through.
        let stuck = (0..10_000).position(|_| pacer.pace(&machine.slot, limit).is_err());
        assert!(stuck.is_some_and(|paced| paced > 10), "{stuck:?}");
        // One that has waited makes the next ones be looked at.
        let limit = Duration::from_secs(1);
        fill(1000, 50);
        let waited = (0..10_000).find(|_| {
            pacer.pace(&machine.slot, limit).unwrap();
            pacer.parameters().do_pacing == PacingParameters::ALL
        });
        assert!(waited.is_some() && pacer.occupancy() <= 250, "{waited:?}");
        fill(0, 0);
        pacer.pace(&machine.slot, limit).unwrap();
        assert_eq!(pacer.parameters().do_pacing, PacingParameters::ALL / 2);
        for _ in 0..10_000 {
            pacer.pace(&machine.slot, limit).unwrap();
        }
        assert_eq!(pacer.parameters().do_pacing, PacingParameters::NO_CONGESTION);
        assert_eq!((nic.close(), machine.violations()), (Ok(()), vec![]));
    }
}

#[test]
fn a_change_of_congestion_that_makes_no_sense_is_refused_by_the_device() {
    let bad: [fn(&mut ModifyCongestion); 4] = [
        |change| change.gen1.modify_mask.set(1 << 44),
        |change| change.gen1.tlv_type.set(4),
        |change| change.list[4] = 1,
        |change| (change.gen1.cnp_ecn, change.gen1.modify_mask) = (3, 0x4000.into()),
    ];
    for chip in CHIPS {
        for spoil in bad {
            let machine = Machine::plug(&Fabric::new(FabricOptions::default()), chip, 1);
            let mut nic = machine.open().unwrap();
            let mut change = ModifyCongestion::NONE.set(Parameter::G, 7).unwrap();
            spoil(&mut change);
            let refused = nic.device().modify_congestion(&change);
            assert!(refused.is_err_and(|error| error.is_refusal()), "{change:?}");
            assert_eq!(nic.device().congestion().unwrap().get(Parameter::G), 0);
            assert!(machine.violations()[0].contains("MODIFY_ROCE_CC"), "{:?}", machine.violations());
        }
    }
}

#[test]
fn what_the_device_counts_and_how_it_handles_congestion_is_told() {
    with_each(|_, machine, device| {
        let pd = device.alloc_pd().unwrap();
        let to = AddressVector::new(device.port().gid, device.mac());
        let ah = device.create_ah(&pd, &to).unwrap();
        assert_eq!(device.error_counters().unwrap().active_qp_count_p0.get(), 0);
        assert_eq!(device.packet_counters().unwrap().tx_roce_pkts.get(), 0);
        assert_eq!(device.congestion().unwrap().base.enable_cc, 0);
        assert!(device.pacer(1).unwrap().is_none());
        let before = machine.slot.now_ns();
        device.progress();
        assert!(machine.slot.now_ns() >= before);
        device.destroy_ah(ah).unwrap();
        device.dealloc_pd(pd).unwrap();
    });
}
