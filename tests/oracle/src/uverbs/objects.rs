//! The objects that a provider has created, with all that it told.

use std::collections::BTreeMap;

use zerocopy::FromBytes;

/// What a provider adds to a command of the core: the family's own structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Udata(pub Vec<u8>);

impl Udata {
    /// As the structure `T`; bytes that the provider did not give are zero.
    pub fn get<T: FromBytes>(&self) -> T {
        let mut bytes = self.0.clone();
        bytes.resize(size_of::<T>(), 0);
        T::read_from_bytes(&bytes).expect("as long as the structure")
    }
}

/// Protection domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pd {
    /// Handle.
    pub handle: u32,
}

/// Completion queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cq {
    /// Handle.
    pub handle: u32,
    /// Address of the `ibv_cq`.
    pub user_handle: u64,
    /// Entries that the provider asked for, at creation or at the last resize.
    pub cqe: u32,
    /// Completion vector.
    pub comp_vector: u32,
    /// It has a completion channel.
    pub channel: bool,
    /// Timestamps 1, overruns ignored 2.
    pub flags: u32,
    /// `bnxt_re::CqReq` or `ionic::CqReq`.
    pub udata: Udata,
    /// `bnxt_re::ResizeCqReq` of the last resize.
    pub resize: Option<Udata>,
    /// Device's ids: of bnxt_re the first counts, of ionic one a pipeline.
    pub ids: [u32; 2],
    /// Asynchronous events raised for it.
    pub events: u32,
}

/// Capabilities of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpCap {
    /// Send requests.
    pub max_send_wr: u32,
    /// Receive requests.
    pub max_recv_wr: u32,
    /// SGEs of a send request.
    pub max_send_sge: u32,
    /// SGEs of a receive request.
    pub max_recv_sge: u32,
    /// Inline bytes.
    pub max_inline_data: u32,
}

/// Queue pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qp {
    /// Handle.
    pub handle: u32,
    /// Address of the `ibv_qp`.
    pub user_handle: u64,
    /// Handle of its protection domain.
    pub pd: u32,
    /// Handle of the completion queue of sends.
    pub send_cq: u32,
    /// Handle of the completion queue of receives.
    pub recv_cq: u32,
    /// Handle of its shared receive queue.
    pub srq: Option<u32>,
    /// RC 2, UD 4, raw packets 8.
    pub qp_type: u32,
    /// Every send completes.
    pub signal_all: bool,
    /// Capabilities asked for.
    pub cap: QpCap,
    /// `bnxt_re::QpReq` or `ionic::QpReq`.
    pub udata: Udata,
    /// `bnxt_re::QpResp` or `ionic::QpResp` that it was answered.
    pub reply: Udata,
    /// Device's id, also the number on the wire.
    pub id: u32,
    /// `enum ibv_qp_state`.
    pub state: u32,
    /// `enum ibv_mtu`, once set.
    pub path_mtu: u32,
    /// First sequence number sent, once set.
    pub sq_psn: u32,
    /// Masks of attributes of all modifications, oldest first.
    pub modified: Vec<u32>,
    /// Asynchronous events raised for it.
    pub events: u32,
}

/// Shared receive queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Srq {
    /// Handle.
    pub handle: u32,
    /// Address of the `ibv_srq`.
    pub user_handle: u64,
    /// Handle of its protection domain.
    pub pd: u32,
    /// Requests asked for.
    pub max_wr: u32,
    /// SGEs of a request asked for.
    pub max_sge: u32,
    /// Limit, at creation or of the last modification.
    pub limit: u32,
    /// `bnxt_re::SrqReq`.
    pub udata: Udata,
    /// Device's id.
    pub id: u32,
    /// Asynchronous events raised for it.
    pub events: u32,
}

/// Address handle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ah {
    /// Handle.
    pub handle: u32,
    /// Handle of its protection domain.
    pub pd: u32,
    /// Device's id.
    pub id: u32,
    /// Destination GID.
    pub dgid: [u8; 16],
}

/// Memory region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mr {
    /// Handle.
    pub handle: u32,
    /// Handle of its protection domain.
    pub pd: u32,
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub length: u64,
    /// Address that requests name for the first byte.
    pub iova: u64,
    /// `enum ibv_access_flags`.
    pub access: u32,
    /// Local and remote key.
    pub key: u32,
}

/// Memory window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mw {
    /// Handle.
    pub handle: u32,
    /// Handle of its protection domain.
    pub pd: u32,
    /// Type, 1 or 2.
    pub mw_type: u8,
    /// Key.
    pub key: u32,
}

/// All objects of a context, by handle. Handles are not used twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Protection domains.
    pub pds: BTreeMap<u32, Pd>,
    /// Completion queues.
    pub cqs: BTreeMap<u32, Cq>,
    /// Queue pairs.
    pub qps: BTreeMap<u32, Qp>,
    /// Shared receive queues.
    pub srqs: BTreeMap<u32, Srq>,
    /// Address handles.
    pub ahs: BTreeMap<u32, Ah>,
    /// Memory regions.
    pub mrs: BTreeMap<u32, Mr>,
    /// Memory windows.
    pub mws: BTreeMap<u32, Mw>,
}

impl Objects {
    /// Counts an event of the object with this `user_handle`. Its destruction tells the count, and the library waits until
    /// so many were acknowledged.
    pub(super) fn count_event(&mut self, user_handle: u64) {
        let cqs = self.cqs.values_mut().map(|cq| (cq.user_handle, &mut cq.events));
        let qps = self.qps.values_mut().map(|qp| (qp.user_handle, &mut qp.events));
        let srqs = self.srqs.values_mut().map(|srq| (srq.user_handle, &mut srq.events));
        if let Some((_, events)) = cqs.chain(qps).chain(srqs).find(|(handle, _)| *handle == user_handle) {
            *events += 1;
        }
    }
}
