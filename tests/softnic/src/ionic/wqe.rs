//! Decodes WQEs, strictly: the front end is the judge of what the driver writes.

use directverbs::ionic::wqe::{
    AtomicWqeV1, AtomicWqeV2, BaseHeader, BindMwWqe, EXPRESS_BYTES, MrFlags, PAYLOAD_OFFSET, RdmaVersion,
    RdmaWqe, RegMrWqe, SendWqe, Sge as WireSge, SpecFormat, SqOp, WQE_MIN, WqeFlags,
};
use directverbs::verbs::{
    AhId, BindMw, Datagram, FastRegister, Imm, LKey, MwType, PageTable, QKey, QpId, QpType, RKey,
    RemoteAddress, SendFlags, SendOp, Sge,
};
use zerocopy::FromBytes;

use super::wrong::Wrong;
use crate::roce::{Payload, RecvWork, SendWork};

/// Longest message in bytes.
const MESSAGE_MAX: u64 = 1 << 31;

/// What a queue was created with, as far as its WQEs depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Interface version.
    pub version: RdmaVersion,
    /// Kind of queue pair.
    pub qp_type: QpType,
    /// Bytes of a WQE.
    pub stride: u32,
    /// SGEs that a list of lengths is used for; 0 if none is.
    pub spec: u32,
    /// The last 8 bytes of each WQE are an express doorbell.
    pub express: bool,
}

/// Where a WQE sits, which it must repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Position in the ring.
    pub index: u16,
    /// Color of the pass over the ring.
    pub color: bool,
}

impl Shape {
    /// Bytes of inline data that fit.
    fn max_inline(&self) -> u64 {
        let reserved = if self.express { EXPRESS_BYTES } else { 0 };
        u64::from(self.stride) - (PAYLOAD_OFFSET + reserved) as u64
    }

    /// Decodes a send WQE.
    pub fn send(&self, place: Place, wqe: &[u8]) -> Result<SendWork, Wrong> {
        let head: BaseHeader = part(wqe)?;
        let flags = WqeFlags::from_bits(head.flags.get());
        Wrong::unless_equal("wqe_idx", head.wqe_idx.get(), place.index.into())?;
        Wrong::unless_equal("color", flags.color().into(), place.color.into())?;
        Wrong::unless_equal("reserved flags", u64::from(head.flags.get() & RESERVED_FLAGS), 0)?;
        let unknown = Wrong { what: "opcode", got: head.op.into(), want: 0 };
        let op = SqOp::from_opcode(self.version, head.op).ok_or(unknown)?;
        if self.qp_type == QpType::Ud && !matches!(op, SqOp::Send | SqOp::SendImm) {
            return Err(Wrong { what: "opcode of a datagram queue pair", ..unknown });
        }
        let takes_solicited = matches!(op, SqOp::Send | SqOp::SendImm | SqOp::SendInv | SqOp::WriteImm);
        if flags.solicited() && !takes_solicited {
            return Err(Wrong { what: "solicited flag of this opcode", got: 1, want: 0 });
        }
        let (op, payload) = match op {
            SqOp::Send | SqOp::SendImm | SqOp::SendInv => self.message(op, &head, flags, wqe)?,
            SqOp::Write | SqOp::WriteImm | SqOp::Read => self.rdma(op, &head, flags, wqe)?,
            SqOp::CompareSwap | SqOp::FetchAdd => self.atomic(op, &head, flags, wqe)?,
            SqOp::LocalInv => {
                Wrong::unless_equal("num_sge", head.num_sge_key.into(), 0)?;
                Wrong::unless_equal("inline flag", flags.inline().into(), 0)?;
                (SendOp::LocalInv(RKey::truncated(head.imm_data_key.get())), Payload::Sges(Vec::new()))
            }
            SqOp::BindMw => bind(&head, flags, wqe)?,
            SqOp::RegMr => register(&head, flags, wqe)?,
        };
        let mut send_flags = SendFlags::empty();
        send_flags.set(SendFlags::FENCE, flags.fence());
        send_flags.set(SendFlags::SOLICITED, flags.solicited());
        send_flags.set(SendFlags::SIGNALED, flags.signaled());
        Ok(SendWork { token: place.index.into(), op: Ok(op), flags: send_flags, payload })
    }

