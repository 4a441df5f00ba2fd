//! Decodes WQEs, and is strict: what a driver may not post is refused with the reason.

use directverbs::bnxt_re::wqe::{
    AccessCntl, AvidWord, BindKind, DstQpWord, FrPageList, FrPageSize, HEADER_SLOTS, RqTag, RqWqeHdr,
    SLOT_BYTES, STATIC_SLOTS, SqAtomicHdr, SqBase, SqBind, SqFlags, SqFrPmr, SqLocalInvalidate, SqRdmaHdr,
    SqSendHdr, SqSge, WqeType, inline_slots,
};
use directverbs::verbs::{
    AccessFlags, AhId, BindMw, Datagram, FastRegister, Imm, LKey, MwType, PageTable, QKey, QpId, QpType,
    RKey, RemoteAddress, SendFlags, SendOp, Sge,
};
use zerocopy::FromBytes;

use crate::roce::Payload;

const SLOT: usize = SLOT_BYTES as usize;
/// Bytes of a header.
pub const HEADER: usize = HEADER_SLOTS as usize * SLOT;

/// Why a WQE is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WqeError {
    /// No operation, or none of this kind of queue pair.
    #[error("WQE type {0:#x} on this kind of queue pair")]
    Type(u8),
    /// A flag that the operation does not have, or that no driver sets.
    #[error("flags {flags:#x} of WQE type {wqe_type:#x}")]
    Flags {
        /// Flags.
        flags: u8,
        /// Operation.
        wqe_type: u8,
    },
    /// The size does not go with the operation, or the WQE is longer than a WQE can be.
    #[error("{size} slots for WQE type {wqe_type:#x}")]
    Size {
        /// Slots, header included.
        size: u32,
        /// Operation.
        wqe_type: u8,
    },
    /// More SGEs than were granted.
    #[error("{given} SGEs, {max} granted")]
    Sges {
        /// SGEs in the WQE.
        given: u32,
        /// SGEs granted.
        max: u32,
    },
    /// More inline bytes than were granted.
    #[error("{given} inline bytes, {max} granted")]
    Inline {
        /// Bytes in the WQE.
        given: u32,
        /// Bytes granted.
        max: u32,
    },
    /// The length field is not the sum of the SGEs.
    #[error("length field {field}, the SGEs have {sges}")]
    Length {
        /// Length field.
        field: u32,
        /// Sum of the SGEs.
        sges: u64,
    },
    /// An atomic's SGE is not 8 bytes long.
    #[error("an atomic with an SGE of {0} bytes")]
    AtomicLength(u32),
}

/// What a queue allows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Kind of queue pair.
    pub qp_type: QpType,
    /// SGEs of a WQE.
    pub max_sge: u32,
    /// Inline bytes of a WQE.
    pub max_inline: u32,
    /// Slots of a WQE: all that there can be, or what a fixed entry holds.
    pub max_slots: u32,
}

/// Slots of the send WQE whose header begins with `header`: what a device in variable mode moves on by.
pub fn send_slots(header: &[u8; HEADER]) -> u32 {
    match WqeType(header[0]) {
        WqeType::ATOMIC_CS | WqeType::ATOMIC_FA => HEADER_SLOTS + 1,
        WqeType::LOCAL_INV | WqeType::FR_PMR | WqeType::BIND => HEADER_SLOTS,
        _ => header[2].into(),
    }
}

