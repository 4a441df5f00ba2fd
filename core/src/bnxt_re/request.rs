//! From a send request to the header of its WQE.

use zerocopy::{little_endian as le, transmute};

use super::payload::HEADER_WORDS;
use super::wqe::{
    AccessCntl, BindKind, FrPageList, FrPageSize, HEADER_SLOTS, SqAtomicHdr, SqBind, SqFlags, SqFrPmr,
    SqLocalInvalidate, SqRdmaHdr, SqSendHdr, WqeType,
};
use crate::queue::Slot;
use crate::verbs::{
    AccessFlags, BindMw, Data, Datagram, FastRegister, MwType, PageTable, PostError, QpType, RKey,
    RemoteAddress, SendOp, SendRequest, Text, WcOpcode,
};

/// What the operations of a queue pair depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub qp_type: QpType,
    pub atomics: bool,
}

/// A header, and what else the operation decides.
#[derive(Clone, Copy)]
pub(super) struct Header {
    /// The 32 bytes.
    pub words: [le::U64; 4],
    /// Which of them are stored.
    pub written: Written,
    /// The operation.
    pub op: Op,
    /// The message takes packets of a connection.
    pub packets: bool,
    /// Flags of the WQE.
    pub flags: SqFlags,
}

/// Which bytes of a header an operation stores. The first four and the second eight always are; the rest keeps what an
/// earlier WQE left, as with the vendor's provider.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Written(u8);

impl Written {
    /// Bytes 0 to 3, 8 to 15.
    const SEND: Self = Self(0);
    /// Bytes 16 to 23.
    const DATAGRAM: Self = Self(2);
    /// Bytes 16 to 27.
    const RDMA: Self = Self(2 | 4);
    /// All.
    const ALL: Self = Self(1 | 2 | 8);

    /// And bytes 4 to 7, if there is a key.
    const fn with_key(self, key: Option<u32>) -> Self {
        Self(self.0 | key.is_some() as u8)
    }

    pub const fn key(self) -> bool {
        self.0 & 1 != 0
    }

    pub const fn second(self) -> bool {
        self.0 & 2 != 0
    }

    pub const fn last_low(self) -> bool {
        self.0 & 4 != 0
    }

    pub const fn last(self) -> bool {
        self.0 & 8 != 0
    }
}

/// An operation: its WQE type, and its `ibv_wr_opcode`, which PSN entries carry.
#[derive(Clone, Copy)]
pub(super) struct Op {
    pub wqe_type: WqeType,
    pub psn_opcode: u8,
}

impl Op {
    const SEND: Self = Self::new(WqeType::SEND, 2);
    const SEND_IMM: Self = Self::new(WqeType::SEND_IMM, 3);
    const SEND_INV: Self = Self::new(WqeType::SEND_INV, 9);
    const WRITE: Self = Self::new(WqeType::WRITE, 0);
    const WRITE_IMM: Self = Self::new(WqeType::WRITE_IMM, 1);
    const READ: Self = Self::new(WqeType::READ, 4);
    const COMPARE_SWAP: Self = Self::new(WqeType::ATOMIC_CS, 5);
    const FETCH_ADD: Self = Self::new(WqeType::ATOMIC_FA, 6);
    const LOCAL_INV: Self = Self::new(WqeType::LOCAL_INV, 7);
    const BIND: Self = Self::new(WqeType::BIND, 8);
    const REGISTER: Self = Self::new(WqeType::FR_PMR, 0x20);

    const fn new(wqe_type: WqeType, psn_opcode: u8) -> Self {
        Self { wqe_type, psn_opcode }
    }

    /// First word of the header of a WQE that uses `size` slots, without flags.
    #[inline(always)]
    pub const fn first_word(self, size: u32) -> u32 {
        size << 16 | self.wqe_type.0 as u32
    }

    /// What completes.
    const fn completes_as(self) -> WcOpcode {
        match self.wqe_type.completes_as() {
            Some(opcode) => opcode,
            None => WcOpcode::Send,
        }
    }
}

