use core::fmt;
use core::str::FromStr;

use crate::pci::{Address, NoAddress};

/// Where a function of a Linux machine is: its PCI domain, and its address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionAddress {
    /// Domain, also called segment; mostly 0.
    pub domain: u32,
    /// Bus, device and function.
    pub address: Address,
}

impl fmt::Display for FunctionAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{}", self.domain, self.address)
    }
}

impl FromStr for FunctionAddress {
    type Err = NoAddress;

    /// `0000:01:02.3`, as sysfs has it; without a domain, it is 0.
    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let (domain, rest) = match text.split_once(':') {
            Some((domain, rest)) if rest.contains(':') => {
                (u32::from_str_radix(domain, 16).map_err(|_| NoAddress)?, rest)
            }
            _ => (0, text),
        };
        Ok(Self { domain, address: rest.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_domain_may_be_left_out() {
        let parsed = |text: &str| text.parse::<FunctionAddress>().map(|address| address.to_string());
        assert_eq!(parsed("01:02.3").as_deref(), Ok("0000:01:02.3"));
        assert_eq!(parsed("10001:e1:00.0").as_deref(), Ok("10001:e1:00.0"));
        for wrong in
            ["", "0", "0000:01:02.8", "x:01:02.3", "0:0:1:2.3", "../0000:01:02.3", "100000000:01:02.3"]
        {
            assert_eq!(parsed(wrong), Err(NoAddress), "{wrong}");
        }
    }
}