    fn message(
        &self,
        op: SqOp,
        head: &BaseHeader,
        flags: WqeFlags,
        wqe: &[u8],
    ) -> Result<(SendOp, Payload), Wrong> {
        let body: SendWqe = part(wqe)?;
        let payload = self.payload(flags, head.num_sge_key, body.length.get().into(), wqe)?;
        let word = head.imm_data_key.get();
        if op == SqOp::Send {
            Wrong::unless_equal("imm_data of an opcode without", word.into(), 0)?;
        }
        let (ah, qp, qkey) = (body.ah_id.get(), body.dest_qpn.get(), body.dest_qkey.get());
        let op = if self.qp_type == QpType::Ud {
            let wide = |what, got: u32| Wrong { what, got: got.into(), want: 0xff_ffff };
            let to = Datagram {
                ah: AhId::new(ah).ok_or(wide("ah_id", ah))?,
                qp: QpId::new(qp).ok_or(wide("dest_qpn", qp))?,
                qkey: QKey::truncated(qkey),
            };
            if op == SqOp::Send { SendOp::SendTo(to) } else { SendOp::SendToImm(to, Imm::truncated(word)) }
        } else {
            for (what, got) in [("ah_id", ah), ("dest_qpn", qp), ("dest_qkey", qkey)] {
                Wrong::unless_equal(what, got.into(), 0)?;
            }
            match op {
                SqOp::SendImm => SendOp::SendImm(Imm::truncated(word)),
                SqOp::SendInv => SendOp::SendInv(RKey::truncated(word)),
                _ => SendOp::Send,
            }
        };
        Ok((op, payload))
    }

    fn rdma(
        &self,
        op: SqOp,
        head: &BaseHeader,
        flags: WqeFlags,
        wqe: &[u8],
    ) -> Result<(SendOp, Payload), Wrong> {
        let body: RdmaWqe = part(wqe)?;
        let payload = self.payload(flags, head.num_sge_key, body.length.get().into(), wqe)?;
        let word = head.imm_data_key.get();
        if op != SqOp::WriteImm {
            Wrong::unless_equal("imm_data of an opcode without", word.into(), 0)?;
        }
        let remote = remote(body.remote_va_high.get(), body.remote_va_low.get(), body.remote_rkey.get());
        let op = match op {
            SqOp::Read => {
                Wrong::unless_equal("inline flag of a READ", flags.inline().into(), 0)?;
                SendOp::Read(remote)
            }
            SqOp::WriteImm => SendOp::WriteImm(remote, Imm::truncated(word)),
            _ => SendOp::Write(remote),
        };
        Ok((op, payload))
    }

    fn atomic(
        &self,
        op: SqOp,
        head: &BaseHeader,
        flags: WqeFlags,
        wqe: &[u8],
    ) -> Result<(SendOp, Payload), Wrong> {
        Wrong::unless_equal("num_sge of an atomic", head.num_sge_key.into(), 1)?;
        Wrong::unless_equal("inline flag of an atomic", flags.inline().into(), 0)?;
        Wrong::unless_equal("spec format of an atomic", flags.spec().into(), 0)?;
        // Both versions agree up to the local memory.
        let body: AtomicWqeV2 = part(wqe)?;
        let (addr, lkey) = if self.version == RdmaVersion::V1 {
            let body: AtomicWqeV1 = part(wqe)?;
            Wrong::unless_equal("length of an atomic's SGE", body.len.get().into(), 8)?;
            (body.va.get(), body.lkey.get())
        } else {
            (body.local_va.get(), body.lkey.get())
        };
        let remote = remote(body.remote_va_high.get(), body.remote_va_low.get(), body.remote_rkey.get());
        let value = joined(body.swap_add_high.get(), body.swap_add_low.get());
        let compare = joined(body.compare_high.get(), body.compare_low.get());
        let op = if op == SqOp::CompareSwap {
            SendOp::CompareSwap { remote, compare, swap: value }
        } else {
            Wrong::unless_equal("compare of a fetch and add", compare, 0)?;
            SendOp::FetchAdd { remote, add: value }
        };
        Ok((op, Payload::Sges(vec![Sge::new(addr, 8, LKey::truncated(lkey))])))
    }

