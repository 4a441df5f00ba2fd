//! Address handles.

use directverbs::verbs::{AddressVector, AhId};

use super::context::destroyed;
use super::error::{Result, last};
use super::pd::Pd;
use super::sys::{ibv_ah, ibv_ah_attr, ibv_global_route};

/// The library's form of a path.
pub(super) fn attributes(path: &AddressVector) -> ibv_ah_attr {
    let [high, low] = [0, 8].map(|at| path.dgid.0[at..at + 8].try_into().expect("eight bytes"));
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: [u64::from_ne_bytes(high), u64::from_ne_bytes(low)],
            flow_label: path.flow_label,
            sgid_index: path.sgid_index,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
        },
        is_global: 1,
        port_num: 1,
        ..ibv_ah_attr::default()
    }
}

/// An address handle.
#[derive(Debug)]
pub struct Ah {
    pd: Pd,
    raw: *mut ibv_ah,
}

impl Ah {
    /// Creates one.
    ///
    /// # Errors
    /// The provider failed.
    pub fn new(pd: &Pd, path: &AddressVector) -> Result<Self> {
        let mut attributes = attributes(path);
        // SAFETY: the domain is there.
        let raw = unsafe { (pd.context().verbs().ibv_create_ah)(pd.raw(), &mut attributes) };
        if raw.is_null() { Err(last("ibv_create_ah")) } else { Ok(Self { pd: pd.clone(), raw }) }
    }

    /// The id that the device gave it.
    pub fn id(&self) -> AhId {
        // SAFETY: it is there.
        let handle = unsafe { (*self.raw).handle };
        AhId::truncated(self.pd.context().device().objects().ahs[&handle].id)
    }

    pub(super) fn raw(&self) -> *mut ibv_ah {
        self.raw
    }
}

impl Drop for Ah {
    fn drop(&mut self) {
        // SAFETY: no request names it: requests borrow it.
        destroyed("ibv_destroy_ah", unsafe { (self.pd.context().verbs().ibv_destroy_ah)(self.raw) });
    }
}
