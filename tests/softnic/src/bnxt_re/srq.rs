use super::rq::RecvQueue;

/// A shared receive queue as the device sees it.
#[derive(Debug)]
pub struct Srq {
    /// The ring.
    pub queue: RecvQueue,
    /// Comes back in events.
    pub handle: u64,
    /// Toggle that the next arm must carry.
    pub toggle: u8,
    /// It may be armed: once after creation, and after each event.
    pub arm_enabled: bool,
}

/// Why an arm was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SrqArmError {
    /// Armed without an `SRQ_ARMENA` since creation, or since the last event.
    #[error("arm before SRQ_ARMENA")]
    NotEnabled,
    /// The toggle is not the current one.
    #[error("arm with toggle {given}, the current one is {current}")]
    StaleToggle {
        /// Toggle of the doorbell.
        given: u8,
        /// Toggle of the queue.
        current: u8,
    },
}

impl Srq {
    /// A fresh queue.
    pub fn new(queue: RecvQueue, handle: u64) -> Self {
        Self { queue, handle, toggle: 0, arm_enabled: false }
    }

    /// Checks an arm. Without `has_toggles` the device ignores the toggle.
    ///
    /// # Errors
    /// Why it is dropped.
    pub fn arm(&self, toggle: u8, has_toggles: bool) -> Result<(), SrqArmError> {
        if !self.arm_enabled {
            return Err(SrqArmError::NotEnabled);
        }
        if has_toggles && toggle != self.toggle {
            return Err(SrqArmError::StaleToggle { given: toggle, current: self.toggle });
        }
        Ok(())
    }

    /// The limit event went out: the next arm needs enabling and the next toggle.
    pub fn fired(&mut self) {
        self.arm_enabled = false;
        self.toggle = (self.toggle + 1) & 3;
    }
}
