//! Whose an object is, and how long it may live.

use core::marker::PhantomData;

/// What ties an object to its NIC: it names the NIC, which stays where it is, and is not closed, as long as an object has
/// one. So no object outlives its NIC, and an object of another NIC is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease<'n> {
    nic: usize,
    held: PhantomData<&'n ()>,
}

impl<'n> Lease<'n> {
    /// The lease on a NIC, which comes back to be used.
    pub fn on<N>(nic: &'n mut N) -> (Self, &'n mut N) {
        // It is borrowed for as long as the lease, so nothing else is at its address.
        (Self { nic: core::ptr::from_mut(nic).addr(), held: PhantomData }, nic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_on_two_nics_differ() {
        let (mut a, mut b) = (1u8, 1u8);
        let (on_a, a) = Lease::on(&mut a);
        let (on_b, b) = Lease::on(&mut b);
        assert_eq!((*a, *b), (1, 1));
        assert_ne!(on_a, on_b);
    }
}
