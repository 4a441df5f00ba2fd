//! The invariant CRC of RoCEv2 frames, computed bit by bit from the specification, with nothing of the software NICs.
//!
//! Source: InfiniBand Architecture Specification, volume 1, "Invariant CRC", and annex A17, RoCEv2: the IP packet and
//! eight bytes of ones in front of it, where what a router may change counts as ones.

/// Bytes of the Ethernet header.
const ETHERNET: usize = 14;
/// Bytes of the UDP header.
const UDP: usize = 8;
/// Bytes of the ICRC.
const ICRC: usize = 4;

/// The ICRC that a frame carries and the one that it should carry, as they stand on the wire; `None` if it is no whole
/// RoCEv2 frame.
pub fn of(frame: &[u8]) -> Option<([u8; ICRC], [u8; ICRC])> {
    let ip = frame.get(ETHERNET..)?;
    let (header, len) = match ip.first()? >> 4 {
        4 => (usize::from(ip.first()? & 0xf) * 4, usize::from(word(ip, 2)?)),
        6 => (40, 40 + usize::from(word(ip, 4)?)),
        _ => return None,
    };
    // What follows the packet is padding of the Ethernet frame.
    let packet = ip.get(..len)?;
    let (covered, carried) = packet.split_at_checked(len.checked_sub(ICRC)?)?;
    let mut bytes = vec![0xff; 8];
    bytes.extend_from_slice(covered);
    let masked: &[usize] = match header {
        // Traffic class and flow label (the version in the first four bits stays), hop limit.
        40 => {
            *bytes.get_mut(8)? |= 0x0f;
            &[1, 2, 3, 7]
        }
        // Type of service, time to live, header checksum.
        _ => &[1, 8, 10, 11],
    };
    // Checksum of UDP, and the byte of the BTH with the congestion bits.
    for at in masked.iter().copied().chain([header + 6, header + 7, header + UDP + 4]) {
        *bytes.get_mut(8 + at)? = 0xff;
    }
    Some((carried.try_into().ok()?, crc32(&bytes).to_le_bytes()))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// CRC-32 of IEEE 802.3, one bit at a time.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_the_one_of_ieee_802_3() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_frame_that_is_cut_off_has_none() {
        assert_eq!(of(&[0; 14]), None);
        let mut frame = [0; 60];
        frame[14] = 0x45;
        frame[17] = 200;
        assert_eq!(of(&frame), None);
        frame[17] = 3;
        assert_eq!(of(&frame), None);
    }
}