/// SEND, WRITE and READ of a connection. Their headers differ in two operands only.
#[derive(Clone, Copy)]
pub(super) struct Message<'r> {
    pub op: Op,
    /// The peer's memory.
    pub remote: Option<&'r RemoteAddress>,
    /// Immediate data, or a key of the peer.
    pub key: Option<u32>,
}

impl<'r> Message<'r> {
    /// SEND.
    pub const SEND: Self = Self { op: Op::SEND, remote: None, key: None };

    /// RDMA WRITE.
    #[inline(always)]
    pub const fn write(to: &'r RemoteAddress) -> Self {
        Self { op: Op::WRITE, remote: Some(to), key: None }
    }

    /// RDMA READ.
    #[inline(always)]
    pub const fn read(from: &'r RemoteAddress) -> Self {
        Self { op: Op::READ, remote: Some(from), key: None }
    }

    /// Writes the header that begins with `word`, of a message of `length` bytes.
    #[inline(always)]
    pub fn put(&self, header: &mut Slot<'_, HEADER_WORDS>, word: u32, length: u32) {
        header.store_low::<0>(word);
        if let Some(key) = self.key {
            header.store_high::<0>(key);
        }
        header.store::<1>(length.into());
        if let Some(remote) = self.remote {
            header.store::<2>(remote.addr);
            header.store_low::<3>(remote.rkey.get());
        }
    }

    /// The message of an operation, if it is one.
    #[inline(always)]
    pub const fn of(op: &'r SendOp) -> Option<Self> {
        Some(match op {
            SendOp::Send => Self::SEND,
            SendOp::SendImm(imm) => Self { op: Op::SEND_IMM, remote: None, key: Some(imm.get()) },
            SendOp::SendInv(key) => Self { op: Op::SEND_INV, remote: None, key: Some(key.get()) },
            SendOp::Write(to) => Self::write(to),
            SendOp::WriteImm(to, imm) => Self { op: Op::WRITE_IMM, remote: Some(to), key: Some(imm.get()) },
            SendOp::Read(from) => Self::read(from),
            _ => return None,
        })
    }
}

/// What all arms of [`header`] share.
#[derive(Clone, Copy)]
struct Common {
    flags: u8,
    size: u8,
    length: u32,
    inline: bool,
    kind: Kind,
}

impl Common {
    fn only(&self, qp_type: QpType, op: Op) -> Result<(), PostError> {
        if self.kind.qp_type == qp_type { Ok(()) } else { Err(self.refused(op)) }
    }

    fn not_inline(&self, op: Op) -> Result<(), PostError> {
        if self.inline { Err(PostError::InlineNotAllowed(op.completes_as())) } else { Ok(()) }
    }

    fn refused(&self, op: Op) -> PostError {
        PostError::NotSupported { op: op.completes_as(), qp_type: self.kind.qp_type }
    }

    fn done(&self, words: [le::U64; 4], written: Written, op: Op) -> Header {
        let packets = self.kind.qp_type == QpType::Rc;
        Header { words, written, op, packets, flags: SqFlags::from_bits(self.flags) }
    }

    /// SEND of a connection, or a raw frame.
    fn send(&self, key: Option<u32>, op: Op) -> Header {
        let words = SqSendHdr {
            wqe_type: op.wqe_type.0,
            flags: self.flags,
            wqe_size: self.size,
            inv_key_or_imm_data: le::U32::new(key.unwrap_or_default()),
            length: le::U32::new(self.length),
            ..SqSendHdr::ZERO
        };
        self.done(transmute!(words), Written::SEND.with_key(key), op)
    }

