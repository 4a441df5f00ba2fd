//! The core's requests as the library's linked lists.

use std::ffi::c_int;
use std::marker::PhantomData;

use directverbs::verbs::{BindMw, Data, MwType, RecvRequest, SendFlags, SendOp, SendRequest, Sge};

use super::ah::Ah;
use super::error::PostError;
use super::sys::{
    SEND_INLINE, atomic, bind_mw, ibv_ah, ibv_mr, ibv_mw, ibv_mw_bind_info, ibv_recv_wr, ibv_send_wr,
    ibv_send_wr_target, ibv_sge, rdma, ud, wr,
};

/// A request that the library cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// Registers memory: kernel consumers only.
    #[error("user space cannot register memory through a send queue")]
    FastRegister,
    /// The fence of bnxt_re that the library has no flag for.
    #[error("the library has no flag for LOCAL_FENCE")]
    LocalFence,
    /// No address handle of the list has the request's id.
    #[error("no address handle has the id {0:#x}")]
    NoAddressHandle(u32),
}

pub(super) fn address_handle(ahs: &[Ah], id: u32) -> Result<*mut ibv_ah, Unsupported> {
    let found = ahs.iter().find(|ah| ah.id().get() == id);
    found.map(Ah::raw).ok_or(Unsupported::NoAddressHandle(id))
}

pub(super) fn sge(sge: &Sge) -> ibv_sge {
    ibv_sge { addr: sge.addr, length: sge.length, lkey: sge.lkey.get() }
}

pub(super) fn flags(request: &SendRequest<'_>) -> Result<u32, Unsupported> {
    if request.flags.contains(SendFlags::LOCAL_FENCE) {
        return Err(Unsupported::LocalFence);
    }
    let inline = if matches!(request.data, Data::Inline(_)) { SEND_INLINE } else { 0 };
    Ok(u32::from(request.flags.bits()) | inline)
}

/// Window and region of a bind. The providers look at the keys and the type only, so any numbers can be tried.
#[derive(Debug)]
pub(super) struct Window {
    pub mw: ibv_mw,
    pub mr: ibv_mr,
}

impl Window {
    pub fn new(bind: &BindMw) -> Box<Self> {
        let mw_type = match bind.mw_type {
            MwType::Type1 => 1,
            MwType::Type2 => 2,
        };
        Box::new(Self {
            mw: ibv_mw {
                context: std::ptr::null_mut(),
                pd: std::ptr::null_mut(),
                rkey: bind.mw.get(),
                handle: 0,
                mw_type,
            },
            mr: ibv_mr {
                context: std::ptr::null_mut(),
                pd: std::ptr::null_mut(),
                addr: std::ptr::null_mut(),
                length: usize::MAX,
                handle: 0,
                lkey: bind.region.get(),
                rkey: bind.region.get(),
            },
        })
    }

    pub fn info(&mut self, bind: &BindMw) -> ibv_mw_bind_info {
        ibv_mw_bind_info {
            mr: &raw mut self.mr,
            addr: bind.addr,
            length: bind.length,
            mw_access_flags: bind.access.bits(),
        }
    }
}

/// Requests point into the boxes while the list grows.
type Windows = Vec<Box<Window>>;

/// Send requests in the library's form. It borrows the inline bytes and the address handles.
pub struct SendList<'a> {
    requests: Vec<ibv_send_wr>,
    _sges: Vec<Vec<ibv_sge>>,
    /// The requests point at them, so each has a place of its own.
    _windows: Windows,
    borrowed: PhantomData<&'a ()>,
}

impl std::fmt::Debug for SendList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendList").field("requests", &self.requests.len()).finish()
    }
}

