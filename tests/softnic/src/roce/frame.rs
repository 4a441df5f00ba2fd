//! Frames: Ethernet, IPv4 or IPv6, UDP, BTH and its extensions, payload, ICRC.
//!
//! Source: InfiniBand Architecture Specification, volume 1, chapter 9 and annex A17; RFC 791, 8200, 768; IEEE 802.1Q.

use directverbs::verbs::{AddressVector, Gid, Mac, Psn, QpId};

use super::headers::{Aeth, AtomicEth, Bth, Deth, Headers, Reth};
use super::icrc::icrc;
use super::opcode::{Extensions, Opcode};

/// UDP port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;
/// Shortest Ethernet frame without its check sequence; shorter ones are padded.
pub const MIN_FRAME: usize = 60;
/// The default partition, full member.
const DEFAULT_PKEY: u16 = 0xffff;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_UDP: u8 = 17;
const UDP_LEN: usize = 8;
const BTH_LEN: usize = 12;
const ICRC_LEN: usize = 4;
/// Ethernet with VLAN tag, IPv6, UDP.
const MAX_ROUTE: usize = 14 + 4 + 40 + UDP_LEN;

/// The headers that all packets on one path begin with, up to the UDP header.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    bytes: [u8; MAX_ROUTE],
    len: usize,
    ip_at: usize,
    /// GID of the destination.
    pub dgid: Gid,
}

impl Route {
    /// The way from us (`smac`, `sgid`) along `path`. `entropy` chooses the UDP source port where the path has no flow
    /// label. `None` if one GID is an IPv4 address and the other is not.
    pub fn new(smac: Mac, sgid: Gid, path: &AddressVector, entropy: u32) -> Option<Self> {
        let mut route = Self { bytes: [0; MAX_ROUTE], len: 0, ip_at: 0, dgid: path.dgid };
        route.push(&path.dmac.0);
        route.push(&smac.0);
        if let Some(tci) = path.vlan {
            route.push(&ETHERTYPE_VLAN.to_be_bytes());
            route.push(&tci.to_be_bytes());
        }
        let label = if path.flow_label & 0xf_ffff == 0 { entropy } else { path.flow_label } & 0xf_ffff;
        match (sgid.as_v4(), path.dgid.as_v4()) {
            (Some(from), Some(to)) => {
                route.push(&ETHERTYPE_IPV4.to_be_bytes());
                route.ip_at = route.len;
                // Version and length, type of service, total length, identification, "do not fragment".
                route.push(&[0x45, path.traffic_class, 0, 0, 0, 0, 0x40, 0]);
                route.push(&[path.hop_limit, PROTOCOL_UDP, 0, 0]);
                route.push(&from.octets());
                route.push(&to.octets());
            }
            (None, None) => {
                route.push(&ETHERTYPE_IPV6.to_be_bytes());
                route.ip_at = route.len;
                let word = 6 << 28 | u32::from(path.traffic_class) << 20 | path.flow_label & 0xf_ffff;
                route.push(&word.to_be_bytes());
                route.push(&[0, 0, PROTOCOL_UDP, path.hop_limit]);
                route.push(&sgid.0);
                route.push(&path.dgid.0);
            }
            _ => return None,
        }
        // Both halves of the label count, in the upper quarter of the ports.
        let source = 0xc000 | ((label & 0x3fff) ^ (label >> 14)) as u16;
        route.push(&source.to_be_bytes());
        route.push(&ROCE_PORT.to_be_bytes());
        route.push(&[0; 4]);
        Some(route)
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(to) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            to.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    /// A packet with `payload_len` bytes of payload, which `fill` provides.
    ///
    /// # Errors
    /// That of `fill`.
    pub fn frame<E>(
        &self,
        bth: &Bth,
        headers: &Headers,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let pad = payload_len.wrapping_neg() & 3;
        let body = self.len + BTH_LEN + headers.bytes().len();
        let end = body + payload_len + pad;
        let mut frame = vec![0; (end + ICRC_LEN).max(MIN_FRAME)];
        frame[..self.len].copy_from_slice(&self.bytes[..self.len]);
        let udp_at = self.len - UDP_LEN;
        let udp_len = (end + ICRC_LEN - udp_at) as u16;
        frame[udp_at + 4..udp_at + 6].copy_from_slice(&udp_len.to_be_bytes());
        let ip_len = udp_at - self.ip_at;
        if ip_len == 20 {
            let ip = &mut frame[self.ip_at..udp_at];
            ip[2..4].copy_from_slice(&(udp_len + 20).to_be_bytes());
            let checksum = !ones_sum(ip);
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            frame[self.ip_at + 4..self.ip_at + 6].copy_from_slice(&udp_len.to_be_bytes());
        }
        let flags = u8::from(bth.solicited) << 7 | (pad as u8) << 4;
        let [_, q2, q1, q0] = bth.dest_qp.get().to_be_bytes();
        let [_, p2, p1, p0] = bth.psn.get().to_be_bytes();
        let [k1, k0] = DEFAULT_PKEY.to_be_bytes();
        let ack = u8::from(bth.ack_request) << 7;
        frame[self.len..self.len + BTH_LEN]
            .copy_from_slice(&[bth.opcode, flags, k1, k0, 0, q2, q1, q0, ack, p2, p1, p0]);
        frame[self.len + BTH_LEN..body].copy_from_slice(headers.bytes());
        fill(&mut frame[body..body + payload_len])?;
        let crc = icrc(&frame[self.ip_at..end], ip_len);
        frame[end..end + ICRC_LEN].copy_from_slice(&crc.to_le_bytes());
        Ok(frame)
    }
}

/// Sum of 16-bit words in ones' complement, as IPv4 headers are checked with.
fn ones_sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// A received RoCEv2 packet, checked.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'f> {
    /// Sender's Ethernet address.
    pub smac: Mac,
    /// VLAN tag.
    pub vlan: Option<u16>,
    /// The IP header: 20 bytes of IPv4 or 40 of IPv6.
    pub ip: &'f [u8],
    /// GID of the sender.
    pub sgid: Gid,
    /// GID of the destination.
    pub dgid: Gid,
    /// Base transport header.
    pub bth: Bth,
    /// The opcode, decoded.
    pub opcode: &'static Opcode,
    extensions: &'f [u8],
    /// Payload without padding.
    pub payload: &'f [u8],
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// It is no RoCEv2 packet at all.
    NotRoce,
    /// Lengths, versions, a checksum or the opcode make no sense.
    Malformed,
    /// The ICRC is wrong.
    BadIcrc,
}