    fn datagram(&self, to: Datagram, imm: Option<u32>, op: Op) -> Result<Header, PostError> {
        self.only(QpType::Ud, op)?;
        if to.ah.get() >> 20 != 0 {
            return Err(PostError::OutOfRange {
                field: text!("address handle"),
                value: to.ah.get().into(),
                bits: 20,
            });
        }
        let words = SqSendHdr {
            wqe_type: op.wqe_type.0,
            flags: self.flags,
            wqe_size: self.size,
            inv_key_or_imm_data: le::U32::new(imm.unwrap_or_default()),
            length: le::U32::new(self.length),
            q_key: le::U32::new(to.qkey.get()),
            dst_qp: le::U32::new(to.qp.get()),
            avid: le::U32::new(to.ah.get()),
            ..SqSendHdr::ZERO
        };
        Ok(self.done(transmute!(words), Written::DATAGRAM.with_key(imm), op))
    }

    fn rdma(&self, remote: RemoteAddress, imm: Option<u32>, op: Op) -> Result<Header, PostError> {
        self.only(QpType::Rc, op)?;
        let words = SqRdmaHdr {
            wqe_type: op.wqe_type.0,
            flags: self.flags,
            wqe_size: self.size,
            imm_data: le::U32::new(imm.unwrap_or_default()),
            length: le::U32::new(self.length),
            remote_va: le::U64::new(remote.addr),
            remote_key: le::U32::new(remote.rkey.get()),
            ..SqRdmaHdr::ZERO
        };
        Ok(self.done(transmute!(words), Written::RDMA.with_key(imm), op))
    }

    fn atomic(&self, remote: RemoteAddress, swap: u64, compare: u64, op: Op) -> Result<Header, PostError> {
        self.only(QpType::Rc, op)?;
        self.not_inline(op)?;
        if !self.kind.atomics {
            return Err(self.refused(op));
        }
        if self.length != 8 || u32::from(self.size) != HEADER_SLOTS + 1 {
            return Err(PostError::AtomicSge);
        }
        let words = SqAtomicHdr {
            wqe_type: op.wqe_type.0,
            flags: self.flags,
            reserved16: le::U16::new(self.size.into()),
            remote_key: le::U32::new(remote.rkey.get()),
            remote_va: le::U64::new(remote.addr),
            swap_data: le::U64::new(swap),
            cmp_data: le::U64::new(compare),
        };
        Ok(self.done(transmute!(words), Written::ALL, op))
    }

    /// An operation that sends nothing: no data, no packet.
    fn local(&self, wqe: [le::U64; 16], op: Op) -> Result<Header, PostError> {
        self.only(QpType::Rc, op)?;
        self.not_inline(op)?;
        let sges = u32::from(self.size).saturating_sub(HEADER_SLOTS);
        if sges != 0 {
            return Err(PostError::TooManySges { given: sges as usize, max: 0 });
        }
        let [a, b, c, d, ..] = wqe;
        Ok(Header { packets: false, ..self.done([a, b, c, d], Written::ALL, op) })
    }

    fn invalidate(&self, key: RKey) -> Result<Header, PostError> {
        let wqe = SqLocalInvalidate {
            wqe_type: WqeType::LOCAL_INV.0,
            flags: self.flags,
            inv_l_key: le::U32::new(key.get()),
            ..SqLocalInvalidate::ZERO
        };
        self.local(transmute!(wqe), Op::LOCAL_INV)
    }

    fn bind(&self, bind: &BindMw) -> Result<Header, PostError> {
        let length = five_bytes(text!("length"), bind.length)?;
        let changed = (bind.mw.get() ^ bind.new_key.get()) & !0xff;
        if changed != 0 {
            let value = bind.new_key.get().into();
            return Err(PostError::OutOfRange { field: text!("change of the window's key"), value, bits: 8 });
        }
        let kind = BindKind::new()
            .with_zero_based(bind.access.contains(AccessFlags::ZERO_BASED))
            .with_mw_type2(bind.mw_type == MwType::Type2);
        let wqe = SqBind {
            wqe_type: WqeType::BIND.0,
            flags: self.flags,
            access_cntl: AccessCntl::from_access(bind.access).into_bits(),
            mw_type_zero_based: kind.into_bits(),
            parent_l_key: le::U32::new(bind.region.get()),
            l_key: le::U32::new(bind.new_key.get()),
            va: le::U64::new(bind.addr),
            length,
            ..SqBind::ZERO
        };
        self.local(transmute!(wqe), Op::BIND)
    }

