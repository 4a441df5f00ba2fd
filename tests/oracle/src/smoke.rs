//! Every verb of the wrappers once, on a device of each kind: shows that the pieces meet, and what one RDMA WRITE of each
//! provider looks like.

use directverbs::verbs::{
    AccessFlags, AddressVector, BindMw, Datagram, Gid, LKey, Mac, Mtu, MwType, Psn, QKey, QpAttributes,
    QpCapabilities, QpId, QpInit, QpState, QpType, RKey, RecvRequest, SendOp, SendRequest, Sge, SrqInit,
};
use oracle::ibv::{
    ALL_SEND_OPS, Ah, Channel, Context, Cq, CqInit, Error, Library, Mr, Mw, Pd, Pieces, PostError, Qp,
    RecvList, SendList, Srq,
};
use oracle::uverbs::bnxt_re::PacingParameters;
use oracle::uverbs::ionic::{ClockInfo, cmb};
use oracle::uverbs::{Config, Family, Page, Transport, bnxt_re, ionic, sysfs};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library failed.
    #[error(transparent)]
    Library(#[from] Error),
    /// The provider refused a request.
    #[error("post: {0:?}")]
    Post(PostError),
    /// The provider did not poll as it should.
    #[error("poll: {0}")]
    Poll(i32),
    /// Something that was to be seen was not.
    #[error("{0}")]
    Unseen(String),
}

impl From<PostError> for Failure {
    fn from(error: PostError) -> Self {
        Self::Post(error)
    }
}

fn seen(is: bool, what: &str) -> Result<(), Failure> {
    if is { Ok(()) } else { Err(Failure::Unseen(what.to_owned())) }
}

/// Devices, by name.
fn devices() -> Vec<(&'static str, Config)> {
    let full =
        bnxt_re::Config { push: true, pacing: Some(PacingParameters::default()), ..bnxt_re::Config::p7() };
    let placed = ionic::Config {
        udma_count: 2,
        udma: 1,
        express_strides: 0xf,
        express_queues: 3,
        cmb: [cmb::ENABLE | cmb::EXPDB | cmb::WC, cmb::ENABLE | cmb::EXPDB],
        clock: Some(ClockInfo { mult: 1, mask: u64::MAX, ..ClockInfo::default() }),
        ..ionic::Config::default()
    };
    let mut old: Vec<Config> =
        vec![bnxt_re::Config::p5().into(), ionic::Config { version: 1, ..placed.clone() }.into()];
    for config in &mut old {
        config.transport = Transport::Write;
    }
    let [old_bnxt_re, old_ionic] = <[Config; 2]>::try_from(old).expect("two");
    vec![
        ("bnxt_re P7", bnxt_re::Config::p7().into()),
        ("bnxt_re P7 with all pages", full.into()),
        ("bnxt_re P5 by write()", old_bnxt_re),
        ("ionic 2", ionic::Config::default().into()),
        ("ionic 2 in controller memory", placed.into()),
        ("ionic 1 by write()", old_ionic),
    ]
}

/// Tries all devices and prints what their providers stored for one WRITE.
///
/// # Errors
/// A provider failed, or did not do what was to be seen.
pub fn run() -> Result<(), Failure> {
    let library = Library::load()?;
    for (name, config) in devices() {
        let family = config.family();
        let context = Context::open(&library, config)?;
        let pd = Pd::new(&context)?;
        println!("{name}:");
        let version = if family == Family::Ionic { sysfs::FIRMWARE } else { "0.0.0.0" };
        seen(context.firmware()? == version, "the firmware's version, from where the provider reads it")?;
        write(&context, &pd)?;
        datagram(&context, &pd)?;
        builder(&context, &pd)?;
        memory(&pd, family)?;
        match family {
            Family::BnxtRe => shared(&context, &pd)?,
            Family::Ionic => pipelines(&context, &pd)?,
        }
        drop(pd);
        let device = context.device().clone();
        seen(context.close().is_ok(), "the context is used no more")?;
        seen(device.objects() == Default::default(), "all objects are destroyed")?;
    }
    Ok(())
}