/// Decodes a send WQE. `bytes` are its slots, [`send_slots`] of them.
///
/// # Errors
/// Why the device fails it.
pub fn decode_send(bytes: &[u8], limits: &Limits) -> Result<(SendOp, SendFlags, Payload), WqeError> {
    let base: SqBase = read(bytes);
    let (kind, flag_bits) = (WqeType(base.wqe_type), base.unused_0[0]);
    if !allowed(kind, limits.qp_type) {
        return Err(WqeError::Type(kind.0));
    }
    let flags = send_flags(kind, flag_bits)?;
    let inline = SqFlags::from_bits(flag_bits).inline_data();
    let size = (bytes.len() / SLOT) as u32;
    if !(HEADER_SLOTS..=limits.max_slots).contains(&size) {
        return Err(WqeError::Size { size, wqe_type: kind.0 });
    }
    let data = bytes.get(HEADER..).unwrap_or(&[]);
    let (op, length) = operation(kind, bytes, limits.qp_type);
    let payload = match length {
        Some(length) if inline => self::inline(kind, data, length, limits)?,
        length => sges(kind, data, length, limits)?,
    };
    Ok((op, flags, payload))
}

/// Slots and number of a receive WQE.
///
/// # Errors
/// The header makes no sense.
pub fn recv_header(header: &[u8; HEADER], limits: &Limits) -> Result<(u32, u32), WqeError> {
    let hdr: RqWqeHdr = read(header);
    if WqeType(hdr.wqe_type) != WqeType::RECV {
        return Err(WqeError::Type(hdr.wqe_type));
    }
    if hdr.flags != 0 {
        return Err(WqeError::Flags { flags: hdr.flags, wqe_type: hdr.wqe_type });
    }
    let size = u32::from(hdr.wqe_size);
    if !(HEADER_SLOTS..=limits.max_slots).contains(&size) {
        return Err(WqeError::Size { size, wqe_type: hdr.wqe_type });
    }
    // The hardware wants one SGE at least, which then is empty.
    let given = size - HEADER_SLOTS;
    if given > limits.max_sge.max(1) {
        return Err(WqeError::Sges { given, max: limits.max_sge });
    }
    Ok((size, RqTag::from_bits(hdr.wr_id[0].get()).wr_id()))
}

/// The SGEs in `data`. Empty ones are left out: their keys mean nothing.
pub fn read_sges(data: &[u8]) -> Vec<Sge> {
    let all = data.chunks_exact(SLOT).map(read::<SqSge>);
    let used = all.filter(|sge| sge.size.get() != 0);
    used.map(|sge| Sge::new(sge.va_or_pa.get(), sge.size.get(), LKey::truncated(sge.l_key.get()))).collect()
}

fn allowed(kind: WqeType, qp_type: QpType) -> bool {
    match qp_type {
        QpType::Rc => kind.completes_as().is_some() && kind != WqeType::RECV,
        QpType::Ud => matches!(kind, WqeType::SEND | WqeType::SEND_IMM),
        QpType::RawPacket => kind == WqeType::SEND,
    }
}

fn send_flags(kind: WqeType, bits: u8) -> Result<SendFlags, WqeError> {
    const KNOWN: u8 = 0x1f;
    let flags = SqFlags::from_bits(bits);
    let can_inline = matches!(
        kind,
        WqeType::SEND | WqeType::SEND_IMM | WqeType::SEND_INV | WqeType::WRITE | WqeType::WRITE_IMM
    );
    if bits & !KNOWN != 0 || (flags.inline_data() && !can_inline) {
        return Err(WqeError::Flags { flags: bits, wqe_type: kind.0 });
    }
    let mut out = SendFlags::empty();
    out.set(SendFlags::SIGNALED, flags.signal_comp());
    out.set(SendFlags::SOLICITED, flags.se());
    // The stronger fence waits for all that is outstanding, READs and atomics included.
    out.set(SendFlags::FENCE, flags.rd_or_atomic_fence() || flags.uc_fence());
    out.set(SendFlags::LOCAL_FENCE, flags.uc_fence());
    Ok(out)
}