impl<'f> Packet<'f> {
    /// Takes a frame apart and checks everything that needs no queue pair.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(frame: &'f [u8]) -> Result<Self, FrameError> {
        use FrameError::{BadIcrc, Malformed, NotRoce};
        let (ethernet, mut rest) = frame.split_first_chunk::<14>().ok_or(NotRoce)?;
        let mut smac = Mac::default();
        smac.0.copy_from_slice(&ethernet[6..12]);
        let mut ethertype = u16::from_be_bytes([ethernet[12], ethernet[13]]);
        let mut vlan = None;
        if ethertype == ETHERTYPE_VLAN {
            let (tag, after) = rest.split_first_chunk::<4>().ok_or(NotRoce)?;
            vlan = Some(u16::from_be_bytes([tag[0], tag[1]]));
            ethertype = u16::from_be_bytes([tag[2], tag[3]]);
            rest = after;
        }
        let (ip_len, len, sgid, dgid) = match ethertype {
            ETHERTYPE_IPV4 => ipv4(rest)?,
            ETHERTYPE_IPV6 => ipv6(rest)?,
            _ => return Err(NotRoce),
        };
        // What follows is padding of the frame.
        let packet = rest.get(..len).ok_or(Malformed)?;
        let (ip, datagram) = packet.split_at_checked(ip_len).ok_or(Malformed)?;
        let (udp, transport) = datagram.split_first_chunk::<UDP_LEN>().ok_or(NotRoce)?;
        if u16::from_be_bytes([udp[2], udp[3]]) != ROCE_PORT {
            return Err(NotRoce);
        }
        if usize::from(u16::from_be_bytes([udp[4], udp[5]])) != datagram.len() {
            return Err(Malformed);
        }
        let (_, crc) = transport.split_last_chunk::<ICRC_LEN>().ok_or(Malformed)?;
        if icrc(packet.get(..len - ICRC_LEN).ok_or(Malformed)?, ip_len) != u32::from_le_bytes(*crc) {
            return Err(BadIcrc);
        }
        let (bth, opcode, pad, body) = bth(transport).ok_or(Malformed)?;
        let (extensions, padded) = body.split_at_checked(opcode.extensions.bytes()).ok_or(Malformed)?;
        let payload = padded.get(..padded.len().checked_sub(pad).ok_or(Malformed)?).ok_or(Malformed)?;
        Ok(Self { smac, vlan, ip, sgid, dgid, bth, opcode, extensions, payload })
    }

    /// Bytes of the header `which`, if the packet has it.
    fn extension<const N: usize>(&self, which: Extensions) -> Option<&'f [u8; N]> {
        if !self.opcode.extensions.contains(which) {
            return None;
        }
        let before = Extensions::from_bits_truncate(which.bits() - 1);
        let at = self.opcode.extensions.intersection(before).bytes();
        self.extensions.get(at..)?.first_chunk()
    }

    /// RDMA header.
    pub fn reth(&self) -> Option<Reth> {
        let bytes: &[u8; 16] = self.extension(Extensions::RETH)?;
        let (addr, rest) = bytes.split_first_chunk::<8>()?;
        Some(Reth {
            addr: u64::from_be_bytes(*addr),
            rkey: u32::from_be_bytes(*rest.first_chunk()?),
            length: u32::from_be_bytes(*rest.last_chunk()?),
        })
    }

    /// Atomic header.
    pub fn atomic(&self) -> Option<AtomicEth> {
        let bytes: &[u8; 28] = self.extension(Extensions::ATOMIC_ETH)?;
        let (addr, rest) = bytes.split_first_chunk::<8>()?;
        let (rkey, rest) = rest.split_first_chunk::<4>()?;
        Some(AtomicEth {
            addr: u64::from_be_bytes(*addr),
            rkey: u32::from_be_bytes(*rkey),
            swap_or_add: u64::from_be_bytes(*rest.first_chunk()?),
            compare: u64::from_be_bytes(*rest.last_chunk()?),
        })
    }

    /// Datagram header.
    pub fn deth(&self) -> Option<Deth> {
        let bytes: &[u8; 8] = self.extension(Extensions::DETH)?;
        Some(Deth {
            qkey: u32::from_be_bytes(*bytes.first_chunk()?),
            src_qp: QpId::truncated(u32::from_be_bytes(*bytes.last_chunk()?)),
        })
    }

    /// Acknowledge header.
    pub fn aeth(&self) -> Option<Aeth> {
        let word = u32::from_be_bytes(*self.extension::<4>(Extensions::AETH)?);
        Some(Aeth { syndrome: (word >> 24) as u8, msn: word & 0xff_ffff })
    }

    /// Original value of an atomic.
    pub fn original(&self) -> Option<u64> {
        self.extension(Extensions::ATOMIC_ACK_ETH).map(|bytes| u64::from_be_bytes(*bytes))
    }

    /// Immediate data.
    pub fn imm(&self) -> Option<u32> {
        self.extension(Extensions::IMM_DT).map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Key to invalidate.
    pub fn invalidate(&self) -> Option<u32> {
        self.extension(Extensions::IETH).map(|bytes| u32::from_be_bytes(*bytes))
    }
}

