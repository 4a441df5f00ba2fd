//! `softnicd` serves software NICs as vfio-user devices: QEMU (10.1 or later) attaches each to a guest as a PCI device.
//!
//! ```sh
//! softnicd --nic copier=/tmp/nic.sock --trace
//! qemu-system-x86_64 -object memory-backend-memfd,id=mem,size=1G,share=on -machine q35,memory-backend=mem \
//!     -device '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"/tmp/nic.sock"}}' ...
//! ```
//!
//! Registers are trapped: each access of the guest is a message on the socket and a call of the model. DMA goes to the
//! guest's memory, which QEMU shares.

pub mod memory;
pub mod model;
pub mod plan;
pub mod server;
pub mod wire;