/// The operation, and the length field of those that have one.
fn operation(kind: WqeType, bytes: &[u8], qp_type: QpType) -> (SendOp, Option<u32>) {
    match kind {
        WqeType::SEND | WqeType::SEND_IMM | WqeType::SEND_INV => {
            let hdr: SqSendHdr = read(bytes);
            let value = hdr.inv_key_or_imm_data.get();
            let to = Datagram {
                ah: AhId::truncated(AvidWord::from_bits(hdr.avid.get()).avid()),
                qp: QpId::truncated(DstQpWord::from_bits(hdr.dst_qp.get()).dst_qp()),
                qkey: QKey::truncated(hdr.q_key.get()),
            };
            let op = match (kind, qp_type == QpType::Ud) {
                (WqeType::SEND_IMM, true) => SendOp::SendToImm(to, Imm::truncated(value)),
                (_, true) => SendOp::SendTo(to),
                (WqeType::SEND_IMM, false) => SendOp::SendImm(Imm::truncated(value)),
                (WqeType::SEND_INV, false) => SendOp::SendInv(RKey::truncated(value)),
                (_, false) => SendOp::Send,
            };
            (op, Some(hdr.length.get()))
        }
        WqeType::WRITE | WqeType::WRITE_IMM | WqeType::READ => {
            let hdr: SqRdmaHdr = read(bytes);
            let remote = remote(hdr.remote_va.get(), hdr.remote_key.get());
            let op = match kind {
                WqeType::WRITE => SendOp::Write(remote),
                WqeType::WRITE_IMM => SendOp::WriteImm(remote, Imm::truncated(hdr.imm_data.get())),
                _ => SendOp::Read(remote),
            };
            (op, Some(hdr.length.get()))
        }
        WqeType::ATOMIC_CS | WqeType::ATOMIC_FA => {
            let hdr: SqAtomicHdr = read(bytes);
            let remote = remote(hdr.remote_va.get(), hdr.remote_key.get());
            let value = hdr.swap_data.get();
            let op = match kind {
                WqeType::ATOMIC_CS => {
                    SendOp::CompareSwap { remote, compare: hdr.cmp_data.get(), swap: value }
                }
                _ => SendOp::FetchAdd { remote, add: value },
            };
            (op, None)
        }
        WqeType::BIND => (SendOp::BindMw(bind(&read(bytes))), None),
        WqeType::FR_PMR => (SendOp::FastRegister(fast_register(&read(bytes))), None),
        _ => {
            let hdr: SqLocalInvalidate = read(bytes);
            (SendOp::LocalInv(RKey::truncated(hdr.inv_l_key.get())), None)
        }
    }
}

fn inline(kind: WqeType, data: &[u8], length: u32, limits: &Limits) -> Result<Payload, WqeError> {
    if length > limits.max_inline {
        return Err(WqeError::Inline { given: length, max: limits.max_inline });
    }
    let size = HEADER_SLOTS + (data.len() / SLOT) as u32;
    if size != inline_slots(length) {
        return Err(WqeError::Size { size, wqe_type: kind.0 });
    }
    Ok(Payload::Inline(data.get(..length as usize).unwrap_or(data).to_vec()))
}

fn sges(kind: WqeType, data: &[u8], length: Option<u32>, limits: &Limits) -> Result<Payload, WqeError> {
    // A static WQE always has room for one SGE, which is empty when the request has none.
    let given = (data.len() / SLOT) as u32;
    if given > limits.max_sge.max(1) {
        return Err(WqeError::Sges { given, max: limits.max_sge });
    }
    let sges = read_sges(data);
    let sum: u64 = sges.iter().map(|sge| u64::from(sge.length)).sum();
    match length {
        Some(field) if u64::from(field) != sum => return Err(WqeError::Length { field, sges: sum }),
        None if matches!(kind, WqeType::ATOMIC_CS | WqeType::ATOMIC_FA) && sum != 8 => {
            return Err(WqeError::AtomicLength(sum as u32));
        }
        _ => {}
    }
    Ok(Payload::Sges(sges))
}

