//! From a send request to the header of its WQE.

use zerocopy::{little_endian as le, transmute};

use super::wqe::{
    AccessCntl, BindKind, FrPageList, FrPageSize, HEADER_SLOTS, SqAtomicHdr, SqBind, SqFlags, SqFrPmr,
    SqLocalInvalidate, SqRdmaHdr, SqSendHdr, WqeType,
};
use crate::verbs::{
    AccessFlags, BindMw, Data, Datagram, FastRegister, MwType, PageTable, PostError, QpType, RKey,
    RemoteAddress, SendOp, SendRequest, WcOpcode,
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
    /// What completes.
    pub opcode: WcOpcode,
    /// Operation in a retransmit entry: the `ibv_wr_opcode`.
    pub psn_opcode: u8,
    /// The message takes packets of a connection.
    pub packets: bool,
    /// A completion was asked for.
    pub signaled: bool,
}

/// Which bytes of a header an operation stores. The first four and the second eight always are; the rest keeps what an
/// earlier WQE left, as with the vendor's provider.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Written(u8);

impl Written {
    /// Bytes 0 to 3, 8 to 15.
    const SEND: Self = Self(0);
    /// The whole first slot.
    const KEY: Self = Self(1);
    /// Bytes 16 to 23.
    const DATAGRAM: Self = Self(2);
    /// Bytes 16 to 27.
    const RDMA: Self = Self(2 | 4);
    /// All.
    const ALL: Self = Self(1 | 2 | 8);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
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

/// `ibv_wr_opcode`.
mod ibv {
    pub const RDMA_WRITE: u8 = 0;
    pub const RDMA_WRITE_WITH_IMM: u8 = 1;
    pub const SEND: u8 = 2;
    pub const SEND_WITH_IMM: u8 = 3;
    pub const RDMA_READ: u8 = 4;
    pub const ATOMIC_CMP_AND_SWP: u8 = 5;
    pub const ATOMIC_FETCH_AND_ADD: u8 = 6;
    pub const LOCAL_INV: u8 = 7;
    pub const BIND_MW: u8 = 8;
    pub const SEND_WITH_INV: u8 = 9;
    pub const REG_MR: u8 = 0x20;
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
    #[inline(always)]
    fn only(&self, qp_type: QpType, op: WcOpcode) -> Result<(), PostError> {
        if self.kind.qp_type == qp_type { Ok(()) } else { Err(self.refused(op)) }
    }

    #[inline(always)]
    fn not_inline(&self, op: WcOpcode) -> Result<(), PostError> {
        if self.inline { Err(PostError::InlineNotAllowed(op)) } else { Ok(()) }
    }

    #[cold]
    fn refused(&self, op: WcOpcode) -> PostError {
        PostError::NotSupported { op, qp_type: self.kind.qp_type }
    }

    #[inline(always)]
    fn done(
        &self,
        words: [le::U64; 4],
        written: Written,
        opcode: WcOpcode,
        psn_opcode: u8,
    ) -> Result<Header, PostError> {
        let packets = self.kind.qp_type as u8 == QpType::Rc as u8;
        Ok(Header { words, written, opcode, psn_opcode, packets, signaled: self.flags & 1 != 0 })
    }

    #[inline(always)]
    fn send(&self, wqe_type: WqeType, key: u32, written: Written, opcode: u8) -> Result<Header, PostError> {
        let words = SqSendHdr {
            wqe_type: wqe_type.0,
            flags: self.flags,
            wqe_size: self.size,
            inv_key_or_imm_data: le::U32::new(key),
            length: le::U32::new(self.length),
            ..SqSendHdr::ZERO
        };
        self.done(transmute!(words), written, WcOpcode::Send, opcode)
    }

