use super::function::MsixPlace;

const ENTRY: usize = 16;
/// Vector control, bit 0: the vector is masked. It is after a reset.
const CONTROL: usize = 12;

/// Who holds the MSI-X table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MsixOwner {
    /// The device, as the host programs it: masked vectors wait.
    #[default]
    Device,
    /// The host's side of the connection (a vfio-user client programs interrupts by other means and hides the table from
    /// the device): every interrupt goes there.
    Host,
}

/// Table, pending bits, and the switches of configuration space.
#[derive(Debug)]
pub(super) struct Msix {
    place: MsixPlace,
    owner: MsixOwner,
    table: Vec<u8>,
    pending: Vec<u8>,
    enabled: bool,
    masked: bool,
}

impl Msix {
    pub fn new(place: MsixPlace) -> Self {
        let vectors = usize::from(place.vectors);
        let mut new = Self {
            place,
            owner: MsixOwner::default(),
            table: vec![0; vectors * ENTRY],
            pending: vec![0; vectors.div_ceil(64) * 8],
            enabled: false,
            masked: false,
        };
        new.reset();
        new
    }

    pub fn reset(&mut self) {
        self.table.fill(0);
        self.table.chunks_mut(ENTRY).for_each(|entry| entry[CONTROL] = 1);
        self.pending.fill(0);
        (self.enabled, self.masked) = (false, false);
    }

    pub const fn set_owner(&mut self, owner: MsixOwner) {
        self.owner = owner;
    }

    /// Takes the switches of the capability, and returns the vectors that fire now.
    pub fn switch(&mut self, enabled: bool, masked: bool) -> Vec<u16> {
        (self.enabled, self.masked) = (enabled, masked);
        self.due()
    }

    /// Raises `vector`: `true` if it fires now; otherwise it waits.
    pub fn raise(&mut self, vector: u16) -> bool {
        if vector >= self.place.vectors {
            return false;
        }
        let fires = self.owner == MsixOwner::Host || self.is_open(vector);
        if !fires && self.enabled {
            let (byte, bit) = (usize::from(vector / 8), vector % 8);
            self.pending[byte] |= 1 << bit;
        }
        fires
    }

    fn is_open(&self, vector: u16) -> bool {
        let entry = usize::from(vector) * ENTRY;
        self.enabled && !self.masked && self.table[entry + CONTROL] & 1 == 0
    }

    fn due(&mut self) -> Vec<u16> {
        let pending = |this: &Self, v: u16| this.pending[usize::from(v / 8)] >> (v % 8) & 1 != 0;
        let due: Vec<u16> =
            (0..self.place.vectors).filter(|v| pending(self, *v) && self.is_open(*v)).collect();
        for vector in &due {
            self.pending[usize::from(vector / 8)] &= !(1 << (vector % 8));
        }
        due
    }

    /// Reads if the bytes begin in the table or the pending bits.
    pub fn read(&self, bar: u8, offset: u64, bytes: &mut [u8]) -> bool {
        let (from, at) = match self.find(bar, offset) {
            Some((Part::Table, at)) => (&self.table, at),
            Some((Part::Pending, at)) => (&self.pending, at),
            None => return false,
        };
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = from.get(at + i).copied().unwrap_or_default();
        }
        true
    }

    /// Writes if the bytes begin in the table or the pending bits (which take no stores), and returns the vectors that fire
    /// now.
    pub fn write(&mut self, bar: u8, offset: u64, bytes: &[u8]) -> Option<Vec<u16>> {
        let (part, at) = self.find(bar, offset)?;
        if let Part::Table = part {
            for (to, byte) in self.table.iter_mut().skip(at).zip(bytes) {
                *to = *byte;
            }
        }
        Some(self.due())
    }

    fn find(&self, bar: u8, offset: u64) -> Option<(Part, usize)> {
        let within = |start: u32, len: usize| {
            let at = offset.checked_sub(start.into())?;
            (at < len as u64).then_some(at as usize)
        };
        if bar != self.place.bar {
            return None;
        }
        let table = within(self.place.table, self.table.len()).map(|at| (Part::Table, at));
        table.or_else(|| within(self.place.pending, self.pending.len()).map(|at| (Part::Pending, at)))
    }
}

enum Part {
    Table,
    Pending,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: MsixPlace = MsixPlace { bar: 4, vectors: 70, table: 0x1000, pending: 0x2000 };

    fn unmask(msix: &mut Msix, vector: u64) -> Vec<u16> {
        msix.write(4, 0x1000 + vector * 16 + 12, &[0; 4]).expect("the table")
    }

    #[test]
    fn a_masked_vector_waits() {
        let mut msix = Msix::new(PLACE);
        assert!(!msix.raise(3), "not enabled");
        assert_eq!(msix.switch(true, false), []);
        assert!(!msix.raise(69), "masked by itself");
        let mut pending = [0; 16];
        assert!(msix.read(4, 0x2000, &mut pending));
        assert_eq!(u128::from_le_bytes(pending), 1 << 69);
        assert_eq!(unmask(&mut msix, 69), [69]);
        assert!(msix.raise(69));
        msix.switch(true, true);
        assert!(!msix.raise(69), "all are masked");
        assert_eq!(msix.switch(true, false), [69]);
        assert!(!msix.raise(70), "there is none");
    }

    #[test]
    fn a_host_that_holds_the_table_gets_every_interrupt() {
        let mut msix = Msix::new(PLACE);
        msix.set_owner(MsixOwner::Host);
        assert!(msix.raise(5));
    }

    #[test]
    fn other_places_are_the_functions() {
        let mut msix = Msix::new(PLACE);
        assert!(!msix.read(4, 0xfff, &mut [0; 4]) && !msix.read(2, 0x1000, &mut [0; 4]));
        assert_eq!(msix.write(4, 0x1000 + 70 * 16, &[1]), None);
    }
}
