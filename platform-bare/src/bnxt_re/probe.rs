use super::error::Error;
use crate::host::Host;
use crate::pci::Config as _;

/// Vendor id of Broadcom.
const VENDOR: u16 = 0x14e4;

/// Device ids of physical functions: P5 and its partitions, P7.
const DEVICES: [core::ops::RangeInclusive<u16>; 3] = [0x1750..=0x1752, 0x1800..=0x1805, 0x1760..=0x1763];

/// Whether this driver knows a PCI function by its ids. The generation is told by the firmware.
pub fn is_supported(vendor: u16, device: u16) -> bool {
    vendor == VENDOR && DEVICES.iter().any(|ids| ids.contains(&device))
}

/// Looks at the ids of a function.
///
/// # Errors
/// It is none of this driver's, or not there.
pub fn probe<H: Host>(host: &H) -> Result<(), Error> {
    let (vendor, device) = host.config().id().ok_or(Error::Gone)?;
    if is_supported(vendor, device) { Ok(()) } else { Err(Error::Unknown { vendor, device }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn physical_functions_of_both_generations_are_known() {
        for (vendor, device, known) in
            [(0x14e4, 0x1750, true), (0x14e4, 0x1760, true), (0x14e4, 0x1806, false), (0x1dd8, 0x1750, false)]
        {
            assert_eq!(is_supported(vendor, device), known, "{vendor:04x}:{device:04x}");
        }
    }
}
