//! Completion queues.

use std::ffi::c_int;
use std::rc::Rc;

use super::completion::Completion;
use super::context::{Context, destroyed};
use super::error::{Error, Result, check, last};
use super::memory::Channel;
use super::pd::Pd;
use super::sys::{CQ_INIT_PD, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_wc, wc_ex};

/// What a completion queue is created from.
#[derive(Clone, Debug, Default)]
pub struct CqInit {
    /// Entries, at least.
    pub cqe: u32,
    /// Where its events go.
    pub channel: Option<Channel>,
    /// Extended form, with these fields of completions ([`wc_ex`]).
    pub extended: Option<u64>,
    /// Extended form only: the domain, for ionic's mask of pipelines and its locks.
    pub pd: Option<Pd>,
}

#[derive(Debug)]
struct Owned {
    context: Context,
    raw: *mut ibv_cq,
    extended: bool,
    /// Kept alive.
    _init: CqInit,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: no queue pair has it any more.
        destroyed("ibv_destroy_cq", unsafe { (self.context.verbs().ibv_destroy_cq)(self.raw) });
    }
}

/// A completion queue.
#[derive(Clone, Debug)]
pub struct Cq(Rc<Owned>);

/// A completion read through the extended interface, with the device's clock if that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extended {
    /// The completion.
    pub completion: Completion,
    /// Ticks.
    pub timestamp: Option<u64>,
    /// Nanoseconds.
    pub wallclock: Option<u64>,
}

impl Cq {
    /// Creates one.
    ///
    /// # Errors
    /// The provider failed, or has no extended form.
    pub fn new(context: &Context, init: &CqInit) -> Result<Self> {
        let channel = init.channel.as_ref().map_or(std::ptr::null_mut(), Channel::raw);
        let extended = init.extended.is_some() || init.pd.is_some();
        let raw = if extended {
            let create = context.extended().create_cq_ex.ok_or(Error::Missing("ibv_create_cq_ex"))?;
            let mut attributes = ibv_cq_init_attr_ex {
                cqe: init.cqe,
                cq_context: std::ptr::null_mut(),
                channel,
                comp_vector: 0,
                wc_flags: init.extended.unwrap_or(0),
                comp_mask: if init.pd.is_some() { CQ_INIT_PD } else { 0 },
                flags: 0,
                parent_domain: init.pd.as_ref().map_or(std::ptr::null_mut(), Pd::raw),
            };
            // SAFETY: the context is open.
            unsafe { create(context.raw(), &mut attributes) }.cast::<ibv_cq>()
        } else {
            let create = context.verbs().ibv_create_cq;
            // SAFETY: the context is open.
            unsafe { create(context.raw(), init.cqe as c_int, std::ptr::null_mut(), channel, 0) }
        };
        if raw.is_null() {
            return Err(last("ibv_create_cq"));
        }
        Ok(Self(Rc::new(Owned { context: context.clone(), raw, extended, _init: init.clone() })))
    }

    /// Handle, as the device knows it.
    pub fn handle(&self) -> u32 {
        // SAFETY: it is there.
        unsafe { (*self.raw()).handle }
    }

    /// Entries that the provider says it has.
    pub fn cqe(&self) -> u32 {
        // SAFETY: it is there.
        unsafe { (*self.raw()).cqe as u32 }
    }

    /// Polls into `completions` and gives what the provider returns: how many, or a negative number.
    pub fn poll_raw(&self, completions: &mut [ibv_wc]) -> c_int {
        // SAFETY: the context is open.
        let poll = unsafe { (*self.0.context.raw()).ops.poll_cq }.expect("every provider polls");
        // SAFETY: as many entries as it says.
        unsafe { poll(self.raw(), completions.len() as c_int, completions.as_mut_ptr()) }
    }

