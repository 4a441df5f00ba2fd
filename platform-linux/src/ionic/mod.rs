//! What the driver of ionic adds to the kernel's objects.
//!
//! - [`Context`]: capabilities, the doorbell page, the clock page.
//! - [`ProtectionDomain`]: where the queues of its queue pairs shall be, and on which pipelines.
//! - [`CompletionQueue`], [`QueuePair`]: created with rings of the sizes that `directverbs::ionic::plan` gives; what the
//!   device has granted, not what was asked for, says where a queue is. They are the kernel's side only.
//! - [`datapath`]: the queues that this process posts to and polls, and the [`Device`] that creates them.
//!
//! A context of another library is taken by [`Context::import`], its domains and completion queues by
//! [`ProtectionDomain::import`] and [`CompletionQueue::import`]; what is borrowed is never destroyed here.
//!
//! [`Context::describe`], [`CompletionQueue::describe`] and [`QueuePair::describe`] tell code on a device, or in C, all that it
//! needs to post and poll by itself, as versioned structures that the C header has too.
//!
//! The driver has no shared receive queues, and takes no memory of the application for a queue.
//!
//! # From rdma-core's direct verbs
//!
//! | `ionic_dv` function, argument, error | here |
//! |---|---|
//! | `ionic_dv_ctx_get_udma_count(ctx)` | [`Context::udma_count`] |
//! | `ionic_dv_ctx_get_udma_mask(ctx)` | [`Context::udma_mask`] |
//! | `ionic_dv_pd_get_udma_mask(pd)` | [`ProtectionDomain::udma_mask`] |
//! | `ionic_dv_pd_set_udma_mask(pd, mask)` | [`ProtectionDomain::set_udma_mask`] |
//! | EINVAL: a pipeline that there is not | [`Error::Value`](crate::Error::Value); likewise no pipeline at all, with which no queue pair could be created |
//! | `ionic_dv_pd_set_sqcmb(pd, enable, expdb, require)` | [`ProtectionDomain::set_send_placement`] |
//! | `ionic_dv_pd_set_rqcmb(pd, enable, expdb, require)` | [`ProtectionDomain::set_recv_placement`] |
//! | `enable`, `expdb`, `require` | `directverbs::ionic::cmb::CmbPreference` |
//! | EINVAL: `expdb` and `require`, and the device has none | [`Error::Plan`](crate::Error::Plan) |
//! | EPERM, or 0 from a question: another driver's object | none: the types do not fit |
//! | a domain on which nothing was set | host memory; libionic asks for controller memory and express doorbells |
//! | a queue pair that cannot be created as required | [`Error::Plan`](crate::Error::Plan) or [`Error::Call`](crate::Error::Call) from [`QueuePair::create`] |
//! | where a queue is after all | [`Placed::grant`] of [`QueuePair::send`] and [`QueuePair::recv`] |

pub mod abi;
mod clock;
mod completion_queue;
mod context;
pub mod datapath;
mod doorbell;
mod export;
mod protection_domain;
mod queue_pair;

#[cfg(test)]
mod tests;

pub use clock::ClockPage;
pub use completion_queue::CompletionQueue;
pub use context::Context;
pub use datapath::Device;
pub use doorbell::DoorbellPage;
pub use protection_domain::ProtectionDomain;
use protection_domain::check_mask;
pub use queue_pair::{Placed, QueuePair, QueuePairInit};
