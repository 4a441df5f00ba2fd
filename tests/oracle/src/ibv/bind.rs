//! Binding memory windows of type 1, which has a verb of its own.

use std::ffi::c_int;

use directverbs::verbs::{MwType, SendOp, SendRequest};

use super::qp::Qp;
use super::requests::{Window, flags};
use super::sys::ibv_mw_bind;

impl Qp {
    /// Posts a bind of a window of type 1 with `ibv_bind_mw`; `None` if the request is none, or cannot be expressed. The
    /// verb makes the new key itself: the old one with its low byte counted up, or as it is if the length is 0.
    ///
    /// # Errors
    /// What the provider returned.
    pub fn bind_mw(&self, request: &SendRequest<'_>) -> Option<Result<(), c_int>> {
        let SendOp::BindMw(bind) = &request.op else { return None };
        if bind.mw_type != MwType::Type1 {
            return None;
        }
        let mut window = Window::new(bind);
        let (wr_id, send_flags) = (request.wr_id, flags(request).ok()?);
        let mut raw = ibv_mw_bind { wr_id, send_flags, bind_info: window.info(bind) };
        // SAFETY: the queue pair is there, and so is its context.
        let bind_mw = unsafe { (*(*self.raw()).context).ops.bind_mw }?;
        // SAFETY: window and region are looked at during the call only.
        let code = unsafe { bind_mw(self.raw(), &raw mut window.mw, &mut raw) };
        Some(if code == 0 { Ok(()) } else { Err(code) })
    }
}
