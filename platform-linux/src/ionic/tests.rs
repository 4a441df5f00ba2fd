//! The driver's part over the model of a kernel.

use std::path::Path;
use std::sync::Arc;

use directverbs::ionic::caps::ContextReply;
use directverbs::ionic::cmb::{CmbGrant, CmbPreference, Mapping};
use directverbs::queue::Doorbell;
use directverbs::verbs::{AddressVector, Gid, Mac, QpCapabilities, QpType};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::abi::{AhReply, CqReply, CqRequest, QpReply, QpRequest};
use super::*;
use crate::error::Error;
use crate::uverbs::Kernel;
use crate::uverbs::model::{Model, PAGE, Request, Settings};

pub(super) const ENABLE: CmbPreference = CmbPreference { enable: true, express: false, require: false };
const EXPRESS: CmbPreference = CmbPreference { express: true, ..ENABLE };
const REQUIRE: CmbPreference = CmbPreference { require: true, ..ENABLE };

/// Where the model's first queue pair has its number from: file 4, events 5, PD 6, CQ 7, QP 8.
const QP: u32 = 8 + 0x100;

pub(super) fn context_reply() -> ContextReply {
    ContextReply {
        page_shift: 12.into(),
        dbell_offset: 0x3000.into(),
        version: 2.into(),
        qp_opcodes: 20,
        sq_qtype: 1,
        rq_qtype: 2,
        cq_qtype: 3,
        max_stride: 10,
        max_spec: 8,
        udma_count: 2,
        expdb_mask: 0xf,
        expdb_qtypes: 1,
        phc_offset: 0x8000.into(),
        ..ContextReply::ZERO
    }
}

pub(super) fn qp_reply() -> QpReply {
    QpReply { qpid: QP.into(), udma_idx: 1, ..QpReply::ZERO }
}

pub(super) fn settings(context: ContextReply, qp: QpReply) -> Settings {
    let cq = CqReply { cqid: [0x21.into(), 0x22.into()], udma_mask: 3, ..CqReply::ZERO };
    let ah = AhReply { ahid: 0x77.into(), ..AhReply::ZERO };
    Settings {
        driver_id: 21,
        uhw: vec![
            ("GET_CONTEXT", context.as_bytes().to_vec()),
            ("CQ_CREATE", cq.as_bytes().to_vec()),
            ("QP_CREATE", qp.as_bytes().to_vec()),
            ("CREATE_AH", ah.as_bytes().to_vec()),
        ],
        ..Settings::newest()
    }
}

pub(super) fn open(model: &Arc<Model>) -> Result<Context, Error> {
    Context::open_path(Arc::clone(model) as Arc<dyn Kernel>, Path::new("/dev/infiniband/uverbs0"))
}

fn opened(qp: QpReply) -> (Arc<Model>, Context) {
    let model = Model::new(settings(context_reply(), qp));
    let context = open(&model).expect("opens");
    model.take_log();
    (model, context)
}

fn queues(model: &Arc<Model>, context: &Context) -> (ProtectionDomain, CompletionQueue) {
    let pd = ProtectionDomain::alloc(context).expect("a domain");
    let cq = CompletionQueue::create(context, 100, 3, None, 0).expect("a queue");
    model.take_log();
    (pd, cq)
}

fn init(cq: &CompletionQueue) -> QueuePairInit<'_> {
    QueuePairInit {
        qp_type: QpType::Rc,
        capabilities: QpCapabilities {
            max_send_wr: 60,
            max_recv_wr: 30,
            max_send_sge: 2,
            max_recv_sge: 1,
            max_inline_data: 0,
        },
        send_cq: cq,
        recv_cq: cq,
        signal_all: false,
    }
}

pub(super) fn qp_request(sent: &Request) -> QpRequest {
    QpRequest::read_from_bytes(sent.get("UHW_IN").expect("the driver's part")).expect("40 bytes")
}

