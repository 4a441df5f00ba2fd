//! What an ionic NIC and its driver do together, beyond the workload's happy path.

mod ionic_pair;

use directverbs::ionic::cmb::{CmbGrant, CmbPreference, Mapping};
use directverbs::ionic::plan::Placement;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{
    AccessFlags, BindMw, CompletionQueue as _, Device, FastRegister, LKey, MemoryRegion, MwType, PageTable,
    QpAttributes, QpCapabilities, QpInit, QpState, QpType, QueuePair as _, RKey, RecvRequest, SendFlags,
    SendOp, SendRequest, SrqInit, WcOpcode, WcStatus,
};
use directverbs_softnic::device::{MrConfig, MrKind, Notification};
use directverbs_softnic::fabric::FabricOptions;
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::host::Cause;
use directverbs_softnic::host::ionic::IonicOptions;
use directverbs_softnic::ionic::IonicConfig;
use ionic_pair::{CAPABILITIES, End, PATIENCE, devices, pair};

const V2: IonicOptions = IonicOptions::new(RdmaVersion::V2);

fn rc(options: IonicOptions) -> [End; 2] {
    pair(options, FabricOptions::default(), QpType::Rc).1
}

/// Completions of a lossy device that lets them pass one another.
fn reordering() -> IonicOptions {
    IonicOptions { device: IonicConfig { reorder: 500_000, seed: 3, ..V2.device }, ..V2 }
}

#[test]
fn a_write_and_a_send_arrive() {
    for version in [RdmaVersion::V1, RdmaVersion::V2] {
        let [mut a, mut b] = rc(IonicOptions::new(version));
        a.write(0, b"written");
        a.write(16, b"sent");
        let sge = b.sge(100, 100);
        b.qp.post_recv(&mut b.cq, &[RecvRequest::new(7, &[sge])]).unwrap();
        let (addr, rkey) = b.remote(0);
        let (first, second) = ([a.sge(0, 7)], [a.sge(16, 4)]);
        let requests = [
            SendRequest::write(addr, rkey).sges(&first).wr_id(1),
            SendRequest::send().sges(&second).wr_id(2).signaled(),
        ];
        a.qp.post_send(&mut a.cq, &requests).unwrap();
        let got = b.wait(1)[0];
        assert_eq!((got.wr_id, got.status, got.byte_len), (7, WcStatus::Success, 4));
        let sent = a.wait(1)[0];
        assert_eq!((sent.wr_id, sent.status, sent.opcode), (2, WcStatus::Success, WcOpcode::Send));
        assert_eq!((&b.read(0), &b.read(100)), (b"written", b"sent"));
        assert!(sent.timestamp > 0 && got.timestamp > 0);
        a.check();
        b.check();
    }
}

#[test]
fn completions_that_pass_one_another_are_reported_in_post_order() {
    let [mut a, b] = rc(reordering());
    let (addr, rkey) = b.remote(0);
    let window = a.device.alloc_mw(&a.pd, MwType::Type2).unwrap();
    let mut key = window;
    for round in 0..40u64 {
        let new_key = RKey::truncated(key.get() & !0xff | (key.get() + 1) & 0xff);
        let bind = BindMw {
            mw_type: MwType::Type2,
            mw: key,
            new_key,
            region: a.lkey(),
            addr: a.mr.addr(),
            length: 64,
            access: AccessFlags::REMOTE_READ,
        };
        let sge = [a.sge(0, 8)];
        let requests = [
            SendRequest::write(addr, rkey).sges(&sge).wr_id(4 * round).signaled(),
            SendRequest::new(SendOp::BindMw(bind)).wr_id(4 * round + 1).signaled(),
            SendRequest::read(addr, rkey).sges(&sge).wr_id(4 * round + 2),
            SendRequest::new(SendOp::LocalInv(new_key)).wr_id(4 * round + 3).signaled(),
        ];
        a.qp.post_send(&mut a.cq, &requests).unwrap();
        key = new_key;
        let done = a.wait(3);
        let want = [0, 1, 3].map(|i| (4 * round + i, WcStatus::Success));
        assert_eq!(done.iter().map(|wc| (wc.wr_id, wc.status)).collect::<Vec<_>>(), want);
    }
    a.check();
}

