//! The datapath over the model of a kernel: what is rung and copied, and what is left behind. Whether messages arrive is
//! tested where there is a device.

use std::sync::Arc;

use directverbs::ionic::plan::Placement;
use directverbs::verbs::{
    AccessFlags, AddressVector, Device as _, Gid, LKey, Mac, Mtu, Psn, QpAttributes, QpCapabilities, QpId,
    QpInit, QpState, QpType, QueuePair as _, RKey, SendRequest, Sge, SrqInit,
};
use rustix::io::Errno;

use super::{CompletionQueue, Device, Settings};
use crate::error::{Error, Result};
use crate::host::Origin;
use crate::ionic::abi::QpReply;
use crate::ionic::tests::{ENABLE, context_reply, open, qp_reply, qp_request, settings};
use crate::ionic::{self, Context, ProtectionDomain};
use crate::uverbs::Kernel;
use crate::uverbs::model::Model;

const ORIGIN: Origin = Origin { port: 1, gid: Gid([0xfe; 16]), gid_index: 3, mac: Mac([2; 6]) };

fn init(cq: &CompletionQueue) -> QpInit<'_, CompletionQueue, directverbs::ionic::qp::NoSharedReceiveQueue> {
    QpInit {
        qp_type: QpType::Rc,
        capabilities: QpCapabilities {
            max_send_wr: 30,
            max_recv_wr: 30,
            max_send_sge: 2,
            max_recv_sge: 1,
            max_inline_data: 0,
        },
        send_cq: cq,
        recv_cq: cq,
        srq: None,
        signal_all: false,
    }
}

fn to_rts() -> [QpAttributes; 3] {
    let path = AddressVector { sgid_index: 3, ..AddressVector::new(ORIGIN.gid, ORIGIN.mac) };
    [
        QpAttributes { access: Some(AccessFlags::REMOTE_WRITE), ..QpAttributes::to(QpState::Init) },
        QpAttributes {
            path: Some(path),
            mtu: Some(Mtu::B1024),
            dest_qp: Some(QpId::truncated(9)),
            rq_psn: Some(Psn::default()),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Some(Psn::default()),
            timeout: Some(14),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(1),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}

/// All that a device has, made and undone; an early return leaves the rest to be dropped. `look` sees what was posted.
fn everything(model: &Arc<Model>, settings: Settings, look: impl FnOnce(u64, u64)) -> Result<()> {
    let mut device = Device::new(open(model)?, ORIGIN, settings)?;
    let pd = device.alloc_pd()?;
    let mut cq = device.create_cq(100)?;
    let mut qp = device.create_qp(&pd, &init(&cq))?;
    for attributes in to_rts() {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes)?;
    }
    let sges = [Sge::new(0x1000, 64, LKey::truncated(1))];
    let request = SendRequest::write(0x2000, RKey::truncated(2)).sges(&sges).signaled();
    qp.post_send(&mut cq, &[request]).expect("room");
    let copy = qp.control().send().cmb().map_or(0, |cmb| cmb.memory.address().as_ptr() as u64);
    look(device.context().doorbell().address(), copy);
    device.modify_qp(&mut qp, &mut [&mut cq], &QpAttributes::to(QpState::Reset))?;
    device.destroy_qp(qp, &mut [&mut cq])?;
    device.destroy_cq(cq)?;
    let region = device.alloc_mr(&pd, 100, AccessFlags::LOCAL_WRITE)?;
    device.dealloc_mr(region)?;
    device.dealloc_pd(pd)
}

fn placed() -> Settings {
    Settings { placement: Placement { sq: ENABLE, ..Placement::default() }, ..Settings::default() }
}

#[test]
fn a_post_rings_the_register_of_its_queue_type() {
    let model = Model::new(settings(context_reply(), qp_reply()));
    everything(&model, Settings::default(), |page, copy| {
        // Register 1 is that of send queues; queue pair 8 + 0x100, one WQE.
        assert_eq!((model.load(page + 8), copy), ((8 + 0x100) << 24 | 1, 0));
    })
    .expect("all of it");
    let request = qp_request(model.take_log().iter().find(|r| r.name == "QP_CREATE").expect("sent"));
    assert_eq!((request.udma_mask, request.sq_cmb), (3, 0));
}

#[test]
fn a_post_is_copied_to_controller_memory_where_that_was_granted() {
    let reply = QpReply { sq_cmb: 1 | 8, sq_cmb_offset: 0x1_0000.into(), ..qp_reply() };
    let model = Model::new(settings(context_reply(), reply));
    everything(&model, placed(), |page, copy| {
        assert_eq!(model.load(page + 8), (8 + 0x100) << 24 | 1);
        assert_eq!(model.load(copy + 32), 0x1000u64.swap_bytes(), "the address in the SGE");
    })
    .expect("all of it");
}

#[test]
fn queues_are_described_where_they_are_and_as_far_as_they_came() {
    let reply = QpReply { sq_cmb: 1 | 8, sq_cmb_offset: 0x1_0000.into(), ..qp_reply() };
    let model = Model::new(settings(context_reply(), reply));
    let mut device = Device::new(open(&model).expect("opens"), ORIGIN, placed()).expect("a device");
    let pd = device.alloc_pd().expect("a domain");
    let mut cq = device.create_cq(100).expect("a queue");
    let mut qp = device.create_qp(&pd, &init(&cq)).expect("a queue pair");
    for attributes in to_rts() {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes).expect("a transition");
    }
    qp.post_send(&mut cq, &[SendRequest::new(directverbs::verbs::SendOp::Send).signaled()]).expect("room");
    let page = device.context().doorbell().address();
    assert_eq!(device.context().describe().doorbell, page);

    let told = qp.describe();
    assert_eq!(told.sq_ring, qp.control().send().ring().address());
    assert_eq!((told.sq_placement, told.rq_placement, told.rq_cmb), (1 | 8, 0, 0));
    assert_eq!(told.sq_cmb, qp.control().send().cmb().expect("granted").memory.address().as_ptr() as u64);
    assert_eq!((told.sq_doorbell, told.sq_index, told.sq_msn), (page + 8, 1, 1));
    assert_eq!(told.sq_doorbell_base | u64::from(told.sq_index), model.load(page + 8), "what was rung");

    let ring = cq.describe(qp.control().udma()).expect("a ring");
    assert_eq!((ring.id, told.send_cq, told.recv_cq), (told.send_cq, ring.id, ring.id));
    let (_, memory) = cq.control().ring(qp.control().udma()).expect("a ring");
    assert_eq!((ring.ring, ring.index, ring.color), (memory.address(), 0, 1));
    assert_eq!(cq.describe(7), None, "no such pipeline");
}