#[test]
fn opening_maps_the_doorbell_page_and_the_clock_page() {
    let model = Model::new(settings(context_reply(), qp_reply()));
    let context = open(&model).expect("opens");
    let log = model.take_log();
    let names: Vec<_> = log.iter().map(|r| r.name).collect();
    assert_eq!(names, ["GET_CONTEXT", "ASYNC_EVENT_ALLOC", "QUERY_DEVICE", "mmap", "mmap"]);
    assert_eq!(log[0].get("UHW_IN"), Some(&[0; 8][..]));
    assert_eq!((log[3].number("OFFSET"), log[3].number("LENGTH")), (Some(0x3000), Some(PAGE as u64)));
    // Protection 0: reading.
    assert_eq!((log[4].number("OFFSET"), log[4].number("PROTECTION")), (Some(0x8000), Some(0)));
    assert_eq!((context.udma_count(), context.udma_mask()), (2, 3));
    assert!(context.clock().expect("a clock").read().is_ok());
    for register in [0, 7, 8, usize::MAX] {
        context.doorbell().store(register, 1);
    }
}

#[test]
fn a_kernel_before_7_3_has_no_clock_page() {
    let mut older = settings(context_reply(), qp_reply());
    // The reply ends before `phc_offset`.
    older.uhw[0].1.truncate(32);
    let model = Model::new(older);
    assert!(open(&model).expect("opens").clock().is_none());
}