#[test]
fn an_error_comes_once_and_what_is_behind_it_is_flushed() {
    for options in [V2, reordering()] {
        let [mut a, mut b] = rc(options);
        let sge = [a.sge(0, 8)];
        let (addr, rkey) = b.remote(0);
        let requests: Vec<_> = (0..4)
            .map(|i| {
                let key = if i == 1 { RKey::truncated(rkey.get() ^ 0xff00) } else { rkey };
                SendRequest::write(addr, key).sges(&sge).wr_id(i).signaled()
            })
            .collect();
        a.qp.post_recv(&mut a.cq, &[RecvRequest::new(50, &sge)]).unwrap();
        b.qp.post_recv(&mut b.cq, &[RecvRequest::new(60, &[])]).unwrap();
        a.qp.post_send(&mut a.cq, &requests).unwrap();
        let mut done = a.wait(5);
        done.sort_by_key(|wc| wc.wr_id);
        let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status, wc.vendor_err)).collect();
        let flushed = |id| (id, WcStatus::WrFlush, 0);
        assert_eq!(
            got,
            [(0, WcStatus::Success, 0), (1, WcStatus::RemAccess, 9), flushed(2), flushed(3), flushed(50)]
        );
        // The responder's queue pair is in error too.
        assert_eq!(b.wait(1)[0].status, WcStatus::WrFlush);
        a.check();
        b.check();
    }
}

#[test]
fn a_local_error_is_told_by_position() {
    let [mut a, b] = rc(V2);
    let (addr, rkey) = b.remote(0);
    let good = [a.sge(0, 8)];
    let mut bad = good;
    bad[0].addr += 1 << 20;
    let requests = [
        SendRequest::write(addr, rkey).sges(&good).wr_id(1),
        SendRequest::write(addr, rkey).sges(&bad).wr_id(2),
        SendRequest::write(addr, rkey).sges(&good).wr_id(3),
    ];
    a.qp.post_send(&mut a.cq, &requests).unwrap();
    let done = a.wait(2);
    let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(got, [(2, WcStatus::LocProt), (3, WcStatus::WrFlush)]);
    a.check();
}

#[test]
fn a_reset_pair_works_like_a_fresh_one() {
    let [mut a, mut b] = rc(reordering());
    let (addr, rkey) = b.remote(0);
    let (ids, paths) = ([a.qp.id(), b.qp.id()], [a.path(), b.path()]);
    for round in 0..5 {
        let sge = [a.sge(0, 8)];
        let requests: Vec<_> =
            (0..=round).map(|i| SendRequest::write(addr, rkey).sges(&sge).wr_id(i).signaled()).collect();
        a.qp.post_send(&mut a.cq, &requests).unwrap();
        if round % 2 == 0 {
            assert_eq!(a.wait(requests.len()).len(), requests.len());
        } else {
            for _ in 0..20 * round {
                a.device.progress();
            }
        }
        a.modify(&QpAttributes::to(QpState::Reset));
        b.modify(&QpAttributes::to(QpState::Reset));
        assert_eq!(a.poll(), []);
        a.connect(ids[1], paths[1]);
        b.connect(ids[0], paths[0]);
    }
    a.check();
    b.check();
}

#[test]
fn modifying_to_error_flushes_everything_once() {
    let [mut a, b] = rc(V2);
    let sge = [a.sge(0, 8)];
    a.qp.post_recv(&mut a.cq, &[RecvRequest::new(1, &sge), RecvRequest::new(2, &sge)]).unwrap();
    a.modify(&QpAttributes::to(QpState::Err));
    let (addr, rkey) = b.remote(0);
    a.qp.post_send(&mut a.cq, &[SendRequest::write(addr, rkey).sges(&sge).wr_id(3)]).unwrap();
    let mut ids: Vec<_> = a.wait(3).iter().map(|wc| (wc.wr_id, wc.status)).collect();
    ids.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(ids, [1, 2, 3].map(|id| (id, WcStatus::WrFlush)));
    for _ in 0..100 {
        a.device.progress();
        assert_eq!(a.poll(), []);
    }
    a.check();
}

