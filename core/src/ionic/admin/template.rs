//! Header templates: the headers that the device puts before those of the transport, as the host wrote them. They are the
//! only place where the device learns addresses.
//!
//! Ethernet, perhaps a VLAN tag, IPv4 or IPv6, UDP. Lengths and checksums are the device's to fill in. Source: Linux
//! `ionic_controlpath.c`; the headers themselves: IEEE 802.1Q, RFC 791, 8200, 768, InfiniBand annex A17.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::verbs::{AddressVector, Gid, Mac, Text, shown};

/// Longest template.
pub const TEMPLATE_MAX: usize = ETHERNET + VLAN + IPV6 + UDP;

const ETHERNET: usize = 14;
const VLAN: usize = 4;
const IPV6: usize = 40;
const UDP: usize = 8;

const TYPE_VLAN: u16 = 0x8100;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_UDP: u8 = 17;
/// UDP port of RoCEv2.
const ROCE_PORT: u16 = 4791;
/// UDP source ports come from the upper quarter.
const SOURCE_PORTS: u16 = 0xc000;
const DONT_FRAGMENT: u16 = 0x4000;
const FLOW_LABEL_BITS: u32 = 20;

/// Which headers a template has, hence which checksums the device fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CsumProfile {
    /// IPv4.
    Ipv4 = 0,
    /// VLAN tag and IPv4.
    VlanIpv4 = 1,
    /// IPv6.
    Ipv6 = 2,
    /// VLAN tag and IPv6.
    VlanIpv6 = 3,
}

/// A path that no headers can be made of, or headers that are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// One GID is an IPv4 address, the other an IPv6 one.
    #[error("a path from IPv{from} to IPv{to}")]
    Families {
        /// Version of the source's address.
        from: u8,
        /// Version of the destination's.
        to: u8,
    },
    /// The flow label has more than 20 bits.
    #[error("flow label {0:#x} does not fit 20 bits")]
    FlowLabel(u32),
    /// Too short, or too long.
    #[error("{given} bytes, the headers have {needed}")]
    Length {
        /// Bytes given, as [`shown`].
        given: u32,
        /// Bytes that the headers have.
        needed: u32,
    },
    /// A header that is not what it must be.
    #[error("{what} is {given:#x}")]
    Header {
        /// The field.
        what: Text,
        /// Its value.
        given: u32,
    },
}

/// Headers for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderTemplate {
    bytes: [u8; TEMPLATE_MAX],
    len: u8,
    profile: CsumProfile,
}

/// What a template says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedTemplate {
    /// The path. `sgid_index` is 0: what there is instead is [`ParsedTemplate::sgid`].
    pub path: AddressVector,
    /// GID of the sender.
    pub sgid: Gid,
    /// Ethernet address of the sender.
    pub smac: Mac,
    /// Which headers there are.
    pub profile: CsumProfile,
}

/// Puts bytes one after the other.
struct Writer {
    bytes: [u8; TEMPLATE_MAX],
    len: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        for byte in bytes {
            if let Some(to) = self.bytes.get_mut(self.len) {
                *to = *byte;
                self.len += 1;
            }
        }
        self
    }

    fn put16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_be_bytes())
    }
}

/// The UDP source port of a flow.
const fn source_port(flow_label: u32) -> u16 {
    ((flow_label & 0x3fff) ^ (flow_label >> 14 & 0x3f)) as u16 | SOURCE_PORTS
}

