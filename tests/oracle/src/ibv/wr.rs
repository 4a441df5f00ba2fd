//! Posting through `ibv_wr_start`, `ibv_wr_*` and `ibv_wr_complete`.

use directverbs::verbs::{BindMw, Data, Datagram, SendOp, SendRequest};

use super::ah::Ah;
use super::error::{Error, Result, check};
use super::qp::Qp;
use super::requests::{Window, address_handle, flags, sge};
use super::sys::{ibv_data_buf, ibv_qp_ex, ibv_sge};

/// Which of the interface's functions take SGEs and inline pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// The function for one, where there is exactly one; else the one for lists.
    Single,
    /// Always the one for lists.
    Lists,
}

/// A function that the provider may lack.
fn get<F>(function: Option<F>, name: &'static str) -> Result<F> {
    function.ok_or(Error::Missing(name))
}

impl Qp {
    /// Posts send requests through `ibv_wr_*`, all between one start and one complete. `ahs` are the address handles that
    /// datagrams may name. Made with [`Qp::new_extended`].
    ///
    /// # Errors
    /// What `ibv_wr_complete` returned, or the provider lacks an operation; then nothing is posted.
    ///
    /// # Panics
    /// A request that the library cannot express.
    pub fn post_wr(&self, requests: &[SendRequest<'_>], ahs: &[Ah], pieces: Pieces) -> Result<()> {
        self.start(requests, ahs, pieces)?;
        // SAFETY: between start and complete.
        let complete = get(unsafe { (*self.ex()).wr_complete }, "ibv_wr_complete")?;
        // SAFETY: between start and complete.
        check("ibv_wr_complete", unsafe { complete(self.ex()) })
    }

    /// The same, but ends with `ibv_wr_abort`: nothing is posted.
    ///
    /// # Errors
    /// The provider lacks an operation.
    ///
    /// # Panics
    /// A request that the library cannot express.
    pub fn abort_wr(&self, requests: &[SendRequest<'_>], ahs: &[Ah], pieces: Pieces) -> Result<()> {
        self.start(requests, ahs, pieces)?;
        // SAFETY: between start and complete.
        unsafe { get((*self.ex()).wr_abort, "ibv_wr_abort")?(self.ex()) };
        Ok(())
    }

    fn ex(&self) -> *mut ibv_qp_ex {
        self.raw().cast()
    }

    fn start(&self, requests: &[SendRequest<'_>], ahs: &[Ah], pieces: Pieces) -> Result<()> {
        let qp = self.ex();
        // SAFETY: an extended queue pair; the calls are in the order that the interface wants.
        unsafe {
            get((*qp).wr_start, "ibv_wr_start")?(qp);
            for request in requests {
                (*qp).wr_id = request.wr_id;
                (*qp).wr_flags = flags(request).expect("a flag of the library");
                if let Err(missing) = operation(qp, &request.op, ahs).and_then(|()| data(qp, request, pieces))
                {
                    get((*qp).wr_abort, "ibv_wr_abort")?(qp);
                    return Err(missing);
                }
            }
        }
        Ok(())
    }
}

unsafe fn to(qp: *mut ibv_qp_ex, datagram: &Datagram, ahs: &[Ah]) -> Result<()> {
    let ah = address_handle(ahs, datagram.ah.get()).expect("an address handle of the list");
    // SAFETY: the caller's.
    unsafe {
        get((*qp).wr_set_ud_addr, "ibv_wr_set_ud_addr")?(qp, ah, datagram.qp.get(), datagram.qkey.get());
    }
    Ok(())
}

unsafe fn bind(qp: *mut ibv_qp_ex, bind: &BindMw) -> Result<()> {
    let mut window = Window::new(bind);
    let info = window.info(bind);
    // SAFETY: the caller's; window and region are looked at during the call only.
    unsafe { get((*qp).wr_bind_mw, "ibv_wr_bind_mw")?(qp, &raw mut window.mw, bind.new_key.get(), &info) };
    Ok(())
}

/// # Safety
/// Between start and complete, with `wr_id` and `wr_flags` set.
unsafe fn operation(qp: *mut ibv_qp_ex, op: &SendOp, ahs: &[Ah]) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        let it = &*qp;
        match op {
            SendOp::Send => get(it.wr_send, "ibv_wr_send")?(qp),
            SendOp::SendImm(imm) => get(it.wr_send_imm, "ibv_wr_send_imm")?(qp, imm.get().to_be()),
            SendOp::SendInv(key) => get(it.wr_send_inv, "ibv_wr_send_inv")?(qp, key.get()),
            SendOp::Write(remote) => {
                get(it.wr_rdma_write, "ibv_wr_rdma_write")?(qp, remote.rkey.get(), remote.addr);
            }
            SendOp::WriteImm(remote, imm) => {
                let write = get(it.wr_rdma_write_imm, "ibv_wr_rdma_write_imm")?;
                write(qp, remote.rkey.get(), remote.addr, imm.get().to_be());
            }
            SendOp::Read(remote) => {
                get(it.wr_rdma_read, "ibv_wr_rdma_read")?(qp, remote.rkey.get(), remote.addr);
            }
            SendOp::CompareSwap { remote, compare, swap } => {
                let cmp_swp = get(it.wr_atomic_cmp_swp, "ibv_wr_atomic_cmp_swp")?;
                cmp_swp(qp, remote.rkey.get(), remote.addr, *compare, *swap);
            }
            SendOp::FetchAdd { remote, add } => {
                let fetch_add = get(it.wr_atomic_fetch_add, "ibv_wr_atomic_fetch_add")?;
                fetch_add(qp, remote.rkey.get(), remote.addr, *add);
            }
            SendOp::SendTo(datagram) => {
                get(it.wr_send, "ibv_wr_send")?(qp);
                to(qp, datagram, ahs)?;
            }
            SendOp::SendToImm(datagram, imm) => {
                get(it.wr_send_imm, "ibv_wr_send_imm")?(qp, imm.get().to_be());
                to(qp, datagram, ahs)?;
            }
            SendOp::LocalInv(key) => get(it.wr_local_inv, "ibv_wr_local_inv")?(qp, key.get()),
            SendOp::BindMw(window) => bind(qp, window)?,
            SendOp::FastRegister(_) => panic!("user space cannot register memory through a send queue"),
        }
    }
    Ok(())
}

/// # Safety
/// After the operation.
unsafe fn data(qp: *mut ibv_qp_ex, request: &SendRequest<'_>, pieces: Pieces) -> Result<()> {
    // These two carry no data.
    if matches!(request.op, SendOp::LocalInv(_) | SendOp::BindMw(_)) {
        return Ok(());
    }
    let single = pieces == Pieces::Single;
    // SAFETY: the caller's; the lists are read during the calls only.
    unsafe {
        let it = &*qp;
        match request.data {
            Data::Sges([one]) if single => {
                get(it.wr_set_sge, "ibv_wr_set_sge")?(qp, one.lkey.get(), one.addr, one.length);
            }
            Data::Sges(sges) => {
                let list: Vec<ibv_sge> = sges.iter().map(sge).collect();
                get(it.wr_set_sge_list, "ibv_wr_set_sge_list")?(qp, list.len(), list.as_ptr());
            }
            Data::Inline([one]) if single => {
                let set = get(it.wr_set_inline_data, "ibv_wr_set_inline_data")?;
                set(qp, one.as_ptr().cast_mut().cast(), one.len());
            }
            Data::Inline(pieces) => {
                let list: Vec<ibv_data_buf> = pieces
                    .iter()
                    .map(|piece| ibv_data_buf { addr: piece.as_ptr().cast_mut().cast(), length: piece.len() })
                    .collect();
                let set = get(it.wr_set_inline_data_list, "ibv_wr_set_inline_data_list")?;
                set(qp, list.len(), list.as_ptr());
            }
        }
    }
    Ok(())
}