#[test]
fn there_are_no_shared_receive_queues_and_a_pipeline_must_be_there() {
    let model = Model::new(settings(context_reply(), qp_reply()));
    let mut device =
        Device::new(open(&model).expect("opens"), ORIGIN, Settings::default()).expect("a device");
    assert_eq!((device.settings().udma_mask, device.attributes().max_srq_wr), (3, 0));
    let pd = device.alloc_pd().expect("a domain");
    assert!(matches!(
        device.create_srq(&pd, SrqInit { max_wr: 1, max_sge: 1 }),
        Err(Error::Unsupported { object: "shared receive queue", .. })
    ));
    let wrong = Settings { udma_mask: 4, ..Settings::default() };
    let error = Device::new(device.context().clone(), ORIGIN, wrong).expect_err("two pipelines");
    assert_eq!(error.to_string(), "device: pipeline mask names one that the device does not have");
}

#[test]
fn whichever_call_fails_nothing_stays_open_mapped_or_registered() {
    let reply = QpReply { sq_cmb: 1 | 8, sq_cmb_offset: 0x1_0000.into(), ..qp_reply() };
    let settings = settings(context_reply(), reply);
    let whole = Model::new(settings.clone());
    whole.fail_at(usize::MAX, Errno::IO);
    everything(&whole, placed(), |_, _| ()).expect("all of it");
    assert_eq!(whole.leftovers(), Vec::<String>::new());
    for call in 0..whole.calls() {
        for errno in [Errno::INVAL, Errno::NOMEM, Errno::OPNOTSUPP, Errno::IO] {
            let model = Model::new(settings.clone());
            model.fail_at(call, errno);
            if let Err(error) = everything(&model, placed(), |_, _| ()) {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            assert_eq!(model.leftovers(), Vec::<String>::new(), "call {call} failed with {errno}");
        }
    }
}

#[test]
fn an_imported_contexts_objects_are_left_to_their_owner() {
    let model = Model::new(settings(context_reply(), qp_reply()));
    let theirs = open(&model).expect("opens");
    let their_pd = ProtectionDomain::alloc(&theirs).expect("a domain");
    let their_cq = ionic::CompletionQueue::create(&theirs, 100, 3, None, 0).expect("a queue");
    let before = model.leftovers();

    let kernel: Arc<dyn Kernel> = Arc::clone(&model) as _;
    let context = Context::import_as(kernel, theirs.generic().file().fd(), &context_reply()).expect("taken");
    let mut device = Device::new(context.clone(), ORIGIN, Settings::default()).expect("a device");
    let pd = ProtectionDomain::import(&context, their_pd.generic().handle());
    let rings = [0, 1].map(|udma| their_cq.ring(udma).map(|(id, pages)| (id, pages.clone())));
    let (handle, depth) = (their_cq.object().handle(), their_cq.plan().ring.depth_log2);
    let control = |depth| ionic::CompletionQueue::import(&context, handle, rings.clone(), depth);
    assert!(matches!(control(depth + 1), Err(Error::Limit { attribute: "bytes of the ring", .. })));
    let cq = device.attach_cq(control(depth).expect("fits")).expect("a queue");
    model.take_log();
    device.destroy_cq(cq).expect("never destroyed here");
    device.dealloc_pd(pd).expect("never destroyed here");
    drop((device, context));
    assert!(model.take_log().iter().all(|r| !matches!(r.name, "CQ_DESTROY" | "PD_DESTROY")));
    assert_eq!(model.leftovers(), before);
    drop(rings);
    their_cq.destroy().expect("unused");
    their_pd.destroy().expect("unused");
    drop(theirs);
    assert_eq!(model.leftovers(), Vec::<String>::new());
}
