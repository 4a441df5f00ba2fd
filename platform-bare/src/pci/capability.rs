//! The list of capabilities.

use super::config::{Config, register};

/// Status bit: there is a list.
const STATUS_LIST: u16 = 1 << 4;
/// The list lies behind the header.
const FIRST: u8 = 0x40;
/// More entries do not fit: each takes 4 bytes at least.
const MOST: usize = (0x100 - FIRST as usize) / 4;

/// Kinds of capabilities that are looked for here.
pub mod id {
    /// Power management.
    pub const POWER: u8 = 0x01;
    /// PCI Express.
    pub const EXPRESS: u8 = 0x10;
    /// MSI-X.
    pub const MSIX: u8 = 0x11;
    /// Advanced features of conventional PCI.
    pub const ADVANCED_FEATURES: u8 = 0x13;
}

/// An entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Kind.
    pub id: u8,
    /// Where it begins in configuration space.
    pub offset: u16,
}

/// A list that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapabilityError {
    /// An entry is said to lie in the header, or is not aligned.
    #[error("capability at {0:#x}")]
    Offset(u8),
    /// It has no end.
    #[error("the list of capabilities has no end")]
    Endless,
    /// The function is gone: all reads give ones.
    #[error("the function is gone")]
    Gone,
}

/// The list of capabilities, entry by entry. It ends after the first error.
#[derive(Clone, Debug)]
pub struct Capabilities<C> {
    config: C,
    next: u8,
    left: usize,
}

impl<C: Config> Capabilities<C> {
    /// The list of a function.
    pub fn new(config: C) -> Self {
        let listed = config.read16(register::STATUS) & STATUS_LIST != 0;
        let next = if listed { config.read8(register::CAPABILITIES) } else { 0 };
        Self { config, next, left: MOST }
    }

    fn read(&mut self) -> Result<Option<Capability>, CapabilityError> {
        // The two lowest bits are reserved, and to be ignored.
        let at = self.next & !3;
        if at == 0 {
            return Ok(None);
        }
        if at < FIRST {
            return Err(CapabilityError::Offset(self.next));
        }
        self.left = self.left.checked_sub(1).ok_or(CapabilityError::Endless)?;
        let [id, next] = self.config.read16(at.into()).to_le_bytes();
        if [id, next] == [0xff; 2] {
            return Err(CapabilityError::Gone);
        }
        self.next = next;
        Ok(Some(Capability { id, offset: at.into() }))
    }
}

impl<C: Config> Iterator for Capabilities<C> {
    type Item = Result<Capability, CapabilityError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if read.is_err() {
            self.next = 0;
        }
        read.transpose()
    }
}

/// The first capability of kind `id`.
///
/// # Errors
/// The list makes no sense before it.
pub fn find<C: Config + ?Sized>(config: &C, id: u8) -> Result<Option<Capability>, CapabilityError> {
    Capabilities::new(config).find(|entry| !matches!(entry, Ok(other) if other.id != id)).transpose()
}
