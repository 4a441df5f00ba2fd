use directverbs::verbs::{CqId, QpState, QpType};

use super::rq::RecvQueue;
use super::sq::SendQueue;

/// A queue pair as the front end sees it.
#[derive(Debug)]
pub struct Qp {
    /// Kind.
    pub qp_type: QpType,
    /// State.
    pub state: QpState,
    /// Comes back in CQEs.
    pub handle: u64,
    /// Where send requests complete.
    pub send_cq: CqId,
    /// Where receive requests complete.
    pub recv_cq: CqId,
    /// Send queue.
    pub sq: SendQueue,
    /// Receive queue, if there is one.
    pub rq: Option<RecvQueue>,
    /// WQE index behind the last send request that ended other than by a flush.
    pub cons_idx: u32,
    /// A completion that waits to be joined with later ones.
    pub held: bool,
}

impl Qp {
    /// On the way to RESET: as fresh.
    pub fn reset(&mut self) {
        self.sq.reset();
        if let Some(rq) = &mut self.rq {
            rq.reset();
        }
        self.cons_idx = 0;
        self.held = false;
    }
}
