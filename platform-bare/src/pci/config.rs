/// Size of a configuration access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    Byte,
    /// Two bytes, at a multiple of 2.
    Word,
    /// Four bytes, at a multiple of 4.
    Dword,
}

impl Width {
    /// Number of bytes.
    pub const fn bytes(self) -> u16 {
        match self {
            Self::Byte => 1,
            Self::Word => 2,
            Self::Dword => 4,
        }
    }

    /// All bits of a value of this size.
    pub const fn mask(self) -> u32 {
        match self {
            Self::Byte => 0xff,
            Self::Word => 0xffff,
            Self::Dword => 0xffff_ffff,
        }
    }
}

/// Offsets of the registers that all functions have.
pub mod register {
    /// Vendor, and above it the device.
    pub const ID: u16 = 0x00;
    /// Command.
    pub const COMMAND: u16 = 0x04;
    /// Status; many of its bits are cleared by storing ones.
    pub const STATUS: u16 = 0x06;
    /// First BAR.
    pub const BAR0: u16 = 0x10;
    /// Offset of the first capability, one byte.
    pub const CAPABILITIES: u16 = 0x34;
}

/// Configuration space of one function.
///
/// Offsets are multiples of the access's size, below 256, or below 4096 where the way there reaches so far. What is not
/// there reads as all ones, and takes no stores.
pub trait Config {
    /// One load, in the low bits.
    fn read(&self, offset: u16, width: Width) -> u32;

    /// One store of the low bits of `value`.
    fn write(&self, offset: u16, width: Width, value: u32);

    /// One load of a byte.
    fn read8(&self, offset: u16) -> u8 {
        self.read(offset, Width::Byte) as u8
    }

    /// One load of 16 bits.
    fn read16(&self, offset: u16) -> u16 {
        self.read(offset, Width::Word) as u16
    }

    /// One load of 32 bits.
    fn read32(&self, offset: u16) -> u32 {
        self.read(offset, Width::Dword)
    }

    /// One store of a byte.
    fn write8(&self, offset: u16, value: u8) {
        self.write(offset, Width::Byte, value.into());
    }

    /// One store of 16 bits.
    fn write16(&self, offset: u16, value: u16) {
        self.write(offset, Width::Word, value.into());
    }

    /// One store of 32 bits.
    fn write32(&self, offset: u16, value: u32) {
        self.write(offset, Width::Dword, value);
    }

    /// Vendor and device, or `None` if no function answers.
    fn id(&self) -> Option<(u16, u16)> {
        let id = self.read32(register::ID);
        let (vendor, device) = (id as u16, (id >> 16) as u16);
        // Vendor 0 is no vendor either: some bridges give zeros for what is not there.
        (vendor != 0xffff && vendor != 0).then_some((vendor, device))
    }
}

impl<C: Config + ?Sized> Config for &C {
    fn read(&self, offset: u16, width: Width) -> u32 {
        (**self).read(offset, width)
    }

    fn write(&self, offset: u16, width: Width, value: u32) {
        (**self).write(offset, width, value);
    }
}
