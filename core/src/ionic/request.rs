//! Send requests whose WQE has a body of its own: atomics, memory windows, registration and invalidation.

use zerocopy::{IntoBytes, big_endian as be};

use super::work::{be_pair, no_data};
use super::wqe::{AtomicWqeV1, AtomicWqeV2, BindMwWqe, MrFlags, RdmaVersion, RegMrWqe, SqOp};
use crate::verbs::{
    BindMw, Data, Datagram, FastRegister, MwType, PageTable, PostError, QpType, RemoteAddress, SendFlags,
    SendOp, SendRequest, WcOpcode,
};

/// A WQE of 64 bytes; words 0 and 1 are left zero.
pub(super) struct Special {
    pub opcode: u8,
    pub num_sge_key: u8,
    pub imm_data_key: u32,
    pub words: [u64; 8],
    pub wc: WcOpcode,
    /// Bytes that the completion reports.
    pub length: u32,
    /// It completes by message, not by position.
    pub remote: bool,
}

/// Word 2 of a datagram's WQE.
#[inline(always)]
pub(super) const fn to_word(to: &Datagram) -> u64 {
    be_pair(to.ah.get(), to.qp.get())
}

/// The operation as a completion names it.
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

/// Checks a request and makes its WQE.
pub(super) fn special(
    version: RdmaVersion,
    qp_type: QpType,
    request: &SendRequest<'_>,
) -> Result<Special, PostError> {
    let wc = wc_opcode(&request.op);
    if request.flags.intersects(SendFlags::SOLICITED | SendFlags::LOCAL_FENCE) {
        return Err(PostError::FlagNotAllowed(wc));
    }
    let local = |op: SqOp, key: u32, words| Special {
        opcode: op.opcode(version),
        num_sge_key: key as u8,
        imm_data_key: 0,
        words,
        wc,
        length: 0,
        remote: false,
    };
    match request.op {
        SendOp::CompareSwap { remote, compare, swap } => {
            atomic(version, SqOp::CompareSwap, &remote, swap, compare, &request.data)
        }
        SendOp::FetchAdd { remote, add } => atomic(version, SqOp::FetchAdd, &remote, add, 0, &request.data),
        SendOp::LocalInv(key) => {
            no_data(wc, &request.data)?;
            Ok(Special { imm_data_key: key.get(), ..local(SqOp::LocalInv, 0, [0; 8]) })
        }
        SendOp::BindMw(bind) => {
            no_data(wc, &request.data)?;
            let words = bind_words(&bind)?;
            Ok(Special { imm_data_key: bind.mw.get(), ..local(SqOp::BindMw, bind.new_key.get(), words) })
        }
        SendOp::FastRegister(register) => {
            no_data(wc, &request.data)?;
            let key = register.key.get();
            let words = register_words(&register, qp_type)?;
            Ok(Special { imm_data_key: key, ..local(SqOp::RegMr, key, words) })
        }
        op => Err(PostError::NotSupported { op: wc_opcode(&op), qp_type }),
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
    op: SqOp,
    remote: &RemoteAddress,
    swap_add: u64,
    compare: u64,
    data: &Data<'_>,
) -> Result<Special, PostError> {
    let wc = if op == SqOp::CompareSwap { WcOpcode::CompSwap } else { WcOpcode::FetchAdd };
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
    Ok(Special {
        opcode: op.opcode(version),
        num_sge_key: 1,
        imm_data_key: 0,
        words,
        wc,
        length: 8,
        remote: true,
    })
}

fn bind_words(bind: &BindMw) -> Result<[u64; 8], PostError> {
    if bind.length == 0 && bind.mw_type != MwType::Type1 {
        return Err(PostError::EmptyBind);
    }
    if (bind.mw.get() ^ bind.new_key.get()) > u8::MAX.into() {
        return Err(PostError::OutOfRange {
            field: "change of the window's key",
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
        field: "page_shift",
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