    /// The data of a SEND or RDMA WQE.
    fn payload(&self, flags: WqeFlags, sges: u8, length: u64, wqe: &[u8]) -> Result<Payload, Wrong> {
        if !flags.inline() {
            return self.sges(flags, sges, length, wqe).map(Payload::Sges);
        }
        Wrong::unless_equal("num_sge of an inline WQE", sges.into(), 0)?;
        Wrong::unless_equal("spec format of an inline WQE", flags.spec().into(), 0)?;
        Wrong::if_over("inline length", length, self.max_inline())?;
        let bytes = wqe.get(PAYLOAD_OFFSET..PAYLOAD_OFFSET + length as usize).unwrap_or(&[]);
        Ok(Payload::Inline(bytes.to_vec()))
    }

    /// The SGEs of a SEND, RDMA or receive WQE, whose lengths add up to `length`, in the form that the queue uses. An
    /// express doorbell takes the place of a whole one.
    fn sges(&self, flags: WqeFlags, count: u8, length: u64, wqe: &[u8]) -> Result<Vec<Sge>, Wrong> {
        let format = SpecFormat::of(self.spec, count.into());
        let reserved = if self.express { size_of::<WireSge>() } else { 0 };
        let room = u64::from(self.stride).saturating_sub((format.sge_offset() + reserved) as u64) / 16;
        let most = if self.spec == 0 { room } else { room.min(self.spec.into()) };
        Wrong::if_over("num_sge", count.into(), most)?;
        Wrong::unless_equal("spec format", flags.spec().into(), format as u64)?;
        let mut sges = Vec::with_capacity(count.into());
        for i in 0..usize::from(count) {
            let sge: WireSge = part(wqe.get(format.sge_offset() + 16 * i..).unwrap_or(&[]))?;
            sges.push(Sge::new(sge.va.get(), sge.len.get(), LKey::truncated(sge.lkey.get())));
        }
        let list: &[u8] = wqe.get(PAYLOAD_OFFSET..WQE_MIN).unwrap_or(&[]);
        for (i, sge) in sges.iter().enumerate() {
            let listed = match format {
                SpecFormat::None => sge.length.into(),
                SpecFormat::Spec32 => {
                    part::<zerocopy::big_endian::U32>(list.get(4 * i..).unwrap_or(&[]))?.get().into()
                }
                SpecFormat::Spec16 => {
                    part::<zerocopy::big_endian::U16>(list.get(2 * i..).unwrap_or(&[]))?.get().into()
                }
            };
            Wrong::unless_equal("length in the spec list", listed, sge.length.into())?;
        }
        let total = sges.iter().map(|s| u64::from(s.length)).sum();
        Wrong::if_over("message length", total, MESSAGE_MAX)?;
        Wrong::unless_equal("length", length, total)?;
        Ok(sges)
    }

    /// Decodes a receive WQE.
    pub fn recv(&self, index: u16, wqe: &[u8]) -> Result<RecvWork, Wrong> {
        let head: BaseHeader = part(wqe)?;
        let flags = WqeFlags::from_bits(head.flags.get());
        Wrong::unless_equal("wqe_idx", head.wqe_idx.get(), index.into())?;
        Wrong::unless_equal("op of a receive WQE", head.op.into(), 0)?;
        let only_spec = WqeFlags::new().with_spec(flags.spec());
        Wrong::unless_equal(
            "flags of a receive WQE",
            flags.into_bits().into(),
            only_spec.into_bits().into(),
        )?;
        let sges = self.sges(flags, head.num_sge_key, head.imm_data_key.get().into(), wqe)?;
        Ok(RecvWork { token: index.into(), sges: Ok(sges) })
    }
}

/// Bits 5 to 11 of the flags.
const RESERVED_FLAGS: u16 = 0x0fe0;

fn part<T: FromBytes>(bytes: &[u8]) -> Result<T, Wrong> {
    let short = Wrong { what: "bytes of the WQE", got: bytes.len() as u64, want: size_of::<T>() as u64 };
    T::read_from_prefix(bytes).map(|(value, _)| value).map_err(|_| short)
}

fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn remote(high: u32, low: u32, rkey: u32) -> RemoteAddress {
    RemoteAddress { addr: joined(high, low), rkey: RKey::truncated(rkey) }
}

fn bind(head: &BaseHeader, flags: WqeFlags, wqe: &[u8]) -> Result<(SendOp, Payload), Wrong> {
    let body: BindMwWqe = part(wqe)?;
    let kind = MrFlags::from_bits(body.mr_flags.get());
    Wrong::unless_equal("inline flag of a bind", flags.inline().into(), 0)?;
    Wrong::unless_equal("window bit of a bind", kind.is_mw().into(), 1)?;
    let mw_type = if kind.inv_en() { MwType::Type2 } else { MwType::Type1 };
    if mw_type == MwType::Type2 && body.length.get() == 0 {
        return Err(Wrong { what: "length of a type 2 window", got: 0, want: 1 });
    }
    let mw = head.imm_data_key.get();
    let bind = BindMw {
        mw_type,
        mw: RKey::truncated(mw),
        new_key: RKey::truncated(mw & !0xff | u32::from(head.num_sge_key)),
        region: LKey::truncated(body.lkey.get()),
        addr: body.va.get(),
        length: body.length.get(),
        access: kind.access(),
    };
    Ok((SendOp::BindMw(bind), Payload::Sges(Vec::new())))
}

