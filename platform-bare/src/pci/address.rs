use core::fmt;
use core::str::FromStr;

/// Where a function is: bus, device and function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    bus: u8,
    /// Device in the upper five bits, function in the lower three.
    device_function: u8,
}

impl Address {
    /// Function `function` (0 to 7) of device `device` (0 to 31) of a bus; bits that are too many are cut off.
    pub const fn new(bus: u8, device: u8, function: u8) -> Self {
        Self { bus, device_function: device << 3 | function & 7 }
    }

    /// Bus.
    pub const fn bus(self) -> u8 {
        self.bus
    }

    /// Device, 0 to 31.
    pub const fn device(self) -> u8 {
        self.device_function >> 3
    }

    /// Function, 0 to 7.
    pub const fn function(self) -> u8 {
        self.device_function & 7
    }

    /// Bus in bits 15:8, device in 7:3, function in 2:0: as configuration accesses and requester ids have it.
    pub const fn bits(self) -> u16 {
        (self.bus as u16) << 8 | self.device_function as u16
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}.{}", self.bus, self.device(), self.function())
    }
}

/// What is not spelled `01:02.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a PCI address: bus, device and function, as in 01:02.3")]
pub struct NoAddress;

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let (bus, rest) = text.split_once(':').ok_or(NoAddress)?;
        let (device, function) = rest.split_once('.').ok_or(NoAddress)?;
        let number = |digits: &str, most: u8| {
            let value = u8::from_str_radix(digits, 16).map_err(|_| NoAddress)?;
            if value <= most { Ok(value) } else { Err(NoAddress) }
        };
        Ok(Self::new(number(bus, 0xff)?, number(device, 31)?, number(function, 7)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn an_address_is_spelled_as_lspci_does() {
        let address = Address::new(0xab, 0x1f, 5);
        assert_eq!(address.to_string(), "ab:1f.5");
        assert_eq!("ab:1f.5".parse(), Ok(address));
        assert_eq!((address.bits(), address.device(), address.function()), (0xabfd, 0x1f, 5));
        for wrong in ["", "ab", "ab:1f", "ab:20.0", "ab:1f.8", "100:00.0", "x:00.0"] {
            assert_eq!(wrong.parse::<Address>(), Err(NoAddress), "{wrong}");
        }
    }
}
