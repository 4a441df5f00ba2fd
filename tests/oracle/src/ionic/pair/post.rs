//! Posting to both sides.

use directverbs::ionic::cmb::CmbGrant;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{PostError, QpType, SendOp};

use super::{Both, COLOR_BYTE, RECV, SEND};
use crate::case::{Allowed, Interface, Outcome, Played, Recv, Send};
use crate::ibv::Pieces;
use crate::ionic::exceptions::{self as known};
use crate::ionic::ours::SEND_CMB;
use crate::ionic::theirs::Error;

impl Both {
    /// Requests that both sides have taken.
    fn took(&mut self, qp: usize, requests: &[Send]) {
        let datagram = self.datagram();
        for request in requests {
            let local = matches!(request.op, SendOp::LocalInv(_) | SendOp::BindMw(_));
            self.quirks[qp].sent(self.queues[qp].sq_prod, request);
            self.queues[qp].send(!local && !datagram);
        }
    }

    pub(super) fn post_list(&mut self, qp: usize, requests: &[Send]) -> Result<Played, Error> {
        let mut played = Played::default();
        let first = usize::from(self.queues[qp].sq_prod);
        let stride = self.send_stride();
        let depth = usize::from(self.queues[qp].sq_mask) + 1;
        let at = |place: usize| (first + place) % depth * stride;
        played.theirs.outcome = self.theirs.post_send(qp, requests)?;
        let ours = self.ours.post_send(qp, requests);
        played.ours.outcome = ours.map_or_else(|(index, _)| Outcome::Refused(index), |()| Outcome::Done);
        let taken = ours.map_or_else(|(index, _)| index, |()| requests.len());
        if let Err((index, error)) = ours {
            let express = self.setup.grants[0].express() && stride == 64;
            let over = express
                && self.setup.caps.version == RdmaVersion::V1
                && self.setup.qp_type == QpType::Rc
                && matches!(error, PostError::NotSupported { .. })
                && matches!(requests[index].op, SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. });
            if over {
                self.anything(&mut played, &known::ATOMIC_OVER_EXPRESS_DOORBELL);
                return Ok(played);
            }
            if !matches!(error, PostError::QueueFull { .. } | PostError::BadState(_)) {
                let range = at(index)..at(index) + stride;
                played.allow(&known::REFUSED_REQUEST_IS_WRITTEN, Allowed::Bytes { area: SEND[qp], range });
            }
        }
        self.color(&mut played, qp, taken);
        self.took(qp, &requests[..taken]);
        Ok(played)
    }

    /// Where the provider's color is that of another pass, the color of `count` requests just posted may differ.
    fn color(&self, played: &mut Played, qp: usize, count: usize) {
        if !self.quirks[qp].color_off {
            return;
        }
        let (first, stride) = (usize::from(self.queues[qp].sq_prod), self.send_stride());
        let depth = usize::from(self.queues[qp].sq_mask) + 1;
        for place in 0..count {
            let at = (first + place) % depth * stride + COLOR_BYTE;
            for area in [SEND[qp], SEND_CMB[qp]] {
                played.allow(&known::COLOR_IS_KEPT, Allowed::Bytes { area, range: at..at + 1 });
            }
        }
        if self.setup.grants[0] != CmbGrant::Host {
            played.allow(&known::COLOR_IS_KEPT, Allowed::Accesses);
        }
    }

    pub(super) fn build(
        &mut self,
        qp: usize,
        interface: Interface,
        requests: &[Send],
    ) -> Result<Played, Error> {
        let mut played = Played::default();
        let give_up = interface == Interface::Abort;
        let queue = self.ours.qps[qp].send_queue();
        let room = usize::from(self.queues[qp].sq_mask) - queue.outstanding() as usize;
        let requests = match requests.get(..room) {
            // The provider does not look whether there is room.
            Some(fitting) if self.nature.careful => fitting,
            _ => requests,
        };
        let first = usize::from(self.queues[qp].sq_prod);
        let stride = self.send_stride();
        let depth = usize::from(self.queues[qp].sq_mask) + 1;
        let pieces = if self.noise.next() & 1 == 0 { Pieces::Single } else { Pieces::Lists };
        let theirs_done = self.theirs.build(qp, requests, interface, pieces)?;
        let ours = self.ours.post_all(qp, requests, give_up);
        let outcome = |done| if done { Outcome::Done } else { Outcome::Failed };
        played.theirs.outcome = outcome(theirs_done);
        // What is given up has not failed.
        played.ours.outcome = outcome(give_up || ours.is_ok());
        if matches!(ours, Err((_, PostError::QueueFull { .. }))) {
            self.anything(&mut played, &known::BUILDER_OVERRUNS);
            return Ok(played);
        }
        if ours.is_ok() && !give_up {
            self.color(&mut played, qp, requests.len());
            self.took(qp, requests);
            return Ok(played);
        }
        let written = ours.map_or_else(|(index, _)| index, |()| requests.len());
        for place in 0..=written.min(depth - 1) {
            let at = (first + place) % depth * stride;
            let allowed = Allowed::Bytes { area: SEND[qp], range: at..at + stride };
            played.allow(&known::ABORT_LEAVES_ENTRIES, allowed);
        }
        let quirks = &mut self.quirks[qp];
        quirks.color_off ^= first + written >= depth;
        let remote = |r: &&Send| !matches!(r.op, SendOp::LocalInv(_) | SendOp::BindMw(_));
        quirks.messages_off += requests[..written].iter().filter(remote).count() as u32;
        Ok(played)
    }

    pub(super) fn post_recv(&mut self, qp: usize, requests: &[Recv]) -> Played {
        let mut played = Played::default();
        played.theirs.outcome = self.theirs.post_recv(qp, requests);
        let ours = self.ours.post_recv(qp, requests);
        played.ours.outcome = ours.map_or_else(|(index, _)| Outcome::Refused(index), |()| Outcome::Done);
        let taken = ours.map_or_else(|(index, _)| index, |()| requests.len());
        for request in &requests[..taken] {
            self.quirks[qp].posted(self.queues[qp].rq_prod, request.wr_id);
            self.queues[qp].recv();
        }
        if let Err((_, error)) = ours
            && !matches!(error, PostError::QueueFull { .. } | PostError::BadState(_))
        {
            let stride = self.setup.plan.rq.ring.stride() as usize;
            let at = usize::from(self.queues[qp].rq_prod) * stride;
            let allowed = Allowed::Bytes { area: RECV[qp], range: at..at + stride };
            played.allow(&known::REFUSED_REQUEST_IS_WRITTEN, allowed);
        }
        played
    }
}
