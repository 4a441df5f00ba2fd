use directverbs::verbs::CqId;

use super::position::{Position, Stray};
use crate::device::RingConfig;
use crate::nic::Hardware;

/// Bytes of a CQE.
pub const CQE_BYTES: u32 = 32;

/// What an arm waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// A solicited completion, or one with an error.
    Solicited,
    /// Any completion.
    Any,
}

/// Why a doorbell or a CQE does not fit a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CqError {
    /// The consumer index makes no sense.
    #[error("consumer doorbell dropped: {0}")]
    Stray(#[from] Stray),
    /// An arm whose toggle is not the current one: it answers an event that is not the last.
    #[error("arm with toggle {given}, the current one is {current}")]
    StaleToggle {
        /// Toggle of the doorbell.
        given: u8,
        /// Toggle of the queue.
        current: u8,
    },
    /// Armed without a `CQ_ARMENA` since creation, or since the last event.
    #[error("arm before CQ_ARMENA")]
    NotEnabled,
    /// An acknowledgement of a resize that is not under way, or with another resize's toggle.
    #[error("CQ_CUTOFF_ACK with toggle {given}, expected {expected:?}")]
    StrayAck {
        /// Toggle of the doorbell.
        given: u8,
        /// Toggle of the cut-off CQE that waits for it.
        expected: Option<u8>,
    },
    /// There is no free entry for a CQE.
    #[error("overrun: {entries} CQEs not consumed")]
    Overrun {
        /// Entries of the ring.
        entries: u32,
    },
}

/// The ring that a resize leaves behind, until the driver has acknowledged its cut-off CQE.
#[derive(Clone, Copy, Debug)]
struct Old {
    entries: u32,
    unconsumed: u64,
}

/// A completion queue as the device sees it.
#[derive(Debug)]
pub struct Cq {
    id: CqId,
    entries: u32,
    /// Where the last consumer doorbell stood. The check of order knows nothing of a resize.
    consumer: Position,
    /// CQEs consumed from the ring in use.
    consumed: u64,
    armed: Option<Arm>,
    arm_enabled: bool,
    toggle: u8,
    has_toggles: bool,
    resize_toggle: u8,
    waiting: Option<RingConfig>,
    old: Option<Old>,
    failed: bool,
}

impl Cq {
    /// A fresh queue over a ring of `entries`. Without `has_toggles` the device ignores the toggle of arms.
    pub fn new(id: CqId, entries: u32, has_toggles: bool) -> Self {
        Self {
            id,
            entries,
            consumer: Position::default(),
            consumed: 0,
            armed: None,
            arm_enabled: false,
            toggle: 0,
            has_toggles,
            resize_toggle: 0,
            waiting: None,
            old: None,
            failed: false,
        }
    }

    /// Toggle that the next arm must carry; the driver's kernel part puts it into the toggle page.
    pub fn toggle(&self) -> u8 {
        self.toggle
    }

    /// Marks the queue as failed: nothing is written to it any more. `true` if it was not.
    pub fn fail(&mut self) -> bool {
        !std::mem::replace(&mut self.failed, true)
    }

    fn unconsumed(&self, hardware: &Hardware) -> u64 {
        hardware.cq_position(self.id).unwrap_or(0).saturating_sub(self.consumed)
    }

    /// Writes the next CQE, and the event if the queue is armed for it. `encode` is told the toggle bit.
    ///
    /// # Errors
    /// [`CqError::Overrun`]; nothing was written.
    pub fn push(
        &mut self,
        hardware: &mut Hardware,
        solicited: bool,
        encode: impl Fn(bool) -> [u8; CQE_BYTES as usize],
    ) -> Result<(), CqError> {
        if self.failed {
            return Ok(());
        }
        if self.unconsumed(hardware) >= self.entries.into() {
            return Err(CqError::Overrun { entries: self.entries });
        }
        let entries = u64::from(self.entries);
        hardware.push_cqe(self.id, |position| encode((position / entries).is_multiple_of(2)));
        self.event(hardware, solicited);
        Ok(())
    }

    fn event(&mut self, hardware: &mut Hardware, solicited: bool) {
        if self.armed.is_some_and(|arm| arm == Arm::Any || solicited) {
            self.armed = None;
            self.arm_enabled = false;
            self.toggle = (self.toggle + 1) & 3;
            hardware.notify_cq(self.id);
        }
    }

    /// A consumer doorbell.
    ///
    /// # Errors
    /// The doorbell was dropped.
    pub fn consume(&mut self, hardware: &mut Hardware, to: Position) -> Result<(), CqError> {
        if let Some(old) = &mut self.old {
            let limit = u32::try_from(old.unconsumed).unwrap_or(u32::MAX);
            let moved = self.consumer.advance(to, old.entries, limit)?;
            old.unconsumed -= u64::from(moved);
            return Ok(());
        }
        let limit = u32::try_from(self.unconsumed(hardware)).unwrap_or(u32::MAX);
        self.consumed += u64::from(self.consumer.advance(to, self.entries, limit)?);
        Ok(())
    }