    #[inline(always)]
    fn datagram(
        &self,
        to: Datagram,
        wqe_type: WqeType,
        imm: u32,
        written: Written,
        opcode: u8,
    ) -> Result<Header, PostError> {
        self.only(QpType::Ud, WcOpcode::Send)?;
        if to.ah.get() >> 20 != 0 {
            return Err(PostError::OutOfRange {
                field: "address handle",
                value: to.ah.get().into(),
                bits: 20,
            });
        }
        let words = SqSendHdr {
            wqe_type: wqe_type.0,
            flags: self.flags,
            wqe_size: self.size,
            inv_key_or_imm_data: le::U32::new(imm),
            length: le::U32::new(self.length),
            q_key: le::U32::new(to.qkey.get()),
            dst_qp: le::U32::new(to.qp.get()),
            avid: le::U32::new(to.ah.get()),
            ..SqSendHdr::ZERO
        };
        self.done(transmute!(words), written.and(Written::DATAGRAM), WcOpcode::Send, opcode)
    }

    #[inline(always)]
    fn rdma(
        &self,
        remote: RemoteAddress,
        wqe_type: WqeType,
        imm: u32,
        written: Written,
        op: (WcOpcode, u8),
    ) -> Result<Header, PostError> {
        self.only(QpType::Rc, op.0)?;
        let words = SqRdmaHdr {
            wqe_type: wqe_type.0,
            flags: self.flags,
            wqe_size: self.size,
            imm_data: le::U32::new(imm),
            length: le::U32::new(self.length),
            remote_va: le::U64::new(remote.addr),
            remote_key: le::U32::new(remote.rkey.get()),
            ..SqRdmaHdr::ZERO
        };
        self.done(transmute!(words), written.and(Written::RDMA), op.0, op.1)
    }

    fn atomic(
        &self,
        remote: RemoteAddress,
        wqe_type: WqeType,
        swap: u64,
        compare: u64,
        op: (WcOpcode, u8),
    ) -> Result<Header, PostError> {
        self.only(QpType::Rc, op.0)?;
        self.not_inline(op.0)?;
        if !self.kind.atomics {
            return Err(self.refused(op.0));
        }
        if self.length != 8 || u32::from(self.size) != HEADER_SLOTS + 1 {
            return Err(PostError::AtomicSge);
        }
        let words = SqAtomicHdr {
            wqe_type: wqe_type.0,
            flags: self.flags,
            reserved16: le::U16::new(self.size.into()),
            remote_key: le::U32::new(remote.rkey.get()),
            remote_va: le::U64::new(remote.addr),
            swap_data: le::U64::new(swap),
            cmp_data: le::U64::new(compare),
        };
        self.done(transmute!(words), Written::ALL, op.0, op.1)
    }

    /// An operation that sends nothing: no data, no packet.
    fn local(&self, words: [le::U64; 4], op: (WcOpcode, u8)) -> Result<Header, PostError> {
        self.only(QpType::Rc, op.0)?;
        self.not_inline(op.0)?;
        let sges = u32::from(self.size).saturating_sub(HEADER_SLOTS);
        if sges != 0 {
            return Err(PostError::TooManySges { given: sges as usize, max: 0 });
        }
        let header = self.done(words, Written::ALL, op.0, op.1)?;
        Ok(Header { packets: false, ..header })
    }

    #[cold]
    fn invalidate(&self, key: RKey) -> Result<Header, PostError> {
        let wqe = SqLocalInvalidate {
            wqe_type: WqeType::LOCAL_INV.0,
            flags: self.flags,
            inv_l_key: le::U32::new(key.get()),
            ..SqLocalInvalidate::ZERO
        };
        self.local(first_words(transmute!(wqe)), (WcOpcode::LocalInv, ibv::LOCAL_INV))
    }