#[test]
fn an_arm_is_told_of_the_next_completion_once() {
    let [mut a, mut b] = rc(V2);
    b.qp.post_recv(&mut b.cq, &[1, 2, 3].map(|wr_id| RecvRequest::new(wr_id, &[]))).unwrap();
    b.cq.arm(true);
    assert_eq!(b.poll(), []);
    let notified = |end: &End| {
        let mut nic = end.device.nic().lock();
        std::iter::from_fn(|| nic.take_notification()).filter(|n| matches!(n, Notification::Cq(_))).count()
    };
    let solicited = SendFlags::SIGNALED | SendFlags::SOLICITED;
    for (flags, want) in [(SendFlags::SIGNALED, 0), (solicited, 1), (solicited, 0)] {
        a.qp.post_send(&mut a.cq, &[SendRequest::send().flags(flags)]).unwrap();
        assert_eq!((a.wait(1).len(), b.wait(1).len()), (1, 1));
        assert_eq!(notified(&b), want, "{flags:?}");
    }
    b.check();
}

#[test]
fn a_completion_queue_that_is_too_small_is_found_overrun() {
    // The driver's credit guards a completion queue that is sized for what is posted; the first is not.
    for (cqe, fits) in [(1, false), (255, true)] {
        let (_, devices) = devices(V2, FabricOptions::default());
        let capabilities = QpCapabilities { max_send_wr: 255, ..CAPABILITIES };
        let mut ends = devices.map(|device| End::with(device, QpType::Rc, cqe, capabilities));
        let (ids, paths) = (ends.each_ref().map(|e| e.qp.id()), ends.each_ref().map(End::path));
        for (i, end) in ends.iter_mut().enumerate() {
            end.connect(ids[1 - i], paths[1 - i]);
        }
        let [a, b] = &mut ends;
        let (addr, rkey) = b.remote(0);
        let sge = [a.sge(0, 8)];
        for wr_id in 0..255 {
            let request = SendRequest::write(addr, rkey).sges(&sge).wr_id(wr_id).signaled();
            a.qp.post_send(&mut a.cq, &[request]).unwrap();
        }
        for _ in 0..PATIENCE {
            if !a.device.progress() {
                break;
            }
        }
        let mut nic = a.device.nic().lock();
        let overruns =
            nic.front_end().violations().iter().filter(|v| v.wrong.what == "unconsumed entries").count();
        assert_eq!(overruns == 0, fits, "{:?}", nic.front_end().violations());
        let told = std::iter::from_fn(|| nic.take_notification())
            .filter(|n| matches!(n, Notification::CqError(_)))
            .count();
        assert_eq!(told, usize::from(!fits));
    }
}

#[test]
fn there_are_no_shared_receive_queues() {
    let (_, [mut device, _]) = devices(V2, FabricOptions::default());
    let pd = device.alloc_pd().unwrap();
    let error = device.create_srq(&pd, SrqInit { max_wr: 1, max_sge: 1 }).unwrap_err();
    assert!(matches!(error.cause, Cause::Plan(_)), "{error}");
    assert_eq!(error.to_string(), "shared receive queue: the device has no shared receive queues");
    assert_eq!(device.attributes().max_srq_wr, 0);
}