fn bind(hdr: &SqBind) -> BindMw {
    let kind = BindKind::from_bits(hdr.mw_type_zero_based);
    let key = RKey::truncated(hdr.l_key.get());
    let mut access = access(hdr.access_cntl);
    access.set(AccessFlags::ZERO_BASED, kind.zero_based());
    BindMw {
        mw_type: if kind.mw_type2() { MwType::Type2 } else { MwType::Type1 },
        mw: key,
        new_key: key,
        region: LKey::truncated(hdr.parent_l_key.get()),
        addr: hdr.va.get(),
        length: length40(hdr.length),
        access,
    }
}

fn fast_register(hdr: &SqFrPmr) -> FastRegister {
    let page = FrPageSize::from_bits(hdr.zero_based_page_size_log);
    let list = FrPageList::from_bits(hdr.numlevels_pbl_page_size_log);
    let page_shift = page.page_size_log() + 12;
    let (addr, length) = (hdr.va.get(), length40(hdr.length));
    let first = addr & ((1 << page_shift) - 1);
    let pages = (first + length).div_ceil(1 << page_shift);
    let mut access = access(hdr.access_cntl);
    access.set(AccessFlags::ZERO_BASED, page.zero_based());
    FastRegister {
        key: LKey::truncated(hdr.l_key.get()),
        addr,
        length,
        page_shift,
        pages: u32::try_from(pages).unwrap_or(u32::MAX),
        table: match list.numlevels() {
            0 => PageTable::Contiguous(hdr.pblptr.get()),
            1 => PageTable::Level1(hdr.pblptr.get()),
            _ => PageTable::Level2(hdr.pblptr.get()),
        },
        access,
    }
}

fn access(bits: u8) -> AccessFlags {
    let bits = AccessCntl::from_bits(bits);
    let mut access = AccessFlags::empty();
    access.set(AccessFlags::LOCAL_WRITE, bits.local_write());
    access.set(AccessFlags::REMOTE_READ, bits.remote_read());
    access.set(AccessFlags::REMOTE_WRITE, bits.remote_write());
    access.set(AccessFlags::REMOTE_ATOMIC, bits.remote_atomic());
    access.set(AccessFlags::MW_BIND, bits.window_bind());
    access
}

fn length40(bytes: [u8; 5]) -> u64 {
    let [a, b, c, d, e] = bytes;
    u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
}

const fn remote(addr: u64, rkey: u32) -> RemoteAddress {
    RemoteAddress { addr, rkey: RKey::truncated(rkey) }
}

