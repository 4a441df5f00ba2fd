//! AMD Pensando ionic, rdma versions 1 and 2.
//!
//! [`caps::Caps`] is what the device told, [`plan`] sizes queues, [`qp::QueuePair`] and [`cq::CompletionQueue`] are the
//! datapath. The layouts are in [`doorbell`], [`wqe`] and [`cqe`].
//!
//! A queue pair and its completion queue, over plain memory, with a doorbell that remembers what it was told and a
//! completion written by hand in place of a device:
//!
//! ```
//! use std::{cell::Cell, ptr::NonNull};
//! use directverbs::ionic::{QueueMemory, caps::*, cq::{CompletionQueue, CqRing}, cqe::*, doorbell::QueueType, plan::*,
//!     qp::{NoSharedReceiveQueue, QpConfig, QueuePair}, recv::RqRecord, send::SqRecord, wqe::RdmaVersion};
//! use directverbs::queue::{Borrowed, Doorbell, RingMemory};
//! use directverbs::verbs::*;
//! use zerocopy::IntoBytes;
//!
//! struct Recorder(Cell<(usize, u64)>);
//! impl Doorbell for Recorder {
//!     fn store(&self, register: usize, value: u64) { self.0.set((register, value)); }
//! }
//! #[repr(align(4096))]
//! struct Pages([u8; 1 << 16]);
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Plan: what the device has told about itself and capabilities in, sizes out.
//!     let [sq_qtype, rq_qtype, cq_qtype] = [3, 4, 5].map(|register| QueueType::new(register).unwrap());
//!     let (express_strides, express_queues) = (ExpressStrides::empty(), ExpressQueues::empty());
//!     let caps = Caps { version: RdmaVersion::V2, page_shift: 12, sq_qtype, rq_qtype, cq_qtype, max_stride: 9, max_spec: 8,
//!         udma_count: 1, express_strides, express_queues };
//!     let wanted = QpCapabilities { max_send_wr: 60, max_send_sge: 2, ..QpCapabilities::default() };
//!     let (plan, cq_plan) = (QpPlan::new(&caps, &wanted, Placement::default())?, CqPlan::new(&caps, 100)?);
//!
//!     // Memory: rings of the planned sizes, and bookkeeping. SAFETY: only we use it, below also in the device's place.
//!     let [mut sq, mut rq, mut cq] = [(); 3].map(|()| Box::new(Pages([0; 1 << 16])));
//!     let cq_at = NonNull::from(&mut cq.0).cast::<u8>();
//!     let ring = CqRing::new(CqId::truncated(7), cq_qtype, &cq_plan, unsafe { RingMemory::from_raw(cq_at, 1 << 16) })?;
//!     let mut cq = CompletionQueue::new(1, [Some(ring), None])?;
//!     let (mut sends, mut receives) = ([SqRecord::default(); 64], [RqRecord::default(); 64]);
//!     let sq = QueueMemory { ring: RingMemory::new(&mut sq.0), records: &mut sends[..], cmb: None };
//!     let rq = QueueMemory { ring: RingMemory::new(&mut rq.0), records: &mut receives[..], cmb: None };
//!     let id = QpId::truncated(9);
//!     let config = QpConfig { id, qp_type: QpType::Rc, udma: 0, signal_all: false, send_cq: &cq, recv_cq: &cq };
//!     let mut qp = QueuePair::<Borrowed>::new(&caps, &config, &plan, sq, rq)?;
//!     qp.set_state(QpState::Rts);
//!
//!     // Post: ring bytes, and one doorbell store for the batch. Queue pair 9, next index 1.
//!     let doorbell = Recorder(Cell::default());
//!     let sges = [Sge::new(0x1000, 64, LKey::truncated(0x11))];
//!     let mut batch = qp.send_batch(&mut cq)?;
//!     batch.post(&SendRequest::write(0x2000, RKey::truncated(0x22)).sges(&sges).wr_id(42).signaled())?;
//!     batch.commit(&doorbell);
//!     assert_eq!(doorbell.0.get(), (3, 9 << 24 | 1));
//!
//!     // Poll: the device has acknowledged one message of queue pair 9. Color 1: its first pass over the ring.
//!     let word = QidTypeFlags::new().with_color(true).with_cqe_type(CqeType::SEND_MSN.0).with_qid(id.get());
//!     let cqe = SendCqe { msg_msn: 1.into(), qid_type_flags: u32::from(word).into(), ..SendCqe::ZERO };
//!     // SAFETY: in place of the device, which writes there too; 32 bytes fit.
//!     unsafe { cq_at.copy_from(NonNull::from(cqe.as_bytes()).cast(), 32) };
//!     let mut done = [WorkCompletion::default(); 4];
//!     let mut endpoints = Slices { qps: std::slice::from_mut(&mut qp), srqs: &mut [] as &mut [NoSharedReceiveQueue] };
//!     assert_eq!(cq.poll(&mut endpoints, &doorbell, &mut done)?, 1);
//!     assert_eq!((done[0].wr_id, done[0].status, done[0].opcode), (42, WcStatus::Success, WcOpcode::RdmaWrite));
//!     Ok(())
//! }
//! ```

pub mod admin;
mod batch;
pub mod caps;
pub mod clock;
pub mod cmb;
pub mod collapsed;
mod completion;
pub mod cq;
mod cq_ring;
pub mod cqe;
#[cfg(feature = "capi")]
pub mod description;
pub mod devcmd;
pub mod doorbell;
mod opcode;
mod payload;
pub mod plan;
mod poll;
mod post;
pub mod qp;
mod record;
pub mod recv;
mod region;
mod request;
pub mod send;
mod work;
pub mod wqe;

pub use batch::Batch;
pub use work::{MAX_MESSAGE, QueueMemory};

use crate::layout::{Layout, joined};

/// Every layout of the datapath.
pub const LAYOUTS: &[Layout] = &LAYOUT_TABLE;

const LAYOUT_TABLE: [Layout; 14] =
    joined(&[&wqe::LAYOUTS, &cqe::LAYOUTS, &[caps::ContextReply::LAYOUT, clock::ClockInfo::LAYOUT]]);
