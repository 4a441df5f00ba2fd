//! What goes wrong between a driver and its device: one access, or one command, in one way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How accesses of the host fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFault {
    /// The function is pulled out at this access: loads give all ones, also from configuration space, stores are lost and
    /// DMA ends, until [`super::Slot::replug`].
    Removed,
    /// The function hangs from this access on: stores to its BARs are lost, loads still give what was there, until a reset.
    Hung,
    /// This load gives all ones. A store is not harmed.
    Ones,
    /// This store is lost. A load is not harmed.
    Lost,
}

impl AccessFault {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Removed, Self::Hung, Self::Ones, Self::Lost];
}

/// How a command of a control channel fails. Each family answers in its own terms; what it has no term for, it does not
/// harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandFault {
    /// It is refused with an error code, and changes nothing.
    Refused,
    /// The device is busy: the same command succeeds when it is sent again.
    Busy,
    /// The device carries it out and never answers.
    Silent,
    /// The answer has the sequence number (cookie, index) of another command.
    WrongSequence,
    /// The answer has an impossible length.
    WrongLength,
    /// The answer never gets valid: its valid byte, bit or color stays as it was.
    NotValid,
    /// The answer's payload is all ones.
    Garbage,
    /// An event that nobody asked for comes before the answer.
    Event,
    /// The device resets itself instead of answering.
    HotReset,
}

impl CommandFault {
    /// All ways.
    pub const ALL: [Self; 9] = [
        Self::Refused,
        Self::Busy,
        Self::Silent,
        Self::WrongSequence,
        Self::WrongLength,
        Self::NotValid,
        Self::Garbage,
        Self::Event,
        Self::HotReset,
    ];
}

/// A count, and the number at which a fault strikes.
#[derive(Debug)]
struct Planned<F> {
    count: u64,
    plan: Option<(u64, F)>,
}

impl<F: Copy> Planned<F> {
    fn next(&mut self) -> Option<F> {
        let now = self.count;
        self.count += 1;
        self.plan.filter(|(at, _)| *at == now).map(|(_, fault)| fault)
    }
}

impl<F> Default for Planned<F> {
    fn default() -> Self {
        Self { count: 0, plan: None }
    }
}

/// Which command fails, and how. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CommandFaults(Arc<Mutex<Planned<CommandFault>>>);

impl CommandFaults {
    /// From now on commands are counted from 0, and command `at` fails.
    pub fn strike(&self, at: u64, fault: CommandFault) {
        *lock(&self.0) = Planned { count: 0, plan: Some((at, fault)) };
    }

    /// From now on commands are counted from 0, and none fails.
    pub fn clear(&self) {
        *lock(&self.0) = Planned::default();
    }

    /// Commands since the last change of plan.
    pub fn commands(&self) -> u64 {
        lock(&self.0).count
    }

    /// What befalls the command that has just come. The device calls it once for each, on whatever channel.
    pub fn next(&self) -> Option<CommandFault> {
        lock(&self.0).next()
    }
}

/// What a slot does to the accesses of its host. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AccessFaults(Arc<Mutex<Accesses>>);

#[derive(Debug, Default)]
struct Accesses {
    planned: Planned<AccessFault>,
    lasting: Option<AccessFault>,
}

impl AccessFaults {
    /// From now on accesses (loads and stores, of registers and of configuration space) are counted from 0, and access `at`
    /// fails.
    pub fn strike(&self, at: u64, fault: AccessFault) {
        lock(&self.0).planned = Planned { count: 0, plan: Some((at, fault)) };
    }

    /// From now on accesses are counted from 0, and none fails. What lasts goes on.
    pub fn clear(&self) {
        lock(&self.0).planned = Planned::default();
    }

    /// Accesses since the last change of plan.
    pub fn accesses(&self) -> u64 {
        lock(&self.0).planned.count
    }

    /// The function is not there any more.
    pub fn is_removed(&self) -> bool {
        lock(&self.0).lasting == Some(AccessFault::Removed)
    }

    /// What befalls the access that has just come.
    pub(super) fn next(&self) -> Option<AccessFault> {
        let mut accesses = lock(&self.0);
        let now = accesses.planned.next();
        if let Some(lasting @ (AccessFault::Removed | AccessFault::Hung)) = now {
            accesses.lasting = Some(lasting);
        }
        accesses.lasting.or(now)
    }

    /// What a reset mends: everything but removal.
    pub(super) fn reset(&self) {
        let mut accesses = lock(&self.0);
        accesses.lasting = accesses.lasting.filter(|fault| *fault == AccessFault::Removed);
    }

    pub(super) fn replug(&self) {
        lock(&self.0).lasting = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