    /// Lets the queue be armed.
    pub fn enable(&mut self) {
        self.arm_enabled = true;
    }

    /// A consumer doorbell that arms. What the driver has not consumed raises the event at once.
    ///
    /// # Errors
    /// The doorbell was dropped.
    pub fn arm(
        &mut self,
        hardware: &mut Hardware,
        to: Position,
        toggle: u8,
        arm: Arm,
    ) -> Result<(), CqError> {
        self.consume(hardware, to)?;
        if self.has_toggles && toggle != self.toggle {
            return Err(CqError::StaleToggle { given: toggle, current: self.toggle });
        }
        if !self.arm_enabled {
            return Err(CqError::NotEnabled);
        }
        self.armed = Some(arm);
        if self.old.is_none() && self.unconsumed(hardware) != 0 && arm == Arm::Any {
            self.event(hardware, true);
        }
        Ok(())
    }

    /// The host gives the queue another ring. The cut-off CQE says so in the old one, as soon as there is room.
    ///
    /// # Errors
    /// A resize is under way.
    pub fn resize(
        &mut self,
        hardware: &mut Hardware,
        ring: &RingConfig,
        cut_off: impl Fn(bool, u8) -> [u8; CQE_BYTES as usize],
    ) -> Result<(), &'static str> {
        if self.waiting.is_some() || self.old.is_some() {
            return Err("a resize is under way");
        }
        self.waiting = Some(ring.clone());
        self.cut_off(hardware, cut_off);
        Ok(())
    }

    /// Goes on with a resize that waited for room.
    pub fn cut_off(
        &mut self,
        hardware: &mut Hardware,
        cut_off: impl Fn(bool, u8) -> [u8; CQE_BYTES as usize],
    ) -> bool {
        if self.waiting.is_none() || self.unconsumed(hardware) >= self.entries.into() {
            return false;
        }
        let Some(ring) = self.waiting.take() else { return false };
        self.resize_toggle = (self.resize_toggle + 1) & 3;
        let toggle = self.resize_toggle;
        if self.push(hardware, true, |phase| cut_off(phase, toggle)).is_err() {
            return false;
        }
        self.old = Some(Old { entries: self.entries, unconsumed: self.unconsumed(hardware) });
        self.entries = ring.entries;
        self.consumed = 0;
        hardware.switch_cq(self.id, ring, 0);
        true
    }

    /// The driver has consumed the cut-off CQE and moves to the new ring.
    ///
    /// # Errors
    /// The doorbell was dropped.
    pub fn acknowledge(&mut self, hardware: &Hardware, to: Position, toggle: u8) -> Result<(), CqError> {
        let expected = self.old.map(|_| self.resize_toggle);
        if expected != Some(toggle) {
            return Err(CqError::StrayAck { given: toggle, expected });
        }
        // The index counts in the new ring already, which the check of order does not know: only its own comparison
        // with the last doorbell, and that nothing is consumed that was not written, bound it.
        let limit = u32::try_from(self.unconsumed(hardware)).unwrap_or(u32::MAX);
        if to.index > limit || to.index >= self.entries {
            return Err(Stray::TooFar { moved: to.index, limit }.into());
        }
        let forward = if to.epoch == self.consumer.epoch {
            to.index >= self.consumer.index
        } else {
            to.index <= self.consumer.index
        };
        if !forward {
            return Err(Stray::OutOfOrder { from: self.consumer, to }.into());
        }
        self.old = None;
        self.consumer = to;
        self.consumed = to.index.into();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::{HostBlock, HostMemory};
    use crate::clock::Clock;
    use crate::device::{CqConfig, Memory, NicConfig};
    use directverbs::verbs::Mtu;

    const ID: CqId = CqId::truncated(3);

    struct Bench {
        hardware: Hardware,
        cq: Cq,
        memory: std::sync::Arc<HostMemory>,
        block: HostBlock,
    }

    fn ring(block: &HostBlock, entries: u32) -> RingConfig {
        RingConfig { memory: Memory::Host(block.addr()), entries, stride: CQE_BYTES }
    }

    fn bench(entries: u32) -> Bench {
        let memory = HostMemory::new();
        let config = NicConfig {
            mac: Default::default(),
            gids: Vec::new(),
            mtu: Mtu::B1024,
            device_memory: 0,
            all_memory_key: None,
        };
        let mut hardware = Hardware::new(config, memory.clone(), Clock::simulated());
        let block = memory.alloc(4096);
        let config = CqConfig { id: None, ring: ring(&block, entries), handle: 0, vector: 5 };
        hardware.add_cq(ID, &config);
        Bench { hardware, cq: Cq::new(ID, entries, true), memory, block }
    }

    /// A CQE that shows its phase and `tag`.
    fn cqe(tag: u8) -> impl Fn(bool) -> [u8; 32] {
        move |phase| {
            let mut bytes = [tag; 32];
            bytes[24] = phase.into();
            bytes
        }
    }

    fn at(index: u32, epoch: bool) -> Position {
        Position { index, epoch }
    }

    impl Bench {
        fn push(&mut self, tag: u8) -> Result<(), CqError> {
            self.cq.push(&mut self.hardware, false, cqe(tag))
        }

        fn entry(&self, index: usize) -> (u8, u8) {
            let mut bytes = [0; 32];
            assert!(self.block.read(index * 32, &mut bytes));
            (bytes[0], bytes[24])
        }
    }

    #[test]
    fn the_phase_flips_with_each_lap() {
        let mut bench = bench(2);
        assert_eq!((bench.push(1), bench.push(2)), (Ok(()), Ok(())));
        assert_eq!([bench.entry(0), bench.entry(1)], [(1, 1), (2, 1)]);
        assert_eq!(bench.cq.consume(&mut bench.hardware, at(1, false)), Ok(()));
        assert_eq!(bench.push(3), Ok(()));
        assert_eq!([bench.entry(0), bench.entry(1)], [(3, 0), (2, 1)]);
    }

    #[test]
    fn a_ring_that_is_not_consumed_overruns() {
        let mut bench = bench(2);
        assert_eq!((bench.push(1), bench.push(2)), (Ok(()), Ok(())));
        assert_eq!(bench.push(3), Err(CqError::Overrun { entries: 2 }));
        let stray = bench.cq.consume(&mut bench.hardware, at(1, true));
        assert!(matches!(stray, Err(CqError::Stray(_))), "{stray:?}");
        assert_eq!(bench.push(3), Err(CqError::Overrun { entries: 2 }));
    }

    #[test]
    fn an_event_comes_once_for_each_arm_with_the_current_toggle() {
        let mut bench = bench(8);
        let arm = |bench: &mut Bench, index, toggle| {
            bench.cq.arm(&mut bench.hardware, at(index, false), toggle, Arm::Any)
        };
        assert_eq!(arm(&mut bench, 0, 0), Err(CqError::NotEnabled));
        bench.cq.enable();
        assert_eq!(arm(&mut bench, 0, 0), Ok(()));
        assert_eq!((bench.push(1), bench.push(2)), (Ok(()), Ok(())));
        assert_eq!(bench.hardware.take_notification(), Some(crate::device::Notification::Cq(ID)));
        assert_eq!(bench.hardware.take_notification(), None);
        bench.cq.enable();
        assert_eq!(arm(&mut bench, 2, 0), Err(CqError::StaleToggle { given: 0, current: 1 }));
        assert_eq!(arm(&mut bench, 2, 1), Ok(()));
    }

    #[test]
    fn arming_behind_what_is_there_raises_the_event_at_once() {
        let mut bench = bench(8);
        assert_eq!(bench.push(1), Ok(()));
        bench.cq.enable();
        assert_eq!(bench.cq.arm(&mut bench.hardware, at(0, false), 0, Arm::Any), Ok(()));
        assert!(bench.hardware.take_notification().is_some());
    }

    #[test]
    fn a_resize_cuts_off_and_waits_for_its_acknowledgement() {
        let mut bench = bench(4);
        for tag in 1..=3 {
            assert_eq!(bench.push(tag), Ok(()));
        }
        assert_eq!(bench.cq.consume(&mut bench.hardware, at(2, false)), Ok(()));
        let (old, new) = (bench.block, bench.memory.alloc(4096));
        let cut_off = |phase: bool, toggle: u8| cqe(0xc0 + toggle)(phase);
        let ring = ring(&new, 8);
        assert_eq!(bench.cq.resize(&mut bench.hardware, &ring, cut_off), Ok(()));
        let mut last = [0; 32];
        assert!(old.read(3 * 32, &mut last));
        assert_eq!((last[0], last[24]), (0xc1, 1));
        assert!(bench.cq.resize(&mut bench.hardware, &ring, cut_off).is_err());
        // The old ring is still consumed from, and the acknowledgement's index is behind that.
        assert_eq!(bench.cq.consume(&mut bench.hardware, at(3, false)), Ok(()));
        let ack = |bench: &mut Cq, hardware: &Hardware, epoch, toggle| {
            bench.acknowledge(hardware, at(0, epoch), toggle)
        };
        let wrong = ack(&mut bench.cq, &bench.hardware, true, 2);
        assert_eq!(wrong, Err(CqError::StrayAck { given: 2, expected: Some(1) }));
        let unflipped = ack(&mut bench.cq, &bench.hardware, false, 1);
        assert!(matches!(unflipped, Err(CqError::Stray(Stray::OutOfOrder { .. }))), "{unflipped:?}");
        assert_eq!(ack(&mut bench.cq, &bench.hardware, true, 1), Ok(()));
        assert_eq!(bench.hardware.cq_position(ID), Some(0));
    }
}
