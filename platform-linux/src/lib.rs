//! directverbs on Linux: finds RDMA devices in sysfs and drives them through `/dev/infiniband/uverbsN`, without libibverbs.
//!
//! - [`sysfs`] finds devices, ports and GIDs, and chooses a GID that reaches a peer.
//! - [`uverbs`] is how the kernel is asked: the ABI as data, the one seam through which every system call goes, and the
//!   builder of ioctl packets. All `unsafe` code of the crate is there.
//! - [`objects`] are what the kernel keeps for a process: context, event files, protection domains, memory regions and
//!   windows, queues. Each holds what it depends on, so that nothing is destroyed before what refers to it.
//! - [`bnxt_re`] and [`ionic`] are what the drivers add to them: doorbells and other pages, queues in memory of the
//!   application or in controller memory, pipelines.
//!
//! - [`Device`] is an opened device whose queues this process posts to and polls, without a system call.
//!
//! Errors name the object, what was refused, and what would help.
//!
//! ```no_run
//! use directverbs::verbs::{Device as _, *};
//! use directverbs_linux::Device;
//!
//! # fn exchange(_: QpId, gid: Gid) -> (QpId, Gid) { (QpId::default(), gid) }
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Memory, a completion queue, and a queue pair that completes there.
//!     let mut device = Device::open("bnxt_re0")?;
//!     let pd = device.alloc_pd()?;
//!     let mut memory = device.alloc_mr(&pd, 4096, AccessFlags::LOCAL_WRITE)?;
//!     let mut cq = device.create_cq(64)?;
//!     let capabilities = QpCapabilities { max_send_wr: 32, max_recv_wr: 32, max_send_sge: 1, max_recv_sge: 1,
//!         max_inline_data: 0 };
//!     let mut qp = device.create_qp(&pd, &QpInit { qp_type: QpType::Rc, capabilities, send_cq: &cq, recv_cq: &cq,
//!         srq: None, signal_all: false })?;
//!
//!     // Connect to a peer, whose number and GID come some other way.
//!     let port = device.port();
//!     let (dest_qp, dgid) = exchange(qp.id(), port.gid);
//!     let path = AddressVector { sgid_index: port.gid_index, ..AddressVector::new(dgid, Mac::default()) };
//!     for attributes in [
//!         QpAttributes { access: Some(AccessFlags::REMOTE_WRITE), ..QpAttributes::to(QpState::Init) },
//!         QpAttributes { path: Some(path), mtu: Some(port.mtu), dest_qp: Some(dest_qp), rq_psn: Some(Psn::default()),
//!             max_dest_rd_atomic: Some(1), min_rnr_timer: Some(12), ..QpAttributes::to(QpState::Rtr) },
//!         QpAttributes { sq_psn: Some(Psn::default()), timeout: Some(14), retry_count: Some(7), rnr_retry: Some(7),
//!             max_rd_atomic: Some(1), ..QpAttributes::to(QpState::Rts) },
//!     ] {
//!         device.modify_qp(&mut qp, &mut [&mut cq], &attributes)?;
//!     }
//!
//!     // Send, and wait for the completion.
//!     assert!(memory.write(0, b"hello"));
//!     let sges = [Sge::new(memory.addr(), 5, memory.lkey())];
//!     qp.post_send(&mut cq, &[SendRequest::new(SendOp::Send).sges(&sges).wr_id(7).signaled()])?;
//!     let mut completions = [WorkCompletion::default(); 16];
//!     loop {
//!         let mut endpoints = Slices { qps: std::slice::from_mut(&mut qp), srqs: &mut [] };
//!         let found = cq.poll(&mut endpoints, &mut completions)?;
//!         if let Some(done) = completions[..found].iter().find(|c| c.wr_id == 7) {
//!             println!("{:?}", done.status);
//!             return Ok(());
//!         }
//!     }
//! }
//! ```

pub mod bnxt_re;
pub mod device;
pub mod error;
mod host;
pub mod ionic;
pub mod objects;
pub mod sysfs;
pub mod uverbs;

pub use device::{Device, OpenOptions};
pub use error::{Error, Result};
pub use host::{Origin, Region};