fn register(head: &BaseHeader, flags: WqeFlags, wqe: &[u8]) -> Result<(SendOp, Payload), Wrong> {
    let body: RegMrWqe = part(wqe)?;
    let (key, kind) = (head.imm_data_key.get(), MrFlags::from_bits(body.mr_flags.get()));
    Wrong::unless_equal("inline flag of a registration", flags.inline().into(), 0)?;
    Wrong::unless_equal("window bit of a registration", kind.is_mw().into(), 0)?;
    Wrong::unless_equal("low byte of the key", head.num_sge_key.into(), (key & 0xff).into())?;
    Wrong::unless_equal("dir_size_log2", body.dir_size_log2.into(), 0)?;
    Wrong::if_over("page_size_log2", body.page_size_log2.into(), 63)?;
    let (addr, dma_addr, pages) = (body.va.get(), body.dma_addr.get(), body.map_count.get());
    let (table, offset) = if pages == 1 {
        (PageTable::Contiguous(dma_addr), 0)
    } else {
        (PageTable::Level1(dma_addr), addr & ((1 << body.page_size_log2) - 1))
    };
    Wrong::unless_equal("offset in the first page", body.offset.get(), offset)?;
    let register = FastRegister {
        key: LKey::truncated(key),
        addr,
        length: body.length.get(),
        page_shift: body.page_size_log2,
        pages,
        table,
        access: kind.access(),
    };
    Ok((SendOp::FastRegister(register), Payload::Sges(Vec::new())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RC: Shape =
        Shape { version: RdmaVersion::V2, qp_type: QpType::Rc, stride: 64, spec: 0, express: false };
    const PLACE: Place = Place { index: 5, color: true };

    fn write_wqe() -> Vec<u8> {
        let mut wqe = vec![0; 64];
        wqe[0] = 5;
        wqe[8] = 0x21;
        wqe[9] = 1;
        wqe[11] = 0x18;
        wqe[16..28].copy_from_slice(&[0, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 7, 0]);
        wqe[31] = 100;
        wqe[32..48].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 100, 0, 0, 0, 9]);
        wqe
    }

    #[test]
    fn a_write_decodes_to_what_was_asked() {
        let work = RC.send(PLACE, &write_wqe()).unwrap();
        let remote = RemoteAddress { addr: 0x1_8000_0000, rkey: RKey::truncated(0x700) };
        assert_eq!(work.op, Ok(SendOp::Write(remote)));
        assert_eq!((work.token, work.flags), (5, SendFlags::SIGNALED));
        assert_eq!(work.payload, Payload::Sges(vec![Sge::new(0x1000, 100, LKey::truncated(9))]));
    }

    #[test]
    fn each_broken_rule_is_named() {
        let cases: [(usize, u8, &str); 12] = [
            (0, 6, "wqe_idx"),
            (7, 1, "wqe_idx"),
            (11, 0x08, "color"),
            (11, 0x38, "reserved flags"),
            (11, 0x1a, "solicited flag of this opcode"),
            (11, 0x1c, "num_sge of an inline WQE"),
            (10, 0x10, "spec format"),
            (8, 0x20, "dest_qkey"),
            (8, 0x03, "opcode"),
            (8, 0x06, "low byte of the key"),
            (9, 3, "num_sge"),
            (31, 101, "length"),
        ];
        for (at, value, what) in cases {
            let mut wqe = write_wqe();
            wqe[at] = value;
            if at == 8 && value == 0x20 {
                wqe[16..24].fill(0);
            }
            assert_eq!(RC.send(PLACE, &wqe).unwrap_err().what, what, "byte {at} = {value:#x}");
        }
    }

    #[test]
    fn a_spec_list_must_repeat_the_lengths() {
        let shape = Shape { stride: 128, spec: 8, ..RC };
        let mut wqe = write_wqe();
        wqe.resize(128, 0);
        wqe[9..12].copy_from_slice(&[3, 0x10, 0x18]);
        wqe[32..64].fill(0);
        for i in 0..3 {
            wqe[32 + 4 * i + 3] = 20;
            wqe[64 + 16 * i + 11] = 20;
        }
        wqe[31] = 60;
        assert_eq!(shape.send(PLACE, &wqe).unwrap().payload.len(), 60);
        wqe[35] = 21;
        assert_eq!(shape.send(PLACE, &wqe).unwrap_err().what, "length in the spec list");
    }

    #[test]
    fn an_express_doorbell_takes_room() {
        let shape = Shape { express: true, ..RC };
        let mut wqe = write_wqe();
        wqe[9..12].copy_from_slice(&[0, 0, 0x1c]);
        wqe[31] = 24;
        assert_eq!(shape.send(PLACE, &wqe).unwrap().payload.len(), 24);
        wqe[31] = 25;
        assert_eq!(shape.send(PLACE, &wqe).unwrap_err().what, "inline length");
        assert_eq!(RC.send(PLACE, &wqe).unwrap().payload.len(), 25);
    }

    #[test]
    fn atomics_of_both_versions_decode_to_the_same() {
        let mut wqe = write_wqe();
        wqe[28..64].fill(0);
        wqe[8] = 4;
        (wqe[35], wqe[43]) = (0xaa, 0xbb);
        let (mut v1, mut v2) = (wqe.clone(), wqe);
        v1[8] = 6;
        (v1[54], v1[59], v1[63]) = (0x10, 8, 9);
        (v2[47], v2[54]) = (9, 0x10);
        let v2 = RC.send(PLACE, &v2).unwrap();
        let v1 = Shape { version: RdmaVersion::V1, ..RC }.send(PLACE, &v1).unwrap();
        assert_eq!(v1, v2);
        let Ok(SendOp::CompareSwap { compare: 0xbb, swap: 0xaa, .. }) = v1.op else { panic!("{v1:?}") };
    }

    #[test]
    fn a_datagram_queue_pair_only_sends() {
        let ud = Shape { qp_type: QpType::Ud, ..RC };
        assert_eq!(ud.send(PLACE, &write_wqe()).unwrap_err().what, "opcode of a datagram queue pair");
        let mut wqe = write_wqe();
        wqe[8] = 0x20;
        wqe[16..20].copy_from_slice(&[0, 0, 0, 1]);
        wqe[20..24].copy_from_slice(&[0, 0, 0, 2]);
        let want = Datagram { ah: AhId::truncated(1), qp: QpId::truncated(2), qkey: QKey::truncated(0x700) };
        assert_eq!(ud.send(PLACE, &wqe).unwrap().op, Ok(SendOp::SendTo(want)));
    }

    #[test]
    fn a_receive_wqe_has_its_length_in_the_header() {
        let mut wqe = vec![0; 64];
        (wqe[0], wqe[9], wqe[15], wqe[43]) = (5, 1, 7, 7);
        assert_eq!(RC.recv(5, &wqe).unwrap().sges.unwrap().len(), 1);
        wqe[11] = 0x10;
        assert_eq!(RC.recv(5, &wqe).unwrap_err().what, "flags of a receive WQE");
    }
}
