//! The invariant CRC that ends every RoCEv2 packet.
//!
//! Source: InfiniBand Architecture Specification, volume 1, annex A17 (RoCEv2), "ICRC".

use crc32fast::Hasher;

/// Bytes of the UDP header.
const UDP: usize = 8;
/// Bytes of the BTH.
const BTH: usize = 12;
/// Stands for the 8 bytes of the InfiniBand local route header that RoCE lacks.
const DUMMY_LRH: [u8; 8] = [0xff; 8];

/// CRC over `packet`, which begins with the IP header of `ip_len` bytes and ends before the CRC itself. The value is
/// stored least significant byte first.
///
/// Fields that routers change count as ones: type of service, time to live and checksum of IPv4; traffic class, flow
/// label and hop limit of IPv6; the UDP checksum; the byte of the BTH with the congestion bits.
pub fn icrc(packet: &[u8], ip_len: usize) -> u32 {
    let mut head = [0; 8 + 40 + UDP + BTH];
    let len = (ip_len + UDP + BTH).min(packet.len()).min(head.len() - 8);
    let (headers, rest) = packet.split_at(len);
    head[..8].copy_from_slice(&DUMMY_LRH);
    head[8..8 + len].copy_from_slice(headers);
    let masked: &[usize] = if ip_len == 40 { &[1, 2, 3, 7] } else { &[1, 8, 10, 11] };
    let udp_checksum = ip_len + 6;
    let congestion = ip_len + UDP + 4;
    for at in masked.iter().copied().chain([udp_checksum, udp_checksum + 1, congestion]) {
        if let Some(byte) = head.get_mut(8 + at) {
            *byte = 0xff;
        }
    }
    if ip_len == 40 {
        head[8] |= 0x0f; // upper half of the traffic class
    }
    let mut crc = Hasher::new();
    crc.update(&head[..8 + len]);
    crc.update(rest);
    crc.finalize()
}
