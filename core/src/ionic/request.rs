//! Send requests whose WQE has a body of its own: atomics, memory windows, registration and invalidation.

use zerocopy::{IntoBytes, big_endian as be};

use super::payload::no_data;
use super::work::be_pair;
use super::wqe::{AtomicWqeV1, AtomicWqeV2, BindMwWqe, MrFlags, RdmaVersion, RegMrWqe, SqOp};
use crate::verbs::{
    BindMw, Data, Datagram, FastRegister, MwType, PageTable, PostError, QpType, RemoteAddress, SendFlags,
    SendOp, SendRequest, WcOpcode,
};

/// A WQE of 64 bytes with a body of its own; words 0 and 1 are left zero.
pub(super) struct Special {
    pub num_sge_key: u8,
    pub words: [u64; 8],
    /// Bytes that the completion reports.
    pub length: u32,
}

/// What a WQE has behind its first 16 bytes.
pub(super) enum Body {
    /// Words 2 and 3, and a payload.
    Data {
        /// Word 2.
        address: u64,
        /// First half of word 3; the second is the length.
        key: u32,
        /// The payload may be inline data.
        inline: bool,
    },
    /// A body of its own.
    Special,
}

/// What an operation puts into its WQE.
pub(super) struct Parts {
    pub op: SqOp,
    /// The operation as a completion names it.
    pub wc: WcOpcode,
    pub imm_data_key: u32,
    pub body: Body,
    /// Flags that the operation does not take.
    pub refused: SendFlags,
}

/// Flags that RDMA WRITE does not take.
pub(super) const WRITE_REFUSES: SendFlags = SendFlags::SOLICITED.union(SendFlags::LOCAL_FENCE);

/// Whether the operation is one of datagram queue pairs.
#[inline(always)]
pub(super) const fn is_datagram(op: &SendOp) -> bool {
    matches!(op, SendOp::SendTo(_) | SendOp::SendToImm(..))
}

/// What an operation puts into its WQE.
#[inline(always)]
pub(super) fn parts(wr: &SendOp) -> Parts {
    const NONE: Body = Body::Data { address: 0, key: 0, inline: true };
    let to = |to: &Datagram| {
        let address = be_pair(to.ah.get(), to.qp.get());
        Body::Data { address, key: to.qkey.get(), inline: true }
    };
    let remote =
        |at: &RemoteAddress, inline| Body::Data { address: at.addr.swap_bytes(), key: at.rkey.get(), inline };
    let (op, imm_data_key, body, refused) = match wr {
        SendOp::Send => (SqOp::Send, 0, NONE, SendFlags::LOCAL_FENCE),
        SendOp::SendImm(imm) => (SqOp::SendImm, imm.get(), NONE, SendFlags::LOCAL_FENCE),
        SendOp::SendInv(key) => (SqOp::SendInv, key.get(), NONE, SendFlags::LOCAL_FENCE),
        SendOp::SendTo(peer) => (SqOp::Send, 0, to(peer), SendFlags::LOCAL_FENCE),
        SendOp::SendToImm(peer, imm) => (SqOp::SendImm, imm.get(), to(peer), SendFlags::LOCAL_FENCE),
        SendOp::Write(at) => (SqOp::Write, 0, remote(at, true), WRITE_REFUSES),
        SendOp::WriteImm(at, imm) => (SqOp::WriteImm, imm.get(), remote(at, true), SendFlags::LOCAL_FENCE),
        SendOp::Read(at) => (SqOp::Read, 0, remote(at, false), WRITE_REFUSES),
        SendOp::CompareSwap { .. } => (SqOp::CompareSwap, 0, Body::Special, WRITE_REFUSES),
        SendOp::FetchAdd { .. } => (SqOp::FetchAdd, 0, Body::Special, WRITE_REFUSES),
        SendOp::LocalInv(key) => (SqOp::LocalInv, key.get(), Body::Special, WRITE_REFUSES),
        SendOp::BindMw(bind) => (SqOp::BindMw, bind.mw.get(), Body::Special, WRITE_REFUSES),
        SendOp::FastRegister(register) => (SqOp::RegMr, register.key.get(), Body::Special, WRITE_REFUSES),
    };
    Parts { op, wc: wc_opcode(wr), imm_data_key, body, refused }
}

/// The operation as a completion names it.
#[inline(always)]
pub(super) const fn wc_opcode(op: &SendOp) -> WcOpcode {
    match op {
        SendOp::Send
        | SendOp::SendImm(_)
        | SendOp::SendInv(_)
        | SendOp::SendTo(_)
        | SendOp::SendToImm(..) => WcOpcode::Send,
        SendOp::Write(_) | SendOp::WriteImm(..) => WcOpcode::RdmaWrite,
        SendOp::Read(_) => WcOpcode::RdmaRead,
        SendOp::CompareSwap { .. } => WcOpcode::CompSwap,
        SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
        SendOp::LocalInv(_) => WcOpcode::LocalInv,
        SendOp::BindMw(_) => WcOpcode::BindMw,
        SendOp::FastRegister(_) => WcOpcode::RegMr,
    }
}