impl<'a> SendList<'a> {
    /// Converts requests; `ahs` are the address handles that datagrams may name.
    ///
    /// # Errors
    /// The first that the library cannot express.
    pub fn new(requests: &[SendRequest<'a>], ahs: &'a [Ah]) -> Result<Self, Unsupported> {
        let (mut list, mut all_sges, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        for request in requests {
            let mut sges: Vec<ibv_sge> = match request.data {
                Data::Sges(sges) => sges.iter().map(sge).collect(),
                Data::Inline(pieces) => pieces
                    .iter()
                    .map(|p| ibv_sge { addr: p.as_ptr() as u64, length: p.len() as u32, lkey: 0 })
                    .collect(),
            };
            // SAFETY: all zero bytes are a valid request.
            let mut raw: ibv_send_wr = unsafe { std::mem::zeroed() };
            raw.wr_id = request.wr_id;
            raw.sg_list = sges.as_mut_ptr();
            raw.num_sge = sges.len() as c_int;
            raw.send_flags = flags(request)?;
            fill(&mut raw, &request.op, ahs, &mut windows)?;
            all_sges.push(sges);
            list.push(raw);
        }
        let first = list.as_mut_ptr();
        for (i, raw) in list.iter_mut().enumerate().take(requests.len().saturating_sub(1)) {
            raw.next = first.wrapping_add(i + 1);
        }
        Ok(Self { requests: list, _sges: all_sges, _windows: windows, borrowed: PhantomData })
    }

    /// The first request of the list; null if it is empty.
    pub fn first(&mut self) -> *mut ibv_send_wr {
        if self.requests.is_empty() { std::ptr::null_mut() } else { self.requests.as_mut_ptr() }
    }

    pub(super) fn post(
        &mut self,
        post: impl FnOnce(*mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int,
    ) -> Result<(), PostError> {
        let first = self.first();
        let mut bad = std::ptr::null_mut();
        outcome(post(first, &mut bad), first, bad)
    }
}

fn outcome<T>(code: c_int, first: *mut T, bad: *mut T) -> Result<(), PostError> {
    if code == 0 {
        return Ok(());
    }
    let index = (bad as usize).wrapping_sub(first as usize) / size_of::<T>();
    Err(PostError { code, index })
}

fn fill(raw: &mut ibv_send_wr, op: &SendOp, ahs: &[Ah], windows: &mut Windows) -> Result<(), Unsupported> {
    let datagram = |to: &directverbs::verbs::Datagram| -> Result<ibv_send_wr_target, Unsupported> {
        let ah = address_handle(ahs, to.ah.get())?;
        Ok(ibv_send_wr_target { ud: ud { ah, remote_qpn: to.qp.get(), remote_qkey: to.qkey.get() } })
    };
    let target = |remote: &directverbs::verbs::RemoteAddress| ibv_send_wr_target {
        rdma: rdma { remote_addr: remote.addr, rkey: remote.rkey.get() },
    };
    match op {
        SendOp::Send => raw.opcode = wr::SEND,
        SendOp::SendImm(imm) => (raw.opcode, raw.imm_or_rkey) = (wr::SEND_WITH_IMM, imm.get().to_be()),
        SendOp::SendInv(key) => (raw.opcode, raw.imm_or_rkey) = (wr::SEND_WITH_INV, key.get()),
        SendOp::Write(remote) => (raw.opcode, raw.wr) = (wr::RDMA_WRITE, target(remote)),
        SendOp::WriteImm(remote, imm) => {
            (raw.opcode, raw.imm_or_rkey) = (wr::RDMA_WRITE_WITH_IMM, imm.get().to_be());
            raw.wr = target(remote);
        }
        SendOp::Read(remote) => (raw.opcode, raw.wr) = (wr::RDMA_READ, target(remote)),
        SendOp::CompareSwap { remote, compare, swap } => {
            let (remote_addr, rkey) = (remote.addr, remote.rkey.get());
            raw.opcode = wr::ATOMIC_CMP_AND_SWP;
            raw.wr.atomic = atomic { remote_addr, compare_add: *compare, swap: *swap, rkey };
        }
        SendOp::FetchAdd { remote, add } => {
            let (remote_addr, rkey) = (remote.addr, remote.rkey.get());
            raw.opcode = wr::ATOMIC_FETCH_AND_ADD;
            raw.wr.atomic = atomic { remote_addr, compare_add: *add, swap: 0, rkey };
        }
        SendOp::SendTo(to) => (raw.opcode, raw.wr) = (wr::SEND, datagram(to)?),
        SendOp::SendToImm(to, imm) => {
            (raw.opcode, raw.imm_or_rkey) = (wr::SEND_WITH_IMM, imm.get().to_be());
            raw.wr = datagram(to)?;
        }
        SendOp::LocalInv(key) => (raw.opcode, raw.imm_or_rkey) = (wr::LOCAL_INV, key.get()),
        SendOp::BindMw(bind) => {
            let mut window = Window::new(bind);
            raw.opcode = wr::BIND_MW;
            let bind_info = window.info(bind);
            raw.bind_mw = bind_mw { mw: &raw mut window.mw, rkey: bind.new_key.get(), bind_info };
            windows.push(window);
        }
        SendOp::FastRegister(_) => return Err(Unsupported::FastRegister),
    }
    Ok(())
}

/// Receive requests in the library's form.
#[derive(Debug)]
pub struct RecvList {
    requests: Vec<ibv_recv_wr>,
    _sges: Vec<Vec<ibv_sge>>,
}

impl RecvList {
    /// Converts requests.
    pub fn new(requests: &[RecvRequest<'_>]) -> Self {
        let mut sges: Vec<Vec<ibv_sge>> =
            requests.iter().map(|request| request.sges.iter().map(sge).collect()).collect();
        let mut list: Vec<ibv_recv_wr> = requests
            .iter()
            .zip(&mut sges)
            .map(|(request, sges)| ibv_recv_wr {
                wr_id: request.wr_id,
                next: std::ptr::null_mut(),
                sg_list: sges.as_mut_ptr(),
                num_sge: sges.len() as c_int,
            })
            .collect();
        let first = list.as_mut_ptr();
        for (i, raw) in list.iter_mut().enumerate().take(requests.len().saturating_sub(1)) {
            raw.next = first.wrapping_add(i + 1);
        }
        Self { requests: list, _sges: sges }
    }

    /// The first request of the list; null if it is empty.
    pub fn first(&mut self) -> *mut ibv_recv_wr {
        if self.requests.is_empty() { std::ptr::null_mut() } else { self.requests.as_mut_ptr() }
    }

    pub(super) fn post(
        &mut self,
        post: impl FnOnce(*mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
    ) -> Result<(), PostError> {
        let first = self.first();
        let mut bad = std::ptr::null_mut();
        outcome(post(first, &mut bad), first, bad)
    }
}