const CAPABILITIES: QpCapabilities = QpCapabilities {
    max_send_wr: 60,
    max_recv_wr: 60,
    max_send_sge: 2,
    max_recv_sge: 2,
    max_inline_data: 64,
};

fn init<'a>(qp_type: QpType, cq: &'a Cq) -> QpInit<'a, Cq, Srq> {
    QpInit { qp_type, capabilities: CAPABILITIES, send_cq: cq, recv_cq: cq, srq: None, signal_all: false }
}

/// One WRITE, one receive, a poll, an arm, a reset.
fn write(context: &Context, pd: &Pd) -> Result<(), Failure> {
    let device = context.device();
    let init_cq = CqInit { channel: Some(Channel::new(context)?), ..CqInit::entries(100) };
    let cq = Cq::new(context, &init_cq)?;
    let qp = Qp::new(pd, &init(QpType::Rc, &cq))?;
    qp.to_rts(QpType::Rc, Mtu::B4096, Psn::truncated(0x123))?;
    let made = device.qp(qp.handle());
    seen((made.state, made.sq_psn, made.path_mtu) == (3, 0x123, 5), "the queue pair is ready to send")?;
    device.take_stores();

    let sges = [Sge::new(0x1000, 64, LKey::truncated(0x11))];
    let request = SendRequest::write(0x2000, RKey::truncated(0x22)).sges(&sges).wr_id(42).signaled();
    qp.post_send(&mut SendList::new(&[request], &[]).expect("a request of the library"))?;
    let stores = device.take_stores();
    seen(!stores.is_empty(), "a store into a page")?;
    for store in stores {
        println!("  {:?}+{:#x} <- {:x?}", store.page, store.offset, store.bytes());
    }
    qp.post_recv(&mut RecvList::new(&[RecvRequest::new(7, &sges)]))?;
    seen(!device.take_stores().is_empty(), "a doorbell of the receive queue")?;
    let polled = cq.poll(4).map_err(Failure::Poll)?;
    seen(polled.is_empty(), "no completion before the device wrote one")?;
    cq.req_notify(false)?;
    // libionic arms in the next poll.
    cq.poll(1).map_err(Failure::Poll)?;
    seen(device.take_stores().iter().any(|s| s.page == Page::Doorbell), "a doorbell that arms")?;

    qp.modify(&QpAttributes::to(QpState::Err))?;
    let flushed = cq.poll(4).map_err(Failure::Poll)?;
    let family = device.config().family();
    seen(flushed.len() == if family == Family::Ionic { 2 } else { 0 }, "libionic flushes by itself")?;
    device.raise(1, made.user_handle).map_err(Failure::Poll)?;
    seen(context.async_event()? == (1, made.user_handle), "the event that was raised")?;
    qp.modify(&QpAttributes::to(QpState::Reset))?;
    seen(device.qp(qp.handle()).state == 0, "the queue pair is reset")
}

/// A datagram with immediate data.
fn datagram(context: &Context, pd: &Pd) -> Result<(), Failure> {
    let ah = Ah::new(pd, &AddressVector::new(Gid([7; 16]), Mac([2; 6])))?;
    let ahs = [ah];
    let cq = Cq::new(context, &CqInit::entries(10))?;
    let qp = Qp::new(pd, &init(QpType::Ud, &cq))?;
    qp.to_rts(QpType::Ud, Mtu::B1024, Psn::truncated(0))?;
    let to = Datagram { ah: ahs[0].id(), qp: QpId::truncated(5), qkey: QKey::truncated(6) };
    let request = SendRequest::send_to(to).inline(&[b"datagram"]);
    context.device().take_stores();
    qp.post_send(&mut SendList::new(&[request], &ahs).expect("a request of the library"))?;
    seen(!context.device().take_stores().is_empty(), "a store for the datagram")
}

