//! One RDMA WRITE of each family, posted by the C provider: shows that the pieces meet.

use directverbs::verbs::{Mtu, Psn, QpCapabilities, QpInit, QpType, RKey, SendRequest, Sge};
use oracle::ibv::{Context, Cq, CqInit, Error, Library, Pd, PostError, Qp, SendList};
use oracle::uverbs::{Config, bnxt_re, ionic};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library failed.
    #[error(transparent)]
    Library(#[from] Error),
    /// The provider refused the request.
    #[error("post_send: {0:?}")]
    Post(PostError),
    /// No doorbell was stored.
    #[error("the provider has rung no doorbell")]
    Silent,
}

/// Posts and prints.
///
/// # Errors
/// The provider failed, or rang no doorbell.
pub fn run() -> Result<(), Failure> {
    let library = Library::load()?;
    for config in [bnxt_re::Config::p7().into(), Config::from(ionic::Config::default())] {
        one(&library, config)?;
    }
    Ok(())
}

fn one(library: &Library, config: Config) -> Result<(), Failure> {
    let family = config.family();
    let context = Context::open(library, config)?;
    let pd = Pd::new(&context)?;
    let cq = Cq::new(&context, &CqInit::entries(100))?;
    let capabilities = QpCapabilities {
        max_send_wr: 60,
        max_recv_wr: 60,
        max_send_sge: 2,
        max_recv_sge: 2,
        max_inline_data: 0,
    };
    let init = QpInit {
        qp_type: QpType::Rc,
        capabilities,
        send_cq: &cq,
        recv_cq: &cq,
        srq: None,
        signal_all: false,
    };
    let qp = Qp::new(&pd, &init)?;
    qp.to_rts(QpType::Rc, Mtu::B4096, Psn::truncated(0x123))?;

    let sges = [Sge::new(0x1000, 64, directverbs::verbs::LKey::truncated(0x11))];
    let request = SendRequest::write(0x2000, RKey::truncated(0x22)).sges(&sges).wr_id(42).signaled();
    let mut list = SendList::new(&[request], &[]).expect("a request of the library");
    qp.post_send(&mut list).map_err(Failure::Post)?;

    let device = context.device();
    let made = device.qp(qp.handle());
    let ring = match family {
        oracle::uverbs::Family::BnxtRe => made.udata.get::<bnxt_re::QpReq>().qpsva,
        oracle::uverbs::Family::Ionic => made.udata.get::<ionic::QpReq>().sq.addr,
    };
    println!("{family:?}: queue pair {:#x}, ring at {ring:#x}", made.id);
    // SAFETY: the provider's ring, of at least a page.
    let bytes = unsafe { std::slice::from_raw_parts(ring as *const u8, 64) };
    for line in bytes.chunks(16) {
        println!("  {}", line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "));
    }
    let stores = device.take_stores();
    for store in &stores {
        println!("  {:?}+{:#x} <- {:#018x}, {} bytes", store.page, store.offset, store.value(), store.width);
    }
    if stores.is_empty() { Err(Failure::Silent) } else { Ok(()) }
}