#[test]
fn a_device_that_makes_no_sense_is_refused_and_the_file_closed() {
    let spoilt = [
        ContextReply { version: 3.into(), ..context_reply() },
        ContextReply { version: 1.into(), qp_opcodes: 1, ..context_reply() },
        ContextReply { udma_count: 3, ..context_reply() },
        ContextReply { udma_count: 0, ..context_reply() },
        ContextReply { sq_qtype: 8, ..context_reply() },
        ContextReply { page_shift: 16.into(), ..context_reply() },
        ContextReply { dbell_offset: 0x3fe0.into(), ..context_reply() },
        ContextReply { dbell_offset: 0x3001.into(), ..context_reply() },
    ];
    for reply in spoilt {
        let model = Model::new(settings(reply, qp_reply()));
        let error = open(&model).expect_err("no sense");
        assert!(matches!(error, Error::Device { .. } | Error::Reply { .. }), "{error}");
        assert_eq!(model.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn a_completion_queue_has_a_ring_on_each_pipeline_of_its_mask() {
    let (model, context) = opened(qp_reply());
    let cq = CompletionQueue::create(&context, 100, 3, None, 2).expect("a queue");
    let sent = model.only();
    let request =
        CqRequest::read_from_bytes(sent.get("UHW_IN").expect("the driver's part")).expect("40 bytes");
    assert_eq!((request.udma_mask, sent.number("CQE"), sent.number("COMP_VECTOR")), (3, Some(100), Some(2)));
    for (udma, descriptor) in (0u8..).zip(request.cq) {
        let (id, ring) = cq.ring(udma).expect("a ring");
        assert_eq!(id.get(), 0x21 + u32::from(udma));
        assert_eq!((descriptor.addr.get(), descriptor.size.get() as usize), (ring.address(), ring.len()));
        // What the kernel checks of a ring.
        let (depth, stride) = (u32::from(descriptor.depth_log2), u32::from(descriptor.stride_log2));
        assert_eq!(descriptor.addr.get() % PAGE as u64, 0);
        assert_eq!(u32::from(descriptor.mask.get()), (1 << depth) - 1);
        assert!(descriptor.size.get() >= 1 << (depth + stride) && descriptor.size.get() as usize >= PAGE);
    }
    assert!(cq.ring(2).is_none());
    for mask in [0, 4, 7] {
        assert!(matches!(CompletionQueue::create(&context, 100, mask, None, 0), Err(Error::Value { .. })));
    }
    // Asked for one pipeline, and got both: no sense, and the queue is destroyed.
    let error = CompletionQueue::create(&context, 100, 1, None, 0).expect_err("other pipelines");
    assert!(matches!(error, Error::Reply { .. }));
    let names: Vec<_> = model.take_log().iter().map(|r| r.name).collect();
    assert_eq!(names, ["CQ_CREATE", "CQ_DESTROY"]);
}

#[test]
fn a_queue_pair_describes_its_rings_and_learns_its_pipeline() {
    let (model, context) = opened(qp_reply());
    let (pd, cq) = queues(&model, &context);
    let qp = QueuePair::create(&pd, &init(&cq)).expect("a queue pair");
    let sent = model.only();
    let request = qp_request(&sent);
    assert_eq!(
        (request.sq.addr.get(), request.rq.addr.get()),
        (qp.send().ring().address(), qp.recv().ring().address())
    );
    assert_eq!((request.sq_spec, request.rq_spec), (qp.plan().sq.spec, qp.plan().rq.spec));
    // What was not asked for is not asked of the device.
    assert_eq!((request.sq_cmb, request.rq_cmb, request.udma_mask), (0, 0, 3));
    assert_eq!((qp.udma(), qp.id().get()), (1, QP));
    assert_eq!(qp.send().grant(), CmbGrant::Host);
    assert!(qp.send().cmb().is_none());
    assert!(qp.granted().max_send_wr >= 60);
    let raw = QueuePairInit { qp_type: QpType::RawPacket, ..init(&cq) };
    assert!(matches!(QueuePair::create(&pd, &raw), Err(Error::Unsupported { .. })));
}

#[test]
fn what_was_granted_counts_and_is_mapped() {
    // ENABLE, EXPDB and UC.
    let reply = QpReply { sq_cmb: 1 | 4 | 16, sq_cmb_offset: 0x1_0000.into(), ..qp_reply() };
    let (model, context) = opened(reply);
    let (mut pd, cq) = queues(&model, &context);
    pd.set_send_placement(EXPRESS).expect("the device has it");
    pd.set_recv_placement(EXPRESS).expect("left out");
    let qp = QueuePair::create(&pd, &init(&cq)).expect("a queue pair");
    let log = model.take_log();
    let request = qp_request(&log[0]);
    assert_eq!((request.sq_cmb, request.rq_cmb), (1 | 4, 1));
    assert_eq!((log[1].name, log[1].number("OFFSET")), ("mmap", Some(0x1_0000)));
    assert_eq!(qp.send().grant(), CmbGrant::Cmb { express: true, mapping: Mapping::Uncached });
    let cmb = qp.send().cmb().expect("mapped");
    assert_eq!((cmb.express, cmb.memory.len()), (true, qp.plan().sq.ring.bytes()));
    // The receive queue was asked for, and was not granted: it falls back.
    assert_eq!(qp.recv().grant(), CmbGrant::Host);
}

#[test]
fn what_is_required_and_not_granted_is_an_error_and_leaves_nothing() {
    let (model, context) = opened(qp_reply());
    let (mut pd, cq) = queues(&model, &context);
    pd.set_send_placement(REQUIRE).expect("can be asked for");
    assert!(matches!(QueuePair::create(&pd, &init(&cq)), Err(Error::Plan { .. })));
    let log = model.take_log();
    assert_eq!(qp_request(&log[0]).sq_cmb, 1 | 2);
    assert_eq!(log.last().map(|r| r.name), Some("QP_DESTROY"));
}

#[test]
fn controller_memory_that_was_not_asked_for_is_an_error() {
    let (model, context) = opened(QpReply { rq_cmb: 1, ..qp_reply() });
    let (pd, cq) = queues(&model, &context);
    assert!(matches!(QueuePair::create(&pd, &init(&cq)), Err(Error::Plan { .. })));
}

#[test]
fn express_doorbells_that_are_required_and_not_there_are_refused_at_once() {
    let (model, context) = opened(qp_reply());
    let (mut pd, _cq) = queues(&model, &context);
    let required = CmbPreference { require: true, ..EXPRESS };
    assert!(matches!(pd.set_recv_placement(required), Err(Error::Plan { .. })));
    assert_eq!(pd.placement().rq, CmbPreference::HOST);
    pd.set_send_placement(required).expect("the device has them for send queues");
    assert!(pd.placement().sq.express && pd.placement().sq.require);
    assert_eq!(model.take_log(), []);
}

#[test]
fn pipelines_are_those_of_the_domain_and_of_both_completion_queues() {
    let (model, context) = opened(qp_reply());
    let (mut pd, cq) = queues(&model, &context);
    for mask in [0, 4, 5] {
        assert!(matches!(pd.set_udma_mask(mask), Err(Error::Value { attribute: "pipeline mask", .. })));
    }
    assert_eq!(pd.udma_mask(), 3);
    pd.set_udma_mask(1).expect("there is one");
    // The device answers with pipeline 1, which was not asked for.
    let error = QueuePair::create(&pd, &init(&cq)).expect_err("another pipeline");
    assert!(matches!(error, Error::Reply { .. }), "{error}");
    assert_eq!(qp_request(&model.take_log()[0]).udma_mask, 1);
}

#[test]
fn completion_queues_without_a_common_pipeline_are_not_sent() {
    let one = CqReply { cqid: [0x21.into(), 0.into()], udma_mask: 1, ..CqReply::ZERO };
    let mut settings = settings(context_reply(), qp_reply());
    settings.uhw[1].1 = one.as_bytes().to_vec();
    let model = Model::new(settings);
    let context = open(&model).expect("opens");
    let mut pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 100, 1, None, 0).expect("a queue");
    assert!(cq.ring(0).is_some() && cq.ring(1).is_none());
    pd.set_udma_mask(2).expect("there is one");
    model.take_log();
    assert!(matches!(QueuePair::create(&pd, &init(&cq)), Err(Error::Value { .. })));
    assert_eq!(model.take_log(), []);
}

#[test]
fn an_address_handles_number_comes_in_the_reply() {
    let (model, context) = opened(qp_reply());
    let (pd, _cq) = queues(&model, &context);
    let to = AddressVector::new(Gid::default(), Mac::default());
    let (_handle, id) = pd.create_ah(&to, 1).expect("a handle");
    assert_eq!(id.get(), 0x77);
}

#[test]
fn whichever_call_fails_nothing_stays_open_mapped_or_registered() {
    let reply = QpReply {
        sq_cmb: 1 | 8,
        sq_cmb_offset: 0x1_0000.into(),
        rq_cmb: 1 | 8,
        rq_cmb_offset: 0x2_0000.into(),
        ..qp_reply()
    };
    let settings = settings(context_reply(), reply);
    let everything = |model: &Arc<Model>| -> Result<(), Error> {
        let context = open(model)?;
        let mut pd = ProtectionDomain::alloc(&context)?;
        pd.set_send_placement(ENABLE)?;
        pd.set_recv_placement(ENABLE)?;
        let cq = CompletionQueue::create(&context, 100, 3, None, 0)?;
        let qp = QueuePair::create(&pd, &init(&cq))?;
        drop((context, pd, cq));
        drop(qp);
        Ok(())
    };
    let whole = Model::new(settings.clone());
    whole.fail_at(usize::MAX, Errno::IO);
    everything(&whole).expect("all of it");
    assert_eq!(whole.leftovers(), Vec::<String>::new());
    let calls = whole.calls();
    assert!(calls > 14, "{calls} calls");
    for call in 0..calls {
        for errno in
            [Errno::INVAL, Errno::NOMEM, Errno::OPNOTSUPP, Errno::PROTONOSUPPORT, Errno::IO, Errno::AGAIN]
        {
            let model = Model::new(settings.clone());
            model.fail_at(call, errno);
            if let Err(error) = everything(&model) {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            assert_eq!(model.leftovers(), Vec::<String>::new(), "call {call} failed with {errno}");
        }
    }
}
