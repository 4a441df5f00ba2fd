//! What the driver of bnxt_re adds to the kernel's objects.
//!
//! - [`Context`]: capabilities, and the pages that all queues of a context share.
//! - [`DoorbellPage`], [`DoorbellRegion`]: where doorbells go. Every queue pair may have a region of its own.
//! - [`PushPage`], [`PacingPages`], [`TogglePage`]: what newer devices have besides.
//! - [`CompletionQueue`], [`QueuePair`], [`SharedReceiveQueue`]: created with rings of the sizes that
//!   `directverbs::bnxt_re::plan` gives, in memory of their own or of the application. They are the kernel's side only.
//! - [`datapath`]: the queues that this process posts to and polls, and the [`Device`] that creates them.
//!
//! # Queues that code on a device posts to
//!
//! [`QueuePair::create`] with rings in a dma-buf, then [`QueuePair::describe`], [`CompletionQueue::describe`] and
//! [`Context::describe`]: all that such code needs to know, as versioned structures that the C header has too. The queues of
//! [`datapath`] can be handed over likewise.
//!
//! # A context of another library
//!
//! Users of libibverbs can move only their datapath: [`Context::import`] takes its context by `cmd_fd`,
//! [`ProtectionDomain::import`] and [`CompletionQueue::import`] take a domain and a completion queue by their handles. Keys of
//! memory regions are good in both libraries. What is borrowed is never destroyed here.
//!
//! # From rdma-core's direct verbs
//!
//! | `bnxt_re_dv` function, argument, error | here |
//! |---|---|
//! | `bnxt_re_dv_alloc_db_region(ctx)` | [`DoorbellRegion::alloc`] |
//! | `bnxt_re_dv_db_region_attr`: `dpi`, `dbr` | [`DoorbellPage::dpi`]; the page is a `directverbs::queue::Doorbell`, and [`DoorbellPage::address`] is for code on a device |
//! | NULL with ENOTTY or EPROTONOSUPPORT, before Linux 7.2 | [`Error::Unsupported`](crate::Error::Unsupported) |
//! | `bnxt_re_dv_free_db_region(ctx, attr)` | [`DoorbellRegion::free`], or dropping it |
//! | EBUSY: a queue pair rings there | [`Error::InUse`](crate::Error::InUse); it is freed with the last of these |
//! | `bnxt_re_dv_get_default_db_region(ctx, out)` | [`DoorbellRegion::default_of`] |
//! | `dpi` 0: no protection domain yet | [`Error::Value`](crate::Error::Value) |
//! | `bnxt_re_dv_create_cq(ctx, attr)` | [`CompletionQueue::create`] with [`CqOptions::buffer`] |
//! | `umem_handle`, `umem_offset` (`ibv_alloc_user_buf`) | [`Buffer`](crate::objects::Buffer): memory or dma-buf, offset and length |
//! | `ncqe` | `cqe`; [`CompletionQueue::plan`] tells the entries that the buffer has room for |
//! | EINVAL: offset, length | [`Error::Value`](crate::Error::Value), [`Error::Limit`](crate::Error::Limit), before the kernel is asked |
//! | NULL before Linux 7.2 | [`Error::Unsupported`](crate::Error::Unsupported) |
//! | `bnxt_re_dv_create_qp(pd, attr)` | [`QueuePair::create`] |
//! | `qp_type`, `max_send_wr` and others, `send_cq`, `recv_cq`, `srq` | [`QueuePairInit`] |
//! | `qp_handle` | chosen here: [`QueuePair::handle`] |
//! | `dbr_handle`, NULL for the default | [`QueuePairInit::region`] |
//! | `sq_umem_handle`, `sq_umem_offset`, `rq_umem_handle`, `rq_umem_offset` | [`QueuePairInit::send_buffer`], [`QueuePairInit::recv_buffer`] |
//! | `sq_len`, `sq_slots`, `sq_npsn`, `rq_len` | planned: `directverbs::bnxt_re::plan::DirectParameters`, [`QueuePair::direct`] |
//! | `comp_mask` | none: an unknown bit cannot be set |

pub mod abi;
mod completion_queue;
mod context;
pub mod datapath;
mod doorbell;
mod export;
mod pages;
mod queue_pair;
mod ring;
mod shared_receive_queue;

#[cfg(test)]
mod tests;

pub use completion_queue::{CompletionQueue, CqOptions};
pub use context::{Context, ProtectionDomain};
pub use datapath::Device;
pub use doorbell::{DoorbellPage, DoorbellRegion};
pub use pages::{ClaimedBuffer, PacingPages, PushMemory, PushPage, TogglePage};
pub use queue_pair::{QueuePair, QueuePairInit};
pub use ring::Ring;
pub use shared_receive_queue::SharedReceiveQueue;
