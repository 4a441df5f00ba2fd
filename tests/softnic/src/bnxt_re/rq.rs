use directverbs::verbs::WcStatus;

use super::position::{Position, Stray};
use super::wqe::{self, HEADER, Limits, WqeError};
use crate::bus::BusError;
use crate::device::{DeviceError, RingConfig};
use crate::nic::Hardware;
use crate::roce::RecvWork;

/// What a driver did wrong with a receive queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RqError {
    /// The producer index makes no sense. The doorbell was dropped.
    #[error("RQ doorbell dropped: {0}")]
    Stray(#[from] Stray),
    /// A WQE makes no sense. It fails when a message takes it.
    #[error("receive WQE at {at}: {error}")]
    Wqe {
        /// Index of the WQE.
        at: u32,
        /// What is wrong.
        error: WqeError,
    },
    /// The ring cannot be read.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The engine takes no work.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A receive queue, own or shared, as the device sees it: entries of equal size, counted in WQEs.
#[derive(Debug)]
pub struct RecvQueue {
    ring: RingConfig,
    limits: Limits,
    producer: Position,
    /// WQEs fetched and not complete.
    used: u32,
    done: u32,
}

impl RecvQueue {
    /// A fresh queue.
    pub fn new(ring: RingConfig, limits: Limits) -> Self {
        Self { ring, limits, producer: Position::default(), used: 0, done: 0 }
    }

    /// Starts anew, as fresh.
    pub fn reset(&mut self) {
        self.producer = Position::default();
        (self.used, self.done) = (0, 0);
    }

    /// Index of the oldest WQE that is not complete.
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Takes a producer doorbell: fetches the WQEs up to `to` and hands them to `post`.
    ///
    /// # Errors
    /// What the driver did wrong, the first of it.
    pub fn produce(
        &mut self,
        hardware: &mut Hardware,
        to: Position,
        mut post: impl FnMut(&mut Hardware, RecvWork) -> Result<(), DeviceError>,
    ) -> Result<(), RqError> {
        let mut at = self.producer;
        let free = self.ring.entries - self.used;
        let given = self.producer.advance(to, self.ring.entries, free)?;
        let mut first_error = Ok(());
        for _ in 0..given {
            let work = match self.fetch(hardware, at.index) {
                Ok(work) => work,
                Err(error) => {
                    first_error = first_error.and(Err(error));
                    RecvWork { token: at.index.into(), sges: Err(WcStatus::LocQpOp) }
                }
            };
            post(hardware, work)?;
            self.used += 1;
            at.step(1, self.ring.entries);
        }
        first_error
    }

    /// The token is the number that the WQE carries: it comes back in the CQE.
    fn fetch(&self, hardware: &Hardware, at: u32) -> Result<RecvWork, RqError> {
        let mut header = [0; HEADER];
        let offset = u64::from(at) * u64::from(self.ring.stride);
        hardware.read_ring(&self.ring, offset, &mut header)?;
        let (slots, tag) =
            wqe::recv_header(&header, &self.limits).map_err(|error| RqError::Wqe { at, error })?;
        let mut data = vec![0; (slots - 2) as usize * 16];
        hardware.read_ring(&self.ring, offset + HEADER as u64, &mut data)?;
        Ok(RecvWork { token: tag.into(), sges: Ok(wqe::read_sges(&data)) })
    }

    /// A request has ended.
    pub fn complete(&mut self) {
        self.used = self.used.saturating_sub(1);
        self.done = if self.done + 1 < self.ring.entries { self.done + 1 } else { 0 };
    }
}