impl HeaderTemplate {
    /// The headers for `path`, from `sgid` at `smac`.
    ///
    /// # Errors
    /// A path that is none.
    pub fn new(path: &AddressVector, smac: Mac, sgid: Gid) -> Result<Self, TemplateError> {
        if path.flow_label >> FLOW_LABEL_BITS != 0 {
            return Err(TemplateError::FlowLabel(path.flow_label));
        }
        let mut to = Writer { bytes: [0; TEMPLATE_MAX], len: 0 };
        to.put(&path.dmac.0).put(&smac.0);
        if let Some(tci) = path.vlan {
            to.put16(TYPE_VLAN).put16(tci);
        }
        let tagged = path.vlan.is_some();
        let profile = match (sgid.as_v4(), path.dgid.as_v4()) {
            (Some(from), Some(dest)) => {
                to.put16(TYPE_IPV4).put(&[0x45, path.traffic_class]).put(&[0; 4]).put16(DONT_FRAGMENT);
                to.put(&[path.hop_limit, PROTOCOL_UDP, 0, 0]).put(&from.octets()).put(&dest.octets());
                if tagged { CsumProfile::VlanIpv4 } else { CsumProfile::Ipv4 }
            }
            (None, None) => {
                let word = 6 << 28 | u32::from(path.traffic_class) << 20 | path.flow_label;
                to.put16(TYPE_IPV6).put(&word.to_be_bytes()).put(&[0, 0, PROTOCOL_UDP, path.hop_limit]);
                to.put(&sgid.0).put(&path.dgid.0);
                if tagged { CsumProfile::VlanIpv6 } else { CsumProfile::Ipv6 }
            }
            (Some(_), None) => return Err(TemplateError::Families { from: 4, to: 6 }),
            (None, Some(_)) => return Err(TemplateError::Families { from: 6, to: 4 }),
        };
        to.put16(source_port(path.flow_label)).put16(ROCE_PORT).put(&[0; 4]);
        Ok(Self { bytes: to.bytes, len: to.len as u8, profile })
    }

    /// The headers.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// Their length in bytes.
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// Which headers there are.
    pub const fn profile(&self) -> CsumProfile {
        self.profile
    }

    /// Reads headers: what a device does with them.
    ///
    /// # Errors
    /// They are no RoCEv2 headers.
    pub fn parse(headers: &[u8]) -> Result<ParsedTemplate, TemplateError> {
        let mut from = Reader { bytes: headers, at: 0 };
        let (dmac, smac) = (Mac(from.take()?), Mac(from.take()?));
        let (vlan, ether_type) = match from.take16()? {
            TYPE_VLAN => (Some(from.take16()?), from.take16()?),
            other => (None, other),
        };
        let tagged = vlan.is_some();
        let (sgid, dgid, traffic_class, hop_limit, label, profile) = match ether_type {
            TYPE_IPV4 => {
                let [version, tos, ..]: [u8; 8] = from.take()?;
                expect(text!("IP version and header length"), version.into(), 0x45)?;
                let [ttl, protocol, ..]: [u8; 4] = from.take()?;
                expect(text!("IP protocol"), protocol.into(), PROTOCOL_UDP.into())?;
                let [s, d]: [[u8; 4]; 2] = [from.take()?, from.take()?];
                let profile = if tagged { CsumProfile::VlanIpv4 } else { CsumProfile::Ipv4 };
                (Gid::v4(Ipv4Addr::from(s)), Gid::v4(Ipv4Addr::from(d)), tos, ttl, None, profile)
            }
            TYPE_IPV6 => {
                let word = u32::from_be_bytes(from.take()?);
                expect(text!("IP version"), word >> 28, 6)?;
                let [_, _, next, hops] = from.take()?;
                expect(text!("IP protocol"), next.into(), PROTOCOL_UDP.into())?;
                let [s, d]: [[u8; 16]; 2] = [from.take()?, from.take()?];
                let profile = if tagged { CsumProfile::VlanIpv6 } else { CsumProfile::Ipv6 };
                let (s, d) = (Gid::v6(Ipv6Addr::from(s)), Gid::v6(Ipv6Addr::from(d)));
                (s, d, (word >> 20) as u8, hops, Some(word & 0xf_ffff), profile)
            }
            other => return Err(TemplateError::Header { what: text!("Ethernet type"), given: other.into() }),
        };
        let source = from.take16()?;
        expect(text!("UDP port"), from.take16()?.into(), ROCE_PORT.into())?;
        from.take::<4>()?;
        if from.at != headers.len() {
            return Err(TemplateError::Length { given: shown(headers.len() as u64), needed: from.at as u32 });
        }
        // IPv4 has no flow label; one that gives the same port stands for it.
        let flow_label = label.unwrap_or(u32::from(source & 0x3fff));
        let path = AddressVector { dgid, dmac, sgid_index: 0, flow_label, traffic_class, hop_limit, vlan };
        Ok(ParsedTemplate { path, sgid, smac, profile })
    }
}

