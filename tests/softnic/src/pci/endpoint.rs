use std::sync::Arc;

use super::config_space::ConfigSpace;
use super::fault::{AccessFault, AccessFaults, CommandFaults};
use super::function::{Function, Identity, Port};
use super::gate::Gate;
use super::msix::Msix;
use super::trace::Trace;
use crate::bus::Bus;

/// A function with its configuration space, its gate to the bus, and MSI-X.
pub struct Endpoint {
    function: Box<dyn Function>,
    config: ConfigSpace,
    gate: Arc<Gate>,
    faults: AccessFaults,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Builds a function with its way to `host`.
    pub fn new(
        host: Arc<dyn Bus>,
        faults: CommandFaults,
        trace: Trace,
        build: impl FnOnce(Port) -> Box<dyn Function>,
    ) -> Self {
        let accesses = AccessFaults::default();
        let gate = Arc::new(Gate::new(host, accesses.clone()));
        let function = build(Port { bus: gate.clone(), faults, trace });
        let identity = function.identity();
        *gate.msix() = identity.msix.map(Msix::new);
        Self { function, config: ConfigSpace::new(identity), gate, faults: accesses }
    }

    /// What configuration space tells.
    pub const fn identity(&self) -> &Identity {
        self.config.identity()
    }

    /// The way to the host.
    pub const fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// What goes wrong with accesses.
    pub const fn faults(&self) -> &AccessFaults {
        &self.faults
    }

    /// The host loads from configuration space.
    pub fn config_read(&mut self, offset: u16, bytes: &mut [u8]) {
        match self.faults.next() {
            Some(AccessFault::Removed | AccessFault::Ones) => bytes.fill(0xff),
            _ => self.config.read(offset, bytes),
        }
    }

    /// The host stores to configuration space.
    pub fn config_write(&mut self, offset: u16, bytes: &[u8]) {
        if let Some(AccessFault::Removed | AccessFault::Lost) = self.faults.next() {
            return;
        }
        if self.config.write(offset, bytes) {
            return self.reset();
        }
        self.switch();
    }

    /// The host loads from a BAR. What is not there, or while memory accesses are off, reads as all ones.
    pub fn bar_read(&mut self, bar: u8, offset: u64, bytes: &mut [u8]) {
        let fault = self.faults.next();
        let lost = matches!(fault, Some(AccessFault::Removed | AccessFault::Ones));
        if lost || !self.answers(bar, offset, bytes.len()) {
            return bytes.fill(0xff);
        }
        let read = self.gate.msix().as_ref().is_some_and(|msix| msix.read(bar, offset, bytes));
        if !read {
            self.function.bar_read(bar, offset, bytes);
        }
    }

    /// The host stores to a BAR. What is not there, or while memory accesses are off, is lost.
    pub fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) {
        let fault = self.faults.next();
        let lost = matches!(fault, Some(AccessFault::Removed | AccessFault::Hung | AccessFault::Lost));
        if lost || !self.answers(bar, offset, bytes.len()) {
            return;
        }
        let fired = self.gate.msix().as_mut().and_then(|msix| msix.write(bar, offset, bytes));
        match fired {
            Some(vectors) => self.gate.fire(vectors),
            None => self.function.bar_write(bar, offset, bytes),
        }
    }

    /// All is as after power-on.
    pub fn reset(&mut self) {
        self.faults.reset();
        self.config.reset();
        if let Some(msix) = self.gate.msix().as_mut() {
            msix.reset();
        }
        self.switch();
        self.function.reset();
    }

    /// The function is pulled out and plugged in again.
    pub fn replug(&mut self) {
        self.faults.replug();
        self.reset();
    }

    /// Lets the function do what is to be done apart from accesses; `true` if there was any.
    pub fn service(&mut self) -> bool {
        let notified = self.gate.take_notified();
        !self.faults.is_removed() && self.function.service() | notified
    }

    fn answers(&self, bar: u8, offset: u64, len: usize) -> bool {
        let has = self.config.bar(bar).map_or(0, |bar| bar.len);
        let end = offset.checked_add(len as u64);
        self.config.switches().memory && end.is_some_and(|end| end <= has)
    }

    fn switch(&self) {
        let switches = self.config.switches();
        self.gate.set_master(switches.master);
        let fired = self.gate.msix().as_mut().map(|msix| msix.switch(switches.msix, switches.msix_masked));
        self.gate.fire(fired.unwrap_or_default());
    }
}
