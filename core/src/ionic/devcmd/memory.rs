//! Controller memory (CMB): the areas of its BAR that the device tells of, checked.

use super::device::{CmbIdentity, CmbKind};
use super::identity::IdentityError;
use crate::ionic::caps::{ExpressQueues, ExpressStrides};

/// Kinds of area that queues can be in.
const KINDS: usize = 5;
/// Areas are told in units of 64 KiB.
const UNIT_LOG2: u32 = 16;

/// A part of the BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmbArea {
    /// Where in the BAR, in bytes.
    pub offset: u64,
    /// How long, in bytes; not 0.
    pub len: u64,
}

/// Controller memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerMemory {
    areas: [Option<CmbArea>; KINDS],
    express: bool,
}

impl ControllerMemory {
    /// That of a device which does not tell where it is: all of the BAR of `bar_len` bytes, without express doorbells.
    pub const fn whole(bar_len: u64) -> Self {
        let area = if bar_len == 0 { None } else { Some(CmbArea { offset: 0, len: bar_len }) };
        Self { areas: [area, None, None, None, None], express: false }
    }

    /// Checks what the device tells of a BAR with `bar_len` bytes. Of each kind the first area counts; kinds that are not
    /// known are passed over.
    ///
    /// # Errors
    /// More areas than there can be, or one that is not in the BAR.
    pub fn new(identity: &CmbIdentity, bar_len: u64) -> Result<Self, IdentityError> {
        let count = identity.num_regions.get();
        let max = identity.region.len() as u64;
        IdentityError::check(text!("regions of controller memory"), count.into(), 0, max)?;
        let mut new = Self { areas: [None; KINDS], express: identity.flags.get() & 1 != 0 };
        for region in identity.region.iter().take(count as usize) {
            let offset = u64::from(region.offset.get()) << UNIT_LOG2;
            let len = u64::from(region.length.get()) << UNIT_LOG2;
            let slot = new.areas.get_mut(usize::from(region.cmb_type));
            let Some(slot) = slot.filter(|slot| slot.is_none() && len > 0) else { continue };
            // Both have at most 48 bits.
            IdentityError::check(text!("end of controller memory"), offset + len, 0, bar_len)?;
            *slot = Some(CmbArea { offset, len });
        }
        Ok(new)
    }

    /// The area of a kind.
    pub fn area(&self, kind: CmbKind) -> Option<CmbArea> {
        self.areas.get(usize::from(kind.0)).copied().flatten()
    }

    /// Strides that express doorbells exist for.
    pub fn express_strides(&self) -> ExpressStrides {
        let kinds = [
            (CmbKind::EXPRESS_64, ExpressStrides::B64),
            (CmbKind::EXPRESS_128, ExpressStrides::B128),
            (CmbKind::EXPRESS_256, ExpressStrides::B256),
            (CmbKind::EXPRESS_512, ExpressStrides::B512),
        ];
        let found = kinds.iter().filter(|(kind, _)| self.express && self.area(*kind).is_some());
        found.fold(ExpressStrides::empty(), |all, (_, stride)| all | *stride)
    }

    /// Queues that express doorbells exist for: it is assumed that they exist for both, as the device does not tell.
    pub const fn express_queues(&self) -> ExpressQueues {
        if self.express { ExpressQueues::all() } else { ExpressQueues::empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::device::CmbRegion;
    use super::*;

    fn told(regions: &[(CmbKind, u32, u32)]) -> CmbIdentity {
        let mut identity =
            CmbIdentity { num_regions: (regions.len() as u32).into(), flags: 1.into(), ..CmbIdentity::ZERO };
        for (to, (kind, offset, length)) in identity.region.iter_mut().zip(regions) {
            *to = CmbRegion {
                cmb_type: kind.0,
                offset: (*offset).into(),
                length: (*length).into(),
                ..CmbRegion::ZERO
            };
        }
        identity
    }

    #[test]
    fn areas_are_told_in_units_of_64_kib() {
        let memory = ControllerMemory::new(
            &told(&[(CmbKind::MEMORY, 0, 2), (CmbKind::EXPRESS_128, 2, 1), (CmbKind(77), 0, 1)]),
            3 << 16,
        );
        let memory = memory.unwrap();
        assert_eq!(memory.area(CmbKind::MEMORY), Some(CmbArea { offset: 0, len: 2 << 16 }));
        assert_eq!(memory.area(CmbKind::EXPRESS_128), Some(CmbArea { offset: 2 << 16, len: 1 << 16 }));
        assert_eq!((memory.area(CmbKind::EXPRESS_64), memory.area(CmbKind(77))), (None, None));
        assert_eq!(memory.express_strides(), ExpressStrides::B128);
        assert_eq!(memory.express_queues(), ExpressQueues::all());
    }

    #[test]
    fn without_a_word_of_the_device_all_of_the_bar_is_memory() {
        let memory = ControllerMemory::whole(1 << 20);
        assert_eq!(memory.area(CmbKind::MEMORY), Some(CmbArea { offset: 0, len: 1 << 20 }));
        assert_eq!((memory.express_strides(), memory.express_queues()), Default::default());
        assert_eq!(ControllerMemory::whole(0), ControllerMemory::default());
    }

    #[test]
    fn an_area_outside_of_the_bar_is_refused() {
        let what = |identity: &CmbIdentity| match ControllerMemory::new(identity, 1 << 16) {
            Err(IdentityError::Range { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(&told(&[(CmbKind::MEMORY, 1, 1)])), "end of controller memory");
        assert_eq!(what(&told(&[(CmbKind::MEMORY, u32::MAX, u32::MAX)])), "end of controller memory");
        let many = CmbIdentity { num_regions: u32::MAX.into(), ..CmbIdentity::ZERO };
        assert_eq!(what(&many), "regions of controller memory");
    }
}