const fn expect(what: Text, given: u32, want: u32) -> Result<(), TemplateError> {
    if given == want { Ok(()) } else { Err(TemplateError::Header { what, given }) }
}

struct Reader<'h> {
    bytes: &'h [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], TemplateError> {
        let given = self.bytes.len();
        let chunk = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let chunk = *chunk
            .ok_or(TemplateError::Length { given: shown(given as u64), needed: (self.at + N) as u32 })?;
        self.at += N;
        Ok(chunk)
    }

    fn take16(&mut self) -> Result<u16, TemplateError> {
        Ok(u16::from_be_bytes(self.take()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DMAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const SMAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

    fn v4(last: u8) -> Gid {
        Gid::v4(Ipv4Addr::new(10, 0, 0, last))
    }

    #[test]
    fn an_ipv4_template_byte_for_byte() {
        let path = AddressVector { traffic_class: 0xa8, ..AddressVector::new(v4(2), DMAC) };
        let template = HeaderTemplate::new(&path, SMAC, v4(1)).unwrap();
        let want = [
            2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0xa8, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0,
            0, 1, 10, 0, 0, 2, 0xc0, 0, 0x12, 0xb7, 0, 0, 0, 0,
        ];
        assert_eq!(
            (template.bytes(), template.len(), template.profile()),
            (&want[..], 42, CsumProfile::Ipv4)
        );
    }

    #[test]
    fn every_kind_of_template_is_read_as_it_was_written() {
        let v6 = |last: u16| Gid::v6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
        for (sgid, dgid, vlan, len) in [
            (v4(1), v4(2), None, 42),
            (v4(1), v4(2), Some(0x6005), 46),
            (v6(1), v6(2), None, 62),
            (v6(1), v6(2), Some(7), 66),
        ] {
            let path = AddressVector {
                flow_label: 0x1234,
                hop_limit: 3,
                traffic_class: 0x60,
                vlan,
                ..AddressVector::new(dgid, DMAC)
            };
            let template = HeaderTemplate::new(&path, SMAC, sgid).unwrap();
            let parsed = HeaderTemplate::parse(template.bytes()).unwrap();
            assert_eq!((parsed.path, parsed.sgid, parsed.smac), (path, sgid, SMAC));
            assert_eq!((parsed.profile, template.len()), (template.profile(), len));
        }
    }

    #[test]
    fn what_is_no_path_has_no_template() {
        let v6 = Gid::v6(Ipv6Addr::LOCALHOST);
        let path = AddressVector::new(v4(2), DMAC);
        assert_eq!(HeaderTemplate::new(&path, SMAC, v6), Err(TemplateError::Families { from: 6, to: 4 }));
        let wide = AddressVector { flow_label: 1 << 20, ..path };
        assert_eq!(HeaderTemplate::new(&wide, SMAC, v4(1)), Err(TemplateError::FlowLabel(1 << 20)));
    }

    #[test]
    fn any_change_of_length_or_kind_is_refused() {
        let template = HeaderTemplate::new(&AddressVector::new(v4(2), DMAC), SMAC, v4(1)).unwrap();
        for len in 0..template.bytes().len() {
            assert!(matches!(
                HeaderTemplate::parse(&template.bytes()[..len]),
                Err(TemplateError::Length { .. })
            ));
        }
        let mut longer = template.bytes().to_vec();
        longer.push(0);
        assert!(matches!(
            HeaderTemplate::parse(&longer),
            Err(TemplateError::Length { given: 43, needed: 42 })
        ));
        for at in [12, 13, 14, 23, 36, 37] {
            let mut bytes = template.bytes().to_vec();
            bytes[at] ^= 0x10;
            assert!(HeaderTemplate::parse(&bytes).is_err(), "{at}");
        }
    }
}
