//! Where the wire leads on to NICs of other processes: over a stream to one of them ([`stream()`]), or through sockets in
//! a folder to any ([`folder()`]). [`Fabric::lead_out`](crate::fabric::Fabric::lead_out) takes either.

mod folder;
mod stream;

use std::fmt;
use std::sync::Arc;

use directverbs::verbs::Mac;

pub use folder::folder;
pub use stream::stream;

/// The end of an uplink that the wire sends to.
pub trait Outlet: fmt::Debug + Send {
    /// Takes a frame without waiting; whether there is anybody to take it to.
    fn send(&mut self, frame: &[u8]) -> bool;

    /// Frames that have not left.
    fn waiting(&self) -> usize;
}

/// Takes frames that come from other processes. Clones take them to the same wire.
#[derive(Clone)]
pub struct Inlet {
    arrive: Arc<dyn Fn(Vec<u8>) + Send + Sync>,
    macs: Vec<Mac>,
}

impl fmt::Debug for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet").field("macs", &self.macs).finish_non_exhaustive()
    }
}

impl Inlet {
    pub(crate) fn new(macs: Vec<Mac>, arrive: impl Fn(Vec<u8>) + Send + Sync + 'static) -> Self {
        Self { arrive: Arc::new(arrive), macs }
    }

    /// Hands a frame to the wire.
    pub fn arrive(&self, frame: Vec<u8>) {
        (self.arrive)(frame);
    }

    /// Addresses of the NICs on the wire.
    pub fn macs(&self) -> &[Mac] {
        &self.macs
    }
}

/// An uplink: what the wire sends to, and the threads that carry. They must end, once `outlet` is gone, when they are
/// dropped.
pub struct Uplink {
    pub(crate) outlet: Box<dyn Outlet>,
    pub(crate) carriers: Carriers,
}

/// Threads of an uplink.
pub(crate) type Carriers = Box<dyn Send>;

impl fmt::Debug for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uplink").field("outlet", &self.outlet).finish_non_exhaustive()
    }
}

impl Uplink {
    /// An uplink of both parts.
    pub fn new(outlet: impl Outlet + 'static, carriers: impl Send + 'static) -> Self {
        Self { outlet: Box::new(outlet), carriers: Box::new(carriers) }
    }
}