    #[cold]
    fn bind(&self, bind: &BindMw) -> Result<Header, PostError> {
        let length = five_bytes("length", bind.length)?;
        let changed = (bind.mw.get() ^ bind.new_key.get()) & !0xff;
        if changed != 0 {
            let value = bind.new_key.get().into();
            return Err(PostError::OutOfRange { field: "change of the window's key", value, bits: 8 });
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
        self.local(first_words(transmute!(wqe)), (WcOpcode::BindMw, ibv::BIND_MW))
    }

    #[cold]
    fn register(&self, register: &FastRegister) -> Result<Header, PostError> {
        let length = five_bytes("length", register.length)?;
        let page_size_log = match register.page_shift.checked_sub(12) {
            Some(log) if log < 32 => log,
            _ => {
                let value = register.page_shift.into();
                return Err(PostError::OutOfRange { field: "page_shift, less 12,", value, bits: 5 });
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
        self.local(first_words(transmute!(wqe)), (WcOpcode::RegMr, ibv::REG_MR))
    }
}

/// The header of a WQE that is declared whole.
fn first_words(wqe: [le::U64; 16]) -> [le::U64; 4] {
    let [a, b, c, d, ..] = wqe;
    [a, b, c, d]
}

fn five_bytes(field: &'static str, value: u64) -> Result<[u8; 5], PostError> {
    match value.to_le_bytes() {
        [a, b, c, d, e, 0, 0, 0] => Ok([a, b, c, d, e]),
        _ => Err(PostError::OutOfRange { field, value, bits: 40 }),
    }
}

/// The header for `request`, whose message has `length` bytes and whose WQE uses `size` slots.
#[inline(always)]
pub(super) fn header(
    request: &SendRequest<'_>,
    kind: &Kind,
    signal_all: bool,
    length: u32,
    size: u32,
) -> Result<Header, PostError> {
    let inline = matches!(request.data, Data::Inline(_));
    let flags = SqFlags::from_flags(request.flags, inline).into_bits() | signal_all as u8;
    let c = Common { flags, size: size as u8, length, inline, kind: *kind };
    match request.op {
        SendOp::Write(remote) => {
            c.rdma(remote, WqeType::WRITE, 0, Written::SEND, (WcOpcode::RdmaWrite, ibv::RDMA_WRITE))
        }
        SendOp::Send => {
            if c.kind.qp_type as u8 == QpType::Ud as u8 {
                return Err(c.refused(WcOpcode::Send));
            }
            c.send(WqeType::SEND, 0, Written::SEND, ibv::SEND)
        }
        SendOp::SendImm(imm) => {
            c.only(QpType::Rc, WcOpcode::Send)?;
            c.send(WqeType::SEND_IMM, imm.get(), Written::KEY, ibv::SEND_WITH_IMM)
        }
        SendOp::SendInv(key) => {
            c.only(QpType::Rc, WcOpcode::Send)?;
            c.send(WqeType::SEND_INV, key.get(), Written::KEY, ibv::SEND_WITH_INV)
        }
        SendOp::WriteImm(remote, imm) => c.rdma(
            remote,
            WqeType::WRITE_IMM,
            imm.get(),
            Written::KEY,
            (WcOpcode::RdmaWrite, ibv::RDMA_WRITE_WITH_IMM),
        ),
        SendOp::Read(remote) => {
            c.not_inline(WcOpcode::RdmaRead)?;
            c.rdma(remote, WqeType::READ, 0, Written::SEND, (WcOpcode::RdmaRead, ibv::RDMA_READ))
        }
        SendOp::CompareSwap { remote, compare, swap } => {
            c.atomic(remote, WqeType::ATOMIC_CS, swap, compare, (WcOpcode::CompSwap, ibv::ATOMIC_CMP_AND_SWP))
        }
        SendOp::FetchAdd { remote, add } => {
            c.atomic(remote, WqeType::ATOMIC_FA, add, 0, (WcOpcode::FetchAdd, ibv::ATOMIC_FETCH_AND_ADD))
        }
        SendOp::SendTo(to) => c.datagram(to, WqeType::SEND, 0, Written::SEND, ibv::SEND),
        SendOp::SendToImm(to, imm) => {
            c.datagram(to, WqeType::SEND_IMM, imm.get(), Written::KEY, ibv::SEND_WITH_IMM)
        }
        SendOp::LocalInv(key) => c.invalidate(key),
        SendOp::BindMw(ref bind) => c.bind(bind),
        SendOp::FastRegister(ref register) => c.register(register),
    }
}