/// Checks a request whose WQE has a body of its own, and makes it.
pub(super) fn special(
    version: RdmaVersion,
    qp_type: QpType,
    request: &SendRequest<'_>,
) -> Result<Special, PostError> {
    let wc = wc_opcode(&request.op);
    let local = |num_sge_key: u32, words| Special { num_sge_key: num_sge_key as u8, words, length: 0 };
    match request.op {
        SendOp::CompareSwap { remote, compare, swap } => {
            atomic(version, wc, &remote, swap, compare, &request.data)
        }
        SendOp::FetchAdd { remote, add } => atomic(version, wc, &remote, add, 0, &request.data),
        SendOp::LocalInv(_) => {
            no_data(wc, &request.data)?;
            Ok(local(0, [0; 8]))
        }
        SendOp::BindMw(bind) => {
            no_data(wc, &request.data)?;
            Ok(local(bind.new_key.get(), bind_words(&bind)?))
        }
        SendOp::FastRegister(register) => {
            no_data(wc, &request.data)?;
            Ok(local(register.key.get(), register_words(&register, qp_type)?))
        }
        _ => Err(PostError::NotSupported { op: wc, qp_type }),
    }
}

fn words<T: IntoBytes + zerocopy::Immutable>(wqe: &T) -> [u64; 8] {
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(wqe.as_bytes().as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

const fn halves(value: u64) -> (be::U32, be::U32) {
    (be::U32::new((value >> 32) as u32), be::U32::new(value as u32))
}

fn atomic(
    version: RdmaVersion,
    wc: WcOpcode,
    remote: &RemoteAddress,
    swap_add: u64,
    compare: u64,
    data: &Data<'_>,
) -> Result<Special, PostError> {
    let sge = match data {
        Data::Inline(_) => return Err(PostError::InlineNotAllowed(wc)),
        Data::Sges([sge]) if sge.length == 8 => sge,
        Data::Sges(_) => return Err(PostError::AtomicSge),
    };
    let (remote_va_high, remote_va_low) = halves(remote.addr);
    let (swap_add_high, swap_add_low) = halves(swap_add);
    let (compare_high, compare_low) = halves(compare);
    let remote_rkey = be::U32::new(remote.rkey.get());
    let lkey = be::U32::new(sge.lkey.get());
    let words = match version {
        RdmaVersion::V1 => words(&AtomicWqeV1 {
            remote_va_high,
            remote_va_low,
            remote_rkey,
            swap_add_high,
            swap_add_low,
            compare_high,
            compare_low,
            va: be::U64::new(sge.addr),
            len: be::U32::new(8),
            lkey,
            ..AtomicWqeV1::ZERO
        }),
        RdmaVersion::V2 => words(&AtomicWqeV2 {
            remote_va_high,
            remote_va_low,
            remote_rkey,
            swap_add_high,
            swap_add_low,
            compare_high,
            compare_low,
            lkey,
            local_va: be::U64::new(sge.addr),
            ..AtomicWqeV2::ZERO
        }),
    };
    Ok(Special { num_sge_key: 1, words, length: 8 })
}

fn bind_words(bind: &BindMw) -> Result<[u64; 8], PostError> {
    if bind.length == 0 && bind.mw_type != MwType::Type1 {
        return Err(PostError::EmptyBind);
    }
    if (bind.mw.get() ^ bind.new_key.get()) > u8::MAX.into() {
        return Err(PostError::OutOfRange {
            field: text!("change of the window's key"),
            value: (bind.mw.get() ^ bind.new_key.get()).into(),
            bits: 8,
        });
    }
    let flags = MrFlags::from_access(bind.access).with_is_mw(true).with_inv_en(bind.mw_type == MwType::Type2);
    Ok(words(&BindMwWqe {
        va: be::U64::new(bind.addr),
        length: be::U64::new(bind.length),
        lkey: be::U32::new(bind.region.get()),
        mr_flags: be::U16::new(flags.into_bits()),
        ..BindMwWqe::ZERO
    }))
}

fn register_words(register: &FastRegister, qp_type: QpType) -> Result<[u64; 8], PostError> {
    let page = 1u64.checked_shl(register.page_shift.into()).ok_or(PostError::OutOfRange {
        field: text!("page_shift"),
        value: register.page_shift.into(),
        bits: 6,
    })?;
    // With one page the address is that of the memory itself, with more that of their list.
    let (dma_addr, map_count, offset) = match register.table {
        PageTable::Contiguous(addr) => (addr, 1, 0),
        PageTable::Level1(list) if register.pages > 1 => (list, register.pages, register.addr & (page - 1)),
        PageTable::Level1(_) | PageTable::Level2(_) => {
            return Err(PostError::NotSupported { op: WcOpcode::RegMr, qp_type });
        }
    };
    Ok(words(&RegMrWqe {
        va: be::U64::new(register.addr),
        length: be::U64::new(register.length),
        offset: be::U64::new(offset),
        dma_addr: be::U64::new(dma_addr),
        map_count: be::U32::new(map_count),
        mr_flags: be::U16::new(MrFlags::from_access(register.access).into_bits()),
        page_size_log2: register.page_shift,
        ..RegMrWqe::ZERO
    }))
}