    /// Polls at most `most` completions.
    ///
    /// # Errors
    /// What the provider returned.
    pub fn poll(&self, most: usize) -> std::result::Result<Vec<Completion>, c_int> {
        let mut completions = vec![ibv_wc::default(); most];
        let found = self.poll_raw(&mut completions);
        let found = usize::try_from(found).map_err(|_| found)?;
        Ok(completions[..found].iter().map(Completion::from).collect())
    }

    /// Polls at most `most` completions through `ibv_start_poll`, `ibv_next_poll` and `ibv_end_poll`. Fields that the
    /// queue was not created with are zero. An error after the first completion ends the round, as in `ibv_poll_cq`.
    ///
    /// # Errors
    /// What the provider returned other than "no more", in place of the first completion.
    ///
    /// # Panics
    /// The queue is not an extended one.
    pub fn poll_extended(&self, most: usize) -> std::result::Result<Vec<Extended>, c_int> {
        assert!(self.0.extended, "created without extended fields");
        let raw = self.raw().cast::<ibv_cq_ex>();
        let mut found = Vec::new();
        let mut none = 0;
        // SAFETY: an extended queue; the functions are set at creation.
        unsafe {
            let (start, next, end) = ((*raw).start_poll, (*raw).next_poll, (*raw).end_poll);
            let (start, next) = (start.expect("start_poll"), next.expect("next_poll"));
            let mut code = if most == 0 { libc::ENOENT } else { start(raw, &mut none) };
            let started = code == 0;
            while code == 0 {
                found.push(read(raw));
                code = if found.len() < most { next(raw) } else { libc::ENOENT };
            }
            if started {
                end.expect("end_poll")(raw);
            }
            if code == libc::ENOENT || !found.is_empty() { Ok(found) } else { Err(code) }
        }
    }

    /// Asks for an event on the next completion.
    ///
    /// # Errors
    /// The provider failed.
    pub fn req_notify(&self, solicited_only: bool) -> Result<()> {
        // SAFETY: the context is open.
        let notify = unsafe { (*self.0.context.raw()).ops.req_notify_cq };
        let notify = notify.ok_or(Error::Missing("ibv_req_notify_cq"))?;
        // SAFETY: it is there.
        check("ibv_req_notify_cq", unsafe { notify(self.raw(), solicited_only.into()) })
    }

    /// Makes it larger or smaller.
    ///
    /// # Errors
    /// The provider failed.
    pub fn resize(&self, cqe: u32) -> Result<()> {
        // SAFETY: it is there.
        check("ibv_resize_cq", unsafe { (self.0.context.verbs().ibv_resize_cq)(self.raw(), cqe as c_int) })
    }

    /// The library's object, for calls of its functions without this wrapper.
    pub fn raw(&self) -> *mut ibv_cq {
        self.0.raw
    }
}

/// # Safety
/// A completion is current.
unsafe fn read(cq: *mut ibv_cq_ex) -> Extended {
    // SAFETY: the caller's.
    unsafe {
        let it = &*cq;
        let number =
            |read: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>| read.map_or(0, |read| read(cq));
        let wc = ibv_wc {
            wr_id: it.wr_id,
            status: it.status,
            opcode: number(it.read_opcode),
            vendor_err: number(it.read_vendor_err),
            byte_len: number(it.read_byte_len),
            imm_or_rkey: number(it.read_imm_data),
            qp_num: number(it.read_qp_num),
            src_qp: number(it.read_src_qp),
            wc_flags: number(it.read_wc_flags),
            sl: it.read_sl.map_or(0, |read| read(cq)),
            ..ibv_wc::default()
        };
        Extended {
            completion: Completion::from(&wc),
            timestamp: it.read_completion_ts.map(|read| read(cq)),
            wallclock: it.read_completion_wallclock_ns.map(|read| read(cq)),
        }
    }
}

impl CqInit {
    /// A plain queue of at least `cqe` entries.
    pub fn entries(cqe: u32) -> Self {
        Self { cqe, ..Self::default() }
    }

    /// The extended form with all fields but the clocks.
    #[must_use]
    pub fn extended(self) -> Self {
        Self { extended: Some(wc_ex::STANDARD), ..self }
    }
}