    fn register(&self, register: &FastRegister) -> Result<Header, PostError> {
        let length = five_bytes(text!("length"), register.length)?;
        let page_size_log = match register.page_shift.checked_sub(12) {
            Some(log) if log < 32 => log,
            _ => {
                let value = register.page_shift.into();
                return Err(PostError::OutOfRange { field: text!("page_shift, less 12,"), value, bits: 5 });
            }
        };
        let (numlevels, pblptr) = match register.table {
            PageTable::Contiguous(at) => (0, at),
            PageTable::Level1(at) => (1, at),
            PageTable::Level2(at) => (2, at),
        };
        let page = FrPageSize::new()
            .with_page_size_log(page_size_log)
            .with_zero_based(register.access.contains(AccessFlags::ZERO_BASED));
        let wqe = SqFrPmr {
            wqe_type: WqeType::FR_PMR.0,
            flags: self.flags,
            access_cntl: AccessCntl::from_access(register.access).into_bits(),
            zero_based_page_size_log: page.into_bits(),
            l_key: le::U32::new(register.key.get()),
            length,
            numlevels_pbl_page_size_log: FrPageList::new().with_numlevels(numlevels).into_bits(),
            pblptr: le::U64::new(pblptr),
            va: le::U64::new(register.addr),
            ..SqFrPmr::ZERO
        };
        self.local(transmute!(wqe), Op::REGISTER)
    }
}

fn five_bytes(field: Text, value: u64) -> Result<[u8; 5], PostError> {
    match value.to_le_bytes() {
        [a, b, c, d, e, 0, 0, 0] => Ok([a, b, c, d, e]),
        _ => Err(PostError::OutOfRange { field, value, bits: 40 }),
    }
}

/// The header for `request`, whose message has `length` bytes and whose WQE has `flags` and uses `size` slots.
pub(super) fn header(
    request: &SendRequest<'_>,
    kind: &Kind,
    flags: SqFlags,
    length: u32,
    size: u32,
) -> Result<Header, PostError> {
    let inline = matches!(request.data, Data::Inline(_));
    let c = Common { flags: flags.into_bits(), size: size as u8, length, inline, kind: *kind };
    match request.op {
        SendOp::Send if c.kind.qp_type == QpType::Ud => Err(c.refused(Op::SEND)),
        SendOp::Send => Ok(c.send(None, Op::SEND)),
        SendOp::SendImm(imm) => {
            c.only(QpType::Rc, Op::SEND_IMM)?;
            Ok(c.send(Some(imm.get()), Op::SEND_IMM))
        }
        SendOp::SendInv(key) => {
            c.only(QpType::Rc, Op::SEND_INV)?;
            Ok(c.send(Some(key.get()), Op::SEND_INV))
        }
        SendOp::Write(remote) => c.rdma(remote, None, Op::WRITE),
        SendOp::WriteImm(remote, imm) => c.rdma(remote, Some(imm.get()), Op::WRITE_IMM),
        SendOp::Read(remote) => {
            c.not_inline(Op::READ)?;
            c.rdma(remote, None, Op::READ)
        }
        SendOp::CompareSwap { remote, compare, swap } => c.atomic(remote, swap, compare, Op::COMPARE_SWAP),
        SendOp::FetchAdd { remote, add } => c.atomic(remote, add, 0, Op::FETCH_ADD),
        SendOp::SendTo(to) => c.datagram(to, None, Op::SEND),
        SendOp::SendToImm(to, imm) => c.datagram(to, Some(imm.get()), Op::SEND_IMM),
        SendOp::LocalInv(key) => c.invalidate(key),
        SendOp::BindMw(ref bind) => c.bind(bind),
        SendOp::FastRegister(ref register) => c.register(register),
    }
}
