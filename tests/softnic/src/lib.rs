//! Software NICs: a vendor-neutral RoCEv2 engine ([`roce`]) behind the datapath front ends of the two families, joined
//! by a wire in this process ([`fabric`]) that can lead to another one.
//!
//! [`nic::Nic`] is a NIC: engine, front end and [`bus::Bus`]. Its objects are made through [`device`], in terms that
//! no vendor owns.

pub mod bnxt_re;
pub mod bus;
pub mod clock;
pub mod combining;
pub mod device;
pub mod fabric;
pub mod fault;
pub mod hardware;
pub mod host;
pub mod ionic;
pub mod nic;
pub mod open;
pub mod pcap;
pub mod pci;
pub mod port;
pub mod roce;
pub mod uplink;
pub mod wire;