#[test]
fn controller_memory_that_is_full_falls_back_unless_it_is_required() {
    let cmb = |require| CmbPreference { enable: true, express: false, require };
    let options = |require| IonicOptions {
        placement: Placement { sq: cmb(require), rq: CmbPreference::HOST },
        mapping: Mapping::Uncached,
        ..V2
    };
    for require in [false, true] {
        let (_, [mut device, _]) = devices(options(require), FabricOptions::default());
        let (pd, cq) = (device.alloc_pd().unwrap(), device.create_cq(64).unwrap());
        let mut capabilities = CAPABILITIES;
        capabilities.max_send_wr = 8191;
        let init = QpInit {
            qp_type: QpType::Rc,
            capabilities,
            send_cq: &cq,
            recv_cq: &cq,
            srq: None,
            signal_all: false,
        };
        let first = device.create_qp(&pd, &init).unwrap();
        let granted = CmbGrant::Cmb { express: false, mapping: Mapping::Uncached };
        assert_eq!(first.driver().placement(), (granted, CmbGrant::Host));
        let second = device.create_qp(&pd, &init);
        if require {
            assert!(matches!(second.unwrap_err().cause, Cause::Plan(_)));
        } else {
            assert_eq!(second.unwrap().driver().placement().0, CmbGrant::Host);
        }
        // The memory of a queue pair that is gone is there again.
        device.destroy_qp(first, &mut []).unwrap();
        assert_eq!(device.create_qp(&pd, &init).unwrap().driver().placement().0, granted);
    }
}

#[test]
fn lost_doorbells_are_rung_again() {
    let faults = FaultPlan { drop_doorbell: 300_000, ..FaultPlan::NONE };
    let fabric = FabricOptions { seed: 5, faults, threaded: false };
    let (_fabric, [mut a, b]) = pair(V2, fabric, QpType::Rc);
    let (addr, rkey) = b.remote(0);
    for wr_id in 0..200 {
        let sge = [a.sge(0, 8)];
        a.cq.arm(wr_id % 3 == 0);
        a.qp.post_send(&mut a.cq, &[SendRequest::write(addr, rkey).sges(&sge).wr_id(wr_id).signaled()])
            .unwrap();
        assert_eq!(a.wait(1)[0].wr_id, wr_id);
    }
    a.check();
}

#[test]
fn a_region_is_registered_through_the_send_queue() {
    for version in [RdmaVersion::V1, RdmaVersion::V2] {
        let [mut a, mut b] = rc(IonicOptions::new(version));
        let config = MrConfig {
            key: None,
            pd: b.pd.id(),
            kind: MrKind::FastRegister { max_pages: 4 },
            addr: 0,
            length: 0,
            access: AccessFlags::empty(),
        };
        let key = b.device.nic().lock().create_mr(&config).unwrap();
        // Two pages, listed in the end's own memory, in the wrong order.
        let pages = [b.mr.addr() + 8192, b.mr.addr() + 4096];
        b.write(0, &pages.map(u64::to_le_bytes).concat());
        let list = FastRegister {
            key: LKey::truncated(key),
            addr: 0x10_0010,
            length: 8000,
            page_shift: 12,
            pages: 2,
            table: PageTable::Level1(b.mr.addr()),
            access: AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE,
        };
        let page = b.mr.addr() + 4096 + 0x10;
        let one = FastRegister { pages: 1, length: 100, table: PageTable::Contiguous(page), ..list };
        a.write(0, b"registered");
        for (register, offset, lands) in [(list, 4080, 4096), (one, 0, 4096 + 0x10)] {
            let request = SendRequest::new(SendOp::FastRegister(register)).wr_id(1).signaled();
            b.qp.post_send(&mut b.cq, &[request]).unwrap();
            let done = b.wait(1)[0];
            assert_eq!((done.status, done.opcode), (WcStatus::Success, WcOpcode::RegMr), "{version:?}");
            let sges = [a.sge(0, 10)];
            let write = SendRequest::write(0x10_0010 + offset, RKey::truncated(key)).sges(&sges).signaled();
            a.qp.post_send(&mut a.cq, &[write]).unwrap();
            assert_eq!(a.wait(1)[0].status, WcStatus::Success, "{version:?}");
            assert_eq!(&b.read::<10>(lands), b"registered", "{version:?}");
            let invalidate = SendRequest::new(SendOp::LocalInv(RKey::truncated(key))).signaled();
            b.qp.post_send(&mut b.cq, &[invalidate]).unwrap();
            assert_eq!(b.wait(1)[0].status, WcStatus::Success);
        }
        a.check();
        b.check();
    }
}
