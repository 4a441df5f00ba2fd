//! Ways to the configuration space of all functions.

use super::address::Address;
use super::config::{Config, Width};

/// A way to the configuration space of all functions of a machine.
pub trait Access {
    /// Buses that it reaches, from 0 on: at most 256.
    fn buses(&self) -> u16;

    /// One load, in the low bits; all ones where nothing answers.
    fn read(&self, address: Address, offset: u16, width: Width) -> u32;

    /// One store of the low bits of `value`.
    fn write(&self, address: Address, offset: u16, width: Width, value: u32);
}

impl<A: Access + ?Sized> Access for &A {
    fn buses(&self) -> u16 {
        (**self).buses()
    }

    fn read(&self, address: Address, offset: u16, width: Width) -> u32 {
        (**self).read(address, offset, width)
    }

    fn write(&self, address: Address, offset: u16, width: Width, value: u32) {
        (**self).write(address, offset, width, value);
    }
}

/// One function, reached through an [`Access`].
#[derive(Debug)]
pub struct Function<'a, A: ?Sized> {
    access: &'a A,
    address: Address,
}

impl<A: ?Sized> Clone for Function<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: ?Sized> Copy for Function<'_, A> {}

impl<'a, A: Access + ?Sized> Function<'a, A> {
    /// The function at `address`, if it is there or not.
    pub const fn new(access: &'a A, address: Address) -> Self {
        Self { access, address }
    }

    /// Where it is.
    pub const fn address(&self) -> Address {
        self.address
    }
}

impl<A: Access + ?Sized> Config for Function<'_, A> {
    fn read(&self, offset: u16, width: Width) -> u32 {
        self.access.read(self.address, offset, width)
    }

    fn write(&self, offset: u16, width: Width, value: u32) {
        self.access.write(self.address, offset, width, value);
    }
}