/// Header length, packet length, and the GIDs.
type Ip = (usize, usize, Gid, Gid);

fn ipv4(rest: &[u8]) -> Result<Ip, FrameError> {
    let ip = rest.first_chunk::<20>().ok_or(FrameError::NotRoce)?;
    if ip[9] != PROTOCOL_UDP {
        return Err(FrameError::NotRoce);
    }
    let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff;
    if ip[0] != 0x45 || fragment != 0 || ones_sum(ip) != 0xffff {
        return Err(FrameError::Malformed);
    }
    let [.., a, b, c, d, e, f, g, h] = *ip;
    let (from, to) = (Gid::v4([a, b, c, d].into()), Gid::v4([e, f, g, h].into()));
    Ok((20, usize::from(u16::from_be_bytes([ip[2], ip[3]])), from, to))
}

fn ipv6(rest: &[u8]) -> Result<Ip, FrameError> {
    let ip = rest.first_chunk::<40>().ok_or(FrameError::NotRoce)?;
    if ip[6] != PROTOCOL_UDP {
        return Err(FrameError::NotRoce);
    }
    if ip[0] >> 4 != 6 {
        return Err(FrameError::Malformed);
    }
    let (mut from, mut to) = (Gid::default(), Gid::default());
    from.0.copy_from_slice(&ip[8..24]);
    to.0.copy_from_slice(&ip[24..]);
    Ok((40, 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]])), from, to))
}

/// The BTH, its opcode, the pad count, and the bytes between BTH and ICRC.
fn bth(transport: &[u8]) -> Option<(Bth, &'static Opcode, usize, &[u8])> {
    let (b, rest) = transport.split_first_chunk::<BTH_LEN>()?;
    let (body, _) = rest.split_last_chunk::<ICRC_LEN>()?;
    let opcode = Opcode::from_code(b[0])?;
    let version = b[1] & 0xf;
    let pkey = u16::from_be_bytes([b[2], b[3]]);
    if version != 0 || pkey & 0x7fff != DEFAULT_PKEY & 0x7fff {
        return None;
    }
    let bth = Bth {
        opcode: b[0],
        solicited: b[1] & 0x80 != 0,
        dest_qp: QpId::truncated(u32::from_be_bytes([0, b[5], b[6], b[7]])),
        ack_request: b[8] & 0x80 != 0,
        psn: Psn::truncated(u32::from_be_bytes([0, b[9], b[10], b[11]])),
    };
    Some((bth, opcode, usize::from(b[1] >> 4 & 3), body))
}