/// Reads a structure from the front of `bytes`; what is missing reads as zero.
fn read<T: FromBytes>(bytes: &[u8]) -> T {
    let mut whole = [0; STATIC_SLOTS as usize * SLOT];
    for (to, from) in whole.iter_mut().zip(bytes) {
        *to = *from;
    }
    T::read_from_prefix(&whole).map_or_else(|_| T::new_zeroed(), |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{IntoBytes, little_endian as le};

    const RC: Limits = Limits { qp_type: QpType::Rc, max_sge: 2, max_inline: 40, max_slots: 15 };

    fn send(size: u8, flags: u8, length: u32) -> SqSendHdr {
        SqSendHdr { wqe_size: size, flags, length: le::U32::new(length), ..SqSendHdr::ZERO }
    }

    fn wqe(header: &[u8], sges: &[Sge]) -> Vec<u8> {
        let mut bytes = header.to_vec();
        sges.iter().for_each(|sge| bytes.extend_from_slice(SqSge::new(sge).as_bytes()));
        bytes
    }

    #[test]
    fn empty_elements_are_left_out_whatever_their_key() {
        let empty = Sge::new(0xdead, 0, LKey::MAX);
        let used = Sge::new(0x1000, 8, LKey::truncated(7));
        let bytes = wqe(send(4, 1, 8).as_bytes(), &[empty, used]);
        let decoded = decode_send(&bytes, &RC).unwrap();
        assert_eq!(decoded, (SendOp::Send, SendFlags::SIGNALED, Payload::Sges(vec![used])));
    }

    #[test]
    fn the_length_field_is_the_sum_of_the_elements() {
        let used = Sge::new(0x1000, 8, LKey::truncated(7));
        let bytes = wqe(send(3, 0, 9).as_bytes(), &[used]);
        assert_eq!(decode_send(&bytes, &RC), Err(WqeError::Length { field: 9, sges: 8 }));
    }

    #[test]
    fn inline_data_takes_as_many_slots_as_it_needs() {
        let mut bytes = send(5, 0x10, 40).as_bytes().to_vec();
        bytes.extend(0..48);
        let (_, _, payload) = decode_send(&bytes, &RC).unwrap();
        assert_eq!(payload, Payload::Inline((0..40).collect()));
        bytes.extend([0; 16]);
        assert_eq!(decode_send(&bytes, &RC), Err(WqeError::Size { size: 6, wqe_type: 0 }));
        let long = wqe(send(5, 0x10, 41).as_bytes(), &[Sge::default(); 3]);
        assert_eq!(decode_send(&long, &RC), Err(WqeError::Inline { given: 41, max: 40 }));
    }

    #[test]
    fn an_operation_of_another_kind_of_queue_pair_is_refused() {
        let header = SqRdmaHdr { wqe_type: WqeType::READ.0, ..SqRdmaHdr::ZERO };
        let ud = Limits { qp_type: QpType::Ud, ..RC };
        assert_eq!(decode_send(header.as_bytes(), &ud), Err(WqeError::Type(6)));
        let inline_read = SqRdmaHdr { wqe_type: WqeType::READ.0, flags: 0x10, ..SqRdmaHdr::ZERO };
        assert_eq!(
            decode_send(inline_read.as_bytes(), &RC),
            Err(WqeError::Flags { flags: 0x10, wqe_type: 6 })
        );
        let unknown = SqSendHdr { wqe_type: 3, ..SqSendHdr::ZERO };
        assert_eq!(decode_send(unknown.as_bytes(), &RC), Err(WqeError::Type(3)));
    }

    #[test]
    fn an_atomic_has_one_element_of_eight_bytes() {
        let header = SqAtomicHdr {
            wqe_type: WqeType::ATOMIC_CS.0,
            remote_key: le::U32::new(9),
            remote_va: le::U64::new(0x4000),
            swap_data: le::U64::new(5),
            cmp_data: le::U64::new(6),
            ..SqAtomicHdr::ZERO
        };
        let bytes = wqe(header.as_bytes(), &[Sge::new(0, 8, LKey::MAX)]);
        let (op, ..) = decode_send(&bytes, &RC).unwrap();
        let remote = RemoteAddress { addr: 0x4000, rkey: RKey::truncated(9) };
        assert_eq!(op, SendOp::CompareSwap { remote, compare: 6, swap: 5 });
        let bytes = wqe(header.as_bytes(), &[Sge::new(0, 4, LKey::MAX)]);
        assert_eq!(decode_send(&bytes, &RC), Err(WqeError::AtomicLength(4)));
    }

    #[test]
    fn a_fast_register_counts_the_pages_it_touches() {
        let header = SqFrPmr {
            wqe_type: WqeType::FR_PMR.0,
            access_cntl: 0x03,
            l_key: le::U32::new(0x100),
            length: [0x02, 0x10, 0, 0, 0],
            numlevels_pbl_page_size_log: 1 << 6,
            pblptr: le::U64::new(0x9000),
            va: le::U64::new(0x1fff),
            ..SqFrPmr::ZERO
        };
        let (op, ..) = decode_send(&header.as_bytes()[..HEADER], &RC).unwrap();
        let expected = FastRegister {
            key: LKey::truncated(0x100),
            addr: 0x1fff,
            length: 0x1002,
            page_shift: 12,
            pages: 3,
            table: PageTable::Level1(0x9000),
            access: AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ,
        };
        assert_eq!(op, SendOp::FastRegister(expected));
    }
}