/// Through `ibv_wr_*`.
fn builder(context: &Context, pd: &Pd) -> Result<(), Failure> {
    let device = context.device();
    let cq = Cq::new(context, &CqInit::entries(10))?;
    let bnxt_re = device.config().family() == Family::BnxtRe;
    // bnxt_re has only the first seven.
    let operations = if bnxt_re { ALL_SEND_OPS & 0x7f } else { ALL_SEND_OPS };
    let qp = Qp::new_extended(pd, &init(QpType::Rc, &cq), operations)?;
    qp.to_rts(QpType::Rc, Mtu::B4096, Psn::truncated(0))?;
    let sges = [Sge::new(0x1000, 64, LKey::truncated(0x11)); 2];
    let request = SendRequest::send().sges(&sges);
    device.take_stores();
    qp.post_wr(&[request], &[], Pieces::Single)?;
    seen(!device.take_stores().is_empty(), "a store at complete")?;
    if !bnxt_re {
        qp.abort_wr(&[request], &[], Pieces::Lists)?;
        seen(device.take_stores().is_empty(), "no store at abort")?;
    }
    Ok(())
}

/// Regions and windows.
fn memory(pd: &Pd, family: Family) -> Result<(), Failure> {
    let mut bytes = [0; 100];
    let mr = Mr::new(pd, &mut bytes, AccessFlags::LOCAL_WRITE)?;
    let known = pd.context().device().objects().mrs;
    seen(known.values().any(|m| m.key == mr.lkey().get() && m.length == 100), "the region is known")?;
    match (family, Mw::new(pd, MwType::Type2)) {
        (Family::BnxtRe, Err(_)) => Ok(()),
        (Family::Ionic, Ok(mw)) => {
            let bind = BindMw {
                mw_type: MwType::Type2,
                mw: mw.rkey(),
                new_key: mw.rkey(),
                region: mr.lkey(),
                addr: 0,
                length: 8,
                access: AccessFlags::REMOTE_READ,
            };
            let list = SendList::new(&[SendRequest::new(SendOp::BindMw(bind))], &[]);
            seen(list.is_ok(), "the library can express a bind")
        }
        (family, other) => seen(false, &format!("memory windows of {family:?}: {other:?}")),
    }
}

/// bnxt_re: a shared receive queue.
fn shared(context: &Context, pd: &Pd) -> Result<(), Failure> {
    let device = context.device();
    let srq = Srq::new(pd, &SrqInit { max_wr: 20, max_sge: 2 }, 3)?;
    let cq = Cq::new(context, &CqInit::entries(10))?;
    let qp = Qp::new(pd, &QpInit { srq: Some(&srq), ..init(QpType::Rc, &cq) })?;
    seen(device.qp(qp.handle()).srq == Some(srq.handle()), "the queue pair has the shared queue")?;
    srq.set_limit(1)?;
    seen(device.srq(srq.handle()).limit == 1, "the limit")?;
    let sges = [Sge::new(0x1000, 64, LKey::truncated(0x11))];
    device.take_stores();
    srq.post_recv(&mut RecvList::new(&[RecvRequest::new(1, &sges), RecvRequest::new(2, &sges)]))?;
    seen(device.take_stores().len() >= 2, "a doorbell, and one that arms")
}

/// ionic: masks of pipelines, locks, extended completion queues.
fn pipelines(context: &Context, pd: &Pd) -> Result<(), Failure> {
    let count = context.udma_count();
    let domain = pd.lock_free()?;
    domain.set_udma_mask(1 << (count - 1))?;
    seen(domain.udma_mask() == 1 << (count - 1), "the mask of pipelines")?;
    domain.set_send_cmb(false, false, false)?;
    domain.set_recv_cmb(false, false, false)?;
    let cq = Cq::new(context, &CqInit { pd: Some(domain.clone()), ..CqInit::entries(10).extended() })?;
    seen(cq.poll_extended(3).map_err(Failure::Poll)?.is_empty(), "no completion yet")?;
    let qp = Qp::new(&domain, &init(QpType::Rc, &cq))?;
    let reply: ionic::QpResp = context.device().qp(qp.handle()).reply.get();
    seen((reply.udma_idx, reply.sq_cmb, reply.rq_cmb) == (count - 1, 0, 0), "pipeline and place as wished")
}
