//! What is seen of one side while it carries out a step.

use directverbs::verbs::{WcFlags, WcOpcode, WcStatus, WorkCompletion};

/// An access to the device, or a call to its driver, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A store of 8 bytes.
    Store {
        /// Kind of page: `doorbell`, `push`, `cmb`.
        page: &'static str,
        /// Byte offset in the page or area.
        offset: usize,
        /// The value.
        value: u64,
    },
    /// A load from a register.
    Load {
        /// Kind of page.
        page: &'static str,
        /// Byte offset in the page.
        offset: usize,
    },
    /// A call to the kernel driver.
    Call(&'static str),
    /// A busy wait.
    Wait {
        /// Microseconds.
        micros: u32,
    },
}

/// How a step ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    #[default]
    Done,
    /// The request at this place of the list was refused; those before it were posted.
    Refused(usize),
    /// The whole call was refused.
    Failed,
}

/// A work completion, with what both sides define of it. `None` is a field that says nothing in this completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Number given at post.
    pub wr_id: u64,
    /// `ibv_wc_status`.
    pub status: u32,
    /// Queue pair.
    pub qp: u32,
    /// The device's status, of an error.
    pub vendor_err: Option<u32>,
    /// `ibv_wc_opcode`, of success.
    pub opcode: Option<u32>,
    /// Bytes, of what came in.
    pub byte_len: Option<u32>,
    /// Immediate data in host order.
    pub imm: Option<u32>,
    /// Key that was invalidated.
    pub invalidated: Option<u32>,
    /// `ibv_wc_flags`, of success.
    pub flags: Option<u32>,
    /// Sender of a datagram.
    pub src_qp: Option<u32>,
    /// Service level of a datagram.
    pub sl: Option<u32>,
    /// Device clock, where it is compared.
    pub timestamp: Option<u64>,
    /// Nanoseconds that it stands for, where they are compared.
    pub wallclock: Option<u64>,
}

impl Completion {
    /// What the core says, where it says something; `datagram` if the queue pair is one of datagrams.
    pub fn ours(wc: &WorkCompletion, datagram: bool) -> Self {
        let wrong = Self {
            wr_id: wc.wr_id,
            status: wc.status as u32,
            qp: wc.qp.get(),
            vendor_err: Some(wc.vendor_err),
            ..Self::default()
        };
        if wc.status != WcStatus::Success {
            return wrong;
        }
        let received = matches!(wc.opcode, WcOpcode::Recv | WcOpcode::RecvRdmaWithImm);
        let comes_in =
            received || matches!(wc.opcode, WcOpcode::RdmaRead | WcOpcode::CompSwap | WcOpcode::FetchAdd);
        Self {
            vendor_err: None,
            opcode: Some(wc.opcode as u32),
            byte_len: comes_in.then_some(wc.byte_len),
            imm: wc.imm().map(|imm| imm.get()),
            invalidated: wc.invalidated().map(|key| key.get()),
            flags: Some(wc.flags.bits().into()),
            src_qp: (datagram && received).then_some(wc.src_qp.get()),
            sl: (datagram && received).then_some(wc.sl.into()),
            ..wrong
        }
    }

    /// From the fields of an `ibv_wc`: what is defined follows from status, opcode and flags.
    pub fn theirs(wc: &Fields, datagram: bool) -> Self {
        let wrong = Self {
            wr_id: wc.wr_id,
            status: wc.status,
            qp: wc.qp,
            vendor_err: Some(wc.vendor_err),
            ..Self::default()
        };
        if wc.status != WcStatus::Success as u32 {
            return wrong;
        }
        let received =
            wc.opcode & WcOpcode::Recv as u32 != 0 && wc.opcode <= WcOpcode::RecvRdmaWithImm as u32;
        let comes_in = received
            || [WcOpcode::RdmaRead, WcOpcode::CompSwap, WcOpcode::FetchAdd]
                .iter()
                .any(|opcode| *opcode as u32 == wc.opcode);
        let has = |flag: WcFlags| wc.flags & u32::from(flag.bits()) != 0;
        Self {
            vendor_err: None,
            opcode: Some(wc.opcode),
            byte_len: comes_in.then_some(wc.byte_len),
            imm: has(WcFlags::WITH_IMM).then_some(u32::from_be(wc.imm_or_rkey)),
            invalidated: has(WcFlags::WITH_INV).then_some(wc.imm_or_rkey),
            flags: Some(wc.flags),
            src_qp: (datagram && received).then_some(wc.src_qp),
            sl: (datagram && received).then_some(wc.sl),
            ..wrong
        }
    }

    /// The fields by name.
    pub fn fields(&self) -> [(&'static str, Option<u64>); 13] {
        let wide = |value: Option<u32>| value.map(u64::from);
        [
            ("wr_id", Some(self.wr_id)),
            ("status", Some(self.status.into())),
            ("qp", Some(self.qp.into())),
            ("vendor_err", wide(self.vendor_err)),
            ("opcode", wide(self.opcode)),
            ("byte_len", wide(self.byte_len)),
            ("imm", wide(self.imm)),
            ("invalidated", wide(self.invalidated)),
            ("flags", wide(self.flags)),
            ("src_qp", wide(self.src_qp)),
            ("sl", wide(self.sl)),
            ("timestamp", self.timestamp),
            ("wallclock", self.wallclock),
        ]
    }
}

/// The fields of an `ibv_wc` that a completion may define.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of `ibv_wc`")]
pub struct Fields {
    pub wr_id: u64,
    pub status: u32,
    pub opcode: u32,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm_or_rkey: u32,
    pub qp: u32,
    pub src_qp: u32,
    pub flags: u32,
    pub sl: u32,
}

/// What one side did in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// How it ended.
    pub outcome: Outcome,
    /// Accesses to the device, in order.
    pub accesses: Vec<Access>,
    /// Completions, in order.
    pub completions: Vec<Completion>,
    /// Other numbers, by name: sizes, capabilities granted.
    pub values: Vec<(&'static str, u64)>,
}

/// Memory that both sides have filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Name.
    pub name: &'static str,
    /// Theirs.
    pub theirs: Vec<u8>,
    /// Ours.
    pub ours: Vec<u8>,
}
